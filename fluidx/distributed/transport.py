"""What client and server need of a transport, and which one they get.

A transport carries messages (lists of frames) between a server, named by its
endpoint, and its trainers. It has a clock, so that the in-process transport can
have a virtual one, and tells what happened as events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from .config import RpcConfig

__all__ = [
    "Arrived",
    "Event",
    "Lost",
    "Network",
    "Transport",
    "Worker",
    "current_network",
    "network",
]


@dataclass(frozen=True)
class Arrived:
    """A message. peer: the server's endpoint, or the server's name for a trainer."""

    peer: Any
    frames: Sequence[Any]


@dataclass(frozen=True)
class Lost:
    """The connection to this peer broke (or was closed by it)."""

    peer: Any


Event = Arrived | Lost


class Transport(Protocol):
    """One role's end of its connections. Not for several threads at once."""

    def connect(self, endpoint: str) -> None:
        """Trainers only: make ready to talk to a server; it need not run yet."""
        ...

    def send(self, peer: Any, frames: Sequence[Any], wait: bool = True) -> None:
        """Queue a message. Arrays in it must stay as they are until the peer has
        it. PeerLost: nobody is there, or (with `wait`, after the deadline) the
        peer takes nothing more."""
        ...

    def poll(self, timeout: float) -> list[Event]:
        """Wait for events for at most `timeout` seconds; [] if none came."""
        ...

    def now(self) -> float:
        """Seconds on this transport's clock."""
        ...

    def keep_alive(self, beat: Callable[[], None], pause: float) -> None:
        """Call `beat` from time to time while the role does other things."""
        ...

    def close(self, linger: float = 5.0) -> None:
        """Let what was sent get through, for at most `linger` seconds, then close."""
        ...


class Worker(Protocol):
    """A thread that `Network.spawn` started."""

    def join(self, timeout: float) -> bool:
        """Wait for its end; whether it came."""
        ...


class Network(Protocol):
    """Makes transports: `zmq_transport` or an in-process cluster."""

    def trainer(self, config: RpcConfig) -> Transport: ...

    def server(self, endpoint: str, config: RpcConfig) -> Transport:
        """Bind; ClusterError (one line) where the endpoint cannot be had."""
        ...

    def condition(self) -> Any:
        """A re-entrant lock that one can wait on, as `threading.Condition`."""
        ...

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        """Run `body` beside the role, in a thread that ends with it."""
        ...

    def now(self) -> float:
        """Seconds on the clock of the transports."""
        ...


# set in the role threads of an in-process cluster
current_network: ContextVar[Network | None] = ContextVar("fluidx_network", default=None)


def network() -> Network:
    """The network of the role that runs here: ZeroMQ, unless a cluster says else."""
    found = current_network.get()
    if found is None:
        from .zmq_transport import ZmqNetwork  # pyzmq only where it is used

        return ZmqNetwork()
    return found
