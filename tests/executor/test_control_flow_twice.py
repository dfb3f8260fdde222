"""Gradients of gradients end at loops and conditional blocks, and say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers
from fluidx.ir import BuildError


def _loop(x: Any) -> Any:
    start = layers.assign(x)  # the loop writes into what it starts with
    start.stop_gradient = False
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)

    def body(i: Any, h: Any) -> list[Any]:
        return [layers.increment(i, in_place=False), layers.elementwise_mul(h, x)]

    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [i, start])[1]


def _choice(x: Any) -> Any:
    large = layers.less_than(
        layers.fill_constant([1], "float32", 0.0), layers.reduce_sum(x)
    )
    return layers.cond(large, lambda: layers.square(x) * x, lambda: layers.square(x))


def _steps(x: Any) -> Any:
    rows = layers.reshape(x, [2, 1, 1])
    rnn = layers.StaticRNN()
    with rnn.step():
        row = rnn.step_input(rows)
        memory = rnn.memory(shape=[-1, 1], batch_ref=row, init_value=1.0)
        made = layers.elementwise_mul(memory, row)
        rnn.update_memory(memory, made)
        rnn.step_output(made)
    return rnn()


@pytest.mark.parametrize(
    ("build", "op"),
    [(_loop, "while"), (_choice, "conditional_block"), (_steps, "recurrent")],
)
def test_the_second_gradient_is_refused(build: Callable[[Any], Any], op: str) -> None:
    x = fluid.data("x", [2])
    x.stop_gradient = False
    (grad,) = fluid.gradients(layers.reduce_sum(build(x)), x)
    assert tuple(grad.shape) == (2,)
    before = fluid.default_main_program().global_block().ops[:]
    with pytest.raises(BuildError, match=f"{op}_grad: .* through {op}, which runs"):
        fluid.gradients(layers.reduce_sum(layers.square(grad)), x)
    ops = fluid.default_main_program().global_block().ops
    assert [op.type for op in ops[len(before) :]] == ["square", "reduce_sum"]


def test_a_path_beside_the_loop_may_be_differentiated_twice() -> None:
    x = fluid.data("x", [2])
    x.stop_gradient = False
    made = _loop(x)
    (grad,) = fluid.gradients(layers.reduce_sum(made), x)
    grad.stop_gradient = True
    (second,) = fluid.gradients(layers.reduce_sum(grad * layers.square(x)), x)
    feed = {"x": np.array([2.0, 3.0], "f4")}
    got = fluid.Executor().run(feed=feed, fetch_list=[grad, second])
    # x^3: 3 x^2; its double product with x
    np.testing.assert_allclose(got[0], [12, 27])
    np.testing.assert_allclose(got[1], [2 * 2 * 12, 2 * 3 * 27])
