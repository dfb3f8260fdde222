"""partial_concat, partial_sum, shuffle_batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite


def _columns(x: Any, a: dict[str, Any]) -> list[Any]:
    start = a.get("start_index", 0) % x["X"][0].shape[1]
    length = a.get("length", -1)
    return [v[:, start:][:, : length if length >= 0 else None] for v in x["X"]]


MATRICES = {"X": [normal(3, 5, seed=s) for s in range(3)]}
CHOICES: dict[str, dict[str, Any]] = {
    "all": {},
    "middle": {"start_index": 1, "length": 3},
    "rest": {"start_index": 3},
    "from_the_end": {"start_index": -2, "length": 1},
}
CASES = [
    *(
        OpCase(
            "partial_concat",
            MATRICES,
            attrs,
            lambda x, a: {"Out": np.concatenate(_columns(x, a), 1)},
            name,
        )
        for name, attrs in CHOICES.items()
    ),
    *(
        OpCase(
            "partial_sum",
            MATRICES,
            attrs,
            lambda x, a: {"Out": np.sum(_columns(x, a), axis=0)},
            name,
        )
        for name, attrs in CHOICES.items()
    ),
    OpCase(
        "shuffle_batch",
        {"X": normal(1, 4), "Seed": np.array([5])},
        {},
        lambda x, a: {"Out": x["X"], "ShuffleIdx": np.array([0])},
        "one_row",
    ),
    OpCase(
        "shuffle_batch",
        {"X": normal(0, 4), "Seed": np.array([5])},
        {},
        lambda x, a: {"Out": x["X"], "ShuffleIdx": np.zeros(0)},
        "no_row",
    ),
    OpCase(
        "partial_sum",
        {"X": [normal(0, 4), normal(0, 4)]},
        {"start_index": 1, "length": 2},
        lambda x, a: {"Out": np.zeros((0, 2))},
        "no_row",
    ),
    OpCase(
        "partial_concat",
        {"X": [normal(0, 4), normal(0, 4)]},
        {"start_index": 1, "length": 2},
        lambda x, a: {"Out": np.zeros((0, 4))},
        "no_row",
    ),
]
test_partial = suite(CASES)
test_against_reference = oracle_suite("partial_ops", "partial_concat", "partial_sum")


def test_rows_change_places_and_their_gradients_go_back() -> None:
    x = np.arange(60.0).reshape(5, 4, 3)
    made = run_op("shuffle_batch", {"X": x}, {"startup_seed": 3})
    places, out = made["ShuffleIdx"], made["Out"]
    assert sorted(places.tolist()) == list(range(20)) != places.tolist()
    np.testing.assert_array_equal(out.reshape(20, 3)[places], x.reshape(20, 3))
    given = {"ShuffleIdx": places, "Out@GRAD": out}
    (back,) = run_op("shuffle_batch_grad", given, {}).values()
    np.testing.assert_array_equal(back, x)
    again = run_op("shuffle_batch", {"X": x}, {"startup_seed": 3})
    np.testing.assert_array_equal(again["ShuffleIdx"], places)
    following = run_op("shuffle_batch", {"X": x, "Seed": made["SeedOut"]}, {})
    assert following["ShuffleIdx"].tolist() != places.tolist()
    assert following["SeedOut"].tolist() != made["SeedOut"].tolist()
