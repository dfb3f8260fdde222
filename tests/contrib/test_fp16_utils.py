"""`fp16_utils`: the steps of mixed precision; expected is what the reference gave."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers
from fluidx.contrib.mixed_precision import fp16_utils
from fluidx.contrib.mixed_precision.lists import AutoMixedPrecisionLists


def ops():
    return fluid.default_main_program().global_block().ops


def kinds(found):
    return None if found is None else [op.type for op in found]


def test_neighbours():
    x = fluid.data("x", [2, 3])
    y = layers.fc(x, 2, act="relu")
    layers.mean(layers.fc(y, 2) + y)
    mul, add, relu, *_, mean = ops()
    prev, post = fp16_utils.find_true_prev_op, fp16_utils.find_true_post_op
    assert prev(ops(), mul, "x") is None
    assert prev(ops(), add, add.input("X")[0]) is mul
    assert prev(ops(), ops()[5], y.name) is relu
    assert kinds(post(ops(), relu, y.name)) == ["mul", "elementwise_add"]
    assert post(ops(), mean, mean.output("Out")[0]) is None


def test_several_makers():
    a = layers.fill_constant([1], "float32", 1.0)
    layers.increment(a)
    layers.scale(a, 2.0)
    with pytest.raises(ValueError, match="only one previous op that outputs"):
        fp16_utils.find_true_prev_op(ops(), ops()[-1], a.name)


def test_places():
    layers.mean(layers.fc(fluid.data("x", [2, 3]), 2))
    block = fluid.default_main_program().global_block()
    found = [fp16_utils.find_op_index(block.desc, op.desc) for op in block.ops]
    assert found == [0, 1, 2]
    other = fluid.default_main_program().clone().global_block()
    assert fp16_utils.find_op_index(other.desc, block.ops[0].desc) == -1


def test_rewriting():
    x = fluid.data("x", [2, 3])
    loss = layers.mean(layers.relu(layers.fc(x, 2)))
    program = fluid.default_main_program()
    fp16_utils.rewrite_program(program, AutoMixedPrecisionLists())
    assert [op.type for op in ops()] == [
        *("cast", "cast", "mul", "cast", "elementwise_add", "relu", "cast", "mean")
    ]
    pairs = fluid.append_backward(loss)
    fp16_utils.update_role_var_grad(program, pairs)
    held = {op.output_arg_names[-1]: op.role_var for op in ops() if op.role_var}
    assert held == {
        "fc_0.b_0.cast_fp16@GRAD": ["fc_0.b_0", "fc_0.b_0.cast_fp16@GRAD"],
        "fc_0.w_0.cast_fp16@GRAD": ["fc_0.w_0", "fc_0.w_0.cast_fp16@GRAD"],
    }


def test_loss_scaling():
    finite = fluid.data("finite", [1], "bool")
    scale, good, bad = (
        layers.create_global_var([1], value, dtype, persistable=True)
        for value, dtype in ((8.0, "float32"), (0, "int32"), (0, "int32"))
    )
    two = [layers.fill_constant([1], "int32", 2) for _ in range(2)]
    fp16_utils.update_loss_scaling(finite, scale, good, bad, *two, 2.0, 0.5)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    found = [
        [v[0] for v in exe.run(feed={"finite": [flag]}, fetch_list=[scale, good, bad])]
        for flag in [True] * 3 + [False] * 8 + [True]
    ]
    assert found == [
        *([8, 1, 0], [8, 2, 0], [16, 0, 0], [16, 0, 1], [16, 0, 2], [8, 0, 0]),
        *([8, 0, 1], [8, 0, 2], [4, 0, 0], [4, 0, 1], [4, 0, 2], [4, 1, 0]),
    ]
    assert np.isfinite(found).all()
