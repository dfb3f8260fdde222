"""conditional_block_infer: what the reference's inference programs hold instead."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers


@pytest.mark.parametrize(("value", "wanted"), [(3.0, 9.0), (-3.0, 3.0)])
def test_it_runs_like_conditional_block(value: float, wanted: float) -> None:
    x = fluid.data("x", [1])
    zero = layers.fill_constant([1], "float32", 0.0)
    chosen = layers.less_than(zero, x)
    made = layers.cond(chosen, lambda: layers.square(x), lambda: layers.abs(x))
    ops = fluid.default_main_program().global_block().ops
    blocks = [op for op in ops if op.type == "conditional_block"]
    assert len(blocks) == 2
    for op in blocks:
        op.type = "conditional_block_infer"
    feed = {"x": np.array([value], "f4")}
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[made])
    assert got.tolist() == [wanted]
