"""Readers as layers: `py_reader` and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.dataloader.program import (
    ReaderVariable,
    double_buffered,
    plain_reader,
    read_from,
)
from fluidx.dataloader.queue import BatchQueue
from fluidx.ir import Variable, default_main_program, unique_name
from fluidx.kernels import as_dtype
from fluidx.layer_helper import LayerHelper

__all__ = ["create_py_reader_by_data", "double_buffer", "py_reader", "read_file"]


def _new(
    capacity: int, outputs: list[Variable], name: str | None, use_double_buffer: bool
) -> Variable:
    queue = BatchQueue(capacity, [v.name for v in outputs])
    if name is None:
        queue_name = unique_name.generate("lod_tensor_blocking_queue")
        reader_name = unique_name.generate("create_py_reader")
        buffer_name = unique_name.generate("double_buffer")
    else:
        queue_name, reader_name = f"{name}_queue", f"{name}_reader"
        buffer_name = f"{name}_double_buffer"
    made = plain_reader(queue_name, reader_name, queue, outputs)
    if use_double_buffer:
        block = default_main_program().global_block()
        made = double_buffered(block, made, buffer_name)
    return made


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Variable:
    """A reader in the program, to be given a generator; `read_file` gives its outputs.

    shapes, dtypes, lod_levels: of each output, -1 for unknown sizes. capacity: how
    many batches are read ahead. Its ``decorate_paddle_reader(reader)`` takes lists of
    samples, ``decorate_tensor_provider(reader)`` whole batches. ``start()`` begins a
    pass; at its end `Executor.run` raises ``fluid.core.EOFException``, and
    ``reset()`` makes another possible. Mirrors ``fluid.layers.py_reader``.

    >>> import fluidx as fluid, numpy as np
    >>> reader = fluid.layers.py_reader(2, shapes=[[-1, 1]], dtypes=["float32"])
    >>> y = fluid.layers.read_file(reader) * 2.0
    >>> batches = [[np.array([[1]], "float32")], [np.array([[2]], "float32")]]
    >>> reader.decorate_tensor_provider(lambda: iter(batches))
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> reader.start()
    >>> [exe.run(fetch_list=[y])[0].tolist() for _ in batches]
    [[[2.0]], [[4.0]]]
    >>> try:
    ...     exe.run(fetch_list=[y])
    ... except fluid.core.EOFException:
    ...     reader.reset()
    """
    levels = [0] * len(shapes) if lod_levels is None else list(lod_levels)
    if not len(shapes) == len(dtypes) == len(levels):
        raise ValueError(
            f"py_reader: {len(shapes)} shapes, {len(dtypes)} dtypes and {len(levels)} "
            "lod_levels were given"
        )
    block = default_main_program().global_block()
    outputs = [
        Variable(
            block,
            name=f"output {i} of py_reader",
            shape=shape,
            dtype=as_dtype(dtype),
            lod_level=level,
        )
        for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels))
    ]
    return _new(capacity, outputs, name, use_double_buffer)


def create_py_reader_by_data(
    capacity: int,
    feed_list: Sequence[Variable],
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Variable:
    """As `py_reader`, with the shapes, dtypes and LoD levels of data variables.

    Mirrors ``fluid.layers.create_py_reader_by_data``.

    >>> import fluidx as fluid
    >>> data = fluid.data("by_data", [None, 4], "float32")
    >>> reader = fluid.layers.create_py_reader_by_data(2, [data])
    >>> fluid.layers.read_file(reader).shape
    (-1, 4)
    """
    return _new(capacity, list(feed_list), name, use_double_buffer)


def double_buffer(reader: Variable, place: Any = None, name: str | None = None) -> Any:
    """The reader with a second buffer; batches are read ahead either way.

    Mirrors ``fluid.layers.double_buffer``.

    >>> import fluidx as fluid
    >>> reader = fluid.layers.py_reader(
    ...     2, [[-1, 4]], ["float32"], use_double_buffer=False)
    >>> reader = fluid.layers.double_buffer(reader)
    >>> fluid.layers.read_file(reader).shape
    (-1, 4)
    """
    if not isinstance(reader, ReaderVariable):
        raise TypeError(f"double_buffer: takes a reader, got {reader!r:.60}")
    made = name or unique_name.generate("create_double_buffer_reader")
    return double_buffered(default_main_program().global_block(), reader, made)


def read_file(reader: Variable) -> Any:
    """The outputs of a reader: a variable, or a list of them.

    Mirrors ``fluid.layers.read_file``.

    >>> import fluidx as fluid
    >>> reader = fluid.layers.py_reader(2, [[-1, 4], [-1, 1]], ["float32", "int64"])
    >>> image, label = fluid.layers.read_file(reader)
    >>> image.shape, label.shape
    ((-1, 4), (-1, 1))
    """
    if not isinstance(reader, ReaderVariable):
        raise TypeError(f"read_file: takes a reader, got {reader!r:.60}")
    helper = LayerHelper("read_file")
    outputs = []
    for like in reader.outputs:
        made = helper.create_variable_for_type_inference(like.dtype, True)
        made.set_meta(like.meta)
        outputs.append(made)
    read_from(helper.main_program.global_block(), reader, outputs)
    return outputs[0] if len(outputs) == 1 else outputs
