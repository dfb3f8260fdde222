"""Names, scopes, averages and ops by hand, as scripts of 1.5 had them."""

from __future__ import print_function
import os
import sys
import math
import random
import logging
import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers
import paddle.fluid.core as core
from paddle.fluid import ParamAttr, Program, program_guard, unique_name
from paddle.fluid.framework import (
    default_main_program,
    default_startup_program,
    switch_main_program,
    switch_startup_program,
    convert_np_dtype_to_dtype_,
    Variable,
    Block,
    Operator,
    Parameter,
)
from paddle.fluid.executor import global_scope, scope_guard, Executor, as_numpy
from paddle.fluid.average import WeightedAverage
from paddle.fluid.data_feeder import DataFeeder, convert_dtype

logging.basicConfig(format="%(asctime)s - %(levelname)s - %(message)s")
logger = logging.getLogger(__name__)
logger.setLevel(logging.INFO)


def names():
    with unique_name.guard("a_"):
        print(unique_name.generate("fc"), unique_name.generate("fc"))
    with unique_name.guard():
        print(unique_name.generate("fc"))
        print(unique_name.generate("fc"))
    main, start = Program(), Program()
    old_m, old_s = switch_main_program(main), switch_startup_program(start)
    with unique_name.guard(), fluid.name_scope("outer"):
        x = layers.data("x", [3])
        with fluid.name_scope("inner"):
            y = layers.fc(x, 2, name="named")
            z = layers.fc(y, 2)
        with fluid.name_scope("inner"):
            w = layers.relu(z)
    print(
        y.name,
        z.name,
        w.name,
        [op.attr("op_namescope") for op in main.global_block().ops],
    )
    print([p.name for p in main.global_block().all_parameters()])
    switch_main_program(old_m)
    switch_startup_program(old_s)
    print(
        len(main.global_block().ops),
        len(start.global_block().ops),
        main.block(0).has_var("x"),
        main.global_block().has_var("nope"),
    )
    with program_guard(main):
        with program_guard(Program(), Program()):
            layers.fill_constant([1], "float32", 1.0)
            print(len(default_main_program().global_block().ops))
        print(len(default_main_program().global_block().ops))
    print(
        convert_np_dtype_to_dtype_("float32"),
        convert_np_dtype_to_dtype_(np.int64),
        convert_dtype(core.VarDesc.VarType.FP64),
        y.dtype == core.VarDesc.VarType.FP32,
    )
    print(
        core.VarDesc.VarType.LOD_TENSOR,
        int(core.VarDesc.VarType.INT64)
        if not isinstance(core.VarDesc.VarType.INT64, int)
        else int(core.VarDesc.VarType.INT64),
    )


def scopes():
    scope = core.Scope()
    with scope_guard(scope):
        exe = Executor(core.CPUPlace())
        main, start = Program(), Program()
        with program_guard(main, start):
            v = layers.create_global_var(
                [1], 3.0, "float32", persistable=True, name="gv"
            )
            c = layers.create_tensor("int64", name="ct", persistable=True)
            layers.assign(np.array([1, 2, 3]), c)
            layers.increment(v, 2.0)
        exe.run(start)
        exe.run(main)
        print(
            np.array(scope.find_var("gv").get_tensor()),
            as_numpy(scope.find_var("ct").get_tensor()),
        )
        kid = scope.new_scope()
        print(kid.find_var("gv") is not None, scope.find_var("zz") is None)
        kid.var("only").get_tensor().set(np.zeros((2, 2), "float32"), core.CPUPlace())
        print(scope.find_var("only") is None, kid.find_var("only").get_tensor().shape())
        scope.drop_kids()
        t = scope.var("fresh").get_tensor()
        t.set_dims([2, 3]) if hasattr(t, "set_dims") else None
        t._set_dims([2, 3]) if hasattr(t, "_set_dims") else None
        t.alloc_float(core.CPUPlace()) if hasattr(t, "alloc_float") else None
        t.set(np.ones((2, 3), "float32"), core.CPUPlace())
        t.set_lod([[0, 1, 2]])
        print(t.lod(), t.shape(), np.array(t).sum())
        t.set_recursive_sequence_lengths([[2]])
        print(t.recursive_sequence_lengths())
        a = np.array(t)
        a[0, 0] = 100.0
        print(np.array(t)[0, 0])
        print(fluid.executor._fetch_var("gv"))
        scope.erase(["fresh"]) if hasattr(scope, "erase") else None
        print("ok")


def averages():
    avg = WeightedAverage()
    avg.add(value=2.0, weight=1)
    avg.add(value=np.array([4.0]), weight=2)
    print(avg.eval())
    avg.reset()
    acc = fluid.metrics.Accuracy()
    acc.update(value=0.5, weight=10)
    acc.update(value=np.array([0.7], "float32"), weight=np.array([30]))
    print("%.5f" % acc.eval())
    acc.reset()
    ed = fluid.metrics.EditDistance("d")
    ed.update(np.array([[0.0], [2.0], [1.0]]), np.array([3]))
    print(ed.eval())
    auc = fluid.metrics.Auc(name="auc", curve="ROC", num_thresholds=4095)
    rng = np.random.RandomState(0)
    p = rng.rand(50)
    auc.update(
        np.stack([1 - p, p], 1),
        (p + 0.3 * rng.randn(50) > 0.5).astype("int64").reshape(-1, 1),
    )
    print("%.6f" % auc.eval())
    c = fluid.metrics.CompositeMetric()
    c.add_metric(fluid.metrics.Precision())
    c.add_metric(fluid.metrics.Recall())
    c.update(p.reshape(-1, 1), (p > 0.4).astype("int32").reshape(-1, 1))
    print(["%.4f" % v for v in c.eval()])
    print(acc.get_config() if hasattr(acc, "get_config") else "")


def ops_by_hand():
    main, start = Program(), Program()
    with program_guard(main, start):
        block = main.current_block()
        x = block.create_var(name="X", shape=[-1, 4], dtype="float32")
        w = block.create_parameter(
            name="W",
            shape=[4, 2],
            dtype="float32",
            initializer=fluid.initializer.Constant(0.5),
        )
        out = block.create_var(name="Out", dtype="float32")
        op = block.append_op(
            type="mul",
            inputs={"X": ["X"], "Y": [w]},
            outputs={"Out": [out]},
            attrs={"x_num_col_dims": 1},
        )
        act = block.create_var(dtype="float32")
        block.append_op(type="relu", inputs={"X": out}, outputs={"Out": act})
        fetch = layers.reduce_sum(act)
        print(op.type, out.shape, act.shape, act.name.startswith("_generated_var"))
        op._rename_input("X", "X")
        op._set_attr("x_num_col_dims", 1)
        print(
            block.ops[1].input("X"),
            block.ops[0].output("Out"),
            block.var("W").persistable,
        )
        block._insert_op(
            1,
            type="scale",
            inputs={"X": ["Out"]},
            outputs={"Out": [out]},
            attrs={"scale": 2.0},
        )
        block._remove_op(1)
        block._prepend_op(
            type="fill_constant",
            outputs={"Out": block.create_var(name="c", dtype="float32", shape=[1])},
            attrs={"shape": [1], "dtype": core.VarDesc.VarType.FP32, "value": 1.5},
        )
        print([o.type for o in block.ops])
    exe = Executor(core.CPUPlace())
    with scope_guard(core.Scope()):
        exe.run(start)
        print(
            exe.run(
                main,
                feed={"X": np.ones((2, 4), "float32")},
                fetch_list=[fetch, "c", block.var("Out")],
            )
        )


if __name__ == "__main__":
    names()
    scopes()
    averages()
    ops_by_hand()
    logger.info("done")
