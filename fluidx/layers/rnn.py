"""Recurrent cells, and `rnn`, which walks one along padded sequences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable, unique_name
from fluidx.layer_helper import LayerHelper
from fluidx.layers.elementwise import elementwise_add, elementwise_mul
from fluidx.layers.emit import check_variable, is_integer
from fluidx.layers.manipulation import concat, shape, split, transpose
from fluidx.layers.nn import matmul
from fluidx.layers.ops import sigmoid, tanh
from fluidx.layers.picking import reverse
from fluidx.layers.sequence_lod import sequence_mask
from fluidx.layers.static_rnn import StaticRNN
from fluidx.layers.tensor import fill_constant, fill_constant_batch_size_like
from fluidx.layers.utils import flatten, map_structure, pack_sequence_as
from fluidx.param_attr import ParamAttr

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "rnn"]

Activation = Callable[[Variable], Variable]


def _is_shape(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(d, int) for d in value)


def _map_shapes(make: Callable[[list[int]], Any], shapes: Any) -> Any:
    """make(shape) for each shape of a nested structure."""
    if _is_shape(shapes):
        return make(list(shapes))
    if isinstance(shapes, dict):
        return {key: _map_shapes(make, value) for key, value in shapes.items()}
    return [_map_shapes(make, each) for each in shapes]


class RNNCell:
    """A step of a recurrent network: `call` gives (outputs, new states).

    Mirrors ``fluid.layers.RNNCell``.
    """

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """(outputs, new states) of one step."""
        raise NotImplementedError("RNNCell: call() is for its subclasses")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
        return self.call(inputs, states, **kwargs)

    def get_initial_states(
        self,
        batch_ref: Variable,
        shape: Any = None,
        dtype: Any = "float32",
        init_value: float = 0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States full of `init_value`, as many rows as batch_ref has in dimension
        batch_dim_idx. shape: of the states without rows (default: `state_shape`)."""
        check_variable(batch_ref, "batch_ref", "RNNCell.get_initial_states")
        shapes = self.state_shape if shape is None else shape
        kinds = self._dtype_or(dtype)

        def make(each: list[int]) -> Variable:
            whole = each if each and each[0] == -1 else [-1, *each]
            made: Variable = fill_constant_batch_size_like(
                batch_ref, whole, kinds, init_value, batch_dim_idx
            )
            return made

        return _map_shapes(make, shapes)

    def _dtype_or(self, dtype: Any) -> Any:
        return getattr(self, "state_dtype", "float32") if dtype is None else dtype

    @property
    def state_shape(self) -> Any:
        """Shapes of the states without rows, nested as they are."""
        raise NotImplementedError("RNNCell: state_shape is for its subclasses")

    @property
    def state_dtype(self) -> Any:
        return "float32"


class _UnitCell(RNNCell):
    """A cell whose parameters are made with its first call."""

    _unit: _Unit

    def full_name(self) -> str:
        """What the parameters' names begin with."""
        return self._unit.name

    def parameters(self) -> list[Variable]:
        """Weights, then biases, as far as they are made."""
        return list(self._unit.made)


class _Unit:
    """The parameters of a cell, made with its first call."""

    def __init__(
        self, name: str, kind: str, weight: Any, bias: Any, dtype: Any
    ) -> None:
        self.name = unique_name.generate(f"{name}/{kind}")
        self._attrs = weight, bias
        self._dtype = dtype
        self.made: list[Variable] = []

    def _attr(self, is_bias: bool, part: str) -> Any:
        attr = ParamAttr._to_attr(self._attrs[is_bias])
        if part and getattr(attr, "name", None) is not None:
            attr = copy.deepcopy(attr)
            attr.name += "_" + part
        return attr

    def parameters(self, rows: int, sizes: dict[str, int]) -> list[Variable]:
        """The weights (rows, size) of all parts, then their biases (size,)."""
        if self.made:
            return self.made
        helper = LayerHelper(self.name, name=self.name)
        for is_bias in (False, True):
            for part, size in sizes.items():
                self.made.append(
                    helper.create_parameter(
                        self._attr(is_bias, part),
                        [size] if is_bias else [rows, size],
                        self._dtype,
                        is_bias,
                        Constant(0.0) if is_bias else None,
                    )
                )
        return self.made


def _hidden(size: Any, who: str) -> int:
    if not is_integer(size):
        raise TypeError(f"{who}: hidden_size must be an integer, got {size!r}")
    return int(size)


class GRUCell(_UnitCell):
    """A gated recurrent unit (Cho et al., 2014): one state (batch, hidden_size).

    Mirrors ``fluid.layers.GRUCell``.

    >>> import fluidx as fluid
    >>> cell = fluid.layers.GRUCell(hidden_size=4)
    >>> x = fluid.data("gru_cell_x", [2, 3])
    >>> out, state = cell(x, cell.get_initial_states(x))
    >>> out.shape
    (2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        dtype: Any = "float32",
        name: str = "GRUCell",
    ) -> None:
        self.hidden_size = _hidden(hidden_size, "GRUCell")
        self._gate = gate_activation or sigmoid
        self._activation = activation or tanh
        self._unit = _Unit(name, "BasicGRUUnit", param_attr, bias_attr, dtype)

    def call(self, inputs: Variable, states: Variable) -> tuple[Variable, Variable]:  # type: ignore[override]
        """states is the hidden state; it is the output too."""
        size = self.hidden_size
        rows = inputs.shape[-1] + size
        w, v, b, c = self._unit.parameters(rows, {"gate": 2 * size, "candidate": size})
        gates = matmul(concat([inputs, states], 1), w)
        gates = self._gate(elementwise_add(gates, b))
        reset, update = split(gates, num_or_sections=2, dim=1)
        new = matmul(concat([inputs, reset * states], 1), v)
        new = self._activation(elementwise_add(new, c))
        made = update * states + (1 - update) * new
        return made, made

    @property
    def state_shape(self) -> list[int]:
        return [self.hidden_size]


class LSTMCell(_UnitCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997): two states
    (batch, hidden_size), hidden and cell.

    gate_activation and activation are not looked at: it computes with sigmoid and tanh,
    as ``fluid.layers.LSTMCell`` of the reference does; models were trained by that.

    >>> import fluidx as fluid
    >>> cell = fluid.layers.LSTMCell(hidden_size=4)
    >>> x = fluid.data("lstm_cell_x", [2, 3])
    >>> out, [hidden, memory] = cell(x, cell.get_initial_states(x))
    >>> out.shape
    (2, 4)
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        forget_bias: float = 1.0,
        dtype: Any = "float32",
        name: str = "LSTMCell",
    ) -> None:
        self.hidden_size = _hidden(hidden_size, "LSTMCell")
        self._unit = _Unit(name, "BasicLSTMUnit", param_attr, bias_attr, dtype)
        self._forget_bias = fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False

    def call(self, inputs: Variable, states: Any) -> tuple[Variable, list[Variable]]:  # type: ignore[override]
        """states: hidden and cell; the new hidden state is the output too."""
        hidden, cell = states
        size = self.hidden_size
        rows = inputs.shape[-1] + size
        weight, bias = self._unit.parameters(rows, {"": 4 * size})
        gates = matmul(concat([inputs, hidden], 1), weight)
        gates = elementwise_add(gates, bias)
        i, j, f, o = split(gates, num_or_sections=4, dim=-1)
        kept = sigmoid(elementwise_add(f, self._forget_bias))
        kept = elementwise_mul(cell, kept)
        added = elementwise_mul(sigmoid(i), tanh(j))
        cell = elementwise_add(kept, added)
        hidden = tanh(cell) * sigmoid(o)
        return hidden, [hidden, cell]

    @property
    def state_shape(self) -> list[list[int]]:
        return [[self.hidden_size], [self.hidden_size]]


def batch_and_time_swapped(x: Variable) -> Variable:
    """Its first two dimensions change places."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


def blend(mask: Variable, ones: Variable, zeros: Variable) -> Variable:
    """Of `ones` the rows whose mask is 1, of `zeros` those where it is 0."""
    made = elementwise_mul(ones, mask, axis=0)
    return made - elementwise_mul(zeros, mask - 1, axis=0)


def rnn(
    cell: RNNCell,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Variable | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """The outputs of a cell along time, and its last states.

    inputs: (batch, time, ...), or (time, batch, ...) if time_major; may be nested.
    initial_states: default zeros. sequence_length: (batch,), steps of each row; later
    ones leave the states as they are (outputs are not zeroed). is_reverse: from the end
    (of the padded rows). kwargs go to the cell. Mirrors ``fluid.layers.rnn``.

    >>> import fluidx as fluid
    >>> x = fluid.data("rnn_x", [2, 5, 3])
    >>> out, state = fluid.layers.rnn(fluid.layers.GRUCell(4), x)
    >>> out.shape, state.shape
    ((2, 5, 4), (2, 4))
    """
    if not hasattr(cell, "call"):
        raise ValueError(f"rnn: cell must be an RNNCell, got {cell!r:.60}")
    if initial_states is None:
        first = flatten(inputs)[0]
        initial_states = cell.get_initial_states(
            batch_ref=first, batch_dim_idx=1 if time_major else 0
        )
    if not time_major:
        inputs = map_structure(batch_and_time_swapped, inputs)
    mask = None
    if sequence_length is not None:
        check_variable(sequence_length, "sequence_length", "rnn")
        longest = shape(flatten(inputs)[0])[0]
        kind = flatten(initial_states)[0].dtype
        mask = transpose(sequence_mask(sequence_length, longest, kind), [1, 0])
    if is_reverse:
        inputs = map_structure(lambda x: reverse(x, axis=[0]), inputs)
        mask = None if mask is None else reverse(mask, axis=[0])
    outputs, states, found = _walk(cell, inputs, initial_states, mask, kwargs)
    count = len(flatten(outputs))
    made = pack_sequence_as(outputs, found[:count])
    last = map_structure(lambda x: x[-1], pack_sequence_as(states, found[count:]))
    if is_reverse:
        made = map_structure(lambda x: reverse(x, axis=[0]), made)
    if not time_major:
        made = map_structure(batch_and_time_swapped, made)
    return made, last


def _walk(
    cell: RNNCell, inputs: Any, initial: Any, mask: Variable | None, kwargs: Any
) -> tuple[Any, Any, list[Variable]]:
    """What a step makes: outputs, states; and those of all steps, stacked."""
    walk = StaticRNN()
    with walk.step():
        now = map_structure(walk.step_input, inputs)
        before = map_structure(lambda state: walk.memory(init=state), initial)
        outputs, states = cell(now, before, **kwargs)
        if mask is not None:
            goes_on = walk.step_input(mask)
            states = map_structure(
                lambda old, new: blend(goes_on, new, old), before, states
            )
        for memory, new in zip(flatten(before), flatten(states)):
            walk.update_memory(memory, new)
        for each in (*flatten(outputs), *flatten(states)):
            walk.step_output(each)
    found = walk()
    return outputs, states, found if isinstance(found, list) else [found]
