"""Communicators: what stands between a trainer's `send` and `recv` ops and its servers.

`Background` (async) merges and sends in a thread of its own. `Batches` (half-async)
merges what one step sent and exchanges it at the end of the step. `GeoExchange`
(Geo-SGD) pushes differences every so many steps. ``fluidx.communicator.Communicator``
starts and stops them; a role has one at a time.
"""

from __future__ import annotations

from typing import Any

from fluidx.distributed.transport import current_network

from .background import Background
from .batches import Batches, Straight
from .geo import GeoExchange, PushedVar
from .settings import Settings

__all__ = [
    "Background",
    "Batches",
    "GeoExchange",
    "PushedVar",
    "Settings",
    "Straight",
    "is_running",
    "running",
    "start",
    "stop",
]

# by network: a process has one role, an in-process cluster many
_running: dict[Any, Any] = {}


def running(role: Any) -> Any:
    """The communicator that runs in a role (its `current_network`), or None."""
    return _running.get(role)


def is_running(own: Any) -> bool:
    """Whether it was started and not stopped."""
    return any(own is c for c in _running.values())


def start(own: Any) -> None:
    """Make it the one of the role that runs here; RuntimeError if there is one."""
    role = current_network.get()
    if _running.setdefault(role, own) is not own:
        raise RuntimeError("another Communicator is running: stop() it first")


def stop(own: Any) -> None:
    """End it: what it holds is sent, then it is the one of no role any more."""
    if not is_running(own):
        return
    try:
        own.end()
    finally:
        _forget(own)


def _forget(own: Any) -> None:
    for role in [r for r, c in _running.items() if c is own]:
        del _running[role]
