"""The step of a decoder, written once for training and for beam search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fluidx.ir import Block, Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layers.control_flow import increment
from fluidx.layers.dynamic_rnn import DynamicRNN
from fluidx.layers.emit import check_variable
from fluidx.layers.tensor import fill_constant_batch_size_like
from fluidx.layers.tensor_arrays import array_read, array_write

__all__ = ["ArrayState", "InitState", "MemoryState", "StateCell"]


class InitState:
    """What a state is before the first step.

    init: the value, a row for each sequence. Without it: `value` in `shape` of `dtype`,
    with as many rows as init_boot. need_reorder: its rows are in the order of the
    sequences; always right for one that is computed of the source. ValueError: neither
    init nor init_boot. Mirrors ``fluid.contrib.InitState``.

    >>> import fluidx as fluid
    >>> boot = fluid.data("boot", [None, 4])
    >>> zero = fluid.contrib.InitState(init_boot=boot, shape=[-1, 8], value=0.0)
    >>> zero.value.shape
    (-1, 8)
    """

    def __init__(
        self,
        init: Variable | None = None,
        shape: Any = None,
        value: float = 0.0,
        init_boot: Variable | None = None,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> None:
        if init is None:
            if init_boot is None:
                raise ValueError("InitState: needs init, or init_boot for its rows")
            init = fill_constant_batch_size_like(init_boot, shape, dtype, value)
        self._init = check_variable(init, "init", "InitState")
        self._need_reorder = need_reorder

    @property
    def value(self) -> Variable:
        return self._init

    @property
    def need_reorder(self) -> bool:
        return self._need_reorder


class _Kept(Protocol):
    """A state as a decoder keeps it from step to step."""

    def now(self) -> Variable: ...

    def update(self, value: Variable) -> None: ...


class MemoryState:
    """A state in a memory of a `DynamicRNN`."""

    def __init__(self, rnn: DynamicRNN, state: InitState) -> None:
        self._rnn = rnn
        self._before = rnn.memory(init=state.value, need_reorder=state.need_reorder)

    def now(self) -> Variable:
        return self._before

    def update(self, value: Variable) -> None:
        self._rnn.update_memory(self._before, value)


class ArrayState:
    """A state in an array, made around a loop, with a counter of its own."""

    def __init__(self, around: Block, state: InitState) -> None:
        counter = around.create_var(
            name=unique_name.generate("array_state_counter"),
            dtype="int64",
            stop_gradient=True,
        )
        array = around.create_var(
            name=unique_name.generate("array_state_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=state.value.dtype,
        )
        attrs = {
            "shape": [1],
            "dtype": int(VarType.INT64),
            "value": 0.0,
            "force_cpu": True,
        }
        around.append_op("fill_constant", {}, {"Out": counter}, attrs)
        inputs = {"X": state.value, "I": counter}
        around.append_op("write_to_array", inputs, {"Out": array})
        self._counter, self._array = counter, array

    def now(self) -> Variable:
        return array_read(self._array, self._counter)

    def update(self, value: Variable) -> None:
        increment(self._counter, 1.0, in_place=True)
        array_write(value, self._counter, self._array)


class StateCell:
    """Inputs and states of a decoder's step, and the function from one to the next.

    inputs: names (the values may be None). states: an `InitState` of each name.
    out_state: the state that the outputs are made of. The function, which
    `state_updater` takes, reads inputs and states and sets states. ValueError: an
    out_state that is none; TypeError: a state that is no InitState. Mirrors
    ``fluid.contrib.StateCell``.

    >>> import fluidx as fluid
    >>> contrib, L = fluid.contrib, fluid.layers
    >>> start = fluid.data("cell_start", [None, 4])
    >>> cell = contrib.StateCell({"x": None}, {"h": contrib.InitState(start)}, "h")
    >>> @cell.state_updater
    ... def step(cell):
    ...     made = L.fc([cell.get_input("x"), cell.get_state("h")], 4, act="tanh")
    ...     cell.set_state("h", made)
    >>> words = fluid.data("cell_words", [None, 3], lod_level=1)
    >>> decoder = contrib.TrainingDecoder(cell)
    >>> with decoder.block():
    ...     cell.compute_state({"x": decoder.step_input(words)})
    ...     decoder.output(L.fc(cell.out_state(), 9, act="softmax"))
    ...     cell.update_states()
    >>> decoder().shape
    (-1, 9)
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        states: Mapping[str, InitState],
        out_state: str,
        name: str | None = None,
    ) -> None:
        for key, state in states.items():
            if not isinstance(state, InitState):
                raise TypeError(
                    f"StateCell: state {key!r} must be an InitState, got {state!r:.60}"
                )
        if out_state not in states:
            raise ValueError(
                f"StateCell: out_state {out_state!r} is none of {list(states)}"
            )
        self._inputs = dict(inputs)
        self._states = dict(states)
        self._out_state = out_state
        self._updater: Callable[[StateCell], Any] | None = None
        self._keeper: Callable[[InitState], _Kept] | None = None
        self._kept: dict[str, _Kept] = {}
        self._now: dict[str, Variable] = {}

    # ------------------------------------------------ in a decoder

    @property
    def input_names(self) -> list[str]:
        return list(self._inputs)

    @property
    def state_names(self) -> list[str]:
        return list(self._states)

    def enter(self, keeper: Callable[[InitState], _Kept]) -> None:
        """Be the cell of a decoder that keeps states in this way."""
        if self._keeper is not None:
            raise ValueError("StateCell: it is in a decoder already")
        self._keeper = keeper

    def leave(self) -> None:
        """The decoder's block is complete."""
        self._keeper = None
        self._kept, self._now = {}, {}

    def _open(self) -> None:
        """All states as the step finds them."""
        if self._keeper is None:
            raise ValueError("StateCell: it has states only in a decoder's block")
        if not self._kept:
            self._kept = {k: self._keeper(s) for k, s in self._states.items()}
            self._now = {k: kept.now() for k, kept in self._kept.items()}

    # ------------------------------------------------ of a step

    def get_state(self, state_name: str) -> Variable:
        """The state: that of the step before, or as set since."""
        if state_name not in self._states:
            raise ValueError(
                f"StateCell: no state {state_name!r} in {self.state_names}"
            )
        self._open()
        return self._now[state_name]

    def get_input(self, input_name: str) -> Any:
        """The input that compute_state() was given."""
        found = self._inputs.get(input_name)
        if found is None:
            raise ValueError(f"StateCell: no input {input_name!r} is given")
        return found

    def set_state(self, state_name: str, state_value: Variable) -> None:
        """Set a state; the next step sees it after update_states()."""
        if state_name not in self._states:
            raise ValueError(
                f"StateCell: no state {state_name!r} in {self.state_names}"
            )
        self._open()
        self._now[state_name] = check_variable(
            state_value, "state_value", "StateCell.set_state"
        )

    def state_updater(self, updater: Callable[[StateCell], Any]) -> Any:
        """A decorator: the function, of this cell, that sets the new states."""
        self._updater = updater
        return updater

    def compute_state(self, inputs: Mapping[str, Any]) -> None:
        """Let the function set the states of a step, of these inputs."""
        for name, value in inputs.items():
            if name not in self._inputs:
                raise ValueError(f"StateCell: no input {name!r} in {self.input_names}")
            self._inputs[name] = value
        if self._updater is None:
            raise ValueError("StateCell: it has no updater; see state_updater()")
        self._open()
        self._updater(self)

    def update_states(self) -> None:
        """The states as they are now are those that the next step begins with."""
        self._open()
        for name, kept in self._kept.items():
            kept.update(self._now[name])

    def out_state(self) -> Variable:
        """The state that outputs are made of."""
        return self.get_state(self._out_state)
