"""Collective ops between the roles of an `InProcessCluster`: the oracle of the others.

Ranks meet at every op and compare what they are about to run, so that collectives in
different orders are an error at once and not a wait. Results are added up in rank
order: the same numbers in every run.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import ClusterError, PeerLost, WaitTimeout
from fluidx.distributed.inprocess import InProcessCluster

from .base import REDUCTIONS, BaseWorld, Ring, described

__all__ = ["InProcessRing", "InProcessWorld", "world_of"]


@dataclass
class _Meeting:
    """One collective of one ring: what each member brought."""

    text: str
    values: dict[int, Any] = field(default_factory=dict)
    left: int = 0


@dataclass
class _Hall:
    """All that the ranks of one cluster share. doing: rank -> what it waits in."""

    worlds: dict[str, InProcessWorld] = field(default_factory=dict)
    meetings: dict[tuple[str, int], _Meeting] = field(default_factory=dict)
    doing: dict[int, str] = field(default_factory=dict)
    roles: dict[int, Any] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    failure: ClusterError | None = None


_halls: weakref.WeakKeyDictionary[InProcessCluster, _Hall] = weakref.WeakKeyDictionary()


def world_of(network: Any) -> InProcessWorld:
    """The world of the role that runs here; network: its `_RoleNetwork`."""
    hall = _halls.setdefault(network.cluster, _Hall())
    world = hall.worlds.get(network.role.name)
    if world is None or world.role is not network.role:
        world = InProcessWorld(network.cluster, network.role, hall)
        hall.worlds[network.role.name] = world
    return world


class _Door:
    """An end of a role, by which the hall learns that the role is over."""

    def __init__(self, world: InProcessWorld) -> None:
        self._world = world

    def next_arrival(self) -> float:
        return float("inf")

    def beat(self) -> None:
        pass

    def hang_up(self) -> None:
        self._world.role.ends.remove(self)
        self._world.leave()


class InProcessWorld(BaseWorld):
    """A role's rings. Its rank is what its first ring says."""

    def __init__(self, cluster: InProcessCluster, role: Any, hall: _Hall) -> None:
        super().__init__()
        self.role = role
        self.config = RpcConfig.from_env()
        self._cluster, self._hall = cluster, hall
        self.nranks = 0
        role.ends.append(_Door(self))

    def _check(self, rank: int, nranks: int) -> None:
        if not self.nranks:
            self.rank, self.nranks = rank, nranks
            self._hall.roles[rank] = self.role
        super()._check(rank, nranks)

    def _make(self, ring_id: int, members: range, label: str, key: Any) -> Ring:
        return InProcessRing(self, ring_id, members, label)

    def leave(self) -> None:
        """This rank's role is over: who waits for it learns so."""
        if self.nranks:
            self._hall.gone.add(self.rank)
            self._wake()

    def _wake(self) -> None:
        for role in self._hall.roles.values():
            if role is not self.role and role.wake is not None:
                role.wake = self._cluster._now

    def meet(
        self, key: tuple[str, int], members: range, text: str, value: Any
    ) -> list[Any]:
        """Bring a value to a collective; all members' values, in rank order."""
        hall, me = self._hall, f"rank {self.rank}, ring {key[0]}, collective {key[1]}"
        meeting = hall.meetings.setdefault(key, _Meeting(text))
        if meeting.text != text:
            theirs = "; ".join(f"rank {r}: {meeting.text}" for r in meeting.values)
            hall.failure = ClusterError(
                f"the ranks run different collectives: {me}: {text}; but {theirs}"
            )
            self._wake()
            raise hall.failure
        # a copy: ranks that leave first go on with theirs
        meeting.values[self.rank] = None if value is None else value.copy()
        hall.doing[self.rank] = f"collective {key[1]} of ring {key[0]}, {text}"
        until = self._cluster._now + self.config.deadline
        if len(meeting.values) == len(members):
            self._wake()
        while len(meeting.values) < len(members):
            self._fail(me, text, members, meeting, until)
            self._cluster.wait(self.role, until)
        del hall.doing[self.rank]
        meeting.left += 1
        if meeting.left == len(members):
            del hall.meetings[key]
        return [meeting.values[r] for r in members]

    def _fail(
        self, me: str, text: str, members: range, meeting: _Meeting, until: float
    ) -> None:
        """Raise where the meeting will not take place."""
        hall = self._hall
        if hall.failure is not None:
            raise hall.failure
        missing = [r for r in members if r not in meeting.values]
        gone = [r for r in missing if r in hall.gone]
        if gone:
            raise PeerLost(f"{me}: {text}: rank {gone[0]} has ended")
        if self._cluster._now >= until:
            where = [f"rank {r} is in {hall.doing.get(r, 'none')}" for r in missing]
            raise WaitTimeout(
                f"{me}: {text}: waited for {self.config.deadline:g} s; "
                f"{'; '.join(where)}"
            )


class InProcessRing(Ring):
    """A ring of roles."""

    def __init__(
        self, world: InProcessWorld, ring_id: int, members: range, label: str
    ) -> None:
        inside = world.rank in members
        rank = members.index(world.rank) if inside else -1
        super().__init__(ring_id, rank, len(members), label)
        self._world, self._members = world, members
        self._sequence = 0

    def _all(self, text: str, value: Any) -> list[Any]:
        self._sequence += 1
        key = (self.label, self._sequence)
        return self._world.meet(key, self._members, text, value)

    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        results = []
        for value, name in zip(values, names):
            text = described(f"all_reduce {op}", [value], [name])
            results.append(_reduced(self._all(text, value), REDUCTIONS[op]))
        return results

    def _broadcast(self, value: Any, root: int, name: str) -> Any:
        text = described(f"broadcast from {root}", [value], [name])
        return self._all(text, value)[root].copy()

    def _gather(self, value: Any, name: str) -> Any:
        text = described("all_gather", [value], [name])
        return np.concatenate(self._all(text, value))

    def _gather_uneven(self, value: Any, name: str) -> Any:
        text = f"all_gather of {name} {value.dtype}{list(value.shape[1:])} by rank"
        return np.concatenate(self._all(text, value))

    def _reduce_scatter(self, value: Any, name: str) -> Any:
        text = described("reduce_scatter", [value], [name])
        whole = _reduced(self._all(text, value), np.add)
        rows = value.shape[0] // self.nranks
        return whole[self.rank * rows : (self.rank + 1) * rows].copy()

    def barrier(self) -> None:
        self._all("barrier", None)


def _reduced(values: list[Any], function: Callable[..., Any]) -> Any:
    """Combined in rank order; what has less than 32 bits in float32."""
    first = values[0]
    if len(values) == 1:
        return first.copy()
    if first.dtype.char in "bBhHiIlLqQfdFD":
        return np.asarray(functools.reduce(function, values))
    wide = [v.astype(np.float32) for v in values]
    return functools.reduce(function, wide).astype(first.dtype)
