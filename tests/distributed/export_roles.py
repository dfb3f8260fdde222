"""One role of a cluster whose first trainer saves models: processes.

``python export_roles.py FOLDER``: trains a network with a sparse table, one that is
distributed, and a dense part. Trainer 0 then saves, while the servers still serve:
``whole`` (an inference model), ``combined`` (the same with one file of parameters),
``persistables``, and ``remote``, a model that asks the servers for its tables, which
it also loads and runs. ``answers.npz`` holds the input, what the trained program
computes from it, and what ``remote`` did.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fluidx as fluid

VOCABULARY = 3000  # x 8 numbers: slices on both servers
STEPS = 8


def network() -> Any:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids, more = (fluid.data(n, [None, 1], "int64") for n in ("ids", "more"))
        label = fluid.data("label", [None, 1], "int64")
        embedding = fluid.layers.embedding
        size = [VOCABULARY, 8]
        parts = [
            embedding(ids, size, is_sparse=True, param_attr="sparse"),
            embedding(more, size, True, is_distributed=True, param_attr="remote"),
        ]
        hidden = fluid.layers.fc(fluid.layers.concat(parts, 1), 6, act="tanh")
        out = fluid.layers.fc(hidden, 3, act="softmax", name="out")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
        fluid.optimizer.SGD(0.5).minimize(loss)
    return main, startup, out, loss


def batch(trainer: int, step: int) -> dict[str, Any]:
    rng = np.random.default_rng(100 * step + trainer)
    ids = rng.integers(0, 40, (12, 1))
    return {"ids": ids * 73, "more": ids * 71 + 5, "label": ids % 3}


def remote_model(folder: Path, program: Any, out: Any) -> None:
    """Save, by hand, a model whose tables stay on the servers."""
    made = program.clone(for_test=True)._prune_with_input(["ids", "more"], [out.name])
    fluid.io.prepend_feed_ops(made, ["ids", "more"])
    fluid.io.append_fetch_ops(made, [out.name])
    for op in made.all_ops():  # servers that are not there
        if op.type == "distributed_lookup_table":
            op._set_attr("endpoints", ["127.0.0.1:1"] * len(op.attr("endpoints")))
    folder.mkdir()
    (folder / "__model__").write_bytes(made.serialize_to_string())


def save(folder: Path, exe: Any, program: Any, out: Any) -> None:
    feed = {k: v for k, v in batch(7, 0).items() if k != "label"}
    test = program.clone(for_test=True)._prune_with_input([*feed], [out.name])
    (wanted,) = exe.run(test, feed, [out.name])
    io = fluid.io
    io.save_inference_model(str(folder / "whole"), [*feed], out, exe, program)
    io.save_inference_model(
        str(folder / "combined"), [*feed], out, exe, program, params_filename="params"
    )
    io.save_persistables(exe, str(folder / "persistables"), program)
    remote_model(folder / "remote", program, out)
    for var in program.list_vars():
        if var.persistable and var.name.startswith(("fc", "out")):
            io.save_vars(exe, str(folder / "remote"), vars=[var])
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    with fluid.scope_guard(fluid.Scope()):
        asking, fed, fetched = io.load_inference_model(
            str(folder / "remote"), exe, pserver_endpoints=servers
        )
        (asked,) = exe.run(asking, {n: feed[n] for n in fed}, fetched)
    np.savez(folder / "answers.npz", wanted=wanted, asked=asked, **feed)


def main() -> None:
    folder = Path(sys.argv[1])
    number = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    program, startup, out, loss = network()
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(
        number,
        program,
        os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
        int(os.environ["PADDLE_TRAINERS_NUM"]),
        startup_program=startup,
    )
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        server = transpiler.get_pserver_programs(os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(server[1])
        exe.run(server[0])
        return
    exe.run(startup)
    program = transpiler.get_trainer_program()
    for step in range(STEPS):
        exe.run(program, batch(number, step), [loss.name])
    if number == 0:
        save(folder, exe, program, out)
    exe.close()


if __name__ == "__main__":
    main()
