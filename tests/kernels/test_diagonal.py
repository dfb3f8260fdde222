"""eye, diag, diag_embed, trace, tril_triu, linspace, size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite


def _trace(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    found = np.trace(x["Input"], a["offset"], a["dim1"], a["dim2"])
    return {"Out": np.atleast_1d(found)}


def _embedded(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    """By taking the diagonal out again: what is left of it must be the input."""
    given = x["Input"]
    side = given.shape[-1] + abs(a["offset"])
    out = np.zeros((*given.shape[:-1], side, side))
    for place in np.ndindex(*given.shape[:-1]):
        out[place] = np.diag(given[place], a["offset"])
    return {"Out": np.moveaxis(out, (-2, -1), (a["dim1"], a["dim2"]))}


def _triangle(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    return {"Out": (np.tril if a["lower"] else np.triu)(x["X"], a["diagonal"])}


def _line(start: float, stop: float, num: int) -> dict[str, Any]:
    return {
        "Start": np.array([start]),
        "Stop": np.array([stop]),
        "Num": np.array([num], "i4"),
    }


CASES = [
    OpCase("eye", {}, {"num_rows": 3}, {"Out": np.eye(3)}),
    OpCase(
        "eye", {}, {"num_rows": 2, "num_columns": 4, "dtype": 3}, {"Out": np.eye(2, 4)}
    ),
    OpCase("eye", {}, {"num_rows": 2, "num_columns": 0}, {"Out": np.eye(2, 0)}, "none"),
    OpCase(
        "diag",
        {"Diagonal": normal(3)},
        {},
        lambda x, a: {"Out": np.diag(x["Diagonal"])},
    ),
    OpCase(
        "diag",
        {"Diagonal": integers(4, high=9)},
        {},
        lambda x, a: {"Out": np.diag(x["Diagonal"])},
    ),
    OpCase("diag", {"Diagonal": np.zeros(0)}, {}, {"Out": np.zeros((0, 0))}, "empty"),
    *(
        OpCase("diag_embed", {"Input": normal(*shape)}, attrs, _embedded)
        for shape, attrs in (
            ((2, 3), {}),
            ((2, 3), {"offset": 2, "dim1": 0, "dim2": 1}),
            ((2, 3), {"offset": -1, "dim1": 2, "dim2": 0}),
            ((4,), {"offset": 1}),
        )
    ),
    *(
        OpCase("trace", {"Input": normal(*shape)}, attrs, _trace)
        for shape, attrs in (
            ((3, 3), {}),
            ((2, 4), {"offset": 1}),
            ((3, 2, 4), {"offset": -1, "dim1": 0, "dim2": 2}),
            ((3, 2), {"offset": 9}),
            ((3, 2, 0), {}),
        )
    ),
    OpCase("trace", {"Input": integers(3, 3, high=5)}, {}, _trace, "integers", grad=()),
    *(
        OpCase("tril_triu", {"X": normal(*shape)}, attrs, _triangle)
        for shape, attrs in (
            ((3, 4), {"lower": True}),
            ((3, 4), {"lower": False, "diagonal": 1}),
            ((2, 3, 3), {"lower": False, "diagonal": -1}),
            ((0, 3), {"lower": True}),
        )
    ),
    OpCase("linspace", _line(0.0, 1.0, 5), {}, {"Out": np.linspace(0, 1, 5)}),
    OpCase(
        "linspace",
        _line(2.0, -1.0, 4),
        {},
        {"Out": np.array([2.0, 1.0, 0.0, -1.0])},
        "down",
    ),
    OpCase("linspace", _line(2.0, 3.0, 1), {}, {"Out": np.array([2.0])}, "one"),
    OpCase("size", {"Input": normal(2, 3, 4)}, {}, {"Out": np.array([24])}),
    OpCase("size", {"Input": normal(2, 0)}, {}, {"Out": np.array([0])}, "empty"),
]
test_diagonal = suite(CASES)
test_against_reference = oracle_suite("dense_math", *{case.op for case in CASES})


def test_a_line_needs_points() -> None:
    with pytest.raises(ValueError, match="linspace: Num is 0, not positive"):
        run_op("linspace", _line(0.0, 1.0, 0), {})
