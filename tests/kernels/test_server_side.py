"""Ops of servers' programs."""

import numpy as np
import pytest
from opcase import OpCase, run_op, suite

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
test_server_side = suite(CASES)


def test_a_trainer_that_does_not_exist():
    inputs = {"X": COPIES, "TrainerId": np.array([3], "i8")}
    with pytest.raises(ValueError, match="no trainer 3 among 3"):
        run_op("ref_by_trainer_id", inputs, {})
