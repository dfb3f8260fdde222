"""Reductions in three legs: inside inner rings, between their first ranks, and back.

Less travels between machines where an inner ring is one machine. The sums are those
of a flat ring, but for the rounding of another order of adding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Ring

__all__ = ["HierarchicalRing"]


class HierarchicalRing(Ring):
    """whole: a flat ring of the same ranks, for what is no reduction. inside: the
    inner ring; outside: that of the inner rings' first ranks (None on others)."""

    def __init__(self, whole: Ring, inside: Ring, outside: Ring | None) -> None:
        super().__init__(whole.ring_id, whole.rank, whole.nranks, whole.label)
        self._whole, self._inside, self._outside = whole, inside, outside

    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        sums = self._inside._reduce(values, op, names)
        if self._outside is not None:
            sums = self._outside._reduce(sums, op, names)
        return [self._inside._broadcast(v, 0, n) for v, n in zip(sums, names)]

    def _broadcast(self, value: Any, root: int, name: str) -> Any:
        return self._whole._broadcast(value, root, name)

    def _gather(self, value: Any, name: str) -> Any:
        return self._whole._gather(value, name)

    def _gather_uneven(self, value: Any, name: str) -> Any:
        return self._whole._gather_uneven(value, name)

    def _reduce_scatter(self, value: Any, name: str) -> Any:
        return self._whole._reduce_scatter(value, name)

    def barrier(self) -> None:
        self._whole.barrier()

    def settle(self) -> None:
        self._whole.settle()

    def close(self) -> None:
        for ring in (self._whole, self._inside, self._outside):
            if ring is not None:
                ring.close()
