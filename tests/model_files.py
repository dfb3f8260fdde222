"""Writes models with fluidx for the reference to load; run as a script or by a test.

    python tests/model_files.py FOLDER

`golden/oracle/load_models.py` then loads FOLDER under the reference and records what it
found. All values come from fixed seeds, so what stands in the files is the same in
every run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidx as fluid
from fluidx import io, layers
from fluidx.kernels import SelectedRows, VarType

STEPS = 3


class Servers:
    """Holds the slices of a table, as parameter servers do."""

    def __init__(self, slices: dict[tuple[str, str], Any]) -> None:
        self.slices = slices

    def exchange(self, barriers: Any, wanted: Any, trainer_id: int) -> list[Any]:
        return [self.slices[endpoint, name] for endpoint, name in wanted]


def fill(program: fluid.Program, seed: int) -> None:
    """Give all persistable variables values between -0.5 and 0.5 (above 0 for some)."""
    rng = np.random.RandomState(seed)
    for var in sorted(io.get_program_persistable_vars(program), key=lambda v: v.name):
        value = rng.rand(*var.shape) - 0.5
        if var.name.endswith("w_2") or "pow_acc" in var.name or "learning" in var.name:
            value = np.abs(value) + 0.1
        if "moment2" in var.name:
            value = np.abs(value)
        holder = fluid.global_scope().var(var.name)
        holder.value = value.astype("float32")


def conv_model(folder: Path, exe: fluid.Executor) -> None:
    x = fluid.data("img", [None, 1, 12, 12])
    c = fluid.nets.simple_img_conv_pool(x, 4, 3, 2, 2, act="relu")
    c = layers.dropout(layers.batch_norm(c), 0.3)
    p = layers.fc(c, 5, act="softmax")
    fill(fluid.default_main_program(), 1)
    feed = {"img": np.random.RandomState(2).rand(3, 1, 12, 12).astype("f4")}
    for name, params in (("conv_separate", None), ("conv_combined", "all")):
        io.save_inference_model(
            str(folder / name), ["img"], [p], exe, None, None, params
        )
        outputs(folder / name, exe, feed, params)


def outputs(path: Path, exe: fluid.Executor, feed: Any, params: str | None) -> None:
    """What fluidx itself computes with a saved model, beside it."""
    with fluid.scope_guard(fluid.Scope()):
        program, names, targets = io.load_inference_model(
            str(path), exe, params_filename=params
        )
        got = exe.run(program, feed=feed, fetch_list=targets)
    arrays = {f"feed_{n}": feed[n] for n in names}
    np.savez(f"{path}.npz", output=got[0], **arrays)


def trainer_model(folder: Path, exe: fluid.Executor) -> None:
    """The trainer of a transpiled program, its table on two servers."""
    ids = [fluid.data(f"ids{i}", [None, 1], "int64") for i in (1, 2)]
    attr = fluid.ParamAttr("table")
    found = [
        layers.embedding(i, [20000, 4], True, padding_idx=3, param_attr=attr)
        for i in ids
    ]
    p = layers.fc(found[0] + found[1], 2, act="softmax")
    label = fluid.data("label", [None, 1], "int64")
    loss = layers.mean(layers.cross_entropy(p, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fill(fluid.default_main_program(), 3)
    transpiler = fluid.DistributeTranspiler()
    servers = "127.0.0.1:6174,127.0.0.1:6175"
    transpiler.transpile(0, pservers=servers, trainers=2)
    trainer = transpiler.get_trainer_program(wait_port=False)
    lookup = next(
        op for op in trainer.all_ops() if op.type == "distributed_lookup_table"
    )
    rng = np.random.RandomState(4)
    slices = {
        (endpoint, name): rng.rand(rows, 4).astype("f4")
        for endpoint, name, rows in zip(
            *(lookup.attr(n) for n in ("endpoints", "table_names", "height_sections"))
        )
    }
    exe._rpc = Servers(slices)
    path = folder / "trainer"
    io.save_inference_model(str(path), ["ids1", "ids2"], [p], exe, trainer)
    exe._rpc = None
    feed = {f"ids{i}": rng.randint(0, 20000, (5, 1)) for i in (1, 2)}
    feed["ids1"][2] = 3
    outputs(path, exe, feed, None)


def checkpoint(folder: Path, exe: fluid.Executor) -> None:
    """`fluid.save` in the middle of a training, and the losses that follow."""
    x = fluid.data("x", [None, 8])
    y = fluid.data("y", [None, 1])
    p = layers.fc(layers.fc(x, 6, act="tanh"), 1)
    loss = layers.mean(layers.square_error_cost(p, y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    main = fluid.default_main_program()
    fill(main, 5)
    fluid.save(main, str(folder / "checkpoint"))
    rng = np.random.RandomState(6)
    feed = {"x": rng.rand(4, 8).astype("f4"), "y": rng.rand(4, 1).astype("f4")}
    losses = [exe.run(feed=feed, fetch_list=[loss])[0][0] for _ in range(STEPS)]
    np.savez(folder / "checkpoint.npz", losses=np.array(losses), **feed)


def variables(folder: Path, exe: fluid.Executor) -> None:
    """Values of all kinds, in separate files."""
    block = fluid.default_main_program().global_block()
    rng = np.random.RandomState(7)
    values: dict[str, Any] = {
        f"of_{d}": (rng.rand(2, 3) * 100).astype(d)
        for d in ("int8", "int16", "int32", "int64", "float32", "float64")
    }
    values["levels"] = rng.rand(5, 1).astype("f4")
    values["rows"] = SelectedRows(np.array([4, 1, 4]), rng.rand(3, 2), 7)
    for name, value in values.items():
        sparse = isinstance(value, SelectedRows)
        kind = VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR
        block.create_var(name=name, type=kind, dtype=value.dtype, persistable=True)
        fluid.global_scope().var(name).value = value
    fluid.global_scope().var("levels").lod = [[0, 1, 3], [0, 2, 4, 5]]
    io.save_persistables(exe, str(folder / "variables"))
    values["rows"] = values["rows"].value
    np.savez(folder / "variables.npz", **values)


def write(folder: Path) -> None:
    """Write all models below a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in (conv_model, trainer_model, checkpoint, variables):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
        ):
            make(folder, fluid.Executor(fluid.CPUPlace()))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
