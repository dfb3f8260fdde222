"""Bounds of every wait, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .wire import Limits

__all__ = ["RpcConfig"]


@dataclass(frozen=True)
class RpcConfig:
    """Seconds, unless said otherwise.

    deadline: how long one role waits for another that is alive
        (``FLUIDX_RPC_DEADLINE``, or the reference's ``FLAGS_rpc_deadline`` in ms).
    start_deadline: how long for one that has not been seen yet
        (``FLUIDX_START_DEADLINE``).
    heartbeat: pause between a trainer's signs of life (``FLUIDX_HEARTBEAT``).
    drop_grace: how long after a connection broke what it had still delivered is
        looked at before its role counts as dead (``FLUIDX_DROP_GRACE``).
    chunk: largest frame, in bytes (``FLUIDX_CHUNK_BYTES``).
    flush: a trainer's gradients for a server leave early once they reach this many
        bytes (``FLUIDX_FLUSH_BYTES``).
    """

    deadline: float = 180.0
    start_deadline: float = 900.0
    heartbeat: float = 1.0
    drop_grace: float = 1.0
    chunk: int = 1 << 30
    flush: int = 4 << 20

    @property
    def limits(self) -> Limits:
        return Limits(chunk=self.chunk)

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> RpcConfig:
        """The configuration that environment variables ask for."""
        env = os.environ if env is None else env
        deadline = cls.deadline
        if "FLAGS_rpc_deadline" in env:
            deadline = _number(env, "FLAGS_rpc_deadline", 0.0) / 1000
        return cls(
            _number(env, "FLUIDX_RPC_DEADLINE", deadline),
            _number(env, "FLUIDX_START_DEADLINE", cls.start_deadline),
            _number(env, "FLUIDX_HEARTBEAT", cls.heartbeat),
            _number(env, "FLUIDX_DROP_GRACE", cls.drop_grace),
            int(_number(env, "FLUIDX_CHUNK_BYTES", cls.chunk)),
            int(_number(env, "FLUIDX_FLUSH_BYTES", cls.flush)),
        )


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    raw = env.get(name)
    if raw is None:
        return default
    try:
        value = float(raw)
    except ValueError:
        value = -1.0
    if value <= 0:
        raise ValueError(f"{name}={raw!r}: a number above 0 is needed")
    return value
