"""What every role maker answers, and how role makers of a cluster meet."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Role", "RoleMakerBase"]

_REDUCE: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Role:
    """WORKER or SERVER."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """What every role maker answers; `generate_role` finds it out.

    Collectives (`all_gather`, `all_reduce_worker`, `barrier_worker`, `barrier_all`)
    work where this process can find the others: worker 0 listens at the endpoint that
    FLUIDX_MEET names (`fluidx launch` sets it), else at the first worker's endpoint.
    They are bounded by FLAGS_rpc_deadline; the first meeting, at which processes may
    still be starting, by FLUIDX_START_DEADLINE. ClusterError names who is missing.
    """

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1
        self._member: Any = None

    def generate_role(self) -> None:
        """Find out; a second call does nothing."""
        raise NotImplementedError(f"{self.__class__.__name__}.generate_role")

    def _made(self) -> None:
        if not self._role_is_generated:
            self.generate_role()

    # ------------------------------------------------ who is who

    def is_worker(self) -> bool:
        self._made()
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        self._made()
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        return self.is_worker() and self._current_id == 0

    def worker_num(self) -> int:
        self._made()
        return len(self._worker_endpoints)

    def server_num(self) -> int:
        self._made()
        return len(self._server_endpoints)

    def worker_index(self) -> int:
        self._made()
        return self._current_id

    def server_index(self) -> int:
        self._made()
        return self._current_id

    def get_trainer_endpoints(self) -> list[str]:
        self._made()
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        self._made()
        return self._server_endpoints

    def to_string(self) -> str:
        """One line: role, number, and where all are."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, worker_endpoints: "
            f"{self._worker_endpoints}, server_endpoints: {self._server_endpoints}"
        )

    # ------------------------------------------------ all together

    def all_gather(self, input: Any) -> list[Any]:
        """What all workers came with, by worker: arrays, or what JSON can say.

        TypeError: neither.
        """
        return self._gather("workers", "all_gather", input)

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Reduce arrays of all workers, of one shape and dtype, into `output`.

        mode: "sum", "max" or "min". ValueError: another one, or other shapes.
        """
        if mode not in _REDUCE:
            raise ValueError(f"all_reduce_worker: mode sum, max or min, got {mode!r}")
        own = np.asarray(input)
        parts = self._gather("workers", "all_reduce_worker", own)
        shapes = {p.shape for p in parts}
        if len(shapes) > 1:
            raise ValueError(f"all_reduce_worker: workers came with {sorted(shapes)}")
        output[...] = _REDUCE[mode].reduce(np.stack(parts), axis=0)

    def barrier_worker(self) -> None:
        """Wait for all workers."""
        self._gather("workers", "barrier_worker")

    def barrier_all(self) -> None:
        """Wait for all workers and servers."""
        self._gather("all", "barrier_all")

    # the names by which the reference's own tools call the same
    def _barrier_worker(self) -> None:
        self.barrier_worker()

    def _barrier_all(self) -> None:
        self.barrier_all()

    def _barrier_server(self) -> None:
        self._gather("servers", "barrier_server")

    def _all_reduce(self, input: Any, output: Any, mode: str = "sum") -> None:
        self.all_reduce_worker(input, output, mode)

    def _names(self, group: str) -> list[str]:
        workers = [f"worker {i}" for i in range(self.worker_num())]
        servers = [f"pserver {i}" for i in range(self.server_num())]
        return {"workers": workers, "servers": servers}.get(group, workers + servers)

    def _board(self) -> str:
        """Where all meet; RuntimeError: nobody told."""
        found = os.environ.get("FLUIDX_MEET")
        if found:
            return found
        if self._worker_endpoints:
            return self._worker_endpoints[0]
        raise RuntimeError(
            f"{self.__class__.__name__}: {self.worker_num()} workers have no place to "
            "meet: set FLUIDX_MEET to host:port of the first worker on all of them "
            "(`fluidx launch` does)"
        )

    def _bounds(self) -> Any:
        """How long meetings may take."""
        from fluidx.distributed.config import RpcConfig

        return RpcConfig.from_env()

    def _gather(self, group: str, what: str, value: Any = None) -> list[Any]:
        """What the members of a group came with."""
        names = self._names(group)
        me = f"{'worker' if self.is_worker() else 'pserver'} {self._current_id}"
        if me not in names:
            raise RuntimeError(f"{me} takes no part in {what}")
        if len(names) == 1:
            return [np.array(value) if isinstance(value, np.ndarray) else value]
        result: list[Any] = self._connected(me).gather(group, names, value, what)
        return result

    def _connected(self, me: str) -> Any:
        if self._member is None:
            from fluidx.distributed.meeting import Member

            hosts = me == "worker 0"
            self._member = Member(me, self._board(), hosts, self._bounds())
            atexit.register(self._leave)
        return self._member

    def _leave(self) -> None:
        """Say goodbye to those that this process met."""
        member, self._member = self._member, None
        if member is not None:
            atexit.unregister(self._leave)
            member.close()

    def _finalize(self) -> None:
        """As `_leave`."""
        self._leave()


def endpoints_of(text: str) -> list[str]:
    """ "a:1,b:1" as a list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def checked_endpoints(name: str, given: Sequence[str] | None) -> list[str]:
    """A list of endpoints that a script gave; ValueError: it is none."""
    if not isinstance(given, (list, tuple)) or not given:
        raise ValueError(f"{name}: not a list: {given!r}")
    if len(set(given)) != len(given):
        raise ValueError(f"{name} has duplicates: {given}")
    return list(given)
