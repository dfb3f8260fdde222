"""Recurrent networks over sequences of different lengths: `DynamicRNN`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from fluidx.ir import Block, Variable, unique_name
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.control_flow import increment, less_than
from fluidx.layers.emit import check_variable
from fluidx.layers.loops import While
from fluidx.layers.rank_tables import array_to_lod_tensor, shrink_memory
from fluidx.layers.tensor import fill_constant
from fluidx.layers.tensor_arrays import array_read, array_write

__all__ = ["DynamicRNN"]


class DynamicRNN:
    """A block that is run for each step of sequences, the longest sequence first.

    Sequences (LoD) of different lengths are walked through together; those that have
    ended take part no more. Mirrors ``fluid.layers.DynamicRNN``.

    >>> import fluidx as fluid
    >>> words = fluid.data("dynamic_words", [None, 3], lod_level=1)
    >>> rnn = fluid.layers.DynamicRNN()
    >>> with rnn.block():
    ...     now = rnn.step_input(words)
    ...     before = rnn.memory(shape=[3], value=0.0)
    ...     after = now + before
    ...     rnn.update_memory(before, after)
    ...     rnn.output(after)
    >>> y = rnn()
    >>> y.shape, y.lod_level
    ((-1, 3), 1)
    """

    BEFORE_RNN = 0
    IN_RNN = 1
    AFTER_RNN = 2

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.status = DynamicRNN.BEFORE_RNN
        self.lod_rank_table: Variable | None = None
        self.max_seq_len: Variable | None = None
        self.step_idx: Variable | None = None
        self.zero_idx: Variable | None = None
        self.outputs: list[Variable] = []
        self.cond = self.helper.create_variable_for_type_inference("bool")
        self.cond.stop_gradient = True
        self.while_op = While(self.cond)
        self._inputs: list[Variable] = []
        self._results: list[Variable] = []
        self._memories: dict[str, Variable] = {}
        self._updates: list[tuple[Variable, Variable]] = []

    # ------------------------------------------------ the block

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """What is built inside is one step."""
        if self.status != DynamicRNN.BEFORE_RNN:
            raise ValueError("DynamicRNN: its block can be built only once")
        step = fill_constant([1], "int64", 0, force_cpu=True)
        step.stop_gradient = False
        self.step_idx = step
        self.status = DynamicRNN.IN_RNN
        with self.while_op.block():
            yield
            if self.max_seq_len is None:
                raise ValueError("DynamicRNN: it has no step_input()")
            increment(step, 1.0, in_place=True)
            for value, array in self._updates:
                array_write(value, step, array)
            less_than(step, self.max_seq_len, force_cpu=True, cond=self.cond)
        self.status = DynamicRNN.AFTER_RNN
        table = self._check_table("output()")
        self.outputs = [array_to_lod_tensor(a, table) for a in self._results]

    def _check_inside(self, method: str) -> Block:
        """The block around; ValueError outside of the own block."""
        if self.status != DynamicRNN.IN_RNN:
            raise ValueError(f"DynamicRNN: {method} is for inside `with rnn.block()`")
        found = self.helper.main_program.current_block().parent
        assert found is not None
        return found

    def _check_table(self, method: str) -> Variable:
        if self.lod_rank_table is None:
            raise ValueError(f"DynamicRNN: {method} must come after step_input()")
        return self.lod_rank_table

    def _shrunk(self, x: Variable) -> Variable:
        """The rows of x, in the table's order, whose sequences have this step."""
        assert self.step_idx is not None
        assert self.lod_rank_table is not None
        return shrink_memory(x, self.step_idx, self.lod_rank_table)

    # ------------------------------------------------ what goes in

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """The step's elements of sequences x (LoD) of this level.

        The first one tells the lengths; others must have the same.
        """
        around = self._check_inside("step_input()")
        check_variable(x, "x", "DynamicRNN.step_input")
        if self.lod_rank_table is None:
            self._rank(around, x, level)
        array = around.create_var(
            name=unique_name.generate("dynamic_rnn_input_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=x.dtype,
        )
        self._inputs.append(array)
        around.append_op(
            "lod_tensor_to_array",
            {"X": x, "RankTable": self.lod_rank_table},
            {"Out": array},
        )
        assert self.step_idx is not None
        return array_read(array, self.step_idx)

    def _rank(self, around: Block, x: Variable, level: int) -> None:
        table = self.lod_rank_table = around.create_var(
            name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE
        )
        table.stop_gradient = True
        around.append_op("lod_rank_table", {"X": x}, {"Out": table}, {"level": level})
        longest = self.max_seq_len = around.create_var(
            name=unique_name.generate("dynamic_rnn_max_seq_len"), dtype="int64"
        )
        around.append_op("max_sequence_len", {"RankTable": table}, {"Out": longest})
        around.append_op(
            "less_than",
            {"X": self.step_idx, "Y": longest},
            {"Out": self.cond},
            {"force_cpu": True},
        )

    def static_input(self, x: Variable) -> Variable:
        """All of x in each step: rows or sequences, one for each sequence."""
        around = self._check_inside("static_input()")
        check_variable(x, "x", "DynamicRNN.static_input")
        self._check_table("static_input()")
        made = self._reordered(around, x, "dynamic_rnn_static_input_reordered")
        return self._shrunk(made)

    def _reordered(self, around: Block, x: Variable, key: str) -> Variable:
        made = around.create_var(name=unique_name.generate(key), dtype=x.dtype)
        inputs = {"X": x, "RankTable": self.lod_rank_table}
        around.append_op("reorder_lod_tensor_by_rank", inputs, {"Out": made})
        return made

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> Variable:
        """A value from the step before; `update_memory` sets it for the next.

        init: its value in the first step, a row for each sequence. need_reorder: init's
        rows are in the order of the sequences, not yet in that of the steps. Without
        init: `value` in rows of this shape.
        """
        around = self._check_inside("memory()")
        self._check_table("memory()")
        zero = self._zero(around)
        if init is not None:
            check_variable(init, "init", "DynamicRNN.memory")
            if need_reorder:
                key = "dynamic_rnn_mem_init_reordered"
                init = self._reordered(around, init, key)
        else:
            init = self._filled(around, shape, value, dtype)
        array = around.create_var(
            name=unique_name.generate("dynamic_rnn_mem_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=init.dtype,
        )
        around.append_op("write_to_array", {"X": init, "I": zero}, {"Out": array})
        assert self.step_idx is not None
        made = self._shrunk(array_read(array, self.step_idx))
        self._memories[made.name] = array
        return made

    def _zero(self, around: Block) -> Variable:
        if self.zero_idx is None:
            zero = self.zero_idx = around.create_var(
                name=unique_name.generate("zero_idx"), dtype="int64"
            )
            attrs = {
                "shape": [1],
                "dtype": int(VarType.INT64),
                "value": 0.0,
                "force_cpu": True,
            }
            around.append_op("fill_constant", {}, {"Out": zero}, attrs)
        return self.zero_idx

    def _filled(
        self, around: Block, shape: Sequence[int] | None, value: float, dtype: Any
    ) -> Variable:
        if not isinstance(shape, (list, tuple)):
            raise ValueError("DynamicRNN.memory: needs init, or a shape")
        kind = as_dtype(dtype)
        like = around.create_var(
            name=unique_name.generate("in0"), dtype=self._inputs[0].dtype
        )
        made = around.create_var(name=unique_name.generate("mem_init"), dtype=kind)
        around.append_op(
            "read_from_array",
            {"X": self._inputs[0], "I": self.zero_idx},
            {"Out": like},
        )
        around.append_op(
            "fill_constant_batch_size_like",
            {"Input": like},
            {"Out": made},
            {"shape": [-1, *shape], "value": float(value), "dtype": int(kind)},
        )
        return made

    # ------------------------------------------------ what comes out

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """`new_mem` is what the memory `ex_mem` holds in the next step."""
        self._check_inside("update_memory()")
        check_variable(ex_mem, "ex_mem", "DynamicRNN.update_memory")
        check_variable(new_mem, "new_mem", "DynamicRNN.update_memory")
        array = self._memories.get(ex_mem.name)
        if array is None:
            raise ValueError(f"DynamicRNN: {ex_mem.name} is no memory of it")
        self._updates.append((new_mem, array))

    def output(self, *outputs: Variable) -> None:
        """The values of all steps, as sequences, are the next outputs."""
        around = self._check_inside("output()")
        assert self.step_idx is not None
        for out in outputs:
            check_variable(out, "outputs", "DynamicRNN.output")
            key = "_".join([self.helper.name, "output_array", out.name])
            array = around.create_var(
                name=unique_name.generate(key),
                type=VarType.LOD_TENSOR_ARRAY,
                dtype=out.dtype,
            )
            array_write(out, self.step_idx, array)
            self._results.append(array)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output, or the list of outputs: sequences as long as the inputs."""
        if self.status != DynamicRNN.AFTER_RNN:
            raise ValueError("DynamicRNN: there are outputs only after `rnn.block()`")
        if not self.outputs:
            raise ValueError("DynamicRNN: it has no output; use output()")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs
