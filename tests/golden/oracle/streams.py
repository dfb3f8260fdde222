"""Run under the reference: files of its tensors, and the values that are in them.

python streams.py ../models/streams
"""

import os
import shutil
import sys

import numpy as np
import paddle.fluid as fluid

OUT = sys.argv[1]
CPU = fluid.CPUPlace()
EXE = fluid.Executor(CPU)
SCOPE = fluid.global_scope()
FACTS = {}


def variable(block, name, array, lod=None):
    dtype = "float32" if array.dtype == np.float16 else str(array.dtype)
    made = block.create_var(
        name=name, persistable=True, dtype=dtype, shape=list(array.shape)
    )
    tensor = SCOPE.var(name).get_tensor()
    tensor.set(array, CPU)
    if lod:
        tensor.set_lod(lod)
    FACTS[name] = array
    return made


def save(name, array, lod=None, **attrs):
    main = fluid.Program()
    block = main.global_block()
    made = variable(block, name, array, lod)
    attrs["file_path"] = os.path.join(OUT, name)
    block.append_op(type="save", inputs={"X": [made]}, outputs={}, attrs=attrs)
    EXE.run(main)


def selected_rows():
    main = fluid.Program()
    block = main.global_block()
    kind = fluid.core.VarDesc.VarType.SELECTED_ROWS
    made = block.create_var(
        name="rows", persistable=True, type=kind, dtype="float32", shape=[7, 2]
    )
    holder = SCOPE.var("rows").get_selected_rows()
    value = np.arange(6).astype("float32").reshape(3, 2)
    holder.set_rows([4, 1, 4])
    holder.set_height(7)
    holder.get_tensor().set(value, CPU)
    FACTS["rows"] = value
    attrs = {"file_path": os.path.join(OUT, "rows")}
    block.append_op(type="save", inputs={"X": [made]}, outputs={}, attrs=attrs)
    EXE.run(main)


def combined():
    main = fluid.Program()
    block = main.global_block()
    names = ["two_levels", "of_int64", "of_float32"]
    made = [variable(block, n, FACTS[n], LODS.get(n)) for n in names]
    fluid.io.save_vars(EXE, OUT, main, vars=made, filename="combined")


def many_parameters():
    """More than 256 things for the memo of a pickle, of several dtypes and ranks."""
    main = fluid.Program()
    block = main.global_block()
    rng = np.random.RandomState(5)
    for i in range(24):
        dtype = ["float32", "float64", "int64", "int32"][i % 4]
        shape = [[3], [2, 300], [2, 1, 3], [1, 2, 1, 2], [70000]][i % 5 if i < 9 else 0]
        value = (rng.rand(*shape) * 100).astype(dtype)
        if shape == [70000]:
            value = np.zeros(shape, "int32" if i % 4 == 3 else dtype)[:300]
            shape = [300]
        name = f"p{i:02d}"
        block.create_parameter(name=name, shape=shape, dtype=dtype)
        SCOPE.var(name).get_tensor().set(value, CPU)
        FACTS[name] = value
    fluid.save(main, os.path.join(OUT, "many"))
    os.remove(os.path.join(OUT, "many.pdmodel"))


LODS = {"one_level": [[0, 2, 5]], "two_levels": [[0, 1, 3], [0, 2, 4, 5]]}

if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    for dtype in ("int8", "int16", "int32", "int64", "float32", "float64"):
        save("of_" + dtype, (np.arange(6) - 2).astype(dtype).reshape(2, 3))
    save("halves", np.linspace(-1, 1, 5).astype("float32"), save_as_fp16=True)
    rows = np.arange(10).astype("float32").reshape(5, 2)
    save("one_level", rows, LODS["one_level"])
    save("two_levels", rows, LODS["two_levels"])
    save("empty", np.zeros((0, 3), "float32"))
    save("wide", np.zeros((1, 300, 1), "float32"))
    selected_rows()
    combined()
    many_parameters()
    np.savez(os.path.join(OUT, "values.npz"), **FACTS)
