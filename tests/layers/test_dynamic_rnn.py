"""DynamicRNN and rank tables: programs and values are the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx import layers

ANSWERS, CASES = answers("dynamic_rnn"), cases_of("dynamic_rnn")
#: where the reference leaves an op that reads a gradient that nobody makes
BROKEN = ("an_output_unused",)


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    check_programs(CASES, name, ANSWERS[name], name in BROKEN)


@pytest.mark.parametrize("name", [n for n in ANSWERS if ANSWERS[n]["values"]])
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def _x(name: str = "x") -> Any:
    return fluidx.data(name, [None, 3], "float64", 1)


def _summing(x: Any, **memory: Any) -> Any:
    rnn = layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        before = rnn.memory(dtype="float64", **memory)
        after = now * now + before
        rnn.update_memory(before, after)
        rnn.output(after)
    return rnn()


def test_batches_of_different_lengths_follow_each_other() -> None:
    """What a run leaves behind is nothing to the next one."""
    place = fluidx.CPUPlace()
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x = _x()
        x.stop_gradient = False
        y = _summing(x, shape=[3], value=1.0)
        (slope,) = fluidx.gradients(layers.reduce_sum(y), x)
        exe = fluidx.Executor(place)
        for lengths in ([[1, 3, 2]], [[4]], [[2, 0, 1, 3]], [[1, 3, 2]]):
            value = np.linspace(-1, 1, 3 * sum(lengths[0])).reshape(-1, 3)
            fed = fluidx.create_lod_tensor(value, lengths, place)
            found, made = exe.run(
                feed={"x": fed}, fetch_list=[slope, y], return_numpy=False
            )
            left = np.concatenate([np.arange(n, 0, -1) for n in lengths[0]])
            np.testing.assert_allclose(np.array(found), 2 * value * left[:, None])
            assert made.recursive_sequence_lengths() == lengths
            parts = np.split(value, np.cumsum(lengths[0])[:-1])
            wanted = np.concatenate([1 + np.cumsum(p * p, axis=0) for p in parts])
            np.testing.assert_allclose(np.array(made), wanted)


def _inside(use: Any) -> Any:
    """Use a DynamicRNN inside of its block."""

    def build() -> None:
        rnn = layers.DynamicRNN()
        with rnn.block():
            use(rnn)

    return build


def _after(rnn: Any) -> Any:
    rnn.step_input(_x())
    return rnn


WRONG = {
    r"step_input\(\) is for inside": lambda: layers.DynamicRNN().step_input(_x()),
    r"output\(\) is for inside": lambda: layers.DynamicRNN().output(_x()),
    "outputs only after": lambda: layers.DynamicRNN()(),
    r"it has no step_input\(\)": _inside(lambda rnn: None),
    r"static_input\(\) must come after": _inside(lambda rnn: rnn.static_input(_x())),
    r"memory\(\) must come after": _inside(lambda rnn: rnn.memory(shape=[3])),
    "needs init, or a shape": _inside(lambda rnn: _after(rnn).memory()),
    "z is no memory": _inside(lambda rnn: _after(rnn).update_memory(_x("z"), _x("y"))),
    "x must be a Variable, got int": _inside(lambda rnn: rnn.step_input(3)),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_use(told: str) -> None:
    with (
        fluidx.program_guard(fluidx.Program(), fluidx.Program()),
        pytest.raises((ValueError, TypeError), match=told),
    ):
        WRONG[told]()


def test_its_block_is_built_once_and_gives_something() -> None:
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        rnn = layers.DynamicRNN()
        with rnn.block():
            rnn.step_input(_x())
        with pytest.raises(ValueError, match="it has no output"):
            rnn()
        with pytest.raises(ValueError, match="only once"), rnn.block():
            pass


def test_what_was_written_to_an_array_is_not_overwritten() -> None:
    """Its buffer must not be taken for the result of a later op."""
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x = layers.scale(fluidx.data("x", [2, 3]), 2.0)
        i = layers.zeros([1], "int64")
        array = layers.array_write(x, i)
        gone = layers.scale(x, 0.0)
        kept = layers.array_read(array, i)
        exe = fluidx.Executor(fluidx.CPUPlace())
        found = exe.run(
            feed={"x": np.ones((2, 3), "f4")}, fetch_list=[gone, kept + 1.0]
        )
    assert found[0].tolist() == [[0.0] * 3] * 2
    assert found[1].tolist() == [[3.0] * 3] * 2
