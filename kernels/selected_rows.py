"""Sparse rows of a tall tensor: the gradient of a large embedding table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
        rows, inverse = xp.unique(self.rows, return_inverse=True)
        if len(rows) == len(self.rows):
            order = xp.argsort(self.rows)
            return SelectedRows(self.rows[order], self.value[order], self.height)
        width = int(np.prod(self.value.shape[1:], dtype=np.int64))
        total = xp.zeros(len(rows) * width, self.value.dtype)
        # one flat scatter: numpy's ufunc.at is fast for one dimension only
        index = (inverse.reshape(-1, 1) * width + xp.arange(width)).reshape(-1)
        xp.add.at(total, index, self.value.reshape(-1))
        return SelectedRows(
            rows, total.reshape(len(rows), *self.value.shape[1:]), self.height
        )

    def to_dense(self, xp: Any = np) -> Any:
        """The whole (height, ...) tensor, zero where no row is given."""
        dense = xp.zeros(self.shape, self.value.dtype)
        xp.add.at(dense, self.rows, self.value)
        return dense
