"""gather, scatter, one_hot, top_k, argsort, arg_max, arg_min."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

INDEX = np.array([3, 0, 3])
TIES = np.array([[1.0, 3.0, 3.0, 2.0, 3.0, 0.0], [5.0, 5.0, 4.0, 5.0, 6.0, -1.0]])


def _scattered(x: dict, attrs: dict) -> dict:
    out = x["X"].copy()
    out[x["Ids"]] = 0
    for row, value in zip(x["Ids"], x["Updates"]):
        out[row] = value if attrs["overwrite"] else out[row] + value
    return {"Out": out}


CASES = [
    OpCase(
        "gather",
        {"X": normal(4, 2, 3), "Index": INDEX.reshape(3, 1)},
        {"overwrite": False},
        lambda x, a: {"Out": x["X"][[3, 0, 3]]},
    ),
    OpCase(
        "gather",
        {"X": normal(4), "Index": np.array([2, 1], "i4")},
        {},
        lambda x, a: {"Out": x["X"][[2, 1]]},
        "vector",
    ),
    # the reference's gradient of X is not the true one: see the oracle records
    OpCase(
        "scatter",
        {"X": normal(4, 2), "Ids": INDEX, "Updates": normal(3, 2, seed=1)},
        {"overwrite": False},
        _scattered,
        grad=["Updates"],
    ),
    OpCase(
        "scatter",
        {"X": normal(4, 2), "Ids": np.array([2, 0]), "Updates": normal(2, 2, seed=1)},
        {},
        _scattered,
        "overwrite",
        grad=["Updates"],
    ),
    OpCase(
        "one_hot",
        {"X": INDEX.reshape(3, 1)},
        {"depth": 4},
        lambda x, a: {"Out": np.eye(4)[[3, 0, 3]]},
        dtypes=["float32"],
    ),
    OpCase(
        "one_hot_v2",
        {"X": np.array([[3, -1], [7, 1]]), "depth_tensor": np.array([4], "i4")},
        {"depth": 9, "allow_out_of_range": True, "dtype": 3},
        lambda x, a: {
            "Out": np.stack([np.eye(4)[[3, 0]], np.eye(4)[[0, 1]]])
            * np.array([[1, 0], [0, 1]])[..., None]
        },
        dtypes=["float32"],
    ),
    OpCase(
        "top_k",
        {"X": TIES},
        {"k": 3},
        {
            "Out": np.array([[3, 3, 3], [6, 5, 5]]),
            "Indices": np.array([[1, 2, 4], [4, 0, 1]]),
        },
        "ties",
        grad=(),
    ),
    OpCase(
        "top_k",
        {"X": normal(2, 3, 4)},
        {"k": 1},
        lambda x, a: {
            "Out": x["X"].max(-1, keepdims=True),
            "Indices": x["X"].argmax(-1)[..., None],
        },
        "one",
    ),
    OpCase(
        "top_k",
        {"X": normal(3, 7)},
        {"k": 4},
        lambda x, a: {
            "Out": np.sort(x["X"], -1)[:, ::-1][:, :4],
            "Indices": np.argsort(-x["X"], -1)[:, :4],
        },
    ),
    OpCase(
        "argsort",
        {"X": normal(3, 4, 2)},
        {"axis": 1, "descending": True},
        lambda x, a: {
            "Out": -np.sort(-x["X"], 1),
            "Indices": np.argsort(-x["X"], 1),
        },
    ),
    OpCase(
        "argsort",
        {"X": normal(3, 4)},
        {},
        lambda x, a: {"Out": np.sort(x["X"]), "Indices": np.argsort(x["X"])},
        "last",
    ),
    OpCase(
        "arg_max",
        {"X": TIES},
        {"axis": 1},
        {"Out": np.array([1, 4])},
    ),
    OpCase(
        "arg_min",
        {"X": normal(3, 4, 2)},
        {"axis": 1, "keepdims": True, "dtype": 2},
        lambda x, a: {"Out": x["X"].argmin(1)[:, None]},
    ),
]
test_indexing = suite(CASES)
test_against_reference = oracle_suite("array_ops", *{case.op for case in CASES})


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("gather", {"X": normal(4, 2), "Index": np.array([1, 4])}, {}, "index 4"),
        ("gather", {"X": normal(4, 2), "Index": np.array([-2, 1], "i4")}, {}, "-2"),
        ("one_hot", {"X": np.array([[3], [9], [5]])}, {"depth": 4}, "id 9"),
        (
            "scatter",
            {"X": normal(4, 2), "Ids": np.array([5]), "Updates": normal(1, 2)},
            {},
            "id 5",
        ),
    ],
)
def test_the_worst_index_is_named(
    op: str, inputs: dict, attrs: dict, message: str
) -> None:
    with pytest.raises(IndexError, match=rf"{op}: .*{message} is not in \[0, 4\)"):
        run_op(op, inputs, attrs)


def test_top_k_takes_k_from_a_tensor() -> None:
    outs = run_op("top_k", {"X": TIES, "K": np.array([2], "i4")}, {"k": 5})
    assert outs["Indices"].tolist() == [[1, 2], [4, 0]]
    with pytest.raises(ValueError, match="top_k: k is 9 for a last axis of 6"):
        run_op("top_k", {"X": TIES}, {"k": 9})


@pytest.mark.parametrize("k", [2, 5, 8, 9])
def test_top_k_of_many_with_ties(k: int) -> None:
    """Short and long ways give what a stable sort gives."""
    x = np.random.default_rng(0).integers(0, 9, (6, 100)).astype("f4")
    x[0, 3:] = -np.inf
    outs = run_op("top_k", {"X": x}, {"k": k})
    wanted = np.argsort(-x, 1, kind="stable")[:, :k]
    assert np.array_equal(outs["Indices"], wanted)
    assert np.array_equal(outs["Out"], np.take_along_axis(x, wanted, 1))
    whole = run_op("top_k", {"X": x[1:].astype("i8")}, {"k": k})
    assert np.array_equal(whole["Indices"], wanted[1:])


def test_infinities_do_not_hide_each_other_in_top_k() -> None:
    x = np.array([[-np.inf, 1.0, -np.inf]])
    assert run_op("top_k", {"X": x}, {"k": 3})["Indices"].tolist() == [[1, 0, 2]]
