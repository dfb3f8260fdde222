"""Readers as variables of a program, and the ops that read from them.

The ops are the reference's: `create_py_reader`, `create_double_buffer_reader`, `read`.
The variable carries the queue, also into clones of the program; before a run the
executor takes a batch from it and feeds what `read` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import (
    Block,
    Variable,
    default_main_program,
    default_startup_program,
    make_op,
    unique_name,
)
from fluidx.ir.operator import user_line
from fluidx.kernels import VarType

from .convert import Generator, from_batches, from_lists
from .queue import BatchQueue

__all__ = ["ReaderVariable", "double_buffered", "new_reader", "read_from", "read_into"]


class ReaderVariable(Variable):
    """A reader in a program; gives batches of `outputs`.

    `start` begins a pass, each run of the program takes a batch, and at the end
    `Executor.run` raises EOFException; `reset` makes another pass possible.
    """

    def __init__(
        self, block: Block, name: str, queue: BatchQueue, outputs: Sequence[Variable]
    ) -> None:
        super().__init__(
            block,
            VarType.READER,
            name,
            persistable=True,
            stop_gradient=True,
        )
        self.batches = queue
        self.outputs = list(outputs)

    @property
    def queue(self) -> BatchQueue:
        return self.batches

    def start(self) -> None:
        """Begin a pass."""
        self.batches.start()

    def reset(self) -> None:
        """End the pass, so that another can start."""
        self.batches.reset()

    def decorate_paddle_reader(self, reader: Generator, places: Any = None) -> None:
        """Read lists of samples, as `paddle.batch` gives them."""
        self.batches.batches = from_lists(reader, self.outputs)

    decorate_sample_list_generator = decorate_paddle_reader

    def decorate_tensor_provider(self, reader: Generator, places: Any = None) -> None:
        """Read batches: an array or LoDTensor for each output."""
        self.batches.batches = from_batches(reader, self.outputs)

    decorate_batch_generator = decorate_tensor_provider


def _declare(
    block: Block, name: str, queue: BatchQueue, outputs: Sequence[Variable]
) -> ReaderVariable:
    made = ReaderVariable(block, name, queue, outputs)
    block.vars[name] = made
    block.program._touch()
    return made


def _append(block: Block, type: str, inputs: Any, outputs: Any, attrs: Any) -> None:
    """An op as it is: its queue is no variable of the program."""
    op = make_op(block, type, inputs, outputs, attrs, where=user_line())
    block._adopt(op)
    block.program._touch()


def new_reader(
    block: Block,
    queue_name: str,
    name: str,
    queue: BatchQueue,
    outputs: Sequence[Variable],
) -> ReaderVariable:
    """Declare a reader and append the op that creates it."""
    made = _declare(block, name, queue, outputs)
    attrs = {
        "shape_concat": [d for v in outputs for d in v.shape],
        "lod_levels": [v.lod_level for v in outputs],
        "dtypes": [int(v.dtype) for v in outputs],
        "need_check_feed": [int(v.need_check_feed) for v in outputs],
        "ranks": [len(v.shape) for v in outputs],
    }
    slots = {"blocking_queue": [queue_name]}
    _append(block, "create_py_reader", slots, {"Out": [name]}, attrs)
    return made


def double_buffered(block: Block, reader: ReaderVariable, name: str) -> ReaderVariable:
    """A reader of the same batches through a `create_double_buffer_reader` op."""
    made = _declare(block, name, reader.batches, reader.outputs)
    made.batches.double_buffer = True
    slots = {"UnderlyingReader": [reader.name]}
    _append(block, "create_double_buffer_reader", slots, {"Out": [name]}, {})
    return made


def read_from(block: Block, reader: Variable, outputs: Sequence[Variable]) -> None:
    """Append the `read` op."""
    slots = {"Reader": [reader.name]}
    _append(block, "read", slots, {"Out": [v.name for v in outputs]}, {})


def read_into(
    variables: Sequence[Variable], queue: BatchQueue, use_double_buffer: bool
) -> None:
    """Let the default main program read batches into its own data variables."""
    block = default_main_program().global_block()
    queue_name = unique_name.generate("lod_tensor_blocking_queue")
    reader_name = unique_name.generate("create_py_reader")
    buffer_name = unique_name.generate("double_buffer")
    reader = new_reader(block, queue_name, reader_name, queue, variables)
    if use_double_buffer:
        reader = double_buffered(block, reader, buffer_name)
    read_from(block, reader, variables)


def plain_reader(
    queue_name: str, name: str, queue: BatchQueue, outputs: Sequence[Variable]
) -> ReaderVariable:
    """A reader that the startup program creates, for the default main program."""
    startup = default_startup_program().global_block()
    new_reader(startup, queue_name, name, queue, outputs)
    main = default_main_program().global_block()
    return _declare(main, name, queue, outputs)
