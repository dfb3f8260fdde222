"""A `StateCell` walked along given words, or by a beam search along its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from fluidx.contrib.decoder.state_cell import (
    ArrayState,
    InitState,
    MemoryState,
    StateCell,
)
from fluidx.ir import Block, Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.beam import beam_search, beam_search_decode
from fluidx.layers.branches import Switch
from fluidx.layers.control_flow import increment, is_empty, less_than
from fluidx.layers.dynamic_rnn import DynamicRNN
from fluidx.layers.elementwise import elementwise_add
from fluidx.layers.emit import check_variable
from fluidx.layers.lookup import embedding
from fluidx.layers.loops import While
from fluidx.layers.manipulation import reshape
from fluidx.layers.nn import fc, topk
from fluidx.layers.ops import log
from fluidx.layers.sequence_lod import sequence_expand
from fluidx.layers.sequence_nn import lod_reset
from fluidx.layers.tensor import fill_constant
from fluidx.layers.tensor_arrays import array_read, array_write

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]


class TrainingDecoder:
    """A `StateCell` along the words that are to be learned: a `DynamicRNN`.

    For an example see `StateCell`. Mirrors ``fluid.contrib.TrainingDecoder``.
    """

    BEFORE_DECODER = 0
    IN_DECODER = 1
    AFTER_DECODER = 2

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        self._helper = LayerHelper("training_decoder", name=name)
        self._status = TrainingDecoder.BEFORE_DECODER
        self._rnn = DynamicRNN()
        self._state_cell = state_cell
        state_cell.enter(lambda state: MemoryState(self._rnn, state))

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """What is built inside is one step."""
        if self._status != TrainingDecoder.BEFORE_DECODER:
            raise ValueError("TrainingDecoder: its block can be built only once")
        self._status = TrainingDecoder.IN_DECODER
        with self._rnn.block():
            yield
        self._status = TrainingDecoder.AFTER_DECODER
        self._state_cell.leave()

    def _check_inside(self, method: str) -> None:
        if self._status != TrainingDecoder.IN_DECODER:
            raise ValueError(
                f"TrainingDecoder: {method} is for inside `with decoder.block()`"
            )

    @property
    def state_cell(self) -> StateCell:
        self._check_inside("state_cell")
        return self._state_cell

    @property
    def dynamic_rnn(self) -> DynamicRNN:
        return self._rnn

    @property
    def type(self) -> int:
        """1; that of a `BeamSearchDecoder` is 2."""
        return 1

    def step_input(self, x: Variable) -> Variable:
        """The step's elements of sequences."""
        self._check_inside("step_input()")
        return self._rnn.step_input(x)

    def static_input(self, x: Variable) -> Variable:
        """All of x in each step: a row or a sequence for each sequence."""
        self._check_inside("static_input()")
        return self._rnn.static_input(x)

    def output(self, *outputs: Variable) -> None:
        """The values of all steps, as sequences, are the next outputs."""
        self._check_inside("output()")
        self._rnn.output(*outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output, or the list of outputs."""
        if self._status != TrainingDecoder.AFTER_DECODER:
            raise ValueError("TrainingDecoder: there are outputs only after its block")
        return self._rnn(*args, **kwargs)


class BeamSearchDecoder:
    """A beam search over a `StateCell`: a `While` over arrays.

    init_ids, init_scores: the first words, int64 (sources, 1), and their scores, both
    of two LoD levels. target_dict_dim, word_dim: size of the words' embedding and of
    the softmax over words, which `decode` makes (named in the order of making:
    ``embedding_<n>.w_0``, ``fc_<n>.w_0``; build it where training did). input_var_dict:
    further inputs of the cell, a row for each source. topk_size: of each prefix the
    words that are looked at. max_len: of steps. Call it for the ids and scores of
    `fluid.layers.beam_search_decode`. Mirrors ``fluid.contrib.BeamSearchDecoder``.

    >>> import fluidx as fluid
    >>> contrib, L = fluid.contrib, fluid.layers
    >>> start = fluid.data("search_start", [None, 4])
    >>> cell = contrib.StateCell({"x": None}, {"h": contrib.InitState(start)}, "h")
    >>> @cell.state_updater
    ... def step(cell):
    ...     made = L.fc([cell.get_input("x"), cell.get_state("h")], 4, act="tanh")
    ...     cell.set_state("h", made)
    >>> ids = fluid.data("search_ids", [None, 1], "int64", 2)
    >>> scores = fluid.data("search_scores", [None, 1], "float32", 2)
    >>> search = contrib.BeamSearchDecoder(cell, ids, scores, 9, 3, topk_size=9)
    >>> search.decode()
    >>> found, rated = search()
    >>> found.dtype.name
    'INT64'
    """

    BEFORE_BEAM_SEARCH_DECODER = 0
    IN_BEAM_SEARCH_DECODER = 1
    AFTER_BEAM_SEARCH_DECODER = 2

    def __init__(
        self,
        state_cell: StateCell,
        init_ids: Variable,
        init_scores: Variable,
        target_dict_dim: int,
        word_dim: int,
        input_var_dict: Mapping[str, Variable] = {},
        topk_size: int = 50,
        sparse_emb: bool = True,
        max_len: int = 100,
        beam_size: int = 1,
        end_id: int = 1,
        name: str | None = None,
    ) -> None:
        self._helper = LayerHelper("beam_search_decoder", name=name)
        for given in input_var_dict:
            if given not in state_cell.input_names:
                raise ValueError(
                    f"BeamSearchDecoder: input_var_dict has {given!r}, the cell's "
                    f"inputs are {state_cell.input_names}"
                )
        self._counter = fill_constant([1], "int64", 0)
        self._max_len = fill_constant([1], "int64", max_len)
        self._cond = less_than(self._counter, fill_constant([1], "int64", max_len))
        self._loop = While(self._cond)
        self._zero = fill_constant([1], "int64", 0, force_cpu=True)
        self._status = BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER
        self._arrays: dict[str, Variable] = {}
        self._updates: list[tuple[Variable, Variable]] = []
        self._found: dict[str, Variable] = {}
        self._init_ids, self._init_scores = init_ids, init_scores
        self._words, self._word_dim = target_dict_dim, word_dim
        self._inputs, self._sparse = dict(input_var_dict), sparse_emb
        self._topk, self._beam, self._end = topk_size, beam_size, end_id
        self._state_cell = state_cell
        state_cell.enter(lambda state: ArrayState(self._around, state))

    # ------------------------------------------------ the block

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """What is built inside is one step."""
        if self._status != BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER:
            raise ValueError("BeamSearchDecoder: its block can be built only once")
        self._status = BeamSearchDecoder.IN_BEAM_SEARCH_DECODER
        self._around: Block = self._helper.main_program.current_block()
        with self._loop.block():
            yield
            with Switch() as switch, switch.case(self._cond):
                increment(self._counter, 1.0, in_place=True)
                for value, array in self._updates:
                    array_write(value, self._counter, array)
                less_than(self._counter, self._max_len, cond=self._cond)
        self._status = BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER
        self._state_cell.leave()

    def _check_inside(self, method: str) -> None:
        if self._status != BeamSearchDecoder.IN_BEAM_SEARCH_DECODER:
            raise ValueError(
                f"BeamSearchDecoder: {method} is for inside `with decoder.block()`"
            )

    @property
    def state_cell(self) -> StateCell:
        self._check_inside("state_cell")
        return self._state_cell

    @property
    def type(self) -> int:
        """2; that of a `TrainingDecoder` is 1."""
        return 2

    def early_stop(self) -> None:
        """No step after this one."""
        fill_constant([1], "bool", 0, force_cpu=True, out=self._cond)

    def read_array(
        self, init: Variable, is_ids: bool = False, is_scores: bool = False
    ) -> Variable:
        """A value from the step before, `init` in the first one.

        is_ids, is_scores: it holds the selected ids, or scores, of all steps.
        """
        self._check_inside("read_array()")
        check_variable(init, "init", "BeamSearchDecoder.read_array")
        if is_ids and is_scores:
            raise ValueError(
                "BeamSearchDecoder.read_array: one array cannot be ids and scores"
            )
        array = self._around.create_var(
            name=unique_name.generate("beam_search_decoder_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=init.dtype,
        )
        inputs = {"X": init, "I": self._zero}
        self._around.append_op("write_to_array", inputs, {"Out": array})
        if is_ids or is_scores:
            self._found["ids" if is_ids else "scores"] = array
        made = array_read(array, self._counter)
        self._arrays[made.name] = array
        return made

    def update_array(self, array: Variable, value: Variable) -> None:
        """`value` is what the next step reads, where this one read `array`."""
        self._check_inside("update_array()")
        check_variable(value, "value", "BeamSearchDecoder.update_array")
        kept = self._arrays.get(check_variable(array, "array", "update_array").name)
        if kept is None:
            raise ValueError(
                f"BeamSearchDecoder.update_array: {array.name} is not of read_array()"
            )
        self._updates.append((value, kept))

    # ------------------------------------------------ the search

    def decode(self) -> None:
        """Build the whole search; `block` is for building another one by hand."""
        with self.block():
            ids = self.read_array(self._init_ids, is_ids=True)
            scores = self.read_array(self._init_scores, is_scores=True)
            words = embedding(
                ids,
                [self._words, self._word_dim],
                dtype="float32",
                is_sparse=self._sparse,
            )
            further = self._spread(scores)
            cell = self.state_cell
            given = dict.fromkeys(cell.input_names, words)
            cell.compute_state({**given, **{k: new for k, (_, new) in further.items()}})
            chosen, best = self._select(ids, scores)
            with Switch() as switch:
                with switch.case(is_empty(chosen)):
                    self.early_stop()
                with switch.default():
                    cell.update_states()
                    self.update_array(ids, chosen)
                    self.update_array(scores, best)
                    for before, new in further.values():
                        self.update_array(before, new)

    def _spread(self, scores: Variable) -> dict[str, tuple[Variable, Variable]]:
        """Further inputs before and after: a row for each prefix; and the states."""
        further = {}
        for name, value in self._inputs.items():
            before = self.read_array(value)
            further[name] = (before, sequence_expand(before, scores))
        cell = self._state_cell
        for name in cell.state_names:
            cell.set_state(name, sequence_expand(cell.get_state(name), scores))
        return further

    def _select(self, ids: Variable, scores: Variable) -> tuple[Variable, Variable]:
        state = lod_reset(self._state_cell.out_state(), scores)
        rated = fc(state, self._words, act="softmax")
        likely, which = topk(rated, k=self._topk)
        whole = elementwise_add(log(likely), reshape(scores, [-1]), axis=0)
        chosen, best = beam_search(
            ids, scores, which, whole, self._beam, end_id=self._end, level=0
        )
        return chosen, best

    def __call__(self) -> tuple[Variable, Variable]:
        """The ids of the hypotheses, and their scores; see `beam_search_decode`."""
        if self._status != BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER:
            raise ValueError(
                "BeamSearchDecoder: there are outputs only after its block"
            )
        for what in ("ids", "scores"):
            if what not in self._found:
                raise ValueError(f"BeamSearchDecoder: no array is_{what}; read_array()")
        return beam_search_decode(
            self._found["ids"], self._found["scores"], self._beam, self._end
        )
