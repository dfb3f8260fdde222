"""Run under the reference: loads what ``tests/model_files.py`` wrote, and compares.

    python load_models.py FOLDER > ../load_models.json

Records the SHA-256 of each file of values, the ops of each program as the reference
read it, and how far its results are from those of fluidx.
"""

import hashlib
import json
import os
import sys

import numpy as np
import paddle.fluid as fluid

FOLDER = sys.argv[1]
EXE = fluid.Executor(fluid.CPUPlace())
FAR = {}
OPS = {}


def path(*parts):
    return os.path.join(FOLDER, *parts)


def far(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    return float(np.abs(one.astype("f8") - other).max())


def inference(name, params=None):
    with np.load(path(name + ".npz")) as expected, fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(
            path(name), EXE, params_filename=params
        )
        feed = {n: expected["feed_" + n] for n in feeds}
        (got,) = EXE.run(program, feed=feed, fetch_list=targets)
        FAR[name] = far(got, expected["output"])
        OPS[name] = [
            [
                op.type,
                {s: op.input(s) for s in op.input_names if op.input(s)},
                {s: op.output(s) for s in op.output_names if op.output(s)},
            ]
            for op in program.global_block().ops
        ]


def checkpoint():
    L = fluid.layers
    x = fluid.data("x", [None, 8])
    y = fluid.data("y", [None, 1])
    p = L.fc(L.fc(x, 6, act="tanh"), 1)
    loss = L.mean(L.square_error_cost(p, y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    main = fluid.default_main_program()
    fluid.load(main, path("checkpoint"), EXE)
    with np.load(path("checkpoint.npz")) as expected:
        feed = {"x": expected["x"], "y": expected["y"]}
        wanted = expected["losses"]

    def train(program, name):
        losses = [EXE.run(program, feed=feed, fetch_list=[name])[0] for _ in wanted]
        return far(np.concatenate(losses), wanted)

    FAR["checkpoint"] = train(main, loss.name)
    # the program that fluidx saved, with the same values
    with open(path("checkpoint.pdmodel"), "rb") as file:
        saved = fluid.Program.parse_from_string(file.read())
    with fluid.scope_guard(fluid.Scope()):
        state = fluid.io.load_program_state(path("checkpoint"))
        for name, value in state.items():
            fluid.global_scope().var(name).get_tensor().set(value, fluid.CPUPlace())
        FAR["checkpoint_program"] = train(saved, loss.name)


def variables():
    main = fluid.Program()
    block = main.global_block()
    with np.load(path("variables.npz")) as expected:
        values = dict(expected)
    kinds = fluid.core.VarDesc.VarType
    for name, value in values.items():
        kind = kinds.SELECTED_ROWS if name == "rows" else kinds.LOD_TENSOR
        block.create_var(
            name=name,
            type=kind,
            dtype=str(value.dtype),
            shape=list(value.shape),
            persistable=True,
        )
    fluid.io.load_persistables(EXE, path("variables"), main)
    for name, value in values.items():
        holder = fluid.global_scope().find_var(name)
        if name == "rows":
            rows = holder.get_selected_rows()
            assert rows.rows() == [4, 1, 4]
            assert rows.height() == 7
            tensor = rows.get_tensor()
        else:
            tensor = holder.get_tensor()
        if name == "levels":
            assert tensor.lod() == [[0, 1, 3], [0, 2, 4, 5]]
        FAR["variables/" + name] = far(np.array(tensor), value)


def digests():
    found = {}
    for place, _, names in os.walk(FOLDER):
        for name in sorted(names):
            program = name == "__model__" or name.endswith(".pdmodel")
            if program or name.endswith(".npz"):
                continue
            with open(os.path.join(place, name), "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(os.path.join(place, name), FOLDER)] = digest
    return found


if __name__ == "__main__":
    inference("conv_separate")
    inference("conv_combined", "all")
    inference("trainer")
    checkpoint()
    variables()
    facts = {"far": FAR, "ops": OPS, "sha256": digests()}
    print(json.dumps(facts, indent=1, sort_keys=True))
