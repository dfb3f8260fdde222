"""Inputs of a program, and variables from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import is_integer

__all__ = ["data", "load"]


def data_shape(shape: Any, layer: str) -> list[int]:
    """The sizes of an input, -1 for None; TypeError for anything else."""
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"{layer}: shape must be a list or a tuple, got {shape!r}")
    for size in shape:
        if size is not None and not is_integer(size):
            raise TypeError(
                f"{layer}: shape must be made of integers and None, got {shape!r}"
            )
    return [-1 if size is None else int(size) for size in shape]


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: Any = "float32",
    lod_level: int = 0,
    type: VarType = VarType.LOD_TENSOR,
    stop_gradient: bool = True,
) -> Variable:
    """A variable that `Executor.run` is to be fed, of the global block.

    append_batch_size: put a batch dimension of unknown size in front, unless `shape`
    has an unknown size already. What is fed is not checked against it; prefer
    `fluid.data`. Mirrors ``fluid.layers.data``.

    >>> import fluidx as fluid
    >>> fluid.layers.data("image", [3, 8, 8]).shape
    (-1, 3, 8, 8)
    """
    if not isinstance(name, str):
        raise TypeError(f"layers.data: name must be a string, got {name!r}")
    if not is_integer(lod_level):
        raise TypeError(f"layers.data: lod_level must be an integer, got {lod_level!r}")
    sizes = data_shape(shape, "layers.data")
    if append_batch_size and all(s >= 0 for s in sizes):
        sizes = [-1, *sizes]
    return LayerHelper("data", name=name).create_global_data(
        name, sizes, as_dtype(dtype), lod_level, type, stop_gradient, False
    )


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Append an op that reads a variable from a file each time it runs.

    out: the variable. file_path: one that the op `save`, or `fluid.io.save_vars`,
    wrote. load_as_fp16: convert what is read to half precision. Mirrors
    ``fluid.layers.load``.

    TypeError: the path is no string. (The reference's op has no output, and fails.)

    >>> import os, tempfile
    >>> import fluidx as fluid, numpy as np
    >>> w = fluid.layers.create_global_var(
    ...     [2], 3.0, "float32", persistable=True, name="w")
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> folder = tempfile.TemporaryDirectory()
    >>> fluid.io.save_vars(exe, folder.name, vars=[w])
    >>> with fluid.program_guard(fluid.Program()):
    ...     again = fluid.layers.create_tensor("float32", name="again")
    ...     fluid.layers.load(again, os.path.join(folder.name, "w"))
    ...     exe.run(fluid.default_main_program(), fetch_list=[again])[0].tolist()
    [3.0, 3.0]
    >>> folder.cleanup()
    """
    if not isinstance(file_path, str):
        raise TypeError(f"layers.load: file_path must be a string, got {file_path!r}")
    attrs: dict[str, Any] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = bool(load_as_fp16)
    LayerHelper("load").append_op(type="load", outputs={"Out": [out]}, attrs=attrs)
