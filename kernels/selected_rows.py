"""Sparse rows of a tall tensor: the gradient of a large embedding table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .rows import add_rows

__all__ = ["SelectedRows"]


@dataclass
class SelectedRows:
    """Some rows of a (height, ...) tensor; a row may appear several times.

    rows: int64 array (n,). value: array (n, ...). height: rows of the whole.
    Mirrors ``core.SelectedRows``.

    >>> SelectedRows(np.array([1, 1]), np.ones((2, 3), "f4"), 4).to_dense()[1]
    array([2., 2., 2.], dtype=float32)
    """

    rows: Any
    value: Any
    height: int

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor that it stands for."""
        return (self.height, *self.value.shape[1:])

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.value.nbytes)

    def merged(self, xp: Any = np) -> SelectedRows:
        """The same with each row once, in ascending order, duplicates added up."""
        rows, inverse = self._distinct(xp)
        if len(rows) == len(self.rows):
            order = xp.argsort(self.rows)
            return SelectedRows(self.rows[order], self.value[order], self.height)
        total = xp.zeros((len(rows), *self.value.shape[1:]), self.value.dtype)
        add_rows(xp, total, inverse.reshape(-1), self.value)
        return SelectedRows(rows, total, self.height)

    def _distinct(self, xp: Any) -> tuple[Any, Any]:
        """The rows once each, ascending, and where each given one is among them."""
        if self.height > 16 * len(self.rows):
            found, inverse = xp.unique(self.rows, return_inverse=True)
            return found, inverse
        # marking is an order faster than sorting while the table is not too tall
        present = xp.zeros(self.height, bool)
        present[self.rows] = True
        rows = xp.flatnonzero(present)
        place = xp.empty(self.height, rows.dtype)
        place[rows] = xp.arange(len(rows))
        return rows, place[self.rows]

    def to_dense(self, xp: Any = np) -> Any:
        """The whole (height, ...) tensor, zero where no row is given."""
        dense = xp.zeros(self.shape, self.value.dtype)
        add_rows(xp, dense, self.rows, self.value)
        return dense
