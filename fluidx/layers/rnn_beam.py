"""Beam search over a recurrent cell: `BeamSearchDecoder`, for `dynamic_decode`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluidx.ir import Variable
from fluidx.layers.beam import gather_tree
from fluidx.layers.control_flow import equal, logical_not, logical_or
from fluidx.layers.elementwise import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
)
from fluidx.layers.emit import check_variable
from fluidx.layers.manipulation import (
    expand,
    reshape,
    shape,
    stack,
    transpose,
    unsqueeze,
)
from fluidx.layers.nn import softmax, topk
from fluidx.layers.ops import log
from fluidx.layers.picking_nd import gather_nd
from fluidx.layers.rnn_decode import Decoder
from fluidx.layers.tensor import (
    assign,
    cast,
    fill_constant,
    fill_constant_batch_size_like,
    zeros_like,
)
from fluidx.layers.tensor import range as row_numbers
from fluidx.layers.utils import flatten, map_structure

__all__ = ["BeamSearchDecoder"]

#: stands for the logarithm of a probability of zero
_NEVER = -1e9


class _Outputs(NamedTuple):
    scores: Any
    predicted_ids: Any
    parent_ids: Any


class _States(NamedTuple):
    cell_states: Any
    log_probs: Any
    finished: Any
    lengths: Any


class BeamSearchDecoder(Decoder):
    """Of each row the `beam_size` most likely sequences, step by step.

    cell: an `RNNCell`, which sees (batch * beam_size, ...). start_token, end_token:
    ids. embedding_fn: the cell's inputs of ids (batch, beam_size); default: the ids.
    output_fn: logits (batch, beam_size, words) of the cell's outputs (batch, beam_size,
    ...); default: the outputs. A sequence that has come to end_token goes on with that,
    at no cost.

    `dynamic_decode` gives ids (batch, time, beam_size), best sequence first, and a
    `StateWrapper` of the last cell states, log probabilities, finished and lengths,
    (batch, beam_size) each. What else a cell looks at (an encoder's outputs, say) must
    go through `tile_beam_merge_with_batch`. Mirrors ``fluid.layers.BeamSearchDecoder``.

    >>> import fluidx as fluid
    >>> L = fluid.layers
    >>> def embed(ids):
    ...     return fluid.embedding(ids, [9, 3], param_attr="beam_words")
    >>> def rate(hidden):
    ...     return L.fc(hidden, 9, num_flatten_dims=2)
    >>> init = fluid.data("beam_init", [None, 4])
    >>> decoder = L.BeamSearchDecoder(L.GRUCell(4), 0, 1, 5, embed, rate)
    >>> ids, states = L.dynamic_decode(decoder, inits=init, max_step_num=10)
    >>> ids.shape, states.log_probs.shape
    ((-1, -1, 5), (-1, 5))
    """

    OutputWrapper = _Outputs
    StateWrapper = _States

    def __init__(
        self,
        cell: Any,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[[Variable], Any] | None = None,
        output_fn: Callable[[Any], Variable] | None = None,
    ) -> None:
        self.cell = cell
        self.embedding_fn = embedding_fn
        self.output_fn = output_fn
        self.start_token = start_token
        self.end_token = end_token
        self.beam_size = beam_size

    # ------------------------------------------------ between beams and rows

    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """x (batch, ...), each row beam_size times: (batch * beam_size, ...)."""
        check_variable(x, "x", "BeamSearchDecoder.tile_beam_merge_with_batch")
        many = len(x.shape) + 1
        x = expand(unsqueeze(x, [1]), [1, beam_size] + [1] * (many - 2))
        # the reference's way: batch and beam come last, become one, and go first
        x = transpose(x, [*range(2, many), 0, 1])
        x = reshape(x, [0] * (many - 2) + [-1])
        return transpose(x, [many - 2, *range(many - 2)])

    def _expand_to_beam_size(self, x: Variable) -> Variable:
        """(batch, ...) -> (batch, beam_size, ...)."""
        x = unsqueeze(x, [1])
        return expand(x, [1, self.beam_size] + [1] * (len(x.shape) - 2))

    def _merge_batch_beams(self, x: Variable) -> Variable:
        """(batch, beam_size, ...) -> (batch * beam_size, ...)."""
        return reshape(x, [-1, *x.shape[2:]])

    def _split_batch_beams(self, x: Variable) -> Variable:
        """(batch * beam_size, ...) -> (batch, beam_size, ...)."""
        return reshape(x, [-1, self.beam_size, *x.shape[1:]])

    def _gather(self, x: Variable, indices: Variable, batch_size: Variable) -> Variable:
        """x[row, indices[row, beam]]."""
        many = cast(batch_size, indices.dtype)
        many.stop_gradient = True
        rows = unsqueeze(row_numbers(0, many, 1, dtype=indices.dtype), [1])
        places = stack([expand(rows, [1, self.beam_size]), indices], axis=2)
        places.stop_gradient = True
        return gather_nd(x, places)

    # ------------------------------------------------ steps

    def initialize(self, initial_cell_states: Any) -> tuple[Any, _States, Variable]:
        """(inputs, states, finished) of the first step: only one beam of a row counts.

        initial_cell_states: (batch, ...), nested as the cell's.
        """
        first = flatten(initial_cell_states)[0]
        self.batch_size = shape(first)[0]
        start = fill_constant([1], "int64", self.start_token)
        self.end_token_tensor = fill_constant([1], "int64", self.end_token)
        cell_states = map_structure(self._expand_to_beam_size, initial_cell_states)
        ids = self._expand_to_beam_size(expand(start, [self.batch_size]))
        only_one = np.array([[0.0] + [_NEVER] * (self.beam_size - 1)], "float32")
        log_probs = expand(assign(only_one), [self.batch_size, 1])
        finished = fill_constant_batch_size_like(
            first, [-1, self.beam_size], "bool", False, force_cpu=True
        )
        states = _States(cell_states, log_probs, finished, zeros_like(ids))
        inputs = self.embedding_fn(ids) if self.embedding_fn else ids
        return inputs, states, finished

    def step(
        self, time: Variable, inputs: Any, states: Any, **kwargs: Any
    ) -> tuple[_Outputs, _States, Any, Variable]:
        """(outputs, states, inputs, finished) after one step; kwargs go to the cell."""
        inputs = map_structure(self._merge_batch_beams, inputs)
        before = map_structure(self._merge_batch_beams, states.cell_states)
        made, after = self.cell(inputs, before, **kwargs)
        made = map_structure(self._split_batch_beams, made)
        after = map_structure(self._split_batch_beams, after)
        logits = made if self.output_fn is None else self.output_fn(made)
        outputs, states = self._beam_search_step(time, logits, after, states)
        ids = outputs.predicted_ids
        ids.stop_gradient = True
        inputs = self.embedding_fn(ids) if self.embedding_fn else ids
        return outputs, states, inputs, states.finished

    def _mask_probs(self, probs: Variable, finished: Variable) -> Variable:
        """Log probabilities of words; those of finished beams: end_token for sure."""
        words = probs.shape[-1]
        only_end = np.full(words, _NEVER, "float32")
        only_end[self.end_token] = 0.0
        end = assign(only_end)
        probs = log(softmax(probs))
        mask = cast(finished, probs.dtype)
        wide = expand(unsqueeze(mask, [2]), [1, 1, words])
        kept = elementwise_mul(wide, end, axis=-1)
        return kept - elementwise_mul(probs, mask - 1, axis=0)

    def _beam_search_step(
        self, time: Variable, logits: Variable, next_cell_states: Any, beam_state: Any
    ) -> tuple[_Outputs, _States]:
        """The best beam_size of all beams with all words."""
        words = logits.shape[-1]
        count = fill_constant([1], "int64", words)
        log_probs = self._mask_probs(logits, beam_state.finished)
        scores = elementwise_add(log_probs, beam_state.log_probs, axis=0)
        together = reshape(scores, [-1, self.beam_size * words])
        best, where = topk(together, k=self.beam_size)
        parents = elementwise_floordiv(where, count)
        ids = elementwise_mod(where, count)
        together = reshape(scores, [-1, self.beam_size * words])
        log_probs = self._gather(together, where, self.batch_size)

        def of_parents(x: Variable) -> Variable:
            return self._gather(x, parents, self.batch_size)

        cell_states = map_structure(of_parents, next_cell_states)
        finished = of_parents(beam_state.finished)
        lengths = of_parents(beam_state.lengths)
        lengths = lengths + cast(logical_not(finished), lengths.dtype)
        finished = logical_or(finished, equal(ids, self.end_token_tensor))
        outputs = _Outputs(best, ids, parents)
        return outputs, _States(cell_states, log_probs, finished, lengths)

    def finalize(
        self, outputs: Any, final_states: Any, sequence_lengths: Any
    ) -> tuple[Variable, Any]:
        """The ids of whole sequences, (time, batch, beam_size), and the states."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states
