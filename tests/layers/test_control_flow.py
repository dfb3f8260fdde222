"""Layers with sub-blocks: what they refuse, nested results, variables in and out."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers as L
from fluidx.ir import BuildError
from fluidx.kernels import VarType
from fluidx.layers.sampling import alias_table


def flag(name="flag"):
    return fluid.data(name, [1], "bool")


def floats(*shape, name="x"):
    return fluid.data(name, list(shape), "float32")


def number(value):
    return L.fill_constant([1], "int64", value)


def main_ops():
    return [op.type for op in fluid.default_main_program().global_block().ops]


REFUSED = {
    "cond pred": (
        lambda: L.cond(True, lambda: None, lambda: None),
        TypeError,
        "cond: pred must be a Variable, got bool True",
    ),
    "cond pred dtype": (
        lambda: L.cond(floats(1), lambda: None),
        TypeError,
        "cond: pred must be of BOOL, got FP32",
    ),
    "cond pred shape": (
        lambda: L.cond(fluid.data("b", [2], "bool"), lambda: None),
        ValueError,
        r"cond: pred must have one element, its shape is \[2\]",
    ),
    "cond function": (
        lambda: L.cond(flag(), 3),
        TypeError,
        "cond: true_fn must be callable, got 3",
    ),
    "cond one side": (
        lambda: L.cond(flag(), lambda: floats(2) * 2.0, lambda: None),
        ValueError,
        "cond: false_fn returns nothing",
    ),
    "cond nesting": (
        lambda: L.cond(
            flag(), lambda: [floats(2) * 2.0], lambda: (floats(2), floats(2))
        ),
        ValueError,
        "return differently nested results",
    ),
    "cond dtypes": (
        lambda: L.cond(flag(), lambda: floats(1) * 2.0, lambda: number(1)),
        TypeError,
        r"true_fn returns _generated_var_0 of FP32, false_fn .* of INT64",
    ),
    "cond plain result": (
        lambda: L.cond(flag(), lambda: 1.0, lambda: 2.0),
        TypeError,
        "cond: what true_fn returns must be a Variable, got float",
    ),
    "case pairs": (
        lambda: L.case(3),
        TypeError,
        "case: pred_fn_pairs must be a list",
    ),
    "case pair": (
        lambda: L.case([flag()]),
        TypeError,
        r"case: pred_fn_pairs must hold \(Variable, function\)",
    ),
    "switch_case twice": (
        lambda: L.switch_case(number(1), [(1, print), (1, print)]),
        ValueError,
        r"switch_case: a number occurs twice in \[1, 1\]",
    ),
    "switch_case index": (
        lambda: L.switch_case(floats(1), [print]),
        TypeError,
        "switch_case: branch_index .* must be of INT32, INT64, UINT8, got FP32",
    ),
    "switch_case pair": (
        lambda: L.switch_case(number(1), [("a", print)]),
        TypeError,
        r"switch_case: branch_fns must hold \(integer, function\)",
    ),
    "while cond": (
        lambda: L.While(floats(1)),
        TypeError,
        "While: cond must be of BOOL, got FP32",
    ),
    "while_loop vars": (
        lambda: L.while_loop(print, print, 3),
        TypeError,
        "while_loop: loop_vars must be a list, got 3",
    ),
    "while_loop no vars": (
        lambda: L.while_loop(print, print, []),
        ValueError,
        "while_loop: loop_vars is empty",
    ),
    "while_loop results": (
        lambda: L.while_loop(
            lambda i: L.less_than(i, i), lambda i: [i, i], [number(0)]
        ),
        ValueError,
        "body must return as many variables as loop_vars holds",
    ),
    "switch outside": (
        lambda: L.Switch().case(flag()),
        ValueError,
        r"Switch: case\(\) is for inside `with Switch\(\)`",
    ),
    "array": (
        lambda: L.array_read(floats(1), number(0)),
        TypeError,
        "array_read: array must be an array of tensors, x is LOD_TENSOR",
    ),
    "array index": (
        lambda: L.array_write(floats(1), floats(1)),
        TypeError,
        "array_write: i .* must be of INT64, INT32, got FP32",
    ),
    "rnn outside": (
        lambda: L.StaticRNN().step_input(floats(2, 3)),
        ValueError,
        r"StaticRNN: step_input\(\) is for inside `with rnn.step\(\)`",
    ),
    "rnn early": (
        lambda: L.StaticRNN()(),
        ValueError,
        "StaticRNN: there are outputs only after",
    ),
    "if_else early": (
        lambda: L.IfElse(flag())(),
        ValueError,
        "IfElse: true_block hands out 0 results, false_block 0",
    ),
    "if_else outside": (
        lambda: L.IfElse(flag()).input(floats(2)),
        ValueError,
        r"IfElse: input\(\) is for inside its blocks",
    ),
    "piecewise": (
        lambda: L.piecewise_decay([1, 2], [0.1, 0.2]),
        ValueError,
        "piecewise_decay: 2 boundaries need 3 values, got 2",
    ),
    "warmup": (
        lambda: L.linear_lr_warmup("0.1", 1, 0.0, 0.1),
        TypeError,
        "learning_rate must be a number or a Variable, got '0.1'",
    ),
    "nce sampler": (
        lambda: L.nce(floats(2, 3), number(1), 5, sampler="zipf"),
        ValueError,
        "nce: sampler must be one of",
    ),
    "nce custom": (
        lambda: L.nce(floats(2, 3), number(1), 5, sampler="custom_dist"),
        ValueError,
        "custom_dist needs custom_dist with 5 probabilities, got None",
    ),
    "hsigmoid classes": (
        lambda: L.hsigmoid(floats(2, 3), number(1), 1),
        ValueError,
        "hsigmoid: num_classes must be 2 or more: 1",
    ),
    "hsigmoid tree": (
        lambda: L.hsigmoid(floats(2, 3), number(1), 5, is_custom=True),
        ValueError,
        "hsigmoid: is_custom needs path_table",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_error_says_what_is_wrong(name):
    build, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        build()
    # whatever failed, building goes on where it was
    assert fluid.default_main_program().current_block_idx == 0


def in_step(use):
    rnn = L.StaticRNN()
    with rnn.step():
        use(rnn, rnn.step_input(floats(4, 2, 3)))
    return rnn


def test_static_rnn_refuses():
    cases = {
        "needs init, or shape and batch_ref": lambda r, x: r.memory(shape=[-1, 3]),
        "needs update_memory": lambda r, x: r.memory(init=floats(2, 3, name="h")),
        "is no memory of it": lambda r, x: r.update_memory(x, x),
        "inputs of different lengths: 4 steps before": lambda r, x: r.step_input(
            floats(5, 2, name="y")
        ),
    }
    for message, use in cases.items():
        with pytest.raises(ValueError, match=message):
            in_step(use)
    with pytest.raises(ValueError, match="it has no output"):
        in_step(lambda r, x: None)()


def test_nested_results():
    pair = namedtuple("pair", "a b")
    x = floats(2)

    def branch(factor):
        y = x * factor
        return {"k": [y, (y * 2.0,)], "p": pair(y + 1.0, y)}

    got = L.cond(flag(), lambda: branch(1.0), lambda: branch(3.0))
    assert isinstance(got["p"], pair)
    feed = {"x": np.ones(2, "float32")}
    leaves = [got["k"][0], got["k"][1][0], got["p"].a, got["p"].b]
    for value, factor in ((True, 1.0), (False, 3.0)):
        out = fluid.Executor().run(
            feed=feed | {"flag": np.array([value])}, fetch_list=leaves
        )
        assert [v[0] for v in out] == [factor, 2 * factor, factor + 1, factor]


def test_branches_that_return_nothing():
    assert L.cond(flag(), None, lambda: None) is None
    assert main_ops() == ["logical_not", "conditional_block"]


def test_case_without_a_choice():
    x = floats(2)
    assert L.case([(flag(), lambda: x)]) is x
    assert main_ops() == []


def test_loop_variables_may_be_nested():
    def body(i, state):
        return [L.increment(i), {"a": state["a"] + 1.0, "b": state["b"] * 2.0}]

    start = {"a": L.ones([1], "float32"), "b": L.ones([1], "float32")}
    limit = number(3)
    i, state = L.while_loop(
        lambda i, _: L.less_than(i, limit), body, [number(0), start]
    )
    got = fluid.Executor().run(fetch_list=[i, state["a"], state["b"]])
    assert [v.item() for v in got] == [3, 4.0, 8.0]


def test_what_goes_in_and_out_of_a_loop():
    i, n, x = number(0), number(3), floats(2)
    total = L.zeros([2], "float32")
    go = L.less_than(i, n)
    with L.While(go).block():
        inner = x * 2.0
        L.assign(total + inner, total)
        L.increment(i)
        L.less_than(i, n, cond=go)
    op = fluid.default_main_program().global_block().ops[-1]
    assert set(op.input("X")) == {x.name, total.name, i.name, n.name}
    assert set(op.output("Out")) == {total.name, i.name, go.name}
    [steps] = op.output("StepScopes")
    assert total.block.var(steps).type == VarType.STEP_SCOPES
    assert inner.block.idx == op.attr("sub_block").idx == 1


def test_a_failing_body_is_told_with_the_users_line():
    n = number(3)

    def body(i):
        return L.elementwise_add(floats(2, 3), floats(4, name="y"))

    with pytest.raises(BuildError, match=r"op elementwise_add.*\n.*in body"):
        L.while_loop(lambda i: L.less_than(i, n), body, [number(0)])


def test_alias_table_is_exact():
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.ones(9))
    alias, probs = alias_table(list(share))
    total = np.array(probs)
    for place, other in enumerate(alias):
        if other >= 0:
            total[other] += 1 - probs[place]
    np.testing.assert_allclose(total / 9, share, rtol=1e-12)
