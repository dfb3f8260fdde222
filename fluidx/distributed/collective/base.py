"""What all backends of collective ops share: rings, sparse rows, traffic, messages.

A backend brings a `World` (which ranks there are, and how a ring is made) and a
`Ring` (six primitives on dense arrays). What ops see is the `Group` and `World` of
`fluidx.kernels.context`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidx.distributed.errors import ClusterError
from fluidx.kernels import SelectedRows

__all__ = ["REDUCTIONS", "BaseWorld", "Ring", "Traffic", "described", "how_to_start"]

#: reduction -> numpy's function
REDUCTIONS = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}


@dataclass
class Traffic:
    """Collective calls of this process, and the bytes of their arguments."""

    calls: int = 0
    bytes: int = 0


def described(what: str, values: Sequence[Any], names: Sequence[str]) -> str:
    """One line for messages, the same on every rank that runs the same op."""
    first = values[0]
    if len(values) == 1:
        return f"{what} of {names[0]} {first.dtype}{list(first.shape)}"
    size = sum(v.size for v in values)
    return (
        f"{what} of {len(values)} variables, {names[0]} to {names[-1]}, "
        f"{first.dtype}, {size} elements"
    )


def how_to_start(nranks: int) -> str:
    """For a program of several ranks that runs alone."""
    return (
        f"this program is one of {nranks} ranks, but its process was started alone. "
        f"Start it with: fluidx launch --collective --workers {nranks} SCRIPT, or: "
        f"mpiexec -n {nranks} python SCRIPT (extra mpi: pip install 'fluidx[mpi]')"
    )


class Ring(ABC):
    """A `fluidx.kernels.context.Group`; backends fill in the primitives.

    label: the same on all members, and on no other ring.
    """

    def __init__(self, ring_id: int, rank: int, nranks: int, label: str) -> None:
        self.ring_id = ring_id
        self.rank = rank
        self.nranks = nranks
        self.label = label
        self.traffic: dict[str, Traffic] = {}

    def _count(self, what: str, values: Sequence[Any]) -> None:
        entry = self.traffic.setdefault(what, Traffic())
        entry.calls += 1
        entry.bytes += sum(v.nbytes for v in values)

    # what ops call

    def all_reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        """See `fluidx.kernels.context.Group`."""
        if op not in REDUCTIONS:
            raise ClusterError(f"all_reduce knows {', '.join(REDUCTIONS)}, not {op!r}")
        results: list[Any] = [None] * len(values)
        dense = []
        for place, value in enumerate(values):
            if value.__class__ is SelectedRows:
                if op != "sum":
                    raise ClusterError(
                        f"all_reduce {op} of {names[place]}: sparse rows can be "
                        "summed only"
                    )
                results[place] = self._join_rows(value, names[place])
            else:
                dense.append(place)
        if dense:
            some = [values[i] for i in dense]
            self._count("all_reduce", some)
            made = self._reduce(some, op, [names[i] for i in dense])
            for place, value in zip(dense, made):
                results[place] = value
        return results

    def broadcast(self, value: Any, root: int, name: str) -> Any:
        """See `fluidx.kernels.context.Group`."""
        if not 0 <= root < self.nranks:
            raise ClusterError(
                f"broadcast of {name}: root {root}, but {self} has {self.nranks} ranks"
            )
        if value.__class__ is SelectedRows:
            raise ClusterError(f"broadcast of {name}: sparse rows are not supported")
        self._count("broadcast", [value])
        return self._broadcast(value, root, name)

    def all_gather(self, value: Any, name: str) -> Any:
        """See `fluidx.kernels.context.Group`."""
        self._count("all_gather", [value])
        return self._gather(value, name)

    def reduce_scatter(self, value: Any, name: str) -> Any:
        """See `fluidx.kernels.context.Group`."""
        if value.shape[0] % self.nranks:
            raise ClusterError(
                f"reduce_scatter of {name}: {value.shape[0]} rows for {self.nranks} "
                "ranks"
            )
        self._count("reduce_scatter", [value])
        return self._reduce_scatter(value, name)

    def _join_rows(self, value: SelectedRows, name: str) -> SelectedRows:
        self._count("all_reduce", [value.rows, value.value])
        rows = self._gather_uneven(value.rows, f"{name} (rows)")
        whole = self._gather_uneven(value.value, f"{name} (values)")
        return SelectedRows(rows, whole, value.height)

    def __str__(self) -> str:
        return f"ring {self.ring_id}"

    # what a backend knows; names are for messages

    @abstractmethod
    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]: ...

    @abstractmethod
    def _broadcast(self, value: Any, root: int, name: str) -> Any: ...

    @abstractmethod
    def _gather(self, value: Any, name: str) -> Any: ...

    @abstractmethod
    def _gather_uneven(self, value: Any, name: str) -> Any:
        """Along axis 0, of which each rank may have another length."""

    @abstractmethod
    def _reduce_scatter(self, value: Any, name: str) -> Any: ...

    @abstractmethod
    def barrier(self) -> None: ...

    def settle(self) -> None:  # noqa: B027
        """Wait until the device has done what this ring was asked; CPU: it has."""

    def close(self) -> None:  # noqa: B027
        """Free what the ring holds."""


class BaseWorld(ABC):
    """The rings of one process. rank, nranks: its place among all processes."""

    rank = 0
    nranks = 1

    def __init__(self) -> None:
        self._rings: dict[int, tuple[Any, Ring]] = {}

    def ring_key(self, name: str, rank: int, endpoints: Sequence[str]) -> Any:
        """See `fluidx.kernels.context.World`; most backends need no key."""
        return tuple(endpoints)

    def open_ring(
        self, ring_id: int, rank: int, nranks: int, key: Any = None, inner: int = 0
    ) -> None:
        """See `fluidx.kernels.context.World`."""
        facts = (rank, nranks, inner)
        known = self._rings.pop(ring_id, None)
        if known is not None:
            if known[0] == facts:
                self._rings[ring_id] = known
                return
            known[1].close()
        self._check(rank, nranks)
        if inner and (nranks % inner or nranks == inner):
            raise ClusterError(f"{nranks} ranks do not make inner rings of {inner}")
        self._rings[ring_id] = (facts, self._open(ring_id, rank, nranks, key, inner))

    def open_alone(self, ring_id: int) -> None:
        """See `fluidx.kernels.context.World`."""
        from .alone import AloneRing

        self._rings[ring_id] = ((0, 1, 0), AloneRing(ring_id))

    def group(self, ring_id: int) -> Ring:
        """See `fluidx.kernels.context.World`."""
        found = self._rings.get(ring_id)
        if found is None:
            raise ClusterError(
                f"ring {ring_id} has no communicator: was the startup program run? "
                f"(open rings: {sorted(self._rings) or 'none'})"
            )
        return found[1]

    def has(self, ring_id: int) -> bool:
        """Whether a ring is open."""
        return ring_id in self._rings

    def settle(self, ring_id: int | None) -> None:
        """See `fluidx.kernels.context.World`."""
        for number, (_, ring) in self._rings.items():
            if ring_id in (None, number):
                ring.settle()

    def traffic(self) -> dict[int, dict[str, Traffic]]:
        """ring -> kind of collective -> calls and bytes."""
        return {number: dict(r.traffic) for number, (_, r) in self._rings.items()}

    def close(self) -> None:
        """Close all rings."""
        rings, self._rings = self._rings, {}
        for _, ring in rings.values():
            ring.close()

    def _check(self, rank: int, nranks: int) -> None:
        """Whether a program's idea of the ranks fits what was started."""
        if (rank, nranks) != (self.rank, self.nranks):
            raise ClusterError(
                f"this program was made for rank {rank} of {nranks}, but its process "
                f"was started as rank {self.rank} of {self.nranks} (PADDLE_TRAINER_ID "
                "and PADDLE_TRAINERS_NUM tell)"
            )

    def _open(self, ring_id: int, rank: int, nranks: int, key: Any, inner: int) -> Ring:
        """A ring of all ranks, flat or hierarchical; all ranks come here together."""
        if not inner:
            return self._make(ring_id, range(nranks), f"{ring_id}", key)
        from .hierarchical import HierarchicalRing

        first = rank - rank % inner
        here = range(first, first + inner)
        inside = self._make(ring_id, here, f"{ring_id}-inner-{first}", key)
        heads = range(0, nranks, inner)
        outside = self._make(ring_id, heads, f"{ring_id}-outer", key)
        whole = self._make(ring_id, range(nranks), f"{ring_id}", key)
        return HierarchicalRing(whole, inside, outside if rank == first else None)

    @abstractmethod
    def _make(self, ring_id: int, members: range, label: str, key: Any) -> Ring:
        """A ring of these ranks; all ranks come here, members or not, together."""
