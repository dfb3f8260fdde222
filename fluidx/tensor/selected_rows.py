"""Some rows of a tall tensor, as scripts read and set them (``core.SelectedRows``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows

from .lod_tensor import Cell, LoDTensor

__all__ = ["HeldRows"]


class HeldRows:
    """The `SelectedRows` that a variable holds; setting changes the variable.

    rows: which rows; a row may appear several times. height: rows of the whole.

    >>> held = HeldRows([1, 3], 5)
    >>> held.get_tensor().set(np.ones((2, 4), "float32"))
    >>> held.rows(), held.height(), held.numel(), held.to_dense().shape
    ([1, 3], 5, 8, (5, 4))
    """

    def __init__(
        self, rows: Sequence[int] = (), height: int = 0, cell: Cell | None = None
    ) -> None:
        self._cell = cell or Cell()
        if not isinstance(self._cell.value, SelectedRows):
            self._cell.value = SelectedRows(np.array(rows, "int64"), None, height)

    @property
    def value(self) -> SelectedRows:
        """What kernels are given."""
        return self._cell.value  # type: ignore[no-any-return]

    def rows(self) -> list[int]:
        return self.value.rows.tolist()  # type: ignore[no-any-return]

    def set_rows(self, rows: Sequence[int]) -> None:
        self.value.rows = np.array(rows, "int64")

    def height(self) -> int:
        return int(self.value.height)

    def set_height(self, height: int) -> None:
        self.value.height = int(height)

    def get_tensor(self) -> LoDTensor:
        """The rows' values, one below the other."""
        return LoDTensor(cell=_Values(self.value))

    def numel(self) -> int:
        """Elements of the rows that are there."""
        return 0 if self.value.value is None else int(self.value.value.size)

    def sync_index(self) -> None:
        """Nothing to do: rows are found without an index."""

    def to_dense(self) -> Any:
        """The whole tensor, zero where no row is given."""
        return self.value.to_dense()

    def __repr__(self) -> str:
        return f"SelectedRows({self.value!r})"


class _Values(Cell):
    """Lets a tensor stand for the values of selected rows."""

    __slots__ = ("_of",)

    def __init__(self, of: SelectedRows) -> None:
        self._of = of
        self.lod = None

    @property
    def value(self) -> Any:
        return self._of.value

    @value.setter
    def value(self, array: Any) -> None:
        self._of.value = array
