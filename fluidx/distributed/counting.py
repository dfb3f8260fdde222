"""Bytes and messages that a role sent and received, by peer and kind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from .wire import Kind

__all__ = ["Counters", "counters", "use_counters"]


class Counters:
    """Counts of one role: (peer, kind) -> [messages, bytes] for each direction."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, Kind], list[int]] = {}
        self.received: dict[tuple[str, Kind], list[int]] = {}

    @staticmethod
    def _add(
        table: dict[tuple[str, Kind], list[int]], key: tuple[str, Kind], size: int
    ) -> None:
        entry = table.get(key)
        if entry is None:
            entry = table[key] = [0, 0]
        entry[0] += 1
        entry[1] += size

    def count_sent(self, peer: str, kind: Kind, frames: Sequence[Any]) -> None:
        self._add(self.sent, (peer, kind), _size(frames))

    def count_received(self, peer: str, kind: Kind, frames: Sequence[Any]) -> None:
        self._add(self.received, (peer, kind), _size(frames))

    def as_dict(self) -> dict[str, Any]:
        """See `fluidx.distributed.stats`."""
        result: dict[str, Any] = {}
        peers: dict[str, Any] = {}
        for way, table in (("sent", self.sent), ("received", self.received)):
            result[f"{way}_messages"] = sum(c[0] for c in table.values())
            result[f"{way}_bytes"] = sum(c[1] for c in table.values())
            for (peer, kind), (messages, size) in table.items():
                entry = peers.setdefault(peer, {"sent": {}, "received": {}})
                entry[way][kind.name] = {"messages": messages, "bytes": size}
        result["peers"] = peers
        return result


def _size(frames: Sequence[Any]) -> int:
    return sum(len(f) for f in frames)


_process = Counters()
_current: ContextVar[Counters | None] = ContextVar("fluidx_counters", default=None)


def counters() -> Counters:
    """The counters of the role that runs here."""
    return _current.get() or _process


@contextlib.contextmanager
def use_counters(own: Counters) -> Iterator[None]:
    """Count apart inside (of this thread): one role of an in-process cluster."""
    token = _current.set(own)
    try:
        yield
    finally:
        _current.reset(token)
