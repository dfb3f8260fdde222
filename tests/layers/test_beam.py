"""Beam search: programs and values are the reference's."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx import layers
from fluidx.ir import BuildError

ANSWERS, CASES = answers("beam"), cases_of("beam")


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    check_programs(CASES, name, ANSWERS[name])


@pytest.mark.parametrize("name", list(ANSWERS))
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def _data(name: str, width: int = 1, dtype: str = "int64") -> Any:
    return fluidx.data(name, [None, width], dtype, 2)


def _search(**given: Any) -> Any:
    taken = {
        "pre_ids": _data("a"),
        "pre_scores": _data("b", dtype="float32"),
        "ids": _data("c", 4),
        "scores": _data("d", 4, "float32"),
        "beam_size": 2,
        "end_id": 0,
    }
    return layers.beam_search(**{**taken, **given})


WRONG = {
    r"ids \(f\) must be of INT64": lambda: _search(ids=_data("f", 4, "float32")),
    "scores must be a Variable": lambda: _search(scores=None),
    "beam_size is 0": lambda: _search(beam_size=0),
    "Ids must be an array of tensors": lambda: layers.beam_search_decode(
        _data("a"), _data("b"), 2, 0
    ),
    r"Ids must be \(time, batch, beam\)": lambda: layers.gather_tree(
        _data("a"), _data("b")
    ),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_arguments(told: str) -> None:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        pytest.raises((TypeError, BuildError), match=told),
    ):
        WRONG[told]()
