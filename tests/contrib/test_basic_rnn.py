"""`basic_gru`, `basic_lstm`, their units: programs and values are the reference's."""

from __future__ import annotations

import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

ANSWERS, CASES = answers("basic_rnn"), cases_of("basic_rnn")


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    """Without gradients: ours fills in zeros for an output of `recurrent` that nobody
    uses, the reference leaves it out."""
    check_programs(CASES, name, ANSWERS[name], forward=True)


@pytest.mark.parametrize("name", [n for n in ANSWERS if ANSWERS[n]["values"]])
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])
