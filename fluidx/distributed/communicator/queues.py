"""Gradients that wait to be sent, and how several become one."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows
from fluidx.kernels.distributed import addressed

from .settings import Settings

__all__ = ["Queue", "merge"]


@dataclass
class Queue:
    """What waits of one `send` op: a list of its variables' values per step."""

    names: Sequence[str]
    attrs: Mapping[str, Any]
    waiting: deque[list[Any]] = field(default_factory=deque)

    def put(self, values: Sequence[Any]) -> None:
        """Keep a copy: the trainer goes on to use the arrays."""
        addressed(self.names, list(values), self.attrs)  # what is wrong shows here
        self.waiting.append([deepcopy(v) for v in values])

    def take(self, most: int) -> list[list[Any]]:
        """The oldest, at most so many."""
        return [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]

    def pushed(
        self, taken: Sequence[Sequence[Any]], settings: Settings
    ) -> list[tuple[str, str, Any]]:
        """(endpoint, name, value) of what was taken, merged."""
        add = self.attrs["merge_add"] or settings.is_sgd_optimizer
        merged = [merge(v, add, settings.merge_sparse_grad) for v in zip(*taken)]
        return addressed(self.names, merged, self.attrs)


def merge(values: Sequence[Any], add: bool, unique: bool = True) -> Any:
    """One gradient for several of a variable: their sum (add) or mean.

    The rows of sparse ones are put together; unique: each row number then occurs once,
    in ascending order. A mean divides by the number of gradients, also where only
    some have a row.
    """
    first = values[0]
    if isinstance(first, SelectedRows):
        rows = np.concatenate([v.rows for v in values])
        value = np.concatenate([v.value for v in values])
        if not add and len(values) > 1:
            value = value / value.dtype.type(len(values))
        made = SelectedRows(rows, value, first.height)
        return made.merged() if unique else made
    if len(values) == 1:
        return first
    total = np.add.reduce(list(values))
    return total if add else total / total.dtype.type(len(values))
