"""index_select, index_sample, gather_nd, scatter_nd_add, multiplex, unique, ..."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite

INDEX = np.array([2, 0, 2, 1])
PLACES = np.array([[[0, 1], [1, 2]], [[0, 1], [0, 0]]])
MASK = np.array([[True, False, True], [False, False, True]])


def _at(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    index = x["Index"]
    return {"Out": x["X"][tuple(np.moveaxis(index, -1, 0))]}


def _added(x: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    out = x["X"].copy()
    np.add.at(out, tuple(np.moveaxis(x["Index"], -1, 0)), x["Updates"])
    return {"Out": out}


CASES = [
    OpCase(
        "index_select",
        {"X": normal(3, 2), "Index": INDEX},
        {},
        lambda x, a: {"Out": x["X"][INDEX]},
    ),
    OpCase(
        "index_select",
        {"X": normal(2, 3, 4), "Index": INDEX.astype("i4").reshape(4, 1)},
        {"dim": -2},
        lambda x, a: {"Out": x["X"][:, INDEX]},
        "middle",
    ),
    OpCase(
        "index_select",
        {"X": normal(2, 3), "Index": np.zeros(0, "i8")},
        {"dim": 1},
        {"Out": np.zeros((2, 0))},
        "none",
    ),
    OpCase(
        "index_sample",
        {"X": normal(2, 3), "Index": np.array([[2, 2, 0, 1], [1, 0, 0, 0]], "i4")},
        {},
        lambda x, a: {"Out": np.take_along_axis(x["X"], x["Index"], 1)},
    ),
    OpCase(
        "index_sample",
        {"X": integers(2, 3, high=9), "Index": np.zeros((2, 0), "i8")},
        {},
        {"Out": np.zeros((2, 0))},
        "none",
        grad=(),
    ),
    OpCase("gather_nd", {"X": normal(2, 3, 2), "Index": PLACES}, {}, _at),
    OpCase(
        "gather_nd",
        {"X": normal(2, 3), "Index": PLACES.astype("i4")},
        {},
        _at,
        "elements",
    ),
    OpCase(
        "gather_nd", {"X": normal(3, 2), "Index": INDEX.reshape(4, 1)}, {}, _at, "rows"
    ),
    OpCase(
        "gather_nd",
        {"X": normal(3, 2), "Index": np.zeros((2, 0), "i8")},
        {},
        lambda x, a: {"Out": np.stack([x["X"]] * 2)},
        "whole",
    ),
    OpCase(
        "gather_nd",
        {"X": normal(3, 2), "Index": np.zeros((0, 1), "i8")},
        {},
        {"Out": np.zeros((0, 2))},
        "nothing",
    ),
    OpCase(
        "scatter_nd_add",
        {"X": normal(2, 3, 2), "Index": PLACES, "Updates": normal(2, 2, 2, seed=1)},
        {},
        _added,
    ),
    OpCase(
        "scatter_nd_add",
        {
            "X": normal(3, 2),
            "Index": INDEX.reshape(4, 1),
            "Updates": normal(4, 2, seed=1),
        },
        {},
        _added,
        "rows",
    ),
    OpCase(
        "scatter_nd_add",
        {
            "X": np.arange(3, dtype="i4"),
            "Index": np.array([[1], [1]]),
            "Updates": np.array([5, 6], "i4"),
        },
        {},
        {"Out": np.array([0, 12, 2])},
        "integers",
        grad=(),
    ),
    OpCase(
        "multiplex",
        {
            "Ids": np.array([[1], [0], [2]], "i4"),
            "X": [normal(3, 2), normal(3, 2, seed=1), normal(3, 2, seed=2)],
        },
        {},
        lambda x, a: {"Out": np.stack([x["X"][1][0], x["X"][0][1], x["X"][2][2]])},
    ),
    OpCase(
        "where",
        {"Condition": MASK, "X": normal(2, 3), "Y": normal(2, 3, seed=1)},
        {},
        lambda x, a: {"Out": np.where(MASK, x["X"], x["Y"])},
    ),
    OpCase(
        "where_index",
        {"Condition": MASK},
        {},
        {"Out": np.array([[0, 0], [0, 2], [1, 2]])},
    ),
    OpCase(
        "where_index",
        {"Condition": ~MASK & MASK},
        {},
        {"Out": np.zeros((0, 2))},
        "none",
    ),
    OpCase(
        "where_index",
        {"Condition": np.array([0.0, -2.0, np.nan])},
        {},
        {"Out": np.array([[1], [2]])},
        "floats",
    ),
    OpCase(
        "unique",
        {"X": np.array([7, 3, 7, 5, 3])},
        {"dtype": 2},
        {"Out": np.array([7, 3, 5]), "Index": np.array([0, 1, 0, 2, 1])},
    ),
    OpCase(
        "unique",
        {"X": np.zeros(0)},
        {"dtype": 3},
        {"Out": np.array([]), "Index": np.array([])},
        "empty",
    ),
    OpCase(
        "unique_with_counts",
        {"X": np.array([0.5, -1.0, 0.5])},
        {"dtype": 3},
        {
            "Out": np.array([0.5, -1.0]),
            "Index": np.array([0, 1, 0]),
            "Count": np.array([2, 1]),
        },
    ),
    OpCase(
        "shard_index",
        {"X": np.array([[0], [4], [5], [9]])},
        {"index_num": 10, "nshards": 2, "shard_id": 1},
        {"Out": np.array([[-1], [-1], [0], [4]])},
    ),
]
test_picking = suite(CASES)
test_against_reference = oracle_suite("dense_picks", *{case.op for case in CASES})


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("index_select", {"X": normal(3), "Index": np.array([1, 3])}, {}, "index 3"),
        (
            "index_sample",
            {"X": normal(1, 3), "Index": np.array([[-1]])},
            {},
            "index -1",
        ),
        (
            "gather_nd",
            {"X": normal(3, 2), "Index": np.array([[5, 0]])},
            {},
            "index 0 5",
        ),
        (
            "scatter_nd_add",
            {"X": normal(1, 3), "Index": np.array([[0, -2]]), "Updates": normal(1)},
            {},
            "index 1 -2",
        ),
        (
            "multiplex",
            {"Ids": np.array([[3]]), "X": [normal(1, 1)] * 3},
            {},
            "id 3",
        ),
        (
            "shard_index",
            {"X": np.array([[3]])},
            {"index_num": 3, "nshards": 1, "shard_id": 0},
            "index 3",
        ),
    ],
)
def test_the_worst_index_is_named(
    op: str, inputs: Any, attrs: Any, message: str
) -> None:
    with pytest.raises(IndexError, match=rf"{op}: {message} is not in \[0, 3\)"):
        run_op(op, inputs, attrs)


def test_unique_of_many_keeps_the_order_of_first_appearance() -> None:
    x = np.random.default_rng(0).integers(0, 50, 400)
    got = run_op("unique_with_counts", {"X": x}, {"dtype": 3})
    wanted = list(dict.fromkeys(x.tolist()))
    assert got["Out"].tolist() == wanted
    assert np.array_equal(got["Out"][got["Index"]], x)
    assert got["Count"].tolist() == [int((x == v).sum()) for v in wanted]
