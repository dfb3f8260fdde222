"""CURVE keys: encryption, and proof of who is at the other end.

Environment of a server: ``FLUIDX_CURVE_SERVER_PUBLIC`` and
``FLUIDX_CURVE_SERVER_SECRET``; ``FLUIDX_CURVE_CLIENTS``: public keys (separated by
commas) that are let in. Of a trainer: ``FLUIDX_CURVE_SERVER_PUBLIC``,
``FLUIDX_CURVE_CLIENT_PUBLIC`` and ``FLUIDX_CURVE_CLIENT_SECRET``. Keys are Z85 text as
``zmq.curve_keypair()`` makes them. Without these variables connections are plain.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import zmq
from zmq.utils import z85

from .errors import ClusterError

__all__ = ["ClientKeys", "Door", "ServerKeys"]

_PREFIX = "FLUIDX_CURVE_"


def _key(name: str) -> bytes | None:
    raw = os.environ.get(_PREFIX + name)
    if raw is None:
        return None
    if len(raw) != 40:
        raise ClusterError(f"{_PREFIX}{name}: a Z85 key has 40 characters")
    return raw.encode()


@dataclass
class ClientKeys:
    """A trainer's keys, and the one by which it knows the servers."""

    server: bytes
    public: bytes
    secret: bytes

    @classmethod
    def from_env(cls) -> ClientKeys | None:
        public, secret = _key("CLIENT_PUBLIC"), _key("CLIENT_SECRET")
        if public is None and secret is None:
            return None
        server = _key("SERVER_PUBLIC")
        if server is None or public is None or secret is None:
            raise ClusterError(
                f"a trainer needs {_PREFIX}SERVER_PUBLIC, {_PREFIX}CLIENT_PUBLIC and "
                f"{_PREFIX}CLIENT_SECRET together"
            )
        return cls(server, public, secret)

    def apply(self, sock: Any) -> None:
        sock.curve_serverkey = self.server
        sock.curve_publickey = self.public
        sock.curve_secretkey = self.secret


@dataclass
class ServerKeys:
    """A server's keys, and the trainers' that it lets in."""

    public: bytes
    secret: bytes
    allowed: frozenset[bytes]

    @classmethod
    def from_env(cls) -> ServerKeys | None:
        public, secret = _key("SERVER_PUBLIC"), _key("SERVER_SECRET")
        if secret is None:
            return None
        raw = os.environ.get(_PREFIX + "CLIENTS", "")
        allowed = frozenset(k.strip().encode() for k in raw.split(",") if k.strip())
        if public is None or not allowed:
            raise ClusterError(
                f"a server needs {_PREFIX}SERVER_PUBLIC and {_PREFIX}CLIENTS beside "
                f"{_PREFIX}SERVER_SECRET"
            )
        return cls(public, secret, allowed)

    def apply(self, sock: Any) -> None:
        sock.curve_server = True
        sock.curve_publickey = self.public
        sock.curve_secretkey = self.secret
        sock.zap_domain = b"fluidx"


class Door:
    """Answers ZeroMQ's questions whom to let in (ZAP 1.0)."""

    def __init__(self, context: Any, keys: ServerKeys) -> None:
        self._allowed = keys.allowed
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind("inproc://zeromq.zap.01")

    def answer(self) -> None:
        """Answer all who wait."""
        while True:
            try:
                request = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            known = (
                len(request) == 7
                and request[5] == b"CURVE"
                and z85.encode(request[6]) in self._allowed
            )
            code, text = (b"200", b"OK") if known else (b"400", b"unknown key")
            serial = request[1] if len(request) > 1 else b""
            self.socket.send_multipart([b"1.0", serial, code, text, b"", b""])
