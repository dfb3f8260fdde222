"""Ops of servers' programs."""

import numpy as np
import pytest
from opcase import OpCase, run_op, suite

from fluidx.kernels import SelectedRows

RNG = np.random.default_rng(0)
COPIES = [RNG.standard_normal((3, 2)) for _ in range(3)]

CASES = [
    OpCase(
        "ref_by_trainer_id",
        {"X": COPIES, "TrainerId": np.array([number], "i8")},
        expected={"Out": COPIES[number]},
    )
    for number in range(3)
]
IDS = [np.array([[0], [2], [2], [3], [5], [5], [6]]), np.array([[6], [1]])]
# values of the reference
CASES += [
    OpCase(
        "split_ids",
        {"Ids": IDS},
        expected={
            "Out": [np.array([[0], [3], [6]]), np.array([[1]]), np.array([[2], [5]])]
        },
        out_counts={"Out": 3},
        infer=False,
    ),
    OpCase(
        "merge_ids",
        {
            "Ids": [np.array([[0], [2], [5], [5], [6]]), np.array([[1], [2], [5]])],
            "Rows": [np.array([[0], [1]]), np.array([[5], [2]]), np.array([[6]])],
            "X": [
                np.arange(4.0).reshape(2, 2),
                10 + np.arange(4.0).reshape(2, 2),
                20 + np.arange(2.0).reshape(1, 2),
            ],
        },
        expected={
            "Out": [
                np.array([[0.0, 1], [12, 13], [10, 11], [10, 11], [20, 21]]),
                np.array([[2.0, 3], [12, 13], [10, 11]]),
            ]
        },
        out_counts={"Out": 2},
        infer=False,
    ),
]
test_server_side = suite(CASES)


def test_sparse_rows_are_dealt_out_with_their_numbers():
    x = SelectedRows(np.array([4, 1, 3]), np.arange(3.0)[:, None], 9)
    parts = run_op("split_ids", {"Ids": [x]}, {}, counts={"Out": 2})["Out"]
    assert [p.rows.tolist() for p in parts] == [[4], [1, 3]]
    assert [p.value.tolist() for p in parts] == [[[0.0]], [[1.0], [2.0]]]
    assert parts[0].height == 9


def test_an_id_without_a_row():
    inputs = {
        "Ids": [np.array([[7]])],
        "Rows": [np.array([[1]])],
        "X": [np.ones((1, 2))],
    }
    with pytest.raises(ValueError, match="no row for id 7"):
        run_op("merge_ids", inputs, {}, counts={"Out": 1})


def test_a_trainer_that_does_not_exist():
    inputs = {"X": COPIES, "TrainerId": np.array([3], "i8")}
    with pytest.raises(ValueError, match="no trainer 3 among 3"):
        run_op("ref_by_trainer_id", inputs, {})
