"""Collective ops over MPI (extra ``mpi``): one rank per process of ``mpiexec``.

Every call is begun without blocking and then asked for its end, so that a wait has a
bound (`RpcConfig.deadline`) and, through the `Board`, names who is missing. A rank
that fails takes the others down: MPI has no other way to tell them.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import ClusterError, PeerLost, WaitTimeout

from . import buckets
from .base import BaseWorld, Ring, described
from .board import SLOT, Board

__all__ = ["MpiRing", "MpiWorld", "abort_on_failure", "start_mpi"]

_SPINS = 2000
_LOOK = 0.25  # seconds between looks at the board
# an MPI implementation adds these up in C; others travel as float32
_NATIVE = frozenset("bBhHiIlLqQfd")


class MpiWorld(BaseWorld):
    """The processes that one ``mpiexec`` has started."""

    def __init__(self, config: RpcConfig | None = None) -> None:
        super().__init__()
        self.config = config or RpcConfig.from_env()
        self.mpi = start_mpi()
        abort_on_failure(self.mpi.COMM_WORLD)
        with _bounded(self.config.start_deadline):
            self.comm = self.mpi.COMM_WORLD.Dup()
            self.rank, self.nranks = self.comm.rank, self.comm.size
            self.board = self._board()
        atexit.register(self.board.end)

    def _board(self) -> Board:
        """A slot per rank of this machine, in memory that they share."""
        here = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED, key=self.rank)
        ranks = here.allgather(self.rank)
        window = self.mpi.Win.Allocate_shared(SLOT, 1, comm=here)
        slots = {r: window.Shared_query(i)[0] for i, r in enumerate(ranks)}
        board = Board(self.rank, slots)
        here.Barrier()
        return board

    def _make(self, ring_id: int, members: range, label: str, key: Any) -> Ring:
        # a new communicator is made without a bound: be sure that all are there
        self.wait(self.comm.Ibarrier(), f"ring {label}: opening", start=True)
        inside = self.rank in members
        # rings side by side (inner ones) are told apart by their first ranks
        colour = members.start if inside else self.mpi.UNDEFINED
        comm = self.comm.Split(colour, self.rank)
        return MpiRing(self, ring_id, comm if inside else None, label)

    def wait(self, request: Any, text: str, start: bool = False) -> None:
        """Until a call that has begun is done.

        PeerLost: a rank ended or runs another collective. WaitTimeout: the deadline
        is over; it says where the ranks of this machine are.
        """
        test = request.Test
        try:
            for _ in range(_SPINS):
                if test():
                    return
            config = self.config
            deadline = config.start_deadline if start else config.deadline
            begun = looked = time.monotonic()
            while not test():
                os.sched_yield()
                now = time.monotonic()
                if now - looked >= _LOOK:
                    looked = now
                    self._look(text, now - begun, deadline)
        except self.mpi.Exception as error:
            raise ClusterError(f"{text}: MPI says: {error}") from None

    def _look(self, what: str, waited: float, deadline: float) -> None:
        me = f"rank {self.rank}, collective {self.board.count}, {what}"
        gone = self.board.gone()
        if gone is not None:
            raise PeerLost(f"{me}: {gone}")
        elsewhere = self.board.elsewhere()
        if elsewhere is not None:
            raise ClusterError(
                f"the ranks run different collectives: {me}; {elsewhere}"
            )
        if waited >= deadline:
            others = "; ".join(map(str, self.board.others()))
            raise WaitTimeout(f"{me}: waited for {waited:.0f} s. {others}")
        if waited > 1.0:  # somebody computes: leave him the processor
            time.sleep(0.001)


class MpiRing(Ring):
    """A communicator. comm None: this rank is no member, and never calls."""

    def __init__(self, world: MpiWorld, ring_id: int, comm: Any, label: str) -> None:
        rank, size = (comm.rank, comm.size) if comm is not None else (-1, 0)
        super().__init__(ring_id, rank, size, label)
        self._world, self._comm = world, comm
        mpi = world.mpi
        self._byte = mpi.BYTE
        self._ops = {
            "sum": mpi.SUM,
            "max": mpi.MAX,
            "min": mpi.MIN,
            "prod": mpi.PROD,
        }

    def _run(self, text: str, begin: Any, *arguments: Any, **more: Any) -> None:
        """Begin a call and wait for its end."""
        board = self._world.board
        text = f"ring {self.label}: {text}"
        board.enter(text)
        self._world.wait(begin(*arguments, **more), text)
        board.leave()

    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        results: list[Any] = [None] * len(values)
        for places in buckets.plan(values):
            some = [values[i] for i in places]
            text = described(f"all_reduce {op}", some, [names[i] for i in places])
            if len(some) == 1:
                results[places[0]] = self._sum(some[0], op, text)
                continue
            whole = self._sum(buckets.join(some), op, text)
            for place, value in zip(places, buckets.part(whole, some)):
                results[place] = value
        return results

    def _sum(self, value: Any, op: str, text: str) -> Any:
        given, back = _native(value)
        result = np.empty_like(given)
        self._run(text, self._comm.Iallreduce, given, result, op=self._ops[op])
        return result if back is None else result.astype(back)

    def _broadcast(self, value: Any, root: int, name: str) -> Any:
        result = np.array(value, order="C")
        text = described(f"broadcast from {root}", [value], [name])
        self._run(text, self._comm.Ibcast, self._raw(result), root=root)
        return result

    def _gather(self, value: Any, name: str) -> Any:
        given = np.ascontiguousarray(value)
        shape = (self.nranks * value.shape[0], *value.shape[1:])
        result = np.empty(shape, value.dtype)
        text = described("all_gather", [value], [name])
        call = self._comm.Iallgather
        self._run(text, call, self._raw(given), self._raw(result))
        return result

    def _gather_uneven(self, value: Any, name: str) -> Any:
        given = np.ascontiguousarray(value)
        # the length differs from rank to rank: not part of the text
        text = f"all_gather of {name} {given.dtype}{list(given.shape[1:])} by rank"
        sizes = np.empty(self.nranks, np.int64)
        mine = np.array([given.nbytes], np.int64)
        self._run(f"{text}: sizes", self._comm.Iallgather, mine, sizes)
        row = given.itemsize * int(np.prod(given.shape[1:], dtype=np.int64))
        total = int(sizes.sum()) // row if row else 0
        result = np.empty((total, *given.shape[1:]), given.dtype)
        target = [result.reshape(-1).view(np.uint8), sizes.tolist(), self._byte]
        self._run(text, self._comm.Iallgatherv, self._raw(given), target)
        return result

    def _reduce_scatter(self, value: Any, name: str) -> Any:
        given, back = _native(value)
        shape = (value.shape[0] // self.nranks, *value.shape[1:])
        result = np.empty(shape, given.dtype)
        text = described("reduce_scatter", [value], [name])
        call = self._comm.Ireduce_scatter_block
        self._run(text, call, given, result, op=self._ops["sum"])
        return result if back is None else result.astype(back)

    def _raw(self, array: Any) -> Any:
        """Its bytes: MPI need not know the dtype."""
        return [array.reshape(-1).view(np.uint8), self._byte]

    def barrier(self) -> None:
        self._run("barrier", self._comm.Ibarrier)

    def close(self) -> None:
        # MPI frees a communicator together with the others; at the end it does so
        self._comm = None


def _native(value: Any) -> tuple[Any, Any]:
    """An array that MPI can add up, and the dtype to go back to (None: the same)."""
    if value.dtype.char in _NATIVE:
        return np.ascontiguousarray(value), None
    if value.dtype.kind in "cbSUOM":
        raise ClusterError(f"collective ops cannot reduce {value.dtype}")
    return np.ascontiguousarray(value, np.float32), value.dtype


def start_mpi() -> Any:
    """MPI's module, which begins MPI when it is first imported.

    ClusterError if it is not there. That beginning waits for all ranks, inside C, so
    that its bound can only end the process.
    """
    try:
        with _bounded(RpcConfig.from_env().start_deadline):
            from mpi4py import MPI
    except ImportError as error:
        raise ClusterError(
            "mpiexec started this process, but MPI cannot be used: install the "
            f"extra mpi (pip install 'fluidx[mpi]'). {error}"
        ) from None
    return MPI


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """End the process, with a traceback of where it waits, if this takes longer."""
    file = sys.__stderr__
    if file is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=file)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def abort_on_failure(comm: Any) -> None:
    """An error that nobody catches ends all ranks; else they would wait for ever."""
    before = sys.excepthook
    if getattr(before, "aborts_mpi", False):
        return

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        before(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        comm.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    hook.aborts_mpi = True  # type: ignore[attr-defined]
    sys.excepthook = hook
