"""Small translators learn and search step by step as in the reference."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from recorded_networks import ORACLE, answers

import fluidx

ANSWERS = answers("seq2seq_steps")


@pytest.fixture(scope="module")
def script() -> Any:
    sys.path.insert(0, str(ORACLE))
    try:
        return importlib.import_module("seq2seq_steps")
    finally:
        sys.path.remove(str(ORACLE))


@pytest.mark.parametrize("name", list(ANSWERS))
def test_each_step_and_each_word_is_the_reference_s(name: str, script: Any) -> None:
    assert list(script.MODELS) == ["gru_by_helper", "gru_by_rnn", "lstm_by_helper"]
    mine, theirs = script.numbers(fluidx, name), ANSWERS[name]
    np.testing.assert_allclose(mine["losses"], theirs["losses"], 1e-5)
    assert mine["losses"][-1] < mine["losses"][0]
    assert list(mine["parameters"]) == list(theirs["parameters"])
    for each, value in theirs["parameters"].items():
        # Adam divides tiny gradients by their size: their rounding shows
        np.testing.assert_allclose(
            mine["parameters"][each], value, 1e-4, 1e-4, err_msg=each
        )
    for search in ("found", "found_by_a_saved_model"):
        ids, log_probs, lengths, steps = mine[search]
        wanted = theirs[search]
        assert ids == wanted[0]
        np.testing.assert_allclose(log_probs, wanted[1], 1e-4)
        assert [lengths, steps] == wanted[2:]


def test_both_ways_of_training_are_one() -> None:
    one, two = ANSWERS["gru_by_helper"], ANSWERS["gru_by_rnn"]
    np.testing.assert_allclose(one["losses"], two["losses"], 1e-6)
    assert one["found"][0] == two["found"][0]
