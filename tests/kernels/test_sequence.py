"""sequence_pool on one and two levels, with empty sequences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, Meta

POOLS = {
    "AVERAGE": lambda part: part.mean(0),
    "SUM": lambda part: part.sum(0),
    "SQRT": lambda part: part.sum(0) / np.sqrt(len(part)),
    "MAX": lambda part: part.max(0),
    "LAST": lambda part: part[-1],
    "FIRST": lambda part: part[0],
}


def _pooled(offsets: list[int], pad: float = 0.0):
    def expected(x: dict, attrs: dict) -> dict:
        parts = [x["X"][a:b] for a, b in pairwise(offsets)]
        pool = POOLS[attrs["pooltype"]]
        empty = np.full(x["X"].shape[1:], pad)
        return {"Out": np.stack([pool(p) if len(p) else empty for p in parts])}

    return expected


CASES = [
    # the first size is not inferred: the reference leaves that of X
    OpCase(
        "sequence_pool",
        {"X": normal(6, *tail)},
        {"pooltype": kind, "pad_value": 2.5},
        _pooled(lod[-1], 2.5),
        f"{kind}-{len(lod[-1])}",
        lod={"X": lod},
        infer=False,
    )
    for kind in POOLS
    for lod, tail in (
        ([[0, 2, 3, 6]], (3,)),
        ([[0, 0, 4, 4, 6, 6]], (2, 2)),
        ([[0, 2, 3], [0, 1, 4, 6]], (3,)),
        ([[0, 3, 6]], (2,)),
        ([[0, 1, 2, 3, 4, 5, 6]], (2,)),
    )
]
test_sequence_pool = suite(CASES)
test_against_reference = oracle_suite("loss_ops", "sequence_pool")


def test_maximum_says_where_it_stood() -> None:
    x = np.array([[1.0, 5.0], [3.0, 5.0], [-1.0, 4.0]])
    lod = {"X": [[0, 2, 2, 3]]}
    outs = run_op("sequence_pool", {"X": x}, {"pooltype": "MAX"}, lod=lod)
    assert outs["MaxIndex"].tolist() == [[1, 0], [-1, -1], [2, 2]]
    assert outs["MaxIndex"].dtype == np.int32


def test_only_empty_sequences() -> None:
    x = {"X": np.zeros((0, 2), "f4")}
    for kind in POOLS:
        attrs = {"pooltype": kind, "pad_value": 1.0}
        out = run_op("sequence_pool", x, attrs, lod={"X": [[0, 0, 0]]})["Out"]
        assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_the_inner_level_goes() -> None:
    definition = kernels.find("sequence_pool")
    lod = {"X": [[0, 1, 3], [0, 2, 3, 5]]}
    assert definition.lod_rule is not None
    assert definition.lod_rule(lod, {}, {}) == {"Out": [[0, 1, 3]]}
    assert definition.lod_rule({"X": [[0, 2, 5]]}, {}, {}) == {}
    metas = {"X": [Meta((-1, 8), lod_level=2)]}
    context = InferContext("sequence_pool", metas, definition.defaults, {"Out": 1})
    definition.infer(context)
    assert context.outs["Out"] == [Meta((-1, 8), lod_level=1)]


def test_gradient_takes_the_maxima_only_where_it_needs_them() -> None:
    from fluidx.kernels import GradContext

    definition = kernels.find("sequence_pool")
    for kind, wanted in (("MAX", True), ("SUM", False)):
        names = {"Out": ["y"], "MaxIndex": ["i"]}
        op = GradContext("sequence_pool", {"X": ["x"]}, names, {"pooltype": kind})
        (spec,) = definition.grad_specs(op)
        assert ("MaxIndex" in spec.inputs) is wanted
        assert spec.outputs == {"X@GRAD": ["x@GRAD"]}


def test_what_is_wrong_with_the_sequences_is_said() -> None:
    x = {"X": normal(5, 2)}
    with pytest.raises(ValueError, match="sequence_pool: X has no LoD"):
        run_op("sequence_pool", x, {}, lod={"X": None})
    with pytest.raises(ValueError, match="LoD of X ends at 4, X has 5 rows"):
        run_op("sequence_pool", x, {}, lod={"X": [[0, 4]]})
