"""Programs as the reference writes them; run under the reference: python make.py

Writes beside itself: kinds.pb with one of everything (kinds of variables and
attributes, sub-blocks), and NAME.pb.gz for some networks of ../transpiler/programs.py.
Call stacks,
which name files, are taken out; one made-up call stack is put in.
"""

import gzip
import os
import sys

import paddle.fluid as fluid
from paddle.fluid import core

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "transpiler"))

NETWORKS = ["fc_regression", "while_net", "cond_net", "emb_sparse", "lenet_bn"]
STACK = [
    '  File "/usr/lib/python3/paddle/fluid/framework.py", line 9, in append_op\n',
    '  File "train.py", line 12, in net\n    h = fluid.layers.relu(x)\n',
    '  File "train.py", line 30, in <module>\n    loss = net(x)\n',
]


def drop_callstacks(program):
    for block in program.blocks:
        for op in block.ops:
            op.desc.remove_attr("op_callstack")


def variables(block):
    kinds = core.VarDesc.VarType
    for name in ("LOD_TENSOR", "LOD_TENSOR_ARRAY"):
        block.create_var(
            name="v_" + name,
            type=getattr(kinds, name),
            shape=[-1, 3],
            dtype="int64",
            lod_level=2,
        )
    block.create_var(
        name="rows", type=kinds.SELECTED_ROWS, shape=[7, 3], dtype="float64"
    )
    for name in (
        "FEED_MINIBATCH",
        "FETCH_LIST",
        "STEP_SCOPES",
        "LOD_RANK_TABLE",
        "PLACE_LIST",
        "RAW",
    ):
        block.create_var(name="v_" + name, type=getattr(kinds, name))
    for name in ("LOD_TENSOR", "SELECTED_ROWS", "LOD_TENSOR_ARRAY"):
        block.create_var(name="bare_" + name, type=getattr(kinds, name))
    reader = block.create_var(name="reader", type=kinds.READER)
    reader.desc.set_shapes([[-1, 3], [-1, 1]])
    reader.desc.set_dtypes([kinds.FP32, kinds.INT64])
    reader.desc.set_lod_levels([0, 1])
    for dtype in (
        "bool",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
    ):
        block.create_var(name="e_" + dtype, shape=[2], dtype=dtype, persistable=True)
    block.create_parameter(name="par", shape=[2, 3], dtype="float32")


def kinds_program():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        variables(block)
        x = fluid.data("x", [2, 3], dtype="float32", lod_level=1)
        fluid.layers.relu(x)
        relu = block.ops[-1].desc
        one = fluid.layers.fill_constant([1], "int64", 1)
        condition = fluid.layers.less_than(one, one)
        loop = fluid.layers.While(condition)
        with loop.block():
            fluid.layers.less_than(one, one, cond=condition)
        main.blocks[1].desc._set_forward_block_idx(0)
        drop_callstacks(main)
        for name, value in (
            ("a_int", 7),
            ("a_negative", -7),
            ("a_long", 1 << 40),
            ("a_float", 0.1),
            ("a_string", "h\u00e9"),
            ("a_ints", [1, -2]),
            ("a_floats", [0.5, 0.1]),
            ("a_strings", ["a", "b"]),
            ("a_longs", [1 << 40, -2]),
            ("op_callstack", STACK),
        ):
            relu._set_attr(name, value)
        relu.set_blocks_attr("a_blocks", [main.blocks[0].desc, main.blocks[1].desc])
        relu.set_is_target(True)
        return main.desc.serialize_to_string()


def network(name):
    import programs

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        getattr(programs, name)(fluid)
    drop_callstacks(main)
    return main.desc.serialize_to_string()


def main(arguments):
    if arguments:
        with gzip.GzipFile(
            os.path.join(HERE, arguments[0] + ".pb.gz"), "wb", 9, mtime=0
        ) as f:
            f.write(network(arguments[0]))
        return
    with open(os.path.join(HERE, "kinds.pb"), "wb") as f:
        f.write(kinds_program())
    for name in NETWORKS:  # a process each: their names start anew
        if os.spawnve(
            os.P_WAIT,
            sys.executable,
            [sys.executable, __file__, name],
            dict(os.environ, PYTHONHASHSEED="0"),
        ):
            sys.exit("%s failed" % name)


if __name__ == "__main__":
    main(sys.argv[1:])
