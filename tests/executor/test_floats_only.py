"""Ops without a kernel for integers in the reference are refused before a run."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

import fluidx as fluid
from fluidx import kernels
from fluidx.ir import RunError
from fluidx.kernels.floating import FLOATS_ONLY

RECORD = Path(__file__).parents[1] / "golden" / "oracle" / "edges.json.xz"


def test_they_are_ops_that_the_reference_refuses_integers_for() -> None:
    with lzma.open(RECORD, "rt") as file:
        recorded = json.load(file)
    refused = {
        r["case"]["op"]
        for r in recorded
        if r["case"]["name"].endswith(("-int32", "-int64")) and "error" in r["answer"]
    }
    assert refused >= FLOATS_ONLY
    assert set(kernels.all_types()) >= FLOATS_ONLY


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("op", ["tanh", "softmax", "sigmoid", "rsqrt"])
def test_integers_are_refused_by_name(op: str, kind: str) -> None:
    x = fluid.data("x", [2, 3], kind)
    block = fluid.default_main_program().global_block()
    made = block.create_var(name="made")
    block.append_op(op, {"X": x}, {"Out": made}, {})
    feed = {"x": np.ones((2, 3), kind)}
    with pytest.raises(
        RunError, match=f"op {op}: takes floating-point .*X x holds .*I"
    ):
        fluid.Executor().run(feed=feed, fetch_list=[made])
