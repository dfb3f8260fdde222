"""addmm, bmm, dot, cross, kron, dist, cumsum, allclose against numpy and records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite


def _addmm(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    return {"Out": a["Beta"] * x["Input"] + a["Alpha"] * x["X"] @ x["Y"]}


def _dist(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    gap = np.abs(x["X"] - x["Y"]).reshape(-1)
    return {"Out": np.array([np.linalg.norm(gap, a["p"])])}


def _cumsum(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    flip = (lambda v: np.flip(v, a["axis"])) if a["reverse"] else (lambda v: v)
    total = flip(np.cumsum(flip(x["X"]), a["axis"]))
    return {"Out": total - x["X"] if a["exclusive"] else total}


def _pair(*shape: int, y: tuple[int, ...] | None = None) -> dict[str, Any]:
    return {"X": normal(*shape), "Y": normal(*(y or shape), seed=1)}


MATRICES = {"X": normal(2, 4), "Y": normal(4, 3, seed=1)}
CASES = [
    OpCase("addmm", {"Input": normal(2, 3, seed=2), **MATRICES}, {}, _addmm),
    OpCase(
        "addmm",
        {"Input": normal(1, 3, seed=2), **MATRICES},
        {"Alpha": -0.5, "Beta": 2.0},
        _addmm,
        "row",
    ),
    OpCase("addmm", {"Input": normal(2, 1, seed=2), **MATRICES}, {}, _addmm, "column"),
    OpCase(
        "addmm",
        {"Input": normal(2, 3), "X": normal(2, 0), "Y": normal(0, 3)},
        {"Beta": 2.0},
        _addmm,
        "nothing between",
    ),
    OpCase(
        "bmm", _pair(3, 2, 4, y=(3, 4, 5)), {}, lambda x, a: {"Out": x["X"] @ x["Y"]}
    ),
    OpCase(
        "bmm", _pair(0, 2, 4, y=(0, 4, 5)), {}, {"Out": np.zeros((0, 2, 5))}, "empty"
    ),
    OpCase(
        "dot",
        _pair(5),
        {},
        lambda x, a: {"Out": np.array([x["X"] @ x["Y"]])},
        "vectors",
    ),
    OpCase(
        "dot",
        _pair(3, 5),
        {},
        lambda x, a: {"Out": (x["X"] * x["Y"]).sum(1, keepdims=True)},
    ),
    OpCase(
        "dot",
        {"X": np.array([1, 2], "i4"), "Y": np.array([3, 4], "i4")},
        {},
        {"Out": np.array([11])},
        "integers",
        grad=(),
    ),
    OpCase("cross", _pair(4, 3), {}, lambda x, a: {"Out": np.cross(x["X"], x["Y"])}),
    OpCase(
        "cross",
        _pair(3, 2, 3),
        {"dim": -3},
        lambda x, a: {"Out": np.cross(x["X"], x["Y"], axis=0)},
        "first axis",
    ),
    OpCase(
        "cross",
        {"X": integers(2, 3, high=5), "Y": integers(2, 3, high=5, seed=1)},
        {},
        lambda x, a: {"Out": np.cross(x["X"], x["Y"])},
        "integers",
        grad=(),
    ),
    OpCase(
        "kron", _pair(2, 3, y=(4, 2)), {}, lambda x, a: {"Out": np.kron(x["X"], x["Y"])}
    ),
    OpCase(
        "kron",
        _pair(3, y=(2, 1, 2)),
        {},
        lambda x, a: {"Out": np.kron(x["X"], x["Y"])},
        "ranks",
    ),
    *(
        OpCase("dist", _pair(2, 3, y=(3,)), {"p": p}, _dist, f"p={p}")
        for p in (2.0, 1.0, 3.0, 1.5, float("inf"), float("-inf"), -1.0)
    ),
    OpCase("dist", _pair(2, 3), {"p": 0.0}, {"Out": np.array([6.0])}, "p=0"),
    OpCase("dist", _pair(3, 1, y=(1, 2)), {}, _dist, "both broadcast"),
    *(
        OpCase(
            "cumsum",
            {"X": normal(2, 3, 4)},
            {"axis": axis, "exclusive": exclusive, "reverse": reverse},
            _cumsum,
            f"{axis}-{exclusive:d}{reverse:d}",
        )
        for axis, exclusive, reverse in (
            (-1, False, False),
            (0, True, False),
            (1, False, True),
            (-2, True, True),
        )
    ),
    OpCase(
        "cumsum",
        {"X": np.array([1, 2, 3], "i4")},
        {"axis": 0, "exclusive": True},
        {"Out": np.array([0, 1, 3])},
        "integers",
        grad=(),
    ),
    OpCase(
        "cumsum",
        {"X": normal(2, 0)},
        {"axis": 1, "exclusive": True},
        {"Out": np.zeros((2, 0))},
        "empty",
    ),
    OpCase(
        "allclose",
        {"Input": np.array([1.0, 2.0]), "Other": np.array([1.0, 2.00001])},
        {},
        {"Out": np.array([True])},
    ),
    OpCase(
        "allclose",
        {"Input": np.array([np.nan, np.inf]), "Other": np.array([np.nan, np.inf])},
        {"equal_nan": True},
        {"Out": np.array([True])},
        "not finite",
    ),
    OpCase(
        "allclose",
        {"Input": np.array([np.nan, 1.0]), "Other": np.array([np.nan, 1.0])},
        {},
        {"Out": np.array([False])},
        "nan",
    ),
]
test_products = suite(CASES)
test_against_reference = oracle_suite("dense_math", *{case.op for case in CASES})


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_the_gradient_of_no_distance_is_zero(p: float) -> None:
    x = np.ones((2, 3), "f4")
    ins = {"X": x, "Y": x, "Out": np.zeros(1, "f4"), "Out@GRAD": np.ones(1, "f4")}
    found = run_op("dist_grad", ins, {"p": p})
    assert not found["X@GRAD"].any()
    assert not found["Y@GRAD"].any()


@pytest.mark.parametrize(
    ("op", "x", "y", "message"),
    [
        ("bmm", (2, 1, 1), (3, 1, 1), "bmm: batch sizes 2 and 3 differ"),
        ("dot", (2, 3), (3,), r"dot: shapes differ: X \(2, 3\) and Y \(3,\)"),
        ("cross", (2, 2), (2, 2), r"no dimension of \(2, 2\) has size 3"),
    ],
)
def test_shapes_that_only_the_run_shows(op: str, x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_op(op, {"X": normal(*x), "Y": normal(*y)}, {})
