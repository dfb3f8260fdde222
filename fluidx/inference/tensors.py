"""`ZeroCopyTensor`: an input or output of a predictor, written and read in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.executor.cuda import to_host
from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor.lod_tensor import Cell

from .values import PaddleDType, dtype_of, plain_array

__all__ = ["ZeroCopyTensor"]


class ZeroCopyTensor:
    """A variable of a predictor (``core.ZeroCopyTensor``).

    From `get_input_tensor` or `get_output_tensor`; it stays valid from run to run.
    """

    __slots__ = ("_cell", "_name", "_shape", "_xp")
    _name: str
    _cell: Cell
    _xp: Any
    _shape: list[int]

    def __init__(self, *arguments: Any) -> None:
        raise TypeError(
            "ZeroCopyTensor: use a predictor's get_input_tensor(name) or "
            "get_output_tensor(name)"
        )

    @classmethod
    def _of(cls, name: str, cell: Cell, xp: Any) -> ZeroCopyTensor:
        made = cls.__new__(cls)
        made._name, made._cell, made._xp = name, cell, xp
        made._shape = [0]
        return made

    def copy_from_cpu(self, data: Any) -> None:
        """Set the value to a copy of an array of float32, int32 or int64.

        Its shape becomes the variable's. TypeError: another dtype.
        """
        array = plain_array(data, f"ZeroCopyTensor {self._name!r}")
        self._cell.value = self._xp.array(array, order="C")

    def copy_to_cpu(self) -> Any:
        """A copy of the value. EnforceNotMet: it has none yet."""
        return np.array(to_host(self._value()))

    def reshape(self, shape: Sequence[int]) -> None:
        """Announce a shape; a value that is there is kept as far as it reaches."""
        new = [int(size) for size in shape]
        value, count = self._cell.value, int(np.prod(new)) if new else 1
        if value is not None and 0 <= count <= value.size and min(new, default=0) >= 0:
            self._cell.value = value.reshape(-1)[:count].reshape(new)
        else:
            self._cell.value, self._shape = None, new

    def shape(self) -> list[int]:
        """The value's shape; without a value what `reshape` said, or [0]."""
        value = self._cell.value
        return list(self._shape if value is None else value.shape)

    def type(self) -> PaddleDType:
        """EnforceNotMet: it has no value. TypeError: of a dtype that has no name."""
        return dtype_of(self._value(), f"variable {self._name!r}")

    def lod(self) -> list[list[int]]:
        return [list(level) for level in self._cell.lod or ()]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of each level."""
        self._cell.lod = [list(map(int, level)) for level in lod] or None

    def _value(self) -> Any:
        value = self._cell.value
        if value is None:
            raise EnforceNotMet(
                f"ZeroCopyTensor {self._name!r} has no value yet: an input is set by "
                "copy_from_cpu(array), an output by zero_copy_run()"
            )
        if not hasattr(value, "dtype"):
            kind = value.__class__.__name__
            raise EnforceNotMet(f"variable {self._name!r} is no tensor but {kind}")
        return value
