"""What the ops `save`, `load` and their combined forms do (``ctx.files``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.executor.cuda import to_host
from fluidx.ir import Program
from fluidx.kernels import SelectedRows, VarType
from fluidx.tensor import Scope

from .errors import ModelFileError
from .paths import open_read, open_write
from .tensors import Reader, read_all, write_value

__all__ = ["OpFiles"]


class OpFiles:
    """Files as the ops of one run see them (`fluidx.kernels.context.Files`)."""

    def __init__(self, program: Program, scope: Scope, xp: Any) -> None:
        self._program = program
        self._scope = scope
        self._xp = xp

    def save(
        self,
        path: str,
        names: Sequence[str],
        values: Sequence[Any],
        lod: Any,
        overwrite: bool,
        as_fp16: bool,
    ) -> None:
        """Write variables into one file. ModelFileError: it is there already."""
        if not overwrite and os.path.exists(path):
            raise ModelFileError(f"{path!r} is there already, and overwrite is false")
        with open_write(path) as file:
            for place, (name, value) in enumerate(zip(names, values)):
                own = lod if place == 0 and lod else self._lod(name)
                write_value(file, _half(_on_host(value), as_fp16), own)

    def load(
        self,
        source: str | bytes,
        names: Sequence[str],
        as_fp16: bool,
        part: tuple[int, tuple[int, ...]] | None,
    ) -> list[Any]:
        """The values of these variables; their LoD goes to the scope."""
        found: dict[str, tuple[Any, Any]]
        if part is not None and isinstance(source, str):
            found = {names[0]: (_part(source, *part), None)}
        else:
            kinds = [(n, self._kind(n)) for n in names]
            if isinstance(source, bytes):
                found = read_all(source, "the given bytes", kinds)
            else:
                with open_read(source) as file:
                    found = read_all(file, source, kinds)
        for name, (_, lod) in found.items():
            var = self._scope.find_var(name)
            if var is not None:
                var.lod = lod
        return [self._placed(_half(value, as_fp16)) for value, _ in found.values()]

    def _lod(self, name: str) -> Any:
        var = self._scope.find_var(name)
        return var.lod if var is not None else None

    def _kind(self, name: str) -> int:
        for block in self._program.blocks:
            if name in block.vars:
                return block.vars[name].type
        return VarType.LOD_TENSOR

    def _placed(self, value: Any) -> Any:
        if self._xp is np or isinstance(value, SelectedRows):
            return value
        return self._xp.asarray(value)


def _on_host(value: Any) -> Any:
    if isinstance(value, SelectedRows):
        rows, data = to_host(value.rows), to_host(value.value)
        return SelectedRows(rows, data, value.height)
    return to_host(value)


def _half(value: Any, wanted: bool) -> Any:
    """As float16, where that is asked for and it is a tensor of floats."""
    if not wanted or isinstance(value, SelectedRows) or value.dtype.kind != "f":
        return value
    return value.astype(np.float16)


def _part(path: str, seek: int, shape: tuple[int, ...]) -> Any:
    """Elements from `seek` on of the one tensor of a file."""
    with open_read(path) as file:
        return Reader(file, path).part(seek, shape)
