"""Recurrent networks over sequences of fixed length: `StaticRNN`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluidx.ir import Block, Variable, unique_name
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable
from fluidx.layers.sub_blocks import outside, step_scopes, sub_block

__all__ = ["StaticRNN"]


@dataclass
class _Memory:
    """What a step knows from the step before."""

    boot: Variable
    before: Variable
    after: Variable | None = None


class StaticRNN:
    """A block that is run for each step of its inputs, along their first dimension.

    Mirrors ``fluid.layers.StaticRNN``.

    >>> import fluidx as fluid
    >>> x = fluid.data("steps", [5, 2, 3])
    >>> rnn = fluid.layers.StaticRNN()
    >>> with rnn.step():
    ...     now = rnn.step_input(x)
    ...     before = rnn.memory(shape=[-1, 3], batch_ref=now)
    ...     after = now + before
    ...     rnn.update_memory(before, after)
    ...     rnn.step_output(after)
    >>> rnn().shape
    (5, 2, 3)
    """

    BEFORE_RNN_BLOCK = 0
    IN_RNN_BLOCK = 1
    AFTER_RNN_BLOCK = 2

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("static_rnn", name=name)
        self.status = StaticRNN.BEFORE_RNN_BLOCK
        self.seq_len: int | None = None
        self._inputs: list[Variable] = []
        self._memories: dict[str, _Memory] = {}
        self._results: list[Variable] = []
        self.outputs: list[Variable] = []

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """What is built inside is one step."""
        with sub_block(self.helper.main_program) as body:
            self.status = StaticRNN.IN_RNN_BLOCK
            yield
            for memory in self._memories.values():
                self._close(memory)
        self.status = StaticRNN.AFTER_RNN_BLOCK
        self._complete(body)

    def _check_inside(self, method: str) -> Block:
        """The step's block."""
        if self.status != StaticRNN.IN_RNN_BLOCK:
            raise ValueError(f"StaticRNN: {method} is for inside `with rnn.step()`")
        return self.helper.main_program.current_block()

    @property
    def _around(self) -> Block:
        found = self.helper.main_program.current_block().parent
        assert found is not None
        return found

    # ------------------------------------------------ what goes in

    def step_input(self, x: Variable) -> Variable:
        """The step's slice of a sequence x, whose first dimension is time."""
        block = self._check_inside("step_input()")
        check_variable(x, "x", "StaticRNN.step_input")
        if not x.shape:
            raise ValueError(f"StaticRNN.step_input: x ({x.name}) has no dimensions")
        length = x.shape[0]
        if self.seq_len is None or self.seq_len < 0:
            self.seq_len = length
        elif length not in (-1, self.seq_len):
            raise ValueError(
                f"StaticRNN: inputs of different lengths: {self.seq_len} steps before, "
                f"x ({x.name}) has {length}"
            )
        self._inputs.append(x)
        return block.create_var(
            name=x.name, dtype=x.dtype, shape=x.shape[1:], type=x.type
        )

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """A value from the step before; `update_memory` sets it for the next.

        init: its value in the first step. Without it, init_value in `shape`, of which
        dimension init_batch_dim_idx is that of dimension ref_batch_dim_idx of the
        sequence that the step input `batch_ref` comes from.
        """
        block = self._check_inside("memory()")
        if init is None:
            init = self._boot(
                shape, batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx
            )
        check_variable(init, "init", "StaticRNN.memory")
        before = block.create_var(
            name=unique_name.generate(f"{self.helper.name}@mem"),
            dtype=init.dtype,
            shape=init.shape,
        )
        self._memories[before.name] = _Memory(init, before)
        return before

    def _boot(
        self,
        shape: Sequence[int] | None,
        batch_ref: Variable | None,
        value: float,
        position: int,
        source: int,
    ) -> Variable:
        if shape is None or batch_ref is None:
            raise ValueError("StaticRNN.memory: needs init, or shape and batch_ref")
        boot = self._around.create_var(
            name=unique_name.generate(f"{self.helper.name}@memory_boot"),
            shape=shape,
            dtype=batch_ref.dtype,
        )
        # by name: around the step, it is the whole sequence
        self._around.append_op(
            "fill_constant_batch_size_like",
            {"Input": batch_ref.name},
            {"Out": boot},
            {
                "value": float(value),
                "shape": list(boot.shape),
                "dtype": int(boot.dtype),
                "input_dim_idx": source,
                "output_dim_idx": position,
            },
        )
        return boot

    # ------------------------------------------------ what comes out

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """`var` is what the memory `mem` holds in the next step."""
        self._check_inside("update_memory()")
        check_variable(mem, "mem", "StaticRNN.update_memory")
        check_variable(var, "var", "StaticRNN.update_memory")
        if mem.name not in self._memories:
            raise ValueError(f"StaticRNN: {mem.name} is no memory of it")
        self._memories[mem.name].after = var

    def _helped(self, x: Variable) -> Variable:
        made = self.helper.create_variable_for_type_inference(x.dtype)
        self.helper.append_op(
            "rnn_memory_helper", {"X": x}, {"Out": made}, {"dtype": int(x.dtype)}
        )
        return made

    def step_output(self, o: Variable) -> None:
        """`o` of all steps, stacked, is the next output."""
        self._check_inside("step_output()")
        check_variable(o, "o", "StaticRNN.step_output")
        made = self._helped(o)
        self._results.append(made)
        self.outputs.append(
            self._around.create_var(
                name=made.name,
                shape=[-1 if self.seq_len is None else self.seq_len, *made.shape],
                dtype=made.dtype,
            )
        )

    def output(self, *outputs: Variable) -> None:
        """`step_output` for each."""
        for each in outputs:
            self.step_output(each)

    def _close(self, memory: _Memory) -> None:
        if memory.after is None:
            raise ValueError(
                f"StaticRNN: memory {memory.before.name} needs update_memory()"
            )
        memory.after = self._helped(memory.after)

    def _complete(self, body: Block) -> None:
        memories = list(self._memories.values())
        around = self.helper.main_program.current_block()
        taken = {v.name for v in self._inputs}
        parameters = [n for n in outside(body)[0] if n not in taken]
        around.append_op(
            "recurrent",
            {
                "inputs": self._inputs,
                "initial_states": [m.boot for m in memories],
                "parameters": parameters,
            },
            {"outputs": self.outputs, "step_scopes": step_scopes(around)},
            {
                "sub_block": body,
                "has_states": bool(memories),
                "ex_states": [m.before.name for m in memories],
                "states": [m.after.name for m in memories if m.after is not None],
            },
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output, or the list of outputs, each of shape [time, ...]."""
        if self.status != StaticRNN.AFTER_RNN_BLOCK:
            raise ValueError("StaticRNN: there are outputs only after `rnn.step()`")
        if not self.outputs:
            raise ValueError("StaticRNN: it has no output; use step_output()")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs
