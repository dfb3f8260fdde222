"""Step by step decoding: `Decoder`, and `dynamic_decode`, the loop around one."""

from __future__ import annotations

import contextlib
from typing import Any

from fluidx.ir import Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layers.control_flow import (
    increment,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
)
from fluidx.layers.elementwise import elementwise_add
from fluidx.layers.emit import check_variable
from fluidx.layers.loops import While
from fluidx.layers.reduce import reduce_all
from fluidx.layers.rnn import batch_and_time_swapped, blend
from fluidx.layers.tensor import assign, cast, fill_constant, zeros_like
from fluidx.layers.tensor_arrays import (
    array_read,
    array_write,
    tensor_array_to_tensor,
)
from fluidx.layers.utils import (
    assert_same_structure,
    flatten,
    map_structure,
    pack_sequence_as,
)

__all__ = ["Decoder", "dynamic_decode"]


class Decoder:
    """What `dynamic_decode` asks for in each step. Mirrors ``fluid.layers.Decoder``.

    >>> import fluidx as fluid, numpy as np
    >>> class Countdown(fluid.layers.Decoder):
    ...     def initialize(self, inits):
    ...         return inits, inits, inits < 1.0
    ...
    ...     def step(self, time, inputs, states, **kwargs):
    ...         left = inputs - 1.0
    ...         return left, left, left, left < 1.0
    >>> start = fluid.data("countdown_from", [None])
    >>> out, last = fluid.layers.dynamic_decode(Countdown(), inits=start)
    >>> fluid.Executor().run(
    ...     feed={"countdown_from": np.float32([2, 3])}, fetch_list=[out]
    ... )[0].tolist()
    [[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]
    """

    def initialize(self, inits: Any) -> Any:
        """(inputs, states, finished) of the first step; finished: bool, a row each."""
        raise NotImplementedError("Decoder: initialize() is for its subclasses")

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """(outputs, next states, next inputs, next finished).

        time: int64, shape [1]. All may be nested; the next ones as those before.
        """
        raise NotImplementedError("Decoder: step() is for its subclasses")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> Any:
        """(outputs, states) after the last step, of the outputs stacked along time.

        One without it leaves them as they are.
        """
        raise NotImplementedError("Decoder: finalize() is for its subclasses")


class _InArrays:
    """Values from step to step, each step's kept: a backward pass needs them."""

    def __init__(self, values: Any, step: Variable) -> None:
        self._step = step
        self._arrays = map_structure(lambda x: array_write(x, step), values)

    def now(self) -> Any:
        return map_structure(lambda array: array_read(array, self._step), self._arrays)

    def put(self, values: Any) -> None:
        for x, array in zip(flatten(values), flatten(self._arrays)):
            array_write(x, self._step, array)


class _InPlace:
    """Values from step to step, in the variables in which they came."""

    def __init__(self, values: Any, step: Variable) -> None:
        self._values = values

    def now(self) -> Any:
        return self._values

    def put(self, values: Any) -> None:
        for x, kept in zip(flatten(values), flatten(self._values)):
            assign(x, kept)


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> Any:
    """Steps of a decoder until all rows have finished.

    inits: for decoder.initialize(). max_step_num: the last step's number, counted from
    0. impute_finished: states of finished rows stay as they are. is_test: nothing is
    kept for a backward pass; states go from step to step in the variables that
    initialize() gave. kwargs go to decoder.step().

    Returns the outputs, (batch, time, ...) or (time, batch, ...) if output_time_major;
    the last states; and with return_length the steps of each row, int64.
    ValueError: a step gives a structure other than that before.
    Mirrors ``fluid.layers.dynamic_decode``.

    >>> import fluidx as fluid
    >>> L = fluid.layers
    >>> def embed(ids):
    ...     return fluid.embedding(ids, [9, 3], param_attr="decode_words")
    >>> def rate(hidden):
    ...     return L.fc(hidden, 9, num_flatten_dims=len(hidden.shape) - 1)
    >>> decoder = L.BeamSearchDecoder(L.GRUCell(4), 0, 1, 5, embed, rate)
    >>> ids, states = L.dynamic_decode(
    ...     decoder, inits=fluid.data("decode_init", [None, 4]), max_step_num=10
    ... )
    >>> ids.shape, ids.dtype.name
    ((-1, -1, 5), 'INT64')
    """
    if not hasattr(decoder, "initialize"):
        raise TypeError(
            f"dynamic_decode: decoder must be a Decoder, got {decoder!r:.60}"
        )
    inputs, states, finished = decoder.initialize(inits)
    check_variable(finished, "what initialize() gives as finished", "dynamic_decode")
    step = fill_constant([1], "int64", 0)
    goes_on = logical_not(reduce_all(finished))
    limit = None
    if max_step_num is not None:
        limit = fill_constant([1], "int64", max_step_num)
    lengths = cast(zeros_like(finished), "int64")
    keep = _InPlace if is_test else _InArrays
    kept = keep(inputs, step), keep(states, step)
    with While(goes_on, is_test=is_test).block():
        now, before = (values.now() for values in kept)
        outputs, after, following, ended = decoder.step(step, now, before, **kwargs)
        _check_alike(("states", states, after), ("inputs", inputs, following))
        ended = logical_or(ended, finished)
        counted = elementwise_add(lengths, cast(logical_not(finished), lengths.dtype))
        if impute_finished:
            after = map_structure(
                lambda new, old: _frozen(finished, old, new), after, before
            )
        arrays = [_written(x, step) for x in flatten(outputs)]
        increment(step, 1.0, in_place=True)
        for values, new in zip(kept, (following, after)):
            values.put(new)
        assign(ended, finished)
        assign(counted, lengths)
        _set_goes_on(goes_on, finished, step, limit)
    stacked = [tensor_array_to_tensor(a, axis=0, use_stack=True)[0] for a in arrays]
    made, last = pack_sequence_as(outputs, stacked), kept[1].now()
    with contextlib.suppress(NotImplementedError):
        made, last = decoder.finalize(made, last, lengths)
    if not output_time_major:
        made = map_structure(batch_and_time_swapped, made)
    return (made, last, lengths) if return_length else (made, last)


def _check_alike(*pairs: tuple[str, Any, Any]) -> None:
    for what, before, after in pairs:
        try:
            assert_same_structure(before, after, check_types=False)
        except ValueError as error:
            raise ValueError(
                f"dynamic_decode: a step's next {what} are not nested as those before: "
                f"{error}"
            ) from None


def _frozen(finished: Variable, old: Variable, new: Variable) -> Variable:
    """The old state in rows that have finished, the new one in the others."""
    truth = new.dtype == VarType.BOOL
    if truth:
        old, new = cast(old, "float32"), cast(new, "float32")
    made = blend(cast(finished, new.dtype), old, new)
    return cast(made, "bool") if truth else made


def _written(x: Variable, step: Variable) -> Variable:
    """An array around the loop, of what x is in each step."""
    around = x.block.program.current_block().parent
    assert around is not None
    array = around.create_var(
        name=unique_name.generate("array") + ".out",
        type=VarType.LOD_TENSOR_ARRAY,
        dtype=x.dtype,
    )
    return array_write(x, step, array)


def _set_goes_on(
    goes_on: Variable, finished: Variable, step: Variable, limit: Variable | None
) -> None:
    everything = reduce_all(finished)
    if limit is None:
        logical_not(everything, out=goes_on)
    else:
        logical_and(logical_not(everything), less_equal(step, limit), out=goes_on)
