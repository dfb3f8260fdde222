"""Decoders and `dynamic_decode`: programs and values are the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx import layers

ANSWERS, CASES = answers("rnn_decode"), cases_of("rnn_decode")
BACKWARD = (
    *("training", "nested_training_inputs"),
    *("own_cell_in_rnn", "own_cell_with_memory"),
)


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    """Some without gradients: the reference makes those of integers too, and zeros for
    an output of `recurrent` that nobody uses."""
    check_programs(CASES, name, ANSWERS[name], name in BACKWARD)


@pytest.mark.parametrize("name", [n for n in ANSWERS if ANSWERS[n]["values"]])
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def test_gradients_of_two_outputs_and_the_last_state() -> None:
    """Against finite differences: the reference gives both outputs one's gradient."""
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x = fluidx.data("x", [None, 4, 3], "float64")
        x.stop_gradient = False
        n = fluidx.data("n", [None], "int64")

        class Cell(layers.RNNCell):
            def call(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
                made = layers.tanh(inputs + 0.5 * states)
                return [made, made * made], made

        class Helper(layers.TrainingHelper):
            def sample(self, time: Any, outputs: Any, states: Any) -> Any:
                return layers.argmax(outputs[0], axis=-1)

        helper = Helper(x, n)
        outputs, last = layers.dynamic_decode(
            layers.BasicDecoder(Cell(), helper), inits=fluidx.data("h", [None, 3], "f8")
        )
        one, two = outputs.cell_outputs
        loss = layers.reduce_sum(one * two) + layers.reduce_sum(last)
        (slope,) = fluidx.gradients(loss, x)
        exe = fluidx.Executor(fluidx.CPUPlace())
        rng = np.random.default_rng(3)
        feed = {"x": rng.normal(size=(2, 4, 3)), "n": np.array([4, 2])}
        feed["h"] = rng.normal(size=(2, 3))

        def run(**fed: Any) -> list[Any]:
            found: list[Any] = exe.run(feed={**feed, **fed}, fetch_list=[slope, loss])
            return found

        found = run()[0]
        for place in ((0, 0, 0), (1, 1, 2), (0, 3, 1), (1, 3, 0)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = feed["x"].copy()
                moved[place] += step
                ends.append(float(run(x=moved)[1][0]))
            np.testing.assert_allclose(found[place], (ends[0] - ends[1]) / 2e-6, 1e-6)


def _cell(gives: Any) -> layers.RNNCell:
    class Cell(layers.RNNCell):
        def call(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
            return gives(inputs, states)

    return Cell()


def test_wrong_use() -> None:
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x = fluidx.data("x", [None, 4, 3])
        n = fluidx.data("n", [None], "int64")
        init = fluidx.data("h", [None, 3])
        for told, base in (
            (r"Decoder: initialize\(\) is for", lambda: layers.Decoder().initialize(x)),
            (r"Decoder: step\(\) is for", lambda: layers.Decoder().step(n, x, x)),
            (
                r"DecodeHelper: sample\(\)",
                lambda: layers.DecodeHelper().sample(n, x, x),
            ),
        ):
            with pytest.raises(NotImplementedError, match=told):
                base()
        with pytest.raises(TypeError, match="TrainingHelper: sequence_length must be"):
            layers.TrainingHelper(x, [4, 2])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="GreedyEmbeddingHelper: start_tokens must"):
            layers.GreedyEmbeddingHelper(lambda ids: ids, 3, 1)  # type: ignore[arg-type]
        tile = layers.BeamSearchDecoder.tile_beam_merge_with_batch
        with pytest.raises(TypeError, match="x must be a Variable, got list"):
            tile([x], 3)  # type: ignore[arg-type]
        two = _cell(lambda inputs, states: (inputs, [inputs, inputs]))
        decoder = layers.BasicDecoder(two, layers.TrainingHelper(x, n))
        with pytest.raises(ValueError, match="a step's next states are not nested as"):
            layers.dynamic_decode(decoder, inits=init)
