"""CTC: programs and values are the reference's."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx import layers
from fluidx.ir import BuildError

ANSWERS, CASES = answers("ctc"), cases_of("ctc")


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    check_programs(CASES, name, ANSWERS[name])


@pytest.mark.parametrize("name", [n for n in ANSWERS if ANSWERS[n]["values"]])
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def _x(*shape: Any) -> Any:
    return fluidx.data("x", list(shape or (None, 5)), lod_level=0 if shape else 1)


def _ids(name: str, *shape: Any, dtype: str = "int32") -> Any:
    return fluidx.data(name, list(shape or (None, 1)), dtype)


WRONG = {
    r"label \(y\) must be of INT32, INT64": lambda: layers.warpctc(
        _x(), _ids("y", dtype="float32")
    ),
    "blank is 5, there are 5 classes": lambda: layers.warpctc(_x(), _ids("y"), 5),
    r"must be \(rows, classes\) with LoD": lambda: layers.warpctc(
        _x(None, 2, 5), _ids("y")
    ),
    r"must be \(time, batch, classes\)": lambda: layers.warpctc(
        _x(), _ids("y"), input_length=_ids("n"), label_length=_ids("m")
    ),
    "Input must be a matrix": lambda: layers.ctc_greedy_decoder(_x(2, 3, 5), 0),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_arguments(told: str) -> None:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        pytest.raises((TypeError, BuildError), match=told),
    ):
        WRONG[told]()
