"""RNN cells and `rnn`: programs and values are the reference's."""

from __future__ import annotations

import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx import layers

ANSWERS, CASES = answers("rnn_cells"), cases_of("rnn_cells")


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


def test_what_is_missing() -> None:
    x = fluidx.data("x", [2, 3, 4])
    with pytest.raises(ValueError, match="cell must be an RNNCell"):
        layers.rnn("cell", x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="batch_ref must be a Variable, got list"):
        layers.GRUCell(3).get_initial_states([x])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="for its subclasses"):
        layers.RNNCell().call(x, x)
    with pytest.raises(NotImplementedError, match="for its subclasses"):
        layers.rnn(layers.RNNCell(), x)
