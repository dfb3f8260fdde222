"""`contrib.decoder`: programs and values are the reference's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx.contrib.decoder import (
    BeamSearchDecoder,
    InitState,
    StateCell,
    TrainingDecoder,
)

ANSWERS, CASES = answers("contrib_decoder"), cases_of("contrib_decoder")
#: where the reference leaves out the gradient of an output that nobody uses
UNUSED = ("training_two_states",)


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    check_programs(CASES, name, ANSWERS[name], name in UNUSED)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def _x(name: str = "x", lod_level: int = 0, dtype: str = "float32") -> Any:
    return fluidx.data(name, [None, 3], dtype, lod_level)


def _cell() -> StateCell:
    return StateCell({"x": None}, {"h": InitState(_x("start"))}, "h")


def _search(cell: StateCell | None = None, **given: Any) -> BeamSearchDecoder:
    ids, scores = _x("ids", 2, "int64"), _x("scores", 2)
    return BeamSearchDecoder(cell or _cell(), ids, scores, 9, 4, **given)


def _inside(use: Callable[[Any], Any], make: Callable[[], Any] = _search) -> Any:
    def build() -> None:
        decoder = make()
        with decoder.block():
            use(decoder)

    return build


def _twice(make: Callable[[], Any]) -> Callable[[], None]:
    def build() -> None:
        decoder = make()
        with decoder.block():
            if isinstance(decoder, TrainingDecoder):
                decoder.output(decoder.step_input(_x("w", 1)))
        with decoder.block():
            pass

    return build


def _shared() -> None:
    cell = _cell()
    TrainingDecoder(cell)
    TrainingDecoder(cell)


def _unread(decoder: Any) -> None:
    decoder.update_array(_x("y"), _x("z"))


def _training() -> TrainingDecoder:
    return TrainingDecoder(_cell())


WRONG: dict[str, Callable[[], Any]] = {
    "needs init, or init_boot": lambda: InitState(shape=[-1, 3]),
    "state 'h' must be an InitState": lambda: StateCell(
        {"x": None}, {"h": _x("start")}, "h"
    ),
    r"out_state 'g' is none of \['h'\]": lambda: StateCell(
        {"x": None}, {"h": InitState(_x("start"))}, "g"
    ),
    "no state 'g'": lambda: _cell().get_state("g"),
    "no state 'k'": lambda: _cell().set_state("k", _x()),
    "no input 'x' is given": lambda: _cell().get_input("x"),
    "no input 'y' in": lambda: _cell().compute_state({"y": _x()}),
    "it has no updater": lambda: _cell().compute_state({"x": _x()}),
    "only in a decoder's block": lambda: _cell().out_state(),
    "it is in a decoder already": _shared,
    r"step_input\(\) is for inside": lambda: _training().step_input(_x("w", 1)),
    r"output\(\) is for inside": lambda: _training().output(_x("w", 1)),
    "state_cell is for inside": lambda: _training().state_cell,
    "TrainingDecoder: there are outputs only": lambda: _training()(),
    "TrainingDecoder: its block can be built only once": _twice(_training),
    "BeamSearchDecoder: there are outputs only": lambda: _search()(),
    r"BeamSearchDecoder: read_array\(\) is": lambda: _search().read_array(_x()),
    "BeamSearchDecoder: its block can be built only": _twice(_search),
    "one array cannot be ids and scores": _inside(
        lambda d: d.read_array(_x(), is_ids=True, is_scores=True)
    ),
    r"y is not of read_array\(\)": _inside(_unread),
    "input_var_dict has 'z', the cell's inputs are": lambda: _search(
        input_var_dict={"z": _x()}
    ),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_use(told: str) -> None:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        pytest.raises((ValueError, TypeError), match=told),
    ):
        WRONG[told]()


def test_a_cell_goes_from_decoder_to_decoder() -> None:
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        cell = _cell()

        @cell.state_updater
        def updater(cell: StateCell) -> None:
            cell.set_state("h", cell.get_state("h") + cell.get_input("x"))

        for name in ("one", "two"):
            decoder = TrainingDecoder(cell)
            assert decoder.type == 1
            with decoder.block():
                cell.compute_state({"x": decoder.step_input(_x(name, 1))})
                cell.update_states()
                decoder.output(decoder.state_cell.out_state())
            assert decoder().shape == (-1, 3)
        search = _search(cell)
        assert search.type == 2
        with search.block():
            search.read_array(_x("i", 2), is_ids=True)
        with pytest.raises(ValueError, match="no array is_scores"):
            search()
