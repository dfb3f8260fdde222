"""randint, randperm, sampling_id, random_crop: ranges, frequencies, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

LATE = np.array([[0.5, 0.3, 0.1], [0.0, 0.0, 1.0]])
CASES = [
    OpCase(
        "randint",
        {},
        {"low": 3, "high": 4, "shape": [2, 2]},
        {"Out": np.full((2, 2), 3)},
    ),
    OpCase(
        "randint",
        {"ShapeTensorList": [np.array([2], "i4"), np.array([3])]},
        {"low": -2, "high": -1, "dtype": 2},
        {"Out": np.full((2, 3), -2)},
        "sizes",
    ),
    OpCase(
        "randint",
        {"ShapeTensor": np.array([0, 3])},
        {"low": 0, "high": 9},
        {"Out": np.zeros((0, 3))},
        "empty",
    ),
    OpCase("randperm", {}, {"n": 1, "dtype": 2}, {"Out": np.array([0])}),
    OpCase(
        "sampling_id",
        {"X": LATE},
        {"min": 0.95, "max": 0.99},
        {"Out": np.array([2, 2])},
    ),
    OpCase(
        "random_crop",
        {"X": normal(2, 3, 4), "Seed": np.array([5])},
        {"shape": [3, 4]},
        lambda x, a: {"Out": x["X"]},
        "whole",
    ),
]
test_random_choice = suite(CASES)
test_against_reference = oracle_suite(
    "dense_picks", "randint", "randperm", "sampling_id", "mean_iou"
)


def test_integers_fill_their_range() -> None:
    attrs = {"low": -2, "high": 3, "shape": [4000], "dtype": 2}
    drawn = run_op("randint", {}, attrs)["Out"]
    assert drawn.dtype == np.int32
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert abs(counts - 800).max() < 120


def test_a_permutation_has_each_number_once() -> None:
    drawn = run_op("randperm", {}, {"n": 50})["Out"]
    assert sorted(drawn.tolist()) == list(range(50)) != drawn.tolist()


def test_classes_are_drawn_as_often_as_they_are_likely() -> None:
    x = np.tile(np.array([0.2, 0.0, 0.7, 0.1], "f4"), (8000, 1))
    counts = np.bincount(run_op("sampling_id", {"X": x}, {})["Out"], minlength=4)
    assert abs(counts / 8000 - [0.2, 0.0, 0.7, 0.1]).max() < 0.02
    assert counts[1] == 0


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("randint", {}, {"low": 0, "high": 1000, "shape": [9]}),
        ("randperm", {}, {"n": 30}),
        ("sampling_id", {"X": np.full((20, 9), 1 / 9)}, {}),
    ],
)
def test_a_seed_gives_the_same_again(op: str, inputs: Any, attrs: Any) -> None:
    one, again = (run_op(op, inputs, {**attrs, "seed": 3})["Out"] for _ in range(2))
    other = run_op(op, inputs, {**attrs, "seed": 4})["Out"]
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_crops_are_windows_at_places_of_their_own() -> None:
    x = np.arange(3 * 40 * 6 * 5).reshape(3, 40, 6, 5)
    attrs = {"shape": [3, 2], "startup_seed": 9}
    first = run_op("random_crop", {"X": x}, attrs)
    places = set()
    for window, whole in zip(first["Out"].reshape(120, 3, 2), x.reshape(120, 6, 5)):
        i, j = divmod(int(window[0, 0] - whole[0, 0]), 5)
        assert np.array_equal(window, whole[i : i + 3, j : j + 2])
        places.add((i, j))
    assert len(places) == 16  # all there are
    again = run_op("random_crop", {"X": x}, attrs)
    assert np.array_equal(again["Out"], first["Out"])
    following = run_op("random_crop", {"X": x, "Seed": first["SeedOut"]}, attrs)
    assert not np.array_equal(following["Out"], first["Out"])
