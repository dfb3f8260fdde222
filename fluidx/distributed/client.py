"""A trainer's line to its servers (``ctx.rpc``)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from . import communicator, flows
from .config import RpcConfig
from .counting import counters
from .errors import ClusterError, PeerLost, WaitTimeout, WireError
from .transport import Arrived, Network, Transport, current_network, network
from .wire import Kind, Message, Value, decode, encode

__all__ = ["Client"]

# a server's own bound comes first: it knows better who is late
_MARGIN = 5.0


@dataclass
class _Pending:
    """What was pushed for one server and has not left yet."""

    values: list[tuple[str, Value]] = field(default_factory=list)
    size: int = 0


@dataclass
class _Server:
    """One server as the trainer sees it."""

    pending: _Pending = field(default_factory=_Pending)
    # whether gradients were pushed since this trainer's round last ended here
    open: bool = False
    answered: bool = False
    # whether a round has ended: then every other trainer has started, too
    started: bool = False
    lost: float | None = None


class Client:
    """Speaks for one trainer. Every wait is bounded and says for whom it waits."""

    def __init__(
        self, config: RpcConfig | None = None, on: Network | None = None
    ) -> None:
        self.config = config or RpcConfig.from_env()
        self._network = on or network()
        self._transport: Transport | None = None
        self._servers: dict[str, _Server] = {}
        self._trainer: int | None = None
        self._seq = 0
        self._step = 0
        self._failure: ClusterError | None = None
        self._closed = False
        self._beaten = 0.0
        # held while the transport is used: heartbeat and communicator share it
        self._lock = self._network.condition()
        self._role = current_network.get()
        self._geo: Any = None
        self._counters = counters()

    # what kernels call

    def register(self, endpoints: Sequence[str], trainer_id: int) -> None:
        """Say hello to servers that this trainer has not met yet."""
        with self._lock:
            self._be(trainer_id)
            for endpoint in endpoints:
                self._server(endpoint)

    def push(self, endpoint: str, name: str, value: Value) -> None:
        """Queue a gradient; it leaves with the next exchange, or when enough wait."""
        with self._lock:
            self._check()
            server = self._server(endpoint)
            server.open = True
            pending = server.pending
            pending.values.append((name, value))
            pending.size += value.nbytes
            if pending.size >= self.config.flush and self._trainer is not None:
                self._flush(endpoint)

    def exchange(
        self,
        barriers: Sequence[str],
        wanted: Sequence[tuple[str, str]],
        trainer_id: int,
    ) -> list[Value]:
        """One round trip per server: see `fluidx.kernels.context.Rpc`."""
        with self._lock:
            self._be(trainer_id)
            by_server: dict[str, list[int]] = {e: [] for e in barriers}
            for place, (endpoint, _) in enumerate(wanted):
                by_server.setdefault(endpoint, []).append(place)
            if barriers or any(s.open for s in self._servers.values()):
                self._step += 1
            asked = {}
            for endpoint, places in by_server.items():
                names = [wanted[i][1] for i in places]
                asked[endpoint] = self._take(endpoint, endpoint in barriers, names)
            for endpoint, server in self._servers.items():
                if server.open:
                    self._end(endpoint, asked.get(endpoint))
            answers = self._ask(asked)
            result: list[Value] = [None] * len(wanted)
            for endpoint, places in by_server.items():
                for place, (_, value) in zip(places, answers[endpoint].values):
                    result[place] = value
            return result

    def checkpoint(
        self, endpoints: Sequence[str], folder: str, table: str, trainer_id: int
    ) -> None:
        """See `fluidx.kernels.context.Rpc`. ClusterError: a server cannot."""
        with self._lock:
            self._be(trainer_id)
            asked = {}
            for endpoint in endpoints:
                self._server(endpoint)
                self._flush(endpoint)
                more = {"names": [table], "text": folder}
                asked[endpoint] = self._message(Kind.CHECKPOINT, **more)
            for answer in self._ask(asked).values():
                if answer.text:
                    raise ClusterError(answer.text)

    @property
    def trainer(self) -> int:
        """The number of the trainer that this speaks for."""
        if self._trainer is None:  # only sends so far: they carry no number
            return int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        return self._trainer

    def flush(self) -> None:
        """Let everything that was pushed leave, and wait for nobody. What was pushed
        must not be changed any more."""
        with self._lock:
            self._be(self.trainer)
            for endpoint in self._servers:
                self._flush(endpoint)

    def between(self, ctx: Any) -> Any:
        """See `fluidx.kernels.context.Rpc`: the communicator of this role, if any."""
        plan = ctx.program._parameters_on_pservers
        running = communicator.running(self._role)
        if running is not None:
            return running.between(self, ctx)
        if plan is None or not plan.setting.geo:
            return None
        if self._geo is None:
            self._geo = communicator.GeoExchange.of_plan(plan)
        return self._geo.between(self, ctx)

    def lookup(
        self, requests: Sequence[tuple[str, str, Any]], trainer_id: int
    ) -> list[Any]:
        """Rows of tables: (endpoint, table, row numbers) each gives an array."""
        with self._lock:
            self._be(trainer_id)
            asked: dict[str, Message] = {}
            places: dict[str, list[int]] = {}
            for place, (endpoint, table, rows) in enumerate(requests):
                if endpoint not in asked:
                    self._flush(endpoint)
                    asked[endpoint] = self._message(Kind.LOOKUP)
                    places[endpoint] = []
                asked[endpoint].values.append((table, rows))
                places[endpoint].append(place)
            answers = self._ask(asked)
            result: list[Any] = [None] * len(requests)
            for endpoint, where in places.items():
                for place, (_, value) in zip(where, answers[endpoint].values):
                    result[place] = value
            return result

    def close(self) -> None:
        """Tell every server that this trainer is done. May be called again.

        What a communicator still holds is sent before.
        """
        try:
            if not self._closed:
                self._finish()
        finally:
            self._leave()

    def _finish(self) -> None:
        """Let communicators send what they hold."""
        running = communicator.running(self._role)
        if running is not None and running.serves(self):
            failed = self._failure is not None
            with contextlib.suppress(*[ClusterError] * failed):
                communicator.stop(running)
        elif self._geo is not None and self._failure is None:
            self._geo.finish()

    def _leave(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._transport is None:
                return
            if self._failure is None:
                with contextlib.suppress(PeerLost):
                    for endpoint in self._servers:
                        self._flush(endpoint)
                        self._send(endpoint, self._message(Kind.COMPLETE))
        self._transport.close()

    # how

    def _be(self, trainer_id: int) -> None:
        self._check()
        if self._trainer is None:
            self._trainer = trainer_id
        elif self._trainer != trainer_id:
            raise ClusterError(
                f"this executor speaks for trainer {self._trainer}; a program of "
                f"trainer {trainer_id} needs its own"
            )

    def _check(self) -> None:
        if self._closed:
            raise ClusterError("the executor is closed: it has left the cluster")
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))

    def _server(self, endpoint: str) -> _Server:
        found = self._servers.get(endpoint)
        if found is None:
            if self._transport is None:
                self._transport = self._network.trainer(self.config)
                self._transport.keep_alive(self._beat, self.config.heartbeat)
            self._transport.connect(endpoint)
            found = self._servers[endpoint] = _Server()
            if self._trainer is not None:
                self._send(endpoint, self._message(Kind.HELLO))
        return found

    def _message(self, kind: Kind, **more: Any) -> Message:
        self._seq += 1
        return Message(kind, self.trainer, self._seq, self._step, **more)

    def _take(self, endpoint: str, barrier: bool, names: list[str]) -> Message:
        """The message with everything that waits for this server."""
        server = self._server(endpoint)
        pending, server.pending = server.pending, _Pending()
        return self._message(
            Kind.PUSH, barrier=barrier, names=names, values=pending.values
        )

    def _flush(self, endpoint: str) -> None:
        """Send what waits."""
        if self._server(endpoint).pending.values:
            self._send(endpoint, self._take(endpoint, False, []))

    def _end(self, endpoint: str, message: Message | None) -> None:
        """This trainer's round ends on a server: in what it is asked, or else alone."""
        self._servers[endpoint].open = False
        if message is not None:
            message.ends = True
            return
        message = self._take(endpoint, False, [])
        message.ends = True
        # no answer will tell when the arrays have left
        message.values = [(n, deepcopy(v)) for n, v in message.values]
        self._send(endpoint, message)

    def _send(self, endpoint: str, message: Message, wait: bool = True) -> None:
        assert self._transport is not None
        frames = encode(message, self.config.limits)
        flows.left(message, f"trainer {message.trainer}")
        self._transport.send(endpoint, frames, wait)
        self._counters.count_sent(f"pserver {endpoint}", message.kind, frames)

    def _beat(self) -> None:
        """A sign of life, from the heartbeat's thread; a running wait gives its own."""
        if self._lock.acquire(blocking=False):
            try:
                self._pulse()
            finally:
                self._lock.release()

    def _pulse(self) -> None:
        if self._closed or self._failure is not None or self._transport is None:
            return
        now = self._transport.now()
        if now - self._beaten < self.config.heartbeat / 2:
            return
        self._beaten = now
        with contextlib.suppress(PeerLost):
            for endpoint in self._servers:
                self._send(endpoint, self._message(Kind.PING), wait=False)

    def _ask(self, asked: Mapping[str, Message]) -> dict[str, Message]:
        """Send the questions, wait for all answers."""
        try:
            for endpoint, message in asked.items():
                self._send(endpoint, message)
            return self._collect(asked)
        except ClusterError as error:
            self._give_up(error)
            raise

    def _collect(self, asked: Mapping[str, Message]) -> dict[str, Message]:
        transport = self._transport
        assert transport is not None
        answers: dict[str, Message] = {}
        begun = transport.now()
        while len(answers) < len(asked):
            now = transport.now()
            bounds = self._bounds(asked, answers, begun)
            timeout = min(bound for bound, _ in bounds) - now
            events = transport.poll(max(0.0, min(timeout, self.config.heartbeat)))
            for event in events:
                if isinstance(event, Arrived):
                    self._arrived(event, asked, answers)
                elif self._servers[event.peer].lost is None:
                    self._servers[event.peer].lost = transport.now()
            if not events:
                self._pulse()
                for bound, error in bounds:
                    if transport.now() >= bound:
                        raise error
        return answers

    def _arrived(
        self, event: Arrived, asked: Mapping[str, Message], answers: dict[str, Message]
    ) -> None:
        endpoint = event.peer
        try:
            message = decode(event.frames)
        except WireError as error:
            raise WireError(f"pserver {endpoint} sent what is none: {error}") from None
        self._counters.count_received(f"pserver {endpoint}", message.kind, event.frames)
        self._servers[endpoint].answered = True
        if message.kind is Kind.FAIL:
            raise ClusterError(message.text)
        question = asked.get(endpoint)
        if question is None or message.seq != question.seq:
            return
        expected = {Kind.PUSH: len(question.names), Kind.CHECKPOINT: 0}.get(
            question.kind, len(question.values)
        )
        if len(message.values) != expected:
            raise WireError(
                f"pserver {endpoint} answered {len(message.values)} of {expected} "
                "variables"
            )
        answers[endpoint] = message
        flows.arrived(message, f"trainer {message.trainer}")
        self._servers[endpoint].started |= question.barrier

    def _bounds(
        self,
        asked: Mapping[str, Message],
        answers: Mapping[str, Message],
        begun: float,
    ) -> list[tuple[float, ClusterError]]:
        """Every wait that goes on: when it ends, and with what error."""
        found: list[tuple[float, ClusterError]] = []
        for endpoint, server in self._servers.items():
            if server.lost is not None:
                text = f"pserver {endpoint} died: its connection broke while"
                what = self._waiting(asked.get(endpoint))
                found.append(
                    (server.lost + self.config.drop_grace, PeerLost(f"{text} {what}"))
                )
            elif endpoint in asked and endpoint not in answers:
                bound = self.config.deadline
                if not (server.started if asked[endpoint].barrier else server.answered):
                    bound = self.config.start_deadline
                bound += _MARGIN
                text = f"no answer from pserver {endpoint} for {bound:g} s while"
                what = self._waiting(asked[endpoint])
                found.append((begun + bound, WaitTimeout(f"{text} {what}")))
        return found

    def _waiting(self, question: Message | None) -> str:
        """ "trainer 0 waited for w.block0, b at step 3"."""
        who = f"trainer {self._trainer} waited"
        if question is None:
            return f"{who} for other servers at step {self._step}"
        names = question.names or [name for name, _ in question.values]
        what = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        if question.kind is Kind.LOOKUP:
            what = f"rows of {what}"
        return f"{who} for {what or 'the barrier'} at step {question.step}"

    def _give_up(self, error: ClusterError) -> None:
        """This trainer fails: the others should hear why."""
        if self._failure is not None:
            return
        self._failure = error
        transport = self._transport
        if transport is None:
            return
        for endpoint, server in self._servers.items():
            if server.lost is None and server.answered:
                with contextlib.suppress(ClusterError):
                    message = self._message(Kind.ABORT, text=str(error))
                    self._send(endpoint, message, wait=False)
        transport.close(1.0)
