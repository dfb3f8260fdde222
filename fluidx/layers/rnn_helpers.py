"""Decoding one sequence a row: `BasicDecoder`, and helpers that feed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layers.control_flow import equal, less_equal
from fluidx.layers.emit import check_variable
from fluidx.layers.manipulation import squeeze
from fluidx.layers.nn import softmax
from fluidx.layers.padding import pad
from fluidx.layers.picking import slice as slice_of
from fluidx.layers.random import sampling_id
from fluidx.layers.reduce import argmax
from fluidx.layers.rnn_decode import Decoder
from fluidx.layers.tensor import cast, fill_constant, fill_constant_batch_size_like
from fluidx.layers.utils import map_structure

__all__ = [
    "BasicDecoder",
    "DecodeHelper",
    "GreedyEmbeddingHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
]

Embedding = Callable[[Variable], Any]


class DecodeHelper:
    """What `BasicDecoder` asks for: ids of a step's outputs, and the next inputs.

    Mirrors ``fluid.layers.DecodeHelper``; see its subclasses.
    """

    def initialize(self) -> Any:
        """(inputs, finished) of the first step."""
        raise NotImplementedError("DecodeHelper: initialize() is for its subclasses")

    def sample(self, time: Variable, outputs: Any, states: Any) -> Any:
        """The ids of a step."""
        raise NotImplementedError("DecodeHelper: sample() is for its subclasses")

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Any
    ) -> Any:
        """(finished, inputs, states) of the next step."""
        raise NotImplementedError("DecodeHelper: next_inputs() is for its subclasses")


class TrainingHelper(DecodeHelper):
    """The inputs are given: what a model is trained on ("teacher forcing").

    inputs: (batch, time, ...), or (time, batch, ...) if time_major; may be nested.
    sequence_length: int32 or int64 (batch,), the steps of each row. Mirrors
    ``fluid.layers.TrainingHelper``.

    >>> import fluidx as fluid
    >>> L = fluid.layers
    >>> x = fluid.data("taught", [None, 5, 3])
    >>> n = fluid.data("taught_steps", [None], "int64")
    >>> cell = L.GRUCell(4)
    >>> decoder = L.BasicDecoder(cell, L.TrainingHelper(x, n))
    >>> outputs, state, lengths = L.dynamic_decode(
    ...     decoder, inits=cell.get_initial_states(x), return_length=True
    ... )
    >>> outputs.cell_outputs.shape, lengths.shape
    ((-1, -1, 4), (-1,))
    """

    def __init__(
        self, inputs: Any, sequence_length: Variable, time_major: bool = False
    ) -> None:
        self.inputs = inputs
        self.sequence_length = check_variable(
            sequence_length, "sequence_length", "TrainingHelper"
        )
        self.time_major = time_major
        self._axis = 0 if time_major else 1
        # one step more: the last one asks for a next input too
        self.inputs_ = map_structure(self._longer, inputs)

    def _longer(self, x: Variable) -> Variable:
        paddings = [0] * (2 * len(x.shape))
        paddings[2 * self._axis + 1] = 1
        return pad(x, paddings=paddings)

    def initialize(self) -> tuple[Any, Variable]:
        """The inputs at time 0; rows of length 0 have finished."""
        lengths = self.sequence_length
        finished = equal(lengths, fill_constant([1], lengths.dtype, 0))
        first = (slice(None), 0)[1 - self._axis :]
        return map_structure(lambda x: x[first], self.inputs), finished

    def sample(self, time: Variable, outputs: Variable, states: Any) -> Variable:
        """The most likely ids, which nobody reads on the way."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Any
    ) -> tuple[Variable, Any, Any]:
        """The inputs at time + 1."""
        time, lengths = map(_int32, (time, self.sequence_length))
        following = time + 1
        finished = less_equal(lengths, following)

        def at_following(x: Variable) -> Variable:
            part = slice_of(x, [self._axis], [following], [following + 1])
            return squeeze(part, axes=[self._axis])

        return finished, map_structure(at_following, self.inputs_), states


def _int32(x: Variable) -> Variable:
    return x if x.dtype == VarType.INT32 else cast(x, "int32")


class GreedyEmbeddingHelper(DecodeHelper):
    """The most likely id of a step is the input of the next one.

    embedding_fn: the cell's inputs of ids (batch,). start_tokens: int64 (batch,).
    end_token: the id after which a row has finished. Mirrors
    ``fluid.layers.GreedyEmbeddingHelper``.

    >>> import fluidx as fluid
    >>> L = fluid.layers
    >>> def embed(ids):
    ...     return fluid.embedding(ids, [9, 3], param_attr="greedy_words")
    >>> def rate(hidden):
    ...     return L.fc(hidden, 9)
    >>> init = fluid.data("greedy_init", [None, 4])
    >>> start = L.fill_constant_batch_size_like(init, [-1], "int64", 0)
    >>> helper = L.GreedyEmbeddingHelper(embed, start, 1)
    >>> decoder = L.BasicDecoder(L.GRUCell(4), helper, rate)
    >>> outputs, state = L.dynamic_decode(decoder, inits=init, max_step_num=10)
    >>> outputs.sample_ids.shape
    (-1, -1)
    """

    def __init__(
        self, embedding_fn: Embedding, start_tokens: Variable, end_token: int
    ) -> None:
        self.embedding_fn = embedding_fn
        self.start_tokens = check_variable(
            start_tokens, "start_tokens", type(self).__name__
        )
        self.end_token = fill_constant([1], "int64", end_token)

    def initialize(self) -> tuple[Any, Variable]:
        """The start tokens' inputs; nobody has finished."""
        finished = fill_constant_batch_size_like(
            self.start_tokens, [-1], "bool", False, force_cpu=True
        )
        return self.embedding_fn(self.start_tokens), finished

    def sample(self, time: Variable, outputs: Variable, states: Any) -> Variable:
        """The most likely ids."""
        return argmax(outputs, axis=-1)

    def next_inputs(
        self, time: Variable, outputs: Any, states: Any, sample_ids: Variable
    ) -> tuple[Variable, Any, Any]:
        """The inputs of the ids."""
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As `GreedyEmbeddingHelper`, with ids drawn by their probabilities.

    softmax_temperature: outputs are divided by it before the softmax. seed: 0 or None
    draws anew in each run. Mirrors ``fluid.layers.SampleEmbeddingHelper``.

    >>> import fluidx as fluid
    >>> L = fluid.layers
    >>> def embed(ids):
    ...     return fluid.embedding(ids, [9, 3], param_attr="sampled_words")
    >>> init = fluid.data("sampled_init", [None, 9])
    >>> start = L.fill_constant_batch_size_like(init, [-1], "int64", 0)
    >>> helper = L.SampleEmbeddingHelper(embed, start, 1, softmax_temperature=0.5)
    >>> decoder = L.BasicDecoder(L.GRUCell(9), helper)
    >>> outputs, state = L.dynamic_decode(decoder, inits=init, max_step_num=10)
    >>> outputs.sample_ids.dtype.name
    'INT64'
    """

    def __init__(
        self,
        embedding_fn: Embedding,
        start_tokens: Variable,
        end_token: int,
        softmax_temperature: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature = None
        if softmax_temperature is not None:
            self.softmax_temperature = fill_constant(
                [1], "float32", softmax_temperature
            )
        self.seed = seed

    def sample(self, time: Variable, outputs: Variable, states: Any) -> Variable:
        """Ids drawn from the softmax of the outputs."""
        if self.softmax_temperature is not None:
            outputs = outputs / self.softmax_temperature
        return sampling_id(softmax(outputs), seed=self.seed or 0, dtype="int64")


class _Outputs(NamedTuple):
    cell_outputs: Any
    sample_ids: Any


class BasicDecoder(Decoder):
    """A cell, the ids that a helper makes of its outputs, and the inputs of these.

    output_fn: made of the cell's outputs before the helper sees them (logits, say).
    A step's outputs are an `OutputWrapper`: cell_outputs and sample_ids. Mirrors
    ``fluid.layers.BasicDecoder``; for examples see the helpers.
    """

    OutputWrapper = _Outputs

    def __init__(
        self,
        cell: Any,
        helper: DecodeHelper,
        output_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.cell = cell
        self.helper = helper
        self.output_fn = output_fn

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Variable]:
        """(inputs, states, finished): the helper's, and the states as given."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(
        self, time: Variable, inputs: Any, states: Any, **kwargs: Any
    ) -> tuple[_Outputs, Any, Any, Variable]:
        """(outputs, states, inputs, finished) after one step; kwargs go to the cell."""
        made, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            made = self.output_fn(made)
        ids = self.helper.sample(time=time, outputs=made, states=states)
        ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(
            time=time, outputs=made, states=states, sample_ids=ids
        )
        return _Outputs(made, ids), states, inputs, finished
