"""accuracy and auc."""

from __future__ import annotations

import json

import numpy as np
import pytest
from opcase import OpCase, run_op, suite, uniform
from replay_oracle import FOLDER, oracle_suite

CASES = [
    OpCase(
        "accuracy",
        {
            "Out": uniform(4, 2),
            "Indices": np.array([[1, 2], [0, 3], [4, 1], [2, 2]]),
            "Label": np.array([[2], [1], [4], [3]]),
        },
        {},
        {"Accuracy": [0.5], "Correct": np.array([2]), "Total": np.array([4])},
        dtypes=["float32"],
    ),
    OpCase(
        "accuracy",
        {
            "Out": uniform(3, 1),
            "Indices": np.array([[1], [0], [4]]),
            "Label": np.array([[1], [1], [4]], "i4"),
        },
        {},
        {"Accuracy": np.array([2 / 3]), "Correct": np.array([2])},
        "top-1",
        dtypes=["float32"],
    ),
    OpCase(
        "auc",
        {
            "Predict": np.array([[0.4, 0.6], [0.7, 0.3], [0.2, 0.8]]),
            "Label": np.array([[1], [0], [0]]),
            "StatPos": np.zeros((1, 11), int),
            "StatNeg": np.zeros((1, 11), int),
        },
        {"num_thresholds": 10, "slide_steps": 0},
        {"AUC": np.array([0.5])},
        dtypes=["float32"],
    ),
]
CASES[0].expected["Accuracy"] = np.array([0.5])
test_metric = suite(CASES)
test_against_reference = oracle_suite("loss_ops", "accuracy", "auc")


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_auc_over_batches(steps: int) -> None:
    """State and value after each of several batches, as the reference had them."""
    recorded = json.loads((FOLDER / "auc_batches.json").read_text())
    bins = recorded["num_thresholds"] + 1
    shape = ((1 + steps) * bins + 1,) if steps else (1, bins)
    state = {"StatPos": np.zeros(shape, "i8"), "StatNeg": np.zeros(shape, "i8")}
    attrs = {"num_thresholds": bins - 1, "slide_steps": steps}
    for batch, wanted in zip(recorded["batches"], recorded["answers"][str(steps)]):
        chance = np.array(batch["chance"], "f4")
        inputs = {
            "Predict": np.stack([1 - chance, chance], 1),
            "Label": np.array(batch["label"]).reshape(-1, 1),
            **state,
        }
        outs = run_op("auc", inputs, attrs)
        assert outs["StatPosOut"] is state["StatPos"]
        assert outs["StatNegOut"] is state["StatNeg"]
        assert state["StatPos"].reshape(-1).tolist() == wanted["pos"]
        assert state["StatNeg"].reshape(-1).tolist() == wanted["neg"]
        assert outs["AUC"].tolist() == pytest.approx([wanted["auc"]], abs=1e-12)


def test_auc_without_one_of_the_classes_is_zero() -> None:
    inputs = {
        "Predict": np.array([[0.4, 0.6]], "f4"),
        "Label": np.array([[1]]),
        "StatPos": np.zeros((1, 11), "i8"),
        "StatNeg": np.zeros((1, 11), "i8"),
    }
    outs = run_op("auc", inputs, {"num_thresholds": 10, "slide_steps": 0})
    assert outs["AUC"].tolist() == [0.0]


def test_auc_wants_probabilities() -> None:
    inputs = {
        "Predict": np.array([[0.4, 1.5]], "f4"),
        "Label": np.array([[1]]),
        "StatPos": np.zeros((1, 11), "i8"),
        "StatNeg": np.zeros((1, 11), "i8"),
    }
    with pytest.raises(ValueError, match=r"auc: Predict must lie in \[0, 1\]"):
        run_op("auc", inputs, {"num_thresholds": 10, "slide_steps": 0})
