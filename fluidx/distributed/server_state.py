"""What a parameter server does, without doing it: events in, actions out.

`ServerState` knows trainers, rounds, barriers, completion and liveness. It touches no
socket, clock or array operation but scaling; the driver (`server`) hands it what
happened and performs the actions it returns, in order.

Synchronous: a round is complete when every trainer that has not closed has ended it,
with a barrier or (completely_not_async) by the end of its step; what a trainer says
after that is heard when the round is over. Asynchronous, and Geo-SGD: a gradient or
difference is applied as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows

from .config import RpcConfig
from .serve_spec import SYNC, ServeSpec, split_name
from .wire import Kind, Message, Value

__all__ = [
    "Action",
    "Answer",
    "Assign",
    "Fail",
    "Finish",
    "Run",
    "Save",
    "ServerState",
    "Tell",
]

_COUNTER = "@LR_DECAY_COUNTER@"


@dataclass(frozen=True)
class Assign:
    """Give a variable a value (None: none)."""

    name: str
    value: Value


@dataclass(frozen=True)
class Run:
    """Run these blocks, in order. trainer: whose gradient it is (asynchronous)."""

    blocks: Sequence[int]
    trainer: int = -1


@dataclass(frozen=True)
class Answer:
    """Send a trainer the values of variables, or of rows of them (name, rows)."""

    peer: Any
    question: Message
    names: Sequence[str] = ()
    rows: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True)
class Save:
    """Save the local slices of a table, then say so."""

    peer: Any
    question: Message


@dataclass(frozen=True)
class Tell:
    """Send a message that needs no variable."""

    peer: Any
    message: Message


@dataclass(frozen=True)
class Fail:
    """Tell every trainer why, and stop with an error."""

    reason: str


@dataclass(frozen=True)
class Finish:
    """All trainers are done."""


Action = Assign | Run | Answer | Save | Tell | Fail | Finish


@dataclass
class _Trainer:
    peer: Any = None
    heard: float = 0.0
    done: bool = False
    dropped: float | None = None
    # the message that ended this trainer's round, and when it came
    barrier: Message | None = None
    since: float = 0.0
    # what it said after that
    held: list[Message] = field(default_factory=list)


@dataclass
class ServerState:
    """The server's knowledge. `handle` and `tick` return what is to be done."""

    spec: ServeSpec
    config: RpcConfig
    started: float
    round: int = 0
    trainers: list[_Trainer] = field(default_factory=list)
    _peers: dict[Any, int] = field(default_factory=dict)
    _grads: dict[str, dict[int, Value]] = field(default_factory=dict)
    _steps: list[int] = field(default_factory=list)
    _rated: bool = False
    # completely_not_async: trainers tell that they made a step
    _counted: bool = False
    _over: bool = False

    def __post_init__(self) -> None:
        self.trainers = [_Trainer() for _ in range(self.spec.fanin)]
        self._steps = [0] * self.spec.fanin

    @property
    def _me(self) -> str:
        return f"pserver {self.spec.endpoint}"

    def peers(self) -> list[Any]:
        """The trainers that would hear a message: connected and not done."""
        return [
            t.peer
            for t in self.trainers
            if t.peer is not None and not t.done and t.dropped is None
        ]

    def name_of(self, peer: Any) -> str:
        """The trainer behind a peer, for people."""
        known = self._peers.get(peer)
        return "an unknown peer" if known is None else f"trainer-{known}"

    # events

    def handle(self, peer: Any, message: Message, now: float) -> list[Action]:
        """A message came."""
        if self._over:
            return []
        refused = self._admit(peer, message, now)
        if refused is not None:
            return [Tell(peer, Message(Kind.FAIL, text=refused))]
        if message.kind is Kind.PING:
            return []
        entry = self.trainers[message.trainer]
        if entry.barrier is not None and message.kind is not Kind.ABORT:
            entry.held.append(message)
            return []
        return self._hear(message, now)

    def _hear(self, message: Message, now: float) -> list[Action]:
        trainer = message.trainer
        peer = self.trainers[trainer].peer
        if message.kind is Kind.PUSH:
            return self._push(trainer, message, now)
        if message.kind is Kind.LOOKUP:
            return [Answer(peer, message, rows=message.values)]
        if message.kind is Kind.CHECKPOINT:
            return [Save(peer, message)]
        if message.kind is Kind.COMPLETE:
            return self._complete(trainer, now)
        if message.kind is Kind.ABORT:
            return self._fail(f"trainer {trainer} gave up: {message.text}")
        return []  # HELLO: that it came is all

    def lost(self, peer: Any, now: float) -> list[Action]:
        """A connection broke; what it delivered before may still come."""
        known = self._peers.get(peer)
        if known is not None and self.trainers[known].dropped is None:
            self.trainers[known].dropped = now
        return []

    def tick(self, now: float) -> list[Action]:
        """Time has passed: is somebody late?"""
        if self._over:
            return []
        for bound, reason in self._bounds():
            if now >= bound:
                return self._fail(reason)
        return []

    def next_timer(self) -> float:
        """When `tick` has something to look at, at the latest."""
        return min((bound for bound, _ in self._bounds()), default=float("inf"))

    # how they are dealt with

    def _fail(self, reason: str) -> list[Action]:
        self._over = True
        return [Fail(reason)]

    def _admit(self, peer: Any, message: Message, now: float) -> str | None:
        """Note who speaks; a text says why it may not."""
        number = message.trainer
        if not 0 <= number < self.spec.fanin:
            return (
                f"{self._me} expects {self.spec.fanin} trainers: "
                f"there is no trainer {number}"
            )
        trainer = self.trainers[number]
        if trainer.peer is None:
            trainer.peer = peer
            self._peers[peer] = number
        elif trainer.peer != peer:
            return f"{self._me}: another process already is trainer {number}"
        if trainer.done:
            return f"{self._me}: trainer {number} has already closed"
        trainer.heard = now
        return None

    def _bounds(self) -> list[tuple[float, str]]:
        """Every wait that goes on: when it ends, and what is said then."""
        config = self.config
        waiting = [t for t in self.trainers if t.barrier is not None and not t.done]
        first = min((t.since for t in waiting), default=0.0)
        at = f"in round {self.round}"
        found = []
        for number, trainer in enumerate(self.trainers):
            who = f"trainer {number}"
            if trainer.done:
                continue
            if trainer.dropped is not None:
                bound = trainer.dropped + config.drop_grace
                text = (
                    f"{who} died or ended without exe.close(): its connection to "
                    f"{self._me} broke {at}"
                )
            elif trainer.peer is None:
                bound = self.started + config.start_deadline
                text = (
                    f"{self._me} waited {config.start_deadline:g} s for {who}, "
                    "which never appeared"
                )
            elif waiting and trainer.barrier is None:
                bound = first + config.deadline
                text = (
                    f"{self._me} waited {config.deadline:g} s for the gradients of "
                    f"{who} {at}"
                )
                silent = trainer.heard + config.deadline
                if silent < bound:
                    bound, text = silent, self._silence(who, at)
            else:
                bound, text = trainer.heard + config.deadline, self._silence(who, at)
            found.append((bound, text))
        return found

    def _silence(self, who: str, at: str) -> str:
        return (
            f"{self._me} has heard nothing of {who} for {self.config.deadline:g} s {at}"
        )

    def _push(self, trainer: int, message: Message, now: float) -> list[Action]:
        for name, _ in message.values:
            if not self._known(name, trainer):
                return self._fail(
                    f"{self._me} has no gradient {name}, which trainer {trainer} sent: "
                    "were the roles transpiled alike?"
                )
        if self.spec.mode != SYNC:
            return self._apply(trainer, message)
        for name, value in message.values:
            base = split_name(name)[0]
            if base == _COUNTER:
                self._counted = True
            else:
                self._grads.setdefault(base, {})[trainer] = value
        if message.barrier or message.ends:
            entry = self.trainers[trainer]
            entry.barrier = message
            entry.since = now
            return self._end_round(now)
        if message.names:
            return [Answer(self.trainers[trainer].peer, message, message.names)]
        return []

    def _known(self, name: str, trainer: int) -> bool:
        base, of = split_name(name)
        if of is not None and of != trainer:
            return False
        if base == _COUNTER:
            return True
        return (base, trainer) in self.spec.sinks

    def _complete(self, trainer: int, now: float) -> list[Action]:
        self.trainers[trainer].done = True
        self.trainers[trainer].barrier = None
        actions = self._end_round(now)
        if self._over:
            return actions
        if all(t.done for t in self.trainers):
            self._over = True
            actions.append(Finish())
        return actions

    def _end_round(self, now: float) -> list[Action]:
        """If nobody is missing: the learning rate, the updates, the answers."""
        open_ = [t for t in self.trainers if not t.done]
        if not open_ or any(t.barrier is None for t in open_):
            return []
        spec = self.spec
        actions: list[Action] = []
        filled: list[str] = []
        for base, values in self._grads.items():
            factor = spec.fanin / len(values)
            for trainer in range(spec.fanin):
                sink = spec.sinks.get((base, trainer))
                if sink is not None:
                    value = values.get(trainer)
                    actions.append(Assign(sink, _scaled(value, factor)))
                    filled.append(sink)
        idle = {b for g, b in spec.blocks.items() if not self._grads.get(g)}
        blocks = [b for b in spec.order if b not in idle]
        if self._counted:  # the trainers' counters, of which the schedule takes the sum
            number = spec.lr_start + self.round + 1
            actions += _counts([number] + [0] * (spec.fanin - 1))
        if spec.lr_block >= 0:
            blocks.insert(0, spec.lr_block)
        actions.append(Run(blocks))
        actions += [Assign(name, None) for name in filled]
        self._grads = {}
        self.round += 1
        for entry in open_:
            ended, entry.barrier = entry.barrier, None
            assert ended is not None
            if ended.barrier or ended.names:
                actions.append(Answer(entry.peer, ended, ended.names))
        for entry in open_:
            held, entry.held = entry.held, []
            for message in held:
                actions += self.handle(entry.peer, message, now)
        return actions

    def _apply(self, trainer: int, message: Message) -> list[Action]:
        """Asynchronous: each gradient at once, at the rate of the step it is from."""
        actions: list[Action] = []
        grads = []
        for name, value in message.values:
            if split_name(name)[0] == _COUNTER:
                actions += self._count(trainer, value)
            else:
                grads.append((split_name(name)[0], value))
        if self.spec.lr_block >= 0 and grads and not self._rated:
            self._rated = True
            if not actions:  # a rate without a counter, or one that is still to come
                actions.append(Run([self.spec.lr_block], trainer))
        for base, value in grads:
            actions.append(Assign(self.spec.sinks[base, trainer], value))
            block = self.spec.blocks.get(base)
            if block is not None:
                actions.append(Run([block], trainer))
            self.round += 1
        if message.names or message.barrier:
            peer = self.trainers[trainer].peer
            actions.append(Answer(peer, message, message.names))
        return actions

    def _count(self, trainer: int, value: Value) -> list[Action]:
        """A trainer has made a step (or several): the schedule counts those of all.

        The first step of a lone trainer is number 1, whatever the schedule's first
        number is locally: so the reference does it (observed).
        """
        self._steps[trainer] += int(np.sum(value))
        actions = _counts(self._steps)
        if self.spec.lr_block >= 0:
            actions.append(Run([self.spec.lr_block], trainer))
        return actions


def _counts(steps: Sequence[int]) -> list[Action]:
    """Tell how many steps each trainer has made."""
    return [
        Assign(f"{_COUNTER}.trainer_{i}", np.array([n], np.int64))
        for i, n in enumerate(steps)
    ]


def _scaled(value: Value, factor: float) -> Value:
    """The block divides by all trainers: make up for those that gave nothing."""
    if value is None or factor == 1:
        return value
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows, value.value * factor, value.height)
    return value * factor
