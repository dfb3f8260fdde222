"""One rank: every collective op gives back what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.distributed.errors import ClusterError

from .base import BaseWorld, Ring, how_to_start

__all__ = ["AloneRing", "AloneWorld"]


class AloneRing(Ring):
    """A ring of one rank."""

    def __init__(self, ring_id: int) -> None:
        super().__init__(ring_id, 0, 1, f"{ring_id}")

    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        return [v.copy() for v in values]

    def _broadcast(self, value: Any, root: int, name: str) -> Any:
        return value.copy()

    def _gather(self, value: Any, name: str) -> Any:
        return value.copy()

    _gather_uneven = _reduce_scatter = _gather

    def barrier(self) -> None:
        pass


class AloneWorld(BaseWorld):
    """A process that was started by itself."""

    def _check(self, rank: int, nranks: int) -> None:
        if nranks > 1:
            raise ClusterError(how_to_start(nranks))

    def _make(self, ring_id: int, members: range, label: str, key: Any) -> Ring:
        return AloneRing(ring_id)
