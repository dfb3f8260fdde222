"""Members of a cluster that exchange values outside of any program.

One member hosts a `Board` at an endpoint that all know; each, the host included, has
a `Member`, which brings its part of a gathering and gets the parts of all. Role makers
build their barriers, reductions and gathers on that.

Every wait is bounded: after the deadline the board tells all who came who did not; a
member that left, or whose connection broke, fails what waits for it at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .config import RpcConfig
from .errors import ClusterError, PeerLost, WaitTimeout, WireError
from .transport import Arrived, Network, Transport, Worker, network
from .wire import Kind, Message, decode, encode

__all__ = ["Board", "Member"]

_PAUSE = 0.2  # how long the board is deaf to `close`
_MARGIN = 5.0  # a board that is there answers before its members give up


@dataclass
class _Gathering:
    """Parts that came so far. peers: whom to answer, and the number of the question."""

    members: list[str]
    since: float
    what: str
    parts: dict[str, Message] = field(default_factory=dict)
    peers: dict[str, Any] = field(default_factory=dict)

    def missing(self) -> list[str]:
        return [m for m in self.members if m not in self.parts]


class Board:
    """Listens at `endpoint` in a thread of its own, until `close`.

    ClusterError: the endpoint cannot be had.
    """

    def __init__(self, endpoint: str, config: RpcConfig, on: Network) -> None:
        self.config = config
        self._transport: Transport = on.server(endpoint, config)
        self._open: dict[tuple[str, int], _Gathering] = {}
        self._names: dict[Any, str] = {}  # peer -> member
        self._gone: dict[str, str] = {}  # member -> why
        self._met: set[str] = set()  # groups that were complete once
        self._closing = False
        self._worker: Worker = on.spawn("board", self._run)

    def close(self) -> None:
        """End, once what was answered is on its way."""
        self._closing = True
        self._worker.join(self.config.deadline)

    def _run(self) -> None:
        try:
            while not self._closing:
                for event in self._transport.poll(_PAUSE):
                    if isinstance(event, Arrived):
                        self._arrived(event)
                    elif event.peer in self._names:
                        name = self._names.pop(event.peer)
                        self._gone.setdefault(name, "its connection broke")
                self._judge()
        finally:
            self._transport.close()

    def _arrived(self, event: Arrived) -> None:
        try:
            message = decode(event.frames)
        except WireError as error:
            self._tell(event.peer, Message(Kind.FAIL, text=f"the board: {error}"))
            return
        if message.kind is Kind.COMPLETE:
            self._gone[self._names.pop(event.peer, "")] = "it has left"
        if message.kind is not Kind.PUSH or len(message.names) < 3:
            return
        group, name, *members = message.names
        self._names[event.peer] = name
        self._gone.pop(name, None)
        key = group, message.seq
        now = self._transport.now()
        gathering = self._open.setdefault(key, _Gathering(members, now, message.text))
        gathering.parts[name], gathering.peers[name] = message, event.peer
        if (gathering.members, gathering.what) != (members, message.text):
            mine, others = f"{message.text} of {members}", gathering.members
            text = f"{name} came for {mine}, others for {gathering.what} of {others}"
            self._fail(key, text)
            return
        if not gathering.missing():
            self._met.add(group)
            self._answer(self._open.pop(key))

    def _answer(self, gathering: _Gathering) -> None:
        # as a list: the same arrays go to everybody
        values = [
            (str(at), value)
            for at, member in enumerate(gathering.members)
            for _, value in gathering.parts[member].values
        ]
        for name, peer in gathering.peers.items():
            seq = gathering.parts[name].seq
            self._tell(peer, Message(Kind.VALUES, seq=seq, values=values))

    def _judge(self) -> None:
        """Fail what cannot come any more, or takes too long."""
        now = self._transport.now()
        for key, gathering in list(self._open.items()):
            missing = gathering.missing()
            gone = [m for m in missing if m in self._gone]
            bound = self.config.deadline
            if key[0] not in self._met:
                bound = max(bound, self.config.start_deadline)
            if gone:
                self._fail(key, f"{gone[0]} does not come: {self._gone[gone[0]]}")
            elif now - gathering.since >= bound:
                names = ", ".join(missing)
                self._fail(key, f"{names} did not come within {bound:g} s")

    def _fail(self, key: tuple[str, int], text: str) -> None:
        gathering = self._open.pop(key)
        for name, peer in gathering.peers.items():
            seq = gathering.parts[name].seq
            self._tell(peer, Message(Kind.FAIL, seq=seq, text=text))

    def _tell(self, peer: Any, message: Message) -> None:
        try:
            self._transport.send(peer, encode(message, self.config.limits), wait=False)
        except PeerLost:
            self._gone[self._names.pop(peer, "")] = "its connection broke"


class Member:
    """One member, by name. endpoint: of the board. hosts: whether it is here.

    Errors of `gather` are ClusterErrors: who was waited for, for what, how long.
    """

    def __init__(
        self, name: str, endpoint: str, hosts: bool, config: RpcConfig | None = None
    ) -> None:
        self.name, self.endpoint = name, endpoint
        self.config = config or RpcConfig.from_env()
        self._on = network()
        self._board = Board(endpoint, self.config, self._on) if hosts else None
        self._transport: Transport | None = None
        self._counts: dict[str, int] = {}

    def gather(
        self, group: str, members: Sequence[str], value: Any, what: str
    ) -> list[Any]:
        """What all members came with, in their order; each brings one value.

        value: an array, or what JSON can say. TypeError: something else. what: said
        in errors; the same for all members.
        """
        parts = [("kind", np.zeros(0, np.uint8)), ("value", value)]
        if not isinstance(value, (np.ndarray, np.generic)):
            parts = [("kind", np.zeros(1, np.uint8)), ("value", _as_json(value))]
        else:
            parts[1] = ("value", np.ascontiguousarray(value))
        seq = self._counts[group] = self._counts.get(group, 0) + 1
        names = [group, self.name, *members]
        question = Message(Kind.PUSH, seq=seq, names=names, values=parts, text=what)
        transport = self._connected()
        transport.send(self.endpoint, encode(question, self.config.limits))
        answer = self._wait(transport, what, seq)
        values = [v for _, v in answer.values]
        return [_value(k, v) for k, v in zip(values[::2], values[1::2])]

    def _connected(self) -> Transport:
        if self._transport is None:
            self._transport = self._on.trainer(self.config)
            self._transport.connect(self.endpoint)
        return self._transport

    def _wait(self, transport: Transport, what: str, seq: int) -> Message:
        bound = max(self.config.deadline, self.config.start_deadline) + _MARGIN
        until = transport.now() + bound
        what = f"{self.name} waited for {what}"
        while (left := until - transport.now()) > 0:
            for event in transport.poll(min(left, 1.0)):
                if not isinstance(event, Arrived):
                    text = f"{what}: the board at {self.endpoint} is gone"
                    raise PeerLost(text)
                message = decode(event.frames)
                if message.kind is Kind.FAIL:
                    late = "did not come within" in message.text
                    kind = WaitTimeout if late else ClusterError
                    raise kind(f"{what}: {message.text}")
                if message.kind is Kind.VALUES and message.seq == seq:
                    return message
        raise WaitTimeout(
            f"{what}: no board answered at {self.endpoint} for {bound:g} s"
        )

    def close(self) -> None:
        """Leave. May be called again."""
        transport, self._transport = self._transport, None
        if transport is not None:
            message = Message(Kind.COMPLETE, names=[])
            try:
                frames = encode(message, self.config.limits)
                transport.send(self.endpoint, frames, wait=False)
            except ClusterError:
                pass
            finally:
                transport.close()
        board, self._board = self._board, None
        if board is not None:
            board.close()


def _as_json(value: Any) -> Any:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"workers exchange arrays and what JSON can say, not {value!r:.60}: {error}"
        ) from None
    return np.frombuffer(text.encode(), np.uint8)


def _value(kind: Any, value: Any) -> Any:
    """What was sent; an array is the receiver's own."""
    if len(kind) == 0:
        return np.array(value)
    return json.loads(np.asarray(value).tobytes())
