"""What each rank is doing, where the others can see it.

MPI says nothing of a rank that is late or runs another op: it waits. So each rank
writes the op that it is in to its slot of a shared memory; one that has waited for
long looks at the others' slots, and can say who is where, or that it waits in vain.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["SLOT", "Board", "Sight"]

SLOT = 512
_HEAD = 40
_RUNS, _ENDED = 1, 2


@dataclass(frozen=True)
class Sight:
    """One rank as seen by another. count: collectives begun; text: the last one;
    inside: it has not come out of it."""

    rank: int
    count: int
    text: str
    inside: bool
    ended: bool
    dead: bool

    def __str__(self) -> str:
        if self.dead:
            return f"rank {self.rank} is dead"
        if self.ended:
            return f"rank {self.rank} has ended after {self.count} collectives"
        if not self.count:
            return f"rank {self.rank} has not begun"
        where = "is in" if self.inside else "has done"
        return f"rank {self.rank} {where} collective {self.count}: {self.text}"


class Board:
    """The slots of the ranks on this machine. slots: rank -> `SLOT` bytes, shared."""

    def __init__(self, rank: int, slots: Mapping[int, Any]) -> None:
        self.rank = rank
        self.text = ""
        self._slots = {r: memoryview(b).cast("B") for r, b in slots.items()}
        heads = {r: np.frombuffer(b, np.int64, 5) for r, b in self._slots.items()}
        self._heads = heads
        self._own, self._head = self._slots[rank], heads[rank]
        self._head[:] = (0, os.getpid(), _RUNS, 0, 0)

    @property
    def count(self) -> int:
        """Collectives that this rank has begun."""
        return int(self._head[0])

    def enter(self, text: str) -> None:
        """This rank begins a collective."""
        raw = text.encode()[: SLOT - _HEAD]
        self.text = text
        self._own[_HEAD : _HEAD + len(raw)] = raw
        head = self._head
        head[3] = len(raw)
        head[4] = 1
        head[0] += 1

    def leave(self) -> None:
        """It has come out of it."""
        self._head[4] = 0

    def end(self) -> None:
        """This rank takes part in nothing any more."""
        self._head[2] = _ENDED

    def others(self) -> list[Sight]:
        """The other ranks of this machine, as they are now."""
        return [self._see(rank) for rank in self._slots if rank != self.rank]

    def _see(self, rank: int) -> Sight:
        head = self._heads[rank]
        while True:
            count, pid, state, length, inside = (int(n) for n in head)
            raw = bytes(self._slots[rank][_HEAD : _HEAD + length])
            if int(head[0]) == count:  # the text is that of this count
                break
        ended = state == _ENDED
        dead = bool(pid) and not ended and not _alive(pid)
        text = raw.decode(errors="replace")
        return Sight(rank, count, text, bool(inside), ended, dead)

    def gone(self) -> Sight | None:
        """A rank that will not come to the collective that this one is in."""
        for seen in self.others():
            if seen.dead or (seen.ended and seen.count < self.count):
                return seen
        return None

    def elsewhere(self) -> Sight | None:
        """A rank that is in another collective of the same number."""
        for seen in self.others():
            if seen.inside and seen.count == self.count and seen.text != self._cut():
                return seen
        return None

    def _cut(self) -> str:
        return self.text.encode()[: SLOT - _HEAD].decode(errors="replace")


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
