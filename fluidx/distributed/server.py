"""Drives a `ServerState` over a transport: this is ``listen_and_serv``."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows
from fluidx.kernels.sharding import to_device, to_host

from . import flows
from . import server_state as st
from .config import RpcConfig
from .counting import counters
from .errors import ClusterError, PeerLost, WireError
from .serve_spec import SYNC, ServeSpec
from .transport import Arrived, Transport, network
from .wire import Kind, Message, decode, encode

__all__ = ["Server", "serve"]

_log = logging.getLogger("fluidx.distributed")


class Server:
    """One parameter server: a scope, blocks to run on it, and its trainers.

    scope: offers ``var(name)`` and ``find_var(name)``. run_block: runs a block of
    the server's program on that scope. files: makes what saves variables.
    """

    def __init__(
        self,
        spec: ServeSpec,
        scope: Any,
        run_block: Callable[[int], None],
        transport: Transport,
        config: RpcConfig,
        xp: Any = np,
        files: Callable[[], Any] | None = None,
    ) -> None:
        self.spec = spec
        self.scope = scope
        self.run_block = run_block
        self.transport = transport
        self.config = config
        self.xp = xp
        self.files = files
        self.state = st.ServerState(spec, config, transport.now())
        self._counters = counters()
        self._role = f"pserver {spec.endpoint}"

    def run(self) -> None:
        """Serve until all trainers are done; ClusterError if one fails."""
        try:
            while not self._turn():
                pass
        except ClusterError:
            raise
        except BaseException as error:
            text = f"{type(error).__name__}: {error}".rstrip(": ")
            self._tell_all(f"pserver {self.spec.endpoint} failed: {text}")
            raise

    def _turn(self) -> bool:
        """Wait for something, and deal with it; True when all is done."""
        timeout = self.state.next_timer() - self.transport.now()
        for event in self.transport.poll(min(timeout, 60.0)):
            now = self.transport.now()
            if isinstance(event, Arrived):
                message = self._decode(event)
                if message is None:
                    continue
                flows.arrived(message, self._role)
                actions = self.state.handle(event.peer, message, now)
                who = self.state.name_of(event.peer)
                self._counters.count_received(who, message.kind, event.frames)
            else:
                actions = self.state.lost(event.peer, now)
            if self._perform(actions):
                return True
        return self._perform(self.state.tick(self.transport.now()))

    def _decode(self, event: Arrived) -> Message | None:
        try:
            return decode(event.frames)
        except WireError as error:
            _log.warning("%s: message dropped: %s", self.spec.endpoint, error)
            text = f"pserver {self.spec.endpoint} cannot read this message: {error}"
            self._send(event.peer, Message(Kind.FAIL, text=text))
            return None

    def _perform(self, actions: Sequence[st.Action]) -> bool:
        for action in actions:
            if isinstance(action, st.Assign):
                value = to_device(self.xp, action.value)
                self.scope.var(action.name).value = value
            elif isinstance(action, st.Run):
                self._run(action)
            elif isinstance(action, st.Answer):
                self._answer(action)
            elif isinstance(action, st.Save):
                self._save(action)
            elif isinstance(action, st.Tell):
                self._send(action.peer, action.message)
            elif isinstance(action, st.Fail):
                self._tell_all(action.reason)
                raise ClusterError(action.reason)
            else:
                return True
        return False

    def _run(self, action: st.Run) -> None:
        if self.spec.dc_asgd:
            number = self.xp.asarray([action.trainer], dtype=self.xp.int64)
            self.scope.var("@TRAINER_ID@").value = number
        for block in action.blocks:
            self.run_block(block)

    def _answer(self, action: st.Answer) -> None:
        question = action.question
        reply = Message(
            Kind.VALUES, question.trainer, seq=question.seq, step=question.step
        )
        for name in action.names:
            value = self._value(name)
            if self.spec.dc_asgd:
                backup = self.scope.find_var(f"{name}.trainer_{question.trainer}_bak")
                if backup is not None:
                    backup.value = value.copy()
            # in a synchronous run no update comes before every trainer has its answer
            reply.values.append((name, self._outgoing(value)))
        for name, rows in action.rows:
            reply.values.append((name, self._rows(name, rows)))
        self._send(action.peer, reply)

    def _save(self, action: st.Save) -> None:
        """Each slice in a file of its name; what goes wrong is the trainer's error."""
        question, text = action.question, ""
        table, folder = question.names[0], Path(question.text)
        names = [
            n
            for n in self.scope.local_var_names()
            if n == table or n.startswith(f"{table}.block")
        ]
        try:
            files: Any = self.files and self.files()
            for name in names:
                value = to_host(self._value(name))
                path = str(folder / name)
                files.save(path, [name], [value], None, True, False)
        except OSError as error:
            text = f"pserver {self.spec.endpoint} cannot save {table}: {error}"
        reply = Message(Kind.VALUES, question.trainer, question.seq, text=text)
        self._send(action.peer, reply)

    def _outgoing(self, value: Any) -> Any:
        host = to_host(value)
        if self.spec.mode == SYNC or host is not value:
            return host
        if isinstance(host, SelectedRows):
            return SelectedRows(host.rows.copy(), host.value.copy(), host.height)
        return host.copy()

    def _rows(self, name: str, rows: Any) -> Any:
        table = self._value(name)
        if rows.dtype.kind != "i" or rows.ndim != 1:
            self._stop(f"row numbers of {name} are {rows.dtype} of shape {rows.shape}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(table):
            self._stop(f"rows of {name} are asked for outside [0, {len(table)})")
        return to_host(table[to_device(self.xp, rows)])

    def _value(self, name: str) -> Any:
        holder = self.scope.find_var(name)
        if holder is None or holder.value is None:
            self._stop(f"{name} has no value: startup program not run?")
        return holder.value

    def _stop(self, text: str) -> None:
        reason = f"pserver {self.spec.endpoint}: {text}"
        self._tell_all(reason)
        raise ClusterError(reason)

    def _send(self, peer: Any, message: Message) -> None:
        frames = encode(message, self.config.limits)
        flows.left(message, self._role)
        # a trainer that left meanwhile is told by its connection
        with contextlib.suppress(PeerLost):
            self.transport.send(peer, frames)
            self._counters.count_sent(self.state.name_of(peer), message.kind, frames)

    def _tell_all(self, reason: str) -> None:
        for peer in self.state.peers():
            self._send(peer, Message(Kind.FAIL, text=reason))


def serve(ctx: Any, names: Sequence[str], attrs: dict[str, Any]) -> None:
    """Run ``listen_and_serv``: bind the endpoint, serve until all trainers closed."""
    config = RpcConfig.from_env()
    plan = ctx.program._parameters_on_pservers
    start = 0 if plan is None else plan.counter_start
    spec = ServeSpec.from_attrs(names, attrs, start)
    if not spec.blocks:
        warnings.warn(
            f"pserver {spec.endpoint} has nothing to update: fewer servers would do",
            stacklevel=2,
        )
    transport = network().server(spec.endpoint, config)
    try:
        server = Server(
            spec,
            ctx.scope,
            ctx.run_block,
            transport,
            config,
            ctx.xp,
            lambda: ctx.files,
        )
        server.run()
    finally:
        transport.close()
