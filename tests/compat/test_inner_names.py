"""Names that modules of the reference import for themselves, and helper classes.

Expected ops, names and values are those that the reference gave.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import compat, layers
from fluidx.compat import inner_names
from fluidx.ir.errors import EnforceNotMet


@pytest.fixture
def flows() -> Iterator[Any]:
    """``paddle.fluid.layers.control_flow``."""
    compat.install_as_paddle(old_names=False)
    yield importlib.import_module("paddle.fluid.layers.control_flow")
    compat.uninstall()


def ops() -> list[Any]:
    return fluid.default_main_program().global_block().ops


def run(feed: dict[str, Any], *fetches: Any) -> list[Any]:
    return fluid.Executor().run(feed=feed, fetch_list=list(fetches))


# ---------------------------------------------------------------- the table


def test_every_name_of_the_table_is_there() -> None:
    for module, names in inner_names._NAMES.items():
        found = inner_names.answer(importlib.import_module(f"fluidx.{module}"))
        for name in names:
            assert getattr(found, name) is not None or name == "DEBUG"
        with pytest.raises(AttributeError, match="not_there"):
            _ = found.not_there
    used = {name for names in inner_names._NAMES.values() for name in names}
    assert used == set(inner_names._HOMES) | set(inner_names._VALUES)


def test_some_of_them(flows: Any) -> None:
    from paddle.fluid.layer_helper import LayerHelper  # type: ignore[import-not-found]
    from paddle.fluid.layer_helper_base import (  # type: ignore[import-not-found]
        LayerHelperBase,
    )

    paddle = importlib.import_module("paddle")
    assert paddle.fluid.layers.LayerHelper is LayerHelper
    assert issubclass(LayerHelper, LayerHelperBase)
    assert paddle.fluid.layers.core is fluid.core
    memory = importlib.import_module("paddle.fluid.contrib.memory_usage_calc")
    assert memory.dtype_to_size[fluid.core.VarDesc.VarType.INT64] == 8
    lists = importlib.import_module("paddle.fluid.contrib.mixed_precision").fp16_lists
    assert "conv2d" in lists.white_list
    transpiler = importlib.import_module(
        "paddle.fluid.transpiler.distribute_transpiler"
    )
    role = int(transpiler.RPC_OP_ROLE_ATTR_VALUE)
    assert (transpiler.RPC_OP_ROLE_ATTR_NAME, role) == ("op_role", 4)
    assert transpiler.OP_ROLE_VAR_ATTR_NAME == "op_role_var"
    names = importlib.import_module("paddle.fluid.unique_name")
    with names.guard():
        assert names.generate_with_ignorable_key("abc") == "abc_0"
        assert names.generator.ids == {"abc": 1}
    loss = importlib.import_module("paddle.fluid.layers.loss")
    assert loss.kIgnoreIndex == -100


def test_helper_base() -> None:
    helper = fluid.layer_helper.LayerHelperBase("nm", "fc")
    assert (helper.name, helper.layer_type) == ("nm", "fc")
    assert helper.create_parameter(None, [2, 3], "float32").name == "nm.w_0"
    assert helper.create_variable_for_type_inference("float32").name == "nm.tmp_0"
    with pytest.raises(EnforceNotMet, match="only be called in dygraph mode"):
        helper.to_variable(np.ones(2))
    helper = fluid.layer_helper.LayerHelper("fc", act="relu")
    helper.is_instance("act", str)
    for name, kind in (("act", int), ("nothing", str)):
        with pytest.raises(TypeError, match=f"fc: {name} must be a {kind.__name__}"):
            helper.is_instance(name, kind)


# ---------------------------------------------------------------- control flow


def test_splitting_and_merging(flows: Any) -> None:
    x, mask = fluid.data("x", [None, 1]), fluid.data("m", [None, 1], "bool")
    yes, no = flows.split_lod_tensor(x, mask)
    back = flows.merge_lod_tensor(yes, no, x, mask)
    assert (yes.name, no.name) == (
        "split_lod_tensor_0.tmp_0",
        "split_lod_tensor_0.tmp_1",
    )
    assert back.name == "merge_lod_tensor_0.tmp_0"
    assert (yes.shape, back.shape) == ((-1, 1), (-1, 1))
    assert [op.type for op in ops()] == ["split_lod_tensor", "merge_lod_tensor"]
    values = np.arange(5, dtype="float32").reshape(5, 1)
    given = np.array([1, 0, 1, 1, 0], bool).reshape(5, 1)
    found = run({"x": values, "m": given}, yes, no, back)
    assert [f.ravel().tolist() for f in found] == [[0, 2, 3], [1, 4], [0, 1, 2, 3, 4]]
    flows.split_lod_tensor(x, mask, level=1)
    assert ops()[-1].attr("level") == 1


def test_selecting(flows: Any) -> None:
    x, mask = fluid.data("x", [2]), fluid.data("m", [1], "int32")
    block = fluid.default_main_program().global_block()
    outs = [block.create_var(name=n, dtype="float32", shape=[2]) for n in ("o1", "o2")]
    assert flows.select_output(x, outs, mask) == outs
    five, six = (layers.fill_constant([2], "float32", v) for v in (5.0, 6.0))
    chosen = flows.select_input([five, six], mask)
    assert (chosen.shape, chosen.dtype) == ((2,), five.dtype)
    assert [op.type for op in ops()] == [
        *("select_output", "fill_constant", "fill_constant", "select_input")
    ]
    feed = {"x": np.ones(2, "float32"), "m": np.array([1], "int32")}
    found = run(feed, chosen, "o2")
    assert [f.tolist() for f in found] == [[6, 6], [1, 1]]


def test_conditional_block(flows: Any) -> None:
    x = fluid.data("x", [1])
    out = layers.fill_constant([1], "float32", 0.0)
    small = layers.less_than(x, layers.fill_constant([1], "float32", 3.0))
    made = flows.ConditionalBlock([small], is_scalar_condition=True)
    with made.block() as inner:
        layers.assign(x * 2.0, out)
    op = ops()[-1]
    assert (op.type, op.input("Cond"), op.input("Input")) == (
        *("conditional_block", [small.name], ["x"]),
    )
    assert (op.output("Out"), inner.idx) == ([out.name], 1)
    assert fluid.default_main_program().current_block().idx == 0
    found = [run({"x": np.array([v], "float32")}, out)[0].tolist() for v in (1, 5)]
    assert found == [[2], [0]]
    assert not made.need_append_conditional_block_grad(inner)
    with pytest.raises(EnforceNotMet, match="append_backward makes"):
        made.append_conditional_block_grad(inner.parent, inner, op)


def test_conditional_block_has_gradients(flows: Any) -> None:
    x = fluid.data("x", [1])
    x.stop_gradient = False
    out = layers.fill_constant([1], "float32", 0.0)
    out.stop_gradient = False
    small = layers.less_than(x, layers.fill_constant([1], "float32", 3.0))
    with flows.ConditionalBlock([small], is_scalar_condition=True).block():
        layers.assign(x * 2.0, out)
    (grad,) = fluid.gradients(layers.mean(out), x)
    assert run({"x": np.array([1], "float32")}, grad)[0].tolist() == [2]


def test_a_failing_block_leaves_no_op(flows: Any) -> None:
    flag = fluid.data("flag", [1], "bool")
    with pytest.raises(ZeroDivisionError), flows.ConditionalBlock([flag], True).block():
        _ = 1 / 0
    assert ops() == []
    assert fluid.default_main_program().current_block().idx == 0


def test_while_guard(flows: Any) -> None:
    i = layers.fill_constant([1], "int64", 0)
    n = layers.fill_constant([1], "int64", 4)
    cond = layers.less_than(i, n)
    with flows.WhileGuard(layers.While(cond)):
        layers.increment(i)
        layers.less_than(i, n, cond=cond)
    assert run({}, i)[0].tolist() == [4]


def test_block_guard_and_copies(flows: Any) -> None:
    program, x = fluid.default_main_program(), fluid.data("x", [1])
    helper = fluid.layer_helper.LayerHelper("q")
    with flows.BlockGuard(program):
        assert (program.current_block().idx, program.current_block().parent_idx) == (
            1,
            0,
        )
        copied = flows.copy_var_to_parent_block(layers.scale(x, 2.0), helper)
        assert [op.type for op in program.current_block().ops] == ["scale", "assign"]
    assert program.current_block().idx == 0
    assert (copied.block.idx, copied.shape) == (0, (1,))
    assert flows.copy_var_to_parent_block(None, helper) is None
    with pytest.raises(ValueError, match="is in no other"):
        flows.copy_var_to_parent_block(x, helper)
    link = flows.StaticRNNMemoryLink("a", "b")
    assert vars(link) == {"init": "a", "pre_mem": "b", "mem": None}


def test_guards_of_other_things(flows: Any) -> None:
    with pytest.raises(TypeError, match="BlockGuard takes a program"):
        flows.BlockGuard(3)
    with pytest.raises(TypeError, match="ConditionalBlockGuard takes a Cond"):
        flows.ConditionalBlockGuard(3)
    with pytest.raises(TypeError, match="WhileGuard takes a while op"):
        flows.WhileGuard(3)


def test_cross_entropy2(flows: Any) -> None:
    loss = importlib.import_module("paddle.fluid.layers.loss")
    x, label = fluid.data("x", [None, 3]), fluid.data("l", [None, 1], "int64")
    y = loss.cross_entropy2(x, label)
    op = ops()[-1]
    assert (op.type, op.attr("ignore_index"), y.shape) == (
        "cross_entropy2",
        -100,
        (-1, 1),
    )
    assert y.name == "cross_entropy2_0.tmp_0"
    given = np.array([[0.25, 0.5, 0.25]], "float32")
    (found,) = run({"x": given, "l": np.array([[1]])}, y)
    np.testing.assert_allclose(found, [[np.log(2)]], rtol=1e-6)
    loss.cross_entropy2(x, label, 2)
    assert ops()[-1].attr("ignore_index") == 2


# ---------------------------------------------------------------- feeds


def test_shapes_that_go_together(flows: Any) -> None:
    executor = importlib.import_module("paddle.fluid.executor")
    fits = executor.dimension_is_compatible_with
    for a, b in (
        *(([2, 3], [2, 3]), ([-1, 3], [2, 3]), ([2, 3], [-1, 3])),
        *(([None, 3], [5, 3]), ([-1], [-1])),
    ):
        assert fits(a, b)
    assert not fits([2, 3], [2])
    assert not fits([2, 3], [2, 4])
    assert executor.dtype_is_compatible_with(fluid.core.VarDesc.VarType.FP32, "float32")
    assert not executor.dtype_is_compatible_with("float32", "float64")
    floating = importlib.import_module("paddle.fluid.layer_helper").dtype_is_floating
    assert [floating(d) for d in ("float16", "int64")] == [True, False]


def test_feeds_that_fit(flows: Any) -> None:
    check = importlib.import_module("paddle.fluid.executor").check_feed_shape_type
    x = fluid.data("x", [None, 3])
    assert check(x, fluid.LoDTensor(np.ones((2, 3), "float32"))) is True
    assert check(layers.data("y", [3]), fluid.LoDTensor(np.ones(7, "int8"))) is True
    half = fluid.data("z", [2, 3])
    assert check(half, fluid.LoDTensor(np.ones((4, 3), "float32")), 2) is True
    with pytest.raises(ValueError, match=r"shape = \(-1, 3\), but received .*\[2, 4\]"):
        check(x, fluid.LoDTensor(np.ones((2, 4), "float32")))
    with pytest.raises(ValueError, match="must be 'float32', but received 'int64'"):
        check(x, fluid.LoDTensor(np.ones((2, 3), "int64")))
