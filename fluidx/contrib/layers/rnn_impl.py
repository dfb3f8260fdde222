"""Stacked recurrent layers over padded sequences (``fluid.contrib.layers``)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from fluidx.contrib.layers.static_layer import StaticLayer
from fluidx.ir import Variable
from fluidx.layers.emit import FLOATS, check_dtype, check_variable
from fluidx.layers.manipulation import concat, reshape, shape, transpose
from fluidx.layers.nn import dropout
from fluidx.layers.picking import reverse
from fluidx.layers.rnn import (
    GRUCell,
    LSTMCell,
    RNNCell,
    batch_and_time_swapped,
    blend,
)
from fluidx.layers.sequence_lod import sequence_mask
from fluidx.layers.static_rnn import StaticRNN
from fluidx.param_attr import ParamAttr

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]

Activation = Callable[[Variable], Variable]


class BasicGRUUnit(StaticLayer):
    """A step of gated recurrent units (Cho et al., 2014), as an object.

    A layer of dygraph, which the reference lets static programs use as far as
    `StaticLayer` goes. Parameters are made with the first call: ``<name_scope>/
    BasicGRUUnit_<n>.w_0`` (gates), ``.w_1`` (candidate), ``.b_0``, ``.b_1``. Mirrors
    ``fluid.contrib.layers.BasicGRUUnit``.

    >>> import fluidx as fluid
    >>> unit = fluid.contrib.layers.BasicGRUUnit("gru", hidden_size=4)
    >>> x, before = fluid.data("x", [None, 3]), fluid.data("before", [None, 4])
    >>> unit(x, before).shape, len(unit.parameters())
    ((-1, 4), 4)
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        dtype: Any = "float32",
    ) -> None:
        made = GRUCell(
            hidden_size,
            param_attr,
            bias_attr,
            gate_activation,
            activation,
            dtype,
            name_scope,
        )
        super().__init__(made.full_name(), dtype)
        self._cell = made

    def forward(self, input: Variable, pre_hidden: Variable) -> Variable:
        """The state after the one before. input: (batch, width)."""
        made, _ = self._cell(input, pre_hidden)
        names = ("_gate_weight", "_candidate_weight", "_gate_bias", "_candidate_bias")
        for name, parameter in zip(names, self._cell.parameters()):
            setattr(self, name, parameter)
        return made  # type: ignore[no-any-return]


class BasicLSTMUnit(StaticLayer):
    """A step of an LSTM (Hochreiter and Schmidhuber, 1997), as an object.

    See `BasicGRUUnit`; parameters are ``.w_0`` and ``.b_0``. gate_activation and
    activation are not looked at (see `LSTMCell`). Mirrors
    ``fluid.contrib.layers.BasicLSTMUnit``.

    >>> import fluidx as fluid
    >>> unit = fluid.contrib.layers.BasicLSTMUnit("lstm", hidden_size=4)
    >>> x, h, c = (fluid.data(n, [None, 4]) for n in "xhc")
    >>> hidden, cell = unit(x, h, c)
    >>> hidden.shape, unit.full_name()
    ((-1, 4), 'lstm/BasicLSTMUnit_0')
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Activation | None = None,
        activation: Activation | None = None,
        forget_bias: float = 1.0,
        dtype: Any = "float32",
    ) -> None:
        made = LSTMCell(
            hidden_size,
            param_attr,
            bias_attr,
            gate_activation,
            activation,
            forget_bias,
            dtype,
            name_scope,
        )
        super().__init__(made.full_name(), dtype)
        self._cell = made

    def forward(
        self, input: Variable, pre_hidden: Variable, pre_cell: Variable
    ) -> tuple[Variable, Variable]:
        """Hidden state and cell after those before. input: (batch, width)."""
        _, (hidden, cell) = self._cell(input, [pre_hidden, pre_cell])
        for name, parameter in zip(("_weight", "_bias"), self._cell.parameters()):
            setattr(self, name, parameter)
        return hidden, cell


def _numbered(attr: Any, direction: str, kind: str, layer: int) -> Any:
    """The attribute of one layer; a name is used as the first part of names."""
    made = ParamAttr._to_attr(attr)
    if getattr(made, "name", None) is None:
        return made
    made = copy.deepcopy(made)
    made.name += f"_{direction}_{kind}_{layer}"
    return made


class _Stack:
    """Layers of recurrent cells over each other, in one direction or in both."""

    def __init__(
        self,
        layer: str,
        cell: Callable[[Any, Any, str], RNNCell],
        hidden_size: int,
        num_layers: int,
        bidirectional: bool,
        attrs: tuple[Any, Any],
        name: str,
        drop: Callable[[Variable], Variable] | None,
    ) -> None:
        self._layer, self._drop = layer, drop
        self._size, self._depth = hidden_size, num_layers
        weight, bias = attrs
        directions = {"fw": f"{name}_layers_"}
        if bidirectional:
            directions["bw"] = f"{name}_reverse_layers_"
        self._cells = [
            [
                cell(
                    _numbered(weight, way, "w", i),
                    _numbered(bias, way, "b", i),
                    prefix + str(i),
                )
                for i in range(num_layers)
            ]
            for way, prefix in directions.items()
        ]

    def run(
        self,
        input: Variable,
        initial: list[Variable | None],
        lengths: Variable | None,
        batch_first: bool,
    ) -> tuple[Variable, list[Variable]]:
        """The last layer's outputs, and each last state of all layers."""
        check_dtype(input, "input", self._layer, FLOATS)
        if batch_first:
            input = batch_and_time_swapped(input)
        mask = None
        if lengths is not None:
            check_variable(lengths, "sequence_length", self._layer)
            mask = transpose(
                sequence_mask(lengths, shape(input)[0], input.dtype), [1, 0]
            )
        ways = len(self._cells)
        split = [self._split(state, ways) for state in initial]
        outs, lasts = [], []
        for way in range(ways):
            boots = [None if s is None else (s, way) for s in split]
            out, last = self._one_way(way, input, mask, boots)
            outs.append(out)
            lasts.append(last)
        states = list(zip(*lasts))
        if ways == 1:
            made, final = outs[0], [state for (state,) in states]
        else:
            made = concat([outs[0], reverse(outs[1], axis=[0])], axis=2)
            whole = [2 * self._depth, -1, self._size]
            final = [reshape(concat(list(both), axis=1), whole) for both in states]
        return (batch_and_time_swapped(made) if batch_first else made), final

    def _split(self, state: Variable | None, ways: int) -> Variable | None:
        """(layers * directions, batch, size) -> (layers, directions, batch, size)."""
        if state is None:
            return None
        check_variable(state, "an initial state", self._layer)
        return reshape(state, [self._depth, ways, -1, self._size])

    def _one_way(
        self, way: int, input: Variable, mask: Variable | None, boots: list[Any]
    ) -> tuple[Variable, list[Variable]]:
        if way == 1:
            input = reverse(input, axis=[0])
            mask = None if mask is None else reverse(mask, axis=[0])
        first = [
            [None if boot is None else boot[0][i, boot[1]] for boot in boots]
            for i in range(self._depth)
        ]
        walk = StaticRNN()
        with walk.step():
            now = ref = walk.step_input(input)
            goes_on = None if mask is None else walk.step_input(mask)
            for cell, boot in zip(self._cells[way], first):
                now = self._step(walk, cell, ref, now, boot, goes_on)
            walk.step_output(now)
        found = walk()
        # each layer's states, then the outputs
        many = len(boots)
        lasts = []
        last = [
            [found[many * i + k][-1] for k in range(many)] for i in range(self._depth)
        ]
        for states in zip(*last):
            whole = concat(list(states), axis=0)
            lasts.append(reshape(whole, [self._depth, -1, self._size]))
        return found[-1], lasts

    def _step(
        self,
        walk: StaticRNN,
        cell: RNNCell,
        ref: Variable,
        now: Variable,
        boots: list[Variable | None],
        goes_on: Variable | None,
    ) -> Variable:
        """One layer's step; its output, which the next layer sees."""
        before = [self._memory(walk, boot, ref) for boot in boots]
        _, states = cell(now, before if len(before) > 1 else before[0])
        after = list(states) if len(before) > 1 else [states]
        if goes_on is not None:
            after = [blend(goes_on, new, old) for new, old in zip(after, before)]
        for old, new in zip(before, after):
            walk.update_memory(old, new)
            walk.step_output(new)
        return after[0] if self._drop is None else self._drop(after[0])

    def _memory(
        self, walk: StaticRNN, boot: Variable | None, ref: Variable
    ) -> Variable:
        if boot is not None:
            return walk.memory(init=boot)
        return walk.memory(shape=[-1, self._size], batch_ref=ref)


def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Activation | None = None,
    activation: Activation | None = None,
    dtype: Any = "float32",
    name: str = "basic_gru",
) -> tuple[Variable, Variable]:
    """Layers of gated recurrent units over padded sequences.

    input: (batch, time, width), or (time, batch, width) unless batch_first.
    init_hidden: (layers * directions, batch, hidden_size); default zeros.
    sequence_length: (batch,), after which states stay as they are. dropout_prob:
    between the layers and after the last, "downgrade_in_infer". A parameter's name is
    the first part of the layers': ``<name>_fw_w_0_gate``, ``<name>_bw_b_1_candidate``.
    Returns the last layer's states of all steps, (batch, time, directions *
    hidden_size) or time first, and the last ones of all layers, as init_hidden. Mirrors
    ``fluid.contrib.layers.basic_gru``.

    >>> import fluidx as fluid
    >>> x = fluid.data("basic_gru_x", [None, 5, 3])
    >>> out, last = fluid.contrib.layers.basic_gru(x, None, 4, 2, bidirectional=True)
    >>> out.shape, last.shape
    ((-1, 5, 8), (4, -1, 4))
    """

    def cell(weight: Any, bias: Any, prefix: str) -> RNNCell:
        return GRUCell(
            hidden_size, weight, bias, gate_activation, activation, dtype, prefix
        )

    def drop(x: Variable) -> Variable:
        return dropout(x, dropout_prob)

    stack = _Stack(
        "basic_gru",
        cell,
        hidden_size,
        num_layers,
        bidirectional,
        (param_attr, bias_attr),
        name,
        drop if dropout_prob else None,
    )
    out, (last,) = stack.run(input, [init_hidden], sequence_length, batch_first)
    return out, last


def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Activation | None = None,
    activation: Activation | None = None,
    forget_bias: float = 1.0,
    dtype: Any = "float32",
    name: str = "basic_lstm",
) -> tuple[Variable, Variable, Variable]:
    """Layers of LSTMs over padded sequences: outputs, last hidden states, last cells.

    forget_bias: added to the forget gates. gate_activation and activation are not
    looked at (see `LSTMCell`). dropout_prob: "upscale_in_train". Names are
    ``<name>_fw_w_0``, ``<name>_bw_b_1``. The rest is as for `basic_gru`. ValueError:
    one of init_hidden and init_cell alone. Mirrors ``fluid.contrib.layers.basic_lstm``.

    >>> import fluidx as fluid
    >>> x = fluid.data("basic_lstm_x", [None, 5, 3])
    >>> out, hidden, cell = fluid.contrib.layers.basic_lstm(x, None, None, 4, 2)
    >>> out.shape, hidden.shape, cell.shape
    ((-1, 5, 4), (2, -1, 4), (2, -1, 4))
    """
    if (init_hidden is None) != (init_cell is None):
        raise ValueError("basic_lstm: give both of init_hidden and init_cell, or none")

    def cell(weight: Any, bias: Any, prefix: str) -> RNNCell:
        return LSTMCell(
            hidden_size,
            weight,
            bias,
            gate_activation,
            activation,
            forget_bias,
            dtype,
            prefix,
        )

    def drop(x: Variable) -> Variable:
        return dropout(x, dropout_prob, dropout_implementation="upscale_in_train")

    stack = _Stack(
        "basic_lstm",
        cell,
        hidden_size,
        num_layers,
        bidirectional,
        (param_attr, bias_attr),
        name,
        drop if dropout_prob else None,
    )
    initial = [init_hidden, init_cell]
    out, (hidden, memory) = stack.run(input, initial, sequence_length, batch_first)
    return out, hidden, memory
