"""Transport over ZeroMQ: a server's ROUTER, a DEALER per server on a trainer.

Broken connections are told by socket monitors, so that a killed peer is noticed at
once while a slow one is left alone. An endpoint on this machine is reached through a
Unix socket of the same network namespace (it is bound beside the port), which moves
large arrays faster than the loopback device.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from .config import RpcConfig
from .curve import ClientKeys, Door, ServerKeys
from .errors import ClusterError, PeerLost
from .memory import keep_buffers
from .transport import Arrived, Event, Lost, Transport, Worker

__all__ = ["LISTEN_FDS", "UNIX_SOCKETS", "ZmqNetwork", "ZmqServer", "ZmqTrainer"]

# "host:port=fd,...": listening sockets that a launcher bound for this process
LISTEN_FDS = "FLUIDX_LISTEN_FDS"
# "always", "never", or unset: where one is found
UNIX_SOCKETS = "FLUIDX_UNIX_SOCKETS"
_COPY_BELOW = 65536
# after a connection broke, its trainer is looked for this long, this often (seconds)
_SEARCH = 5.0
_SEARCH_PAUSE = 0.1
_HWM = 1000  # whole messages; each trainer has a few under way


class ZmqNetwork:
    """Roles as processes, on one machine or many."""

    def trainer(self, config: RpcConfig) -> Transport:
        keep_buffers()
        return ZmqTrainer(config)

    def server(self, endpoint: str, config: RpcConfig) -> Transport:
        keep_buffers()
        return ZmqServer(endpoint, config)

    def condition(self) -> Any:
        return threading.Condition()

    def spawn(self, name: str, body: Callable[[], None]) -> Worker:
        return _Worker(name, body)

    def now(self) -> float:
        return time.monotonic()


class _Worker:
    """A thread that does not outlive the process."""

    def __init__(self, name: str, body: Callable[[], None]) -> None:
        # counters and the like are those of who starts it
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(body,), name=f"fluidx-{name}", daemon=True
        )
        self._thread.start()

    def join(self, timeout: float) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()


def split_endpoint(endpoint: str) -> tuple[str, int]:
    """Host and port of "host:port"; ClusterError says what is wrong with it."""
    host, colon, port = endpoint.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ClusterError(f"endpoint {endpoint!r} is not host:port")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _local_address(endpoint: str) -> str | None:
    """The Unix socket beside a loopback endpoint, where the system has such."""
    host, port = split_endpoint(endpoint)
    if not sys.platform.startswith("linux") or not _is_loopback(host) or not port:
        return None
    if os.environ.get(UNIX_SOCKETS) == "never":
        return None
    return f"@fluidx-{'127.0.0.1' if host == 'localhost' else host}:{port}"


def _is_served(address: str) -> bool:
    """Whether somebody listens on this Unix socket now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex("\0" + address[1:]) == 0


def _address_for(endpoint: str) -> str:
    """Where a trainer finds this server."""
    host, port = split_endpoint(endpoint)
    local = _local_address(endpoint)
    # the port may be forwarded from elsewhere: only a launcher can be sure
    if local and (os.environ.get(UNIX_SOCKETS) == "always" or _is_served(local)):
        return f"ipc://{local}"
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def _numeric(host: str) -> str:
    """ZeroMQ binds to addresses, not to host names."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterError(f"host {host!r} is unknown: {error.strerror}") from None
    address = str(found[0][4][0])
    return f"[{address}]" if ":" in address else address


def _inherited(endpoint: str) -> int | None:
    """The listening socket that the launcher bound for this endpoint."""
    for entry in os.environ.get(LISTEN_FDS, "").split(","):
        name, _, fd = entry.rpartition("=")
        if name == endpoint:
            return int(fd)
    return None


def _tune(sock: Any, config: RpcConfig) -> None:
    sock.setsockopt(zmq.SNDHWM, _HWM)
    sock.setsockopt(zmq.RCVHWM, _HWM)
    sock.setsockopt(zmq.SNDTIMEO, int(config.deadline * 1000))
    sock.setsockopt(zmq.LINGER, 0)
    sock.setsockopt(zmq.RECONNECT_IVL, 50)
    sock.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
    sock.setsockopt(zmq.TCP_KEEPALIVE, 1)


def _send(sock: Any, frames: Sequence[Any], what: str, wait: bool) -> None:
    """Send without copying what is large."""
    now = 0 if wait else zmq.NOBLOCK
    last = len(frames) - 1
    try:
        for i, frame in enumerate(frames):
            more = zmq.SNDMORE if i < last else 0
            sock.send(frame, now | more, copy=len(frame) < _COPY_BELOW)
    except zmq.Again:
        raise PeerLost(f"{what} takes no more messages") from None
    except zmq.ZMQError as error:
        if error.errno == zmq.EHOSTUNREACH:
            raise PeerLost(f"{what} is gone") from None
        raise


_WATCHED = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)


def _drain(monitor: Any) -> list[int]:
    """The events that a monitor has to tell."""
    found: list[int] = []
    while True:
        try:
            parts = monitor.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return found
        found.append(int(parse_monitor_message(parts)["event"]))


class ZmqServer:
    """A server's end: one ROUTER on its endpoint.

    A monitor tells that some connection broke, but not whose. So each trainer is then
    sent an empty message: for one that is gone the ROUTER has no route any more.
    """

    def __init__(self, endpoint: str, config: RpcConfig) -> None:
        self.endpoint = endpoint
        keys = ServerKeys.from_env()
        self._context = zmq.Context()
        self._peers: set[bytes] = set()
        self._breaks = 0  # how many broken connections nobody was found for
        self._search_until = 0.0
        self._door = None if keys is None else Door(self._context, keys)
        self._router = self._context.socket(zmq.ROUTER)
        _tune(self._router, config)
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        if keys is not None:
            keys.apply(self._router)
        # made before binding, so that no event is missed
        self._monitor = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self._bind()
        except BaseException:
            self.close(0)
            raise
        self._poller = zmq.Poller()
        self._poller.register(self._router, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        if self._door is not None:
            self._poller.register(self._door.socket, zmq.POLLIN)

    def _bind(self) -> None:
        host, port = split_endpoint(self.endpoint)
        fd = _inherited(self.endpoint)
        address = f"tcp://{_numeric(host)}:{port}"
        try:
            if fd is not None:
                self._router.setsockopt(zmq.USE_FD, fd)
            self._router.bind(address)
            if fd is not None:
                self._router.setsockopt(zmq.USE_FD, -1)
            local = _local_address(self.endpoint)
            if local is not None:
                self._router.bind(f"ipc://{local}")
        except zmq.ZMQError as error:
            if error.errno == zmq.EADDRINUSE:
                raise ClusterError(
                    f"endpoint {self.endpoint} is in use by another process"
                ) from None
            raise ClusterError(
                f"endpoint {self.endpoint} cannot be bound: {error.strerror}"
            ) from None

    def connect(self, endpoint: str) -> None:
        raise TypeError("a server does not connect")

    def send(self, peer: bytes, frames: Sequence[Any], wait: bool = True) -> None:
        _send(self._router, [peer, *frames], "a trainer", wait)

    def poll(self, timeout: float) -> list[Event]:
        events: list[Event] = []
        if self._breaks:
            timeout = min(timeout, _SEARCH_PAUSE)
        self._poller.poll(int(max(0.0, timeout) * 1000 + 0.999))
        if self._door is not None:
            self._door.answer()
        while True:
            try:
                peer, *frames = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            self._peers.add(peer.bytes)
            events.append(Arrived(peer.bytes, [f.buffer for f in frames]))
        return events + self._departed()

    def _departed(self) -> list[Event]:
        broken = len(_drain(self._monitor))
        if broken:
            self._breaks += broken
            self._search_until = self.now() + _SEARCH
        if not self._breaks:
            return []
        gone = [peer for peer in self._peers if not self._is_there(peer)]
        self._peers.difference_update(gone)
        self._breaks = max(0, self._breaks - len(gone))
        if self.now() >= self._search_until:  # it had never said a word
            self._breaks = 0
        return [Lost(peer) for peer in gone]

    def _is_there(self, peer: bytes) -> bool:
        try:
            self._router.send_multipart([peer, b""], zmq.NOBLOCK)
        except zmq.Again:
            return True
        except zmq.ZMQError as error:
            if error.errno == zmq.EHOSTUNREACH:
                return False
            raise
        return True

    def now(self) -> float:
        return time.monotonic()

    def keep_alive(self, beat: Callable[[], None], pause: float) -> None:
        raise TypeError("a server's signs of life are its answers")

    def close(self, linger: float = 5.0) -> None:
        if self._context.closed:
            return
        self._router.disable_monitor()
        self._monitor.close(0)
        self._router.close(int(linger * 1000))
        if self._door is not None:
            self._door.socket.close(0)
        self._context.term()


class ZmqTrainer:
    """A trainer's end: a DEALER per server, and a thread that gives signs of life."""

    def __init__(self, config: RpcConfig) -> None:
        self._config = config
        self._context = zmq.Context()
        self._sockets: dict[str, Any] = {}
        self._monitors: dict[str, Any] = {}
        self._met: set[str] = set()
        self._poller = zmq.Poller()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def connect(self, endpoint: str) -> None:
        if endpoint in self._sockets:
            return
        address = _address_for(endpoint)
        keys = ClientKeys.from_env()
        sock = self._context.socket(zmq.DEALER)
        _tune(sock, self._config)
        if keys is not None:
            keys.apply(sock)
        monitor = sock.get_monitor_socket(_WATCHED)
        sock.connect(address)
        self._sockets[endpoint] = sock
        self._monitors[endpoint] = monitor
        self._poller.register(sock, zmq.POLLIN)
        self._poller.register(monitor, zmq.POLLIN)

    def send(self, peer: str, frames: Sequence[Any], wait: bool = True) -> None:
        _send(self._sockets[peer], frames, f"pserver {peer}", wait)

    def poll(self, timeout: float) -> list[Event]:
        events: list[Event] = []
        self._poller.poll(int(max(0.0, timeout) * 1000 + 0.999))
        for endpoint, sock in self._sockets.items():
            with contextlib.suppress(zmq.Again):
                while True:
                    frames = sock.recv_multipart(zmq.NOBLOCK, copy=False)
                    if len(frames) > 1 or len(frames[0]):  # else: are you there?
                        events.append(Arrived(endpoint, [f.buffer for f in frames]))
            for event in _drain(self._monitors[endpoint]):
                if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                    self._met.add(endpoint)
                elif event == zmq.EVENT_DISCONNECTED:
                    if endpoint in self._met:
                        events.append(Lost(endpoint))
                else:
                    raise ClusterError(
                        f"pserver {endpoint} refuses the connection: are the CURVE "
                        "keys of both sides right?"
                    )
        return events

    def now(self) -> float:
        return time.monotonic()

    def keep_alive(self, beat: Callable[[], None], pause: float) -> None:
        def run() -> None:
            while not self._stop.wait(pause):
                beat()

        self._thread = threading.Thread(target=run, name="fluidx-beat", daemon=True)
        self._thread.start()

    def close(self, linger: float = 5.0) -> None:
        if self._context.closed:
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for endpoint, sock in self._sockets.items():
            sock.disable_monitor()
            self._monitors[endpoint].close(0)
            sock.close(int(linger * 1000))
        self._context.term()
