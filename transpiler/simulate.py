"""A discrete-event simulation of one cluster: who computes, sends and waits, when.

Trainers and servers are generators that ask for processor time, post messages and wait
for their mail; links carry one message after the other, each way of each role at
`Network.bandwidth`. Nothing is random and no clock is read: a pure function.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .traffic import Message

__all__ = ["Network", "Simulated", "simulate"]


@dataclass(frozen=True)
class Network:
    """The machines, stated: seconds and bytes per second.

    bandwidth: of every role, each way (1.25e9: 10 Gbit/s). latency: of a message.
    compute: what a trainer computes per step. update: bytes per second that a server
    merges and updates. message: processor time that a message costs each side, beside
    copying its bytes at `copy` bytes per second. cores: 0: every role has a machine
    of its own; else all share one with so many cores.
    """

    bandwidth: float = 1.25e9
    latency: float = 50e-6
    compute: float = 10e-3
    update: float = 4e9
    message: float = 20e-6
    copy: float = float("inf")
    cores: int = 0

    def __post_init__(self) -> None:
        for name in ("bandwidth", "update", "copy"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Network.{name} must be above 0")
        for name in ("latency", "compute", "message", "cores"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"Network.{name} must not be negative")

    def handling(self, size: int) -> float:
        """Processor seconds to pack or unpack a message."""
        return self.message + size / self.copy


@dataclass(frozen=True)
class Simulated:
    """step: mean seconds of a step, the first (in which pipes fill) not counted.

    waiting: how much of it a trainer waits, on average. busy: role -> share of the time
    that its incoming or outgoing link, whichever more, carries bytes.
    """

    step: float
    waiting: float
    busy: Mapping[str, float]


_SHORT = 1e-3
# what a role may ask for: seconds of processor time, or (None) its next mail
_Life = Generator["float | None", Any, None]


@dataclass
class _Role:
    name: str
    life: _Life | None = None
    mail: deque[Any] = field(default_factory=deque)
    waits: bool = False
    out_free: float = 0.0
    in_free: float = 0.0
    out_busy: float = 0.0
    in_busy: float = 0.0


class _World:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.now = 0.0
        self.events: list[tuple[float, int, Any, Any]] = []
        self.number = 0
        self.cores = [0.0] * network.cores

    def at(self, time: float, act: Any, what: Any) -> None:
        self.number += 1
        heapq.heappush(self.events, (time, self.number, act, what))

    def run(self) -> None:
        while self.events:
            self.now, _, act, what = heapq.heappop(self.events)
            act(what)

    def go_on(self, pair: tuple[_Role, Any]) -> None:
        """Let a role live until it asks for something."""
        role, given = pair
        assert role.life is not None
        try:
            wish = role.life.send(given)
        except StopIteration:
            return
        if wish is not None:
            self.at(self._processor(wish), self.go_on, (role, None))
        elif role.mail:
            self.at(self.now, self.go_on, (role, role.mail.popleft()))
        else:
            role.waits = True

    def _processor(self, seconds: float) -> float:
        """When so much work, begun now, is done."""
        if not self.cores:
            return self.now + seconds
        end = max(self.now, self.cores[0]) + seconds
        heapq.heapreplace(self.cores, end)
        # a scheduler lets short work go ahead: who computes is held up by it
        return self.now + seconds if seconds <= _SHORT else end

    def post(self, source: _Role, target: _Role, size: int, what: Any) -> None:
        """Put a message onto the sender's link."""
        time = size / self.network.bandwidth
        begin = max(self.now, source.out_free)
        source.out_free = begin + time
        source.out_busy += time
        arrival = (target, time, source.out_free, what)
        self.at(begin + self.network.latency, self._arriving, arrival)

    def _arriving(self, arrival: tuple[_Role, float, float, Any]) -> None:
        """The first byte is there: the receiver's link takes the rest."""
        target, time, sent, what = arrival
        begin = max(self.now, target.in_free)
        target.in_free = max(begin + time, sent + self.network.latency)
        target.in_busy += time
        self.at(target.in_free, self._delivered, (target, what))

    def _delivered(self, pair: tuple[_Role, Any]) -> None:
        role, what = pair
        if role.waits:
            role.waits = False
            self.go_on((role, what))
        else:
            role.mail.append(what)


@dataclass
class _Trainer:
    """One trainer's life. ends: when each of its steps was over."""

    role: _Role
    rounds: Sequence[Sequence[Message]]
    ends: list[float] = field(default_factory=list)
    waited: float = 0.0

    def live(self, world: _World, servers: Mapping[str, _Role], steps: int) -> _Life:
        network = world.network
        for _ in range(steps):
            computed = False
            for round_ in self.rounds:
                if not computed and round_[0].kind != "LOOKUP":
                    yield network.compute
                    computed = True
                waiting = 0
                for message in round_:
                    yield network.handling(message.sent)
                    where = servers[message.server]
                    world.post(self.role, where, message.sent, (self.role, message))
                    waiting += message.answer is not None
                begun = world.now
                for _ in range(waiting):
                    size = yield None
                    yield network.handling(size)
                self.waited += world.now - begun
            if not computed:
                yield network.compute
            self.ends.append(world.now)


def _serve(world: _World, role: _Role, trainers: int, sync: bool) -> _Life:
    """A server's life: merge, update, answer."""
    network = world.network
    arrived = most = 0
    waiting: list[tuple[_Role, Message]] = []
    while True:
        source, message = yield None
        yield network.handling(message.sent)
        if message.kind == "LOOKUP":
            yield from _answer(world, role, source, message)
            continue
        arrived += message.payload_sent
        most = max(most, message.payload_sent)
        if sync and message.answer is not None:
            waiting.append((source, message))
            if len(waiting) < trainers:
                continue
        elif sync:
            continue
        # merging reads all that came; updating writes what one trainer's share covers
        yield (arrived + most) / network.update
        for who, question in waiting if sync else [(source, message)]:
            yield from _answer(world, role, who, question)
        arrived = most = 0
        waiting = []


def _answer(world: _World, role: _Role, to: _Role, message: Message) -> _Life:
    if message.answer is not None:
        yield world.network.handling(message.received)
        world.post(role, to, message.received, message.received)


def simulate(
    rounds: Sequence[Sequence[Message]],
    network: Network,
    *,
    trainers: int,
    servers: Sequence[str],
    sync: bool,
    steps: int = 3,
) -> Simulated:
    """Run `steps` steps of `trainers` equal trainers, each of which sends `rounds`."""
    world = _World(network)
    places = {name: _Role(name) for name in servers}
    for place in places.values():
        place.life = _serve(world, place, trainers, sync)
        world.at(0.0, world.go_on, (place, None))
    lives = [_Trainer(_Role(f"trainer-{i}"), rounds) for i in range(trainers)]
    for one in lives:
        one.role.life = one.live(world, places, steps)
        world.at(0.0, world.go_on, (one.role, None))
    world.run()
    first = sum(t.ends[0] for t in lives) / trainers
    last = sum(t.ends[-1] for t in lives) / trainers
    whole = max(t.ends[-1] for t in lives)
    roles = [*(t.role for t in lives), *places.values()]
    return Simulated(
        (last - first) / (steps - 1),
        sum(t.waited for t in lives) / trainers / steps,
        {r.name: max(r.in_busy, r.out_busy) / whole if whole else 0.0 for r in roles},
    )
