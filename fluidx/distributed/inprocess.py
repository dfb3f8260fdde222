"""A whole cluster in one process, deterministic, with faults on demand.

Each role is a function in its own thread, but only one runs at a time: where it waits
for a message, the baton goes to a role drawn by a seeded generator. Time is virtual:
it passes only when every role waits, so that a bound of 180 s is reached at once.

    cluster = InProcessCluster(seed=3)
    cluster.delay("trainer-1", "pserver-0", 0.5)
    cluster.crash("trainer-1", after=10)
    results = cluster.run({"pserver-0": serve, "trainer-0": train, ...})
"""

from __future__ import annotations

import contextvars
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .config import RpcConfig
from .counting import Counters, use_counters
from .errors import ClusterError, PeerLost
from .inprocess_lock import TurnCondition
from .transport import (
    Arrived,
    Event,
    Lost,
    Network,
    Transport,
    Worker,
    current_network,
)

__all__ = ["ClusterFailure", "InProcessCluster", "sleep"]


class Crash(BaseException):
    """Ends a role as a killed process would end."""


class ClusterFailure(ClusterError):
    """Roles failed. errors: role -> its error, in the order of failing."""

    def __init__(self, errors: Mapping[str, BaseException]) -> None:
        self.errors = dict(errors)
        lines = [f"{r}: {type(e).__name__}: {e}" for r, e in self.errors.items()]
        super().__init__("\n".join(lines))


@dataclass
class _Role:
    """One role: its thread, the baton it waits for, when it wants to wake.

    parent: the role that this is a second thread of. watching: whose messages wake it.
    """

    name: str
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None
    wake: float | None = 0.0
    parent: _Role | None = None
    watching: _End | None = None
    ends: list[_End] = field(default_factory=list)
    turns: int = 0
    crash_after: int | None = None
    crashed: bool = False
    over: bool = False
    counters: Counters = field(default_factory=Counters)


class InProcessCluster:
    """See the module. `trace` lists (virtual time, role) for every turn taken.

    latency: bounds of the seeded random delay of every message, in seconds.
    """

    def __init__(
        self, seed: int = 0, latency: tuple[float, float] = (1e-4, 1e-3)
    ) -> None:
        self.trace: list[tuple[float, str]] = []
        self._random = random.Random(seed)
        self._latency = latency
        self._now = 0.0
        self._roles: dict[str, _Role] = {}
        self._servers: dict[str, _End] = {}
        self._unclaimed: dict[str, list[tuple[_End, Event]]] = {}
        self._main = threading.Semaphore(0)
        self._delays: dict[tuple[str, str], float] = {}
        self._losses: dict[tuple[str, str], set[int]] = {}
        self._posted: dict[tuple[str, str], int] = {}
        self._crashes: dict[str, int] = {}

    # faults

    def delay(self, source: str, target: str, seconds: float) -> None:
        """Messages from one role to another take so much longer."""
        self._delays[source, target] = seconds

    def lose(self, source: str, target: str, *numbers: int) -> None:
        """These messages (counted from 0) of one role to another never arrive."""
        self._losses.setdefault((source, target), set()).update(numbers)

    def crash(self, role: str, after: int) -> None:
        """The role dies when it would take its turn number `after`."""
        self._crashes[role] = after

    # running

    def run(self, roles: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Run all roles to their end; their results, or ClusterFailure.

        A role that `crash` ended counts as failed, as do those that notice.
        """
        self._roles = {name: _Role(name) for name in roles}
        results: dict[str, Any] = {}
        errors: dict[str, BaseException] = {}
        for name, body in roles.items():
            role = self._roles[name]
            role.crash_after = self._crashes.get(name)
            self._start(role, body, results, errors)
        while self._pass_baton():
            pass
        for role in self._roles.values():
            assert role.thread is not None
            role.thread.join()
        if errors:
            raise ClusterFailure(errors) from next(iter(errors.values()))
        return results

    def stats(self) -> dict[str, dict[str, Any]]:
        """What each role sent and received: see `fluidx.distributed.stats`."""
        own = {n: r for n, r in self._roles.items() if r.parent is None}
        return {n: r.counters.as_dict() for n, r in own.items()}

    def _start(
        self,
        role: _Role,
        body: Callable[[], Any],
        results: dict[str, Any],
        errors: dict[str, BaseException],
    ) -> None:
        role.thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._live, role, body, results, errors),
            name=role.name,
            daemon=True,
        )
        role.thread.start()

    def spawn(self, parent: _Role, name: str, body: Callable[[], None]) -> _Role:
        """A second thread of a role; it dies when the role ends."""
        own = _Role(f"{parent.name}/{name}", parent=parent, counters=parent.counters)
        self._roles[own.name] = own
        own.wake = self._now
        self._start(own, body, {}, {})
        return own

    def _live(
        self,
        role: _Role,
        body: Callable[[], Any],
        results: dict[str, Any],
        errors: dict[str, BaseException],
    ) -> None:
        """A role's thread."""
        role.baton.acquire()
        current_network.set(_RoleNetwork(self, role))
        try:
            with use_counters(role.counters):
                results[role.name] = body()
        except BaseException as error:
            errors[role.name] = error
        finally:
            role.over = True
            for end in list(role.ends):
                end.hang_up()
            for other in self._roles.values():
                if other.parent is role and not other.over:
                    other.crashed, other.wake = True, self._now
            self._main.release()

    def _pass_baton(self) -> bool:
        """Let one role run until it waits; False when all are over."""
        living = [r for r in self._roles.values() if not r.over]
        if not living:
            return False
        ready = [r for r in living if self._due(r) <= self._now]
        if not ready:
            self._now = min(self._due(r) for r in living)
            if self._now == float("inf"):
                names = ", ".join(r.name for r in living)
                raise ClusterError(f"{names} wait for ever")
            return True
        role = self._random.choice(ready)
        role.turns += 1
        if role.crash_after is not None and role.turns > role.crash_after:
            role.crashed = True
        self.trace.append((self._now, role.name))
        role.baton.release()
        self._main.acquire()
        return True

    @staticmethod
    def _due(role: _Role) -> float:
        """When this role has something to do."""
        wake = float("inf") if role.wake is None else role.wake
        return min(wake, role.watching.next_arrival()) if role.watching else wake

    # what the ends use

    def wait(self, role: _Role, until: float, end: _End | None = None) -> None:
        """Give the baton away until then, or until something arrives at the end."""
        if role.crashed:
            raise Crash(f"{role.name} was crashed")
        role.wake, role.watching = until, end
        self._main.release()
        role.baton.acquire()
        role.wake = role.watching = None
        if role.crashed:
            raise Crash(f"{role.name} was crashed")

    def deliver(self, source: _End, target: _End | str, event: Event) -> None:
        """Put an event on its way; the order between two ends is kept.

        target: an endpoint where nobody has bound it yet.
        """
        if not isinstance(target, _End):
            self._unclaimed.setdefault(target, []).append((source, event))
            return
        key = (source.role.name, target.role.name)
        due = self._now + self._random.uniform(*self._latency)
        due += self._delays.get(key, 0.0)
        if isinstance(event, Arrived):
            number = self._posted[key] = self._posted.get(key, -1) + 1
            if number in self._losses.get(key, ()):
                return
        target.put(source, _Letter(due, event))

    def claim(self, endpoint: str, end: _End) -> None:
        """A server has bound its endpoint: it gets what was sent there."""
        self._servers[endpoint] = end
        for source, event in self._unclaimed.pop(endpoint, []):
            self.deliver(source, end, event)


@dataclass
class _Letter:
    due: float
    event: Event


class _RoleNetwork:
    """The `Network` of one role."""

    def __init__(self, cluster: InProcessCluster, role: _Role) -> None:
        self.cluster = cluster
        self.role = role

    def trainer(self, config: RpcConfig) -> Transport:
        return _End(self.cluster, self.role, None, config)

    def server(self, endpoint: str, config: RpcConfig) -> Transport:
        if endpoint in self.cluster._servers:
            raise ClusterError(f"endpoint {endpoint} is in use by another process")
        end = _End(self.cluster, self.role, endpoint, config)
        self.cluster.claim(endpoint, end)
        return end

    def condition(self) -> Any:
        return TurnCondition(self.cluster, lambda: _here(self.role))

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        return _Worker(self.cluster, self.cluster.spawn(self.role, name, body))

    def now(self) -> float:
        return self.cluster._now


def _here(role: _Role) -> _Role:
    """The role, or the second thread of it, that runs now."""
    found = current_network.get()
    return found.role if isinstance(found, _RoleNetwork) else role


class _Worker:
    def __init__(self, cluster: InProcessCluster, role: _Role) -> None:
        self.cluster, self.role = cluster, role

    def join(self, timeout: float) -> bool:
        cluster = self.cluster
        until = cluster._now + timeout
        while not self.role.over and cluster._now < until:
            # looks every millisecond of virtual time
            assert self.role.parent is not None
            cluster.wait(_here(self.role.parent), min(until, cluster._now + 1e-3))
        return self.role.over


class _End:
    """One role's transport. Frames are copied: nobody shares memory."""

    def __init__(
        self,
        cluster: InProcessCluster,
        role: _Role,
        endpoint: str | None,
        config: RpcConfig,
    ) -> None:
        self.cluster = cluster
        self.role = role
        self.endpoint = endpoint
        self.closed = False
        self._letters: list[_Letter] = []
        self._last: dict[Any, float] = {}
        self._peers: list[Any] = []
        self._beat: tuple[Callable[[], None], float] | None = None
        role.ends.append(self)

    @property
    def address(self) -> Any:
        return self.endpoint or self

    def _find(self, peer: Any) -> Any:
        """The other end: an `_End`, or an endpoint that nobody has bound yet."""
        if isinstance(peer, _End):
            return peer
        return self.cluster._servers.get(peer, peer)

    def connect(self, endpoint: str) -> None:
        if endpoint not in self._peers:
            self._peers.append(endpoint)

    def send(self, peer: Any, frames: Sequence[Any], wait: bool = True) -> None:
        if self.role.crashed:
            return  # a dead process sends nothing
        other = self._find(peer)
        if isinstance(other, _End):
            if other.closed:
                raise PeerLost("the peer is gone")
            if self.address not in other._peers:
                other._peers.append(self.address)
        copies = [bytearray(f) for f in frames]
        self.cluster.deliver(self, other, Arrived(self.address, copies))

    def put(self, source: _End, letter: _Letter) -> None:
        letter.due = max(letter.due, self._last.get(source, 0.0))
        self._last[source] = letter.due
        self._letters.append(letter)

    def next_arrival(self) -> float:
        return min((m.due for m in self._letters), default=float("inf"))

    def poll(self, timeout: float) -> list[Event]:
        cluster = self.cluster
        until = cluster._now + max(0.0, timeout)
        cluster.wait(_here(self.role), until, self)
        due = [m for m in self._letters if m.due <= cluster._now]
        self._letters = [m for m in self._letters if m.due > cluster._now]
        return [m.event for m in sorted(due, key=lambda m: m.due)]

    def now(self) -> float:
        return self.cluster._now

    def keep_alive(self, beat: Callable[[], None], pause: float) -> None:
        self._beat = (beat, pause)

    def beat(self) -> None:
        if self._beat is not None and not self.closed:
            self._beat[0]()

    def hang_up(self) -> None:
        """The connections end, as they do when a process is gone."""
        if self.closed:
            return
        self.closed = True
        self.role.ends.remove(self)
        if self.endpoint is not None:
            self.cluster._servers.pop(self.endpoint, None)
        for peer in self._peers:
            other = self._find(peer)
            if isinstance(other, _End) and not other.closed:
                self.cluster.deliver(self, other, Lost(self.address))

    def close(self, linger: float = 5.0) -> None:
        self.hang_up()


def sleep(seconds: float, alive: bool = True) -> None:
    """Let virtual time pass in a role; `alive`: its heartbeat goes on meanwhile."""
    found: Network | None = current_network.get()
    if not isinstance(found, _RoleNetwork):
        raise RuntimeError("sleep: not in a role of an InProcessCluster")
    cluster, role = found.cluster, found.role
    until = cluster._now + seconds
    while cluster._now < until:
        cluster.wait(role, min(until, cluster._now + 1.0))
        if alive:
            for end in role.ends:
                end.beat()
