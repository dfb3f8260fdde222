"""Collective ops over NCCL (CUDA places), through CuPy.

Collectives are queued on the current stream, behind what computes their inputs: the
order that ``c_sync_calc_stream`` asks for is there already. The host waits in
``c_sync_comm_stream`` only, with a bound, and there a dead rank becomes an error.

Reductions of several tensors are one NCCL group. NCCL knows the machine's topology,
so that a hierarchical ring is an ordinary one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.distributed.config import RpcConfig
from fluidx.distributed.errors import ClusterError, WaitTimeout
from fluidx.executor import cuda

from .alone import AloneRing
from .base import BaseWorld, Ring, how_to_start
from .rendezvous import share

__all__ = ["NcclRing", "NcclWorld"]

# ncclDataType_t and ncclRedOp_t, which are part of NCCL's stable interface
_DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
_BYTES = 1
_PAUSE = 5e-4
_IN_PROGRESS = 7


class NcclWorld(BaseWorld):
    """One rank per process and device. under: MPI's world, if mpiexec started us."""

    def __init__(self, under: Any = None, config: RpcConfig | None = None) -> None:
        super().__init__()
        self.config = config or RpcConfig.from_env()
        self._under = under
        self.nccl = cuda.nccl()

    def ring_key(self, name: str, rank: int, endpoints: Sequence[str]) -> Any:
        """A unique id, made by rank 0."""
        if len(endpoints) < 2:
            return None
        mine = self.nccl.get_unique_id() if rank == 0 else ()
        raw = np.array(mine, np.int8).tobytes()
        if self._under is not None:
            raw = self._under.comm.bcast(raw, 0)
        else:
            limit = self.config.start_deadline
            raw = share(name, raw, rank, endpoints, limit)
        return tuple(np.frombuffer(raw, np.int8).tolist())

    def _check(self, rank: int, nranks: int) -> None:
        if not 0 <= rank < nranks:
            raise ClusterError(f"rank {rank} is not below the number of ranks {nranks}")
        self.rank, self.nranks = rank, nranks

    def _open(self, ring_id: int, rank: int, nranks: int, key: Any, inner: int) -> Ring:
        return self._make(ring_id, range(nranks), f"{ring_id}", key)

    def _make(self, ring_id: int, members: range, label: str, key: Any) -> Ring:
        if len(members) == 1:
            return AloneRing(ring_id)
        if key is None:
            raise ClusterError(f"ring {label} has no NCCL id. {how_to_start(2)}")
        comm = self.nccl.NcclCommunicator(len(members), key, self.rank)
        return NcclRing(self, ring_id, comm, self.rank, len(members), label)


class NcclRing(Ring):
    """An NCCL communicator."""

    def __init__(
        self,
        world: NcclWorld,
        ring_id: int,
        comm: Any,
        rank: int,
        nranks: int,
        label: str,
    ) -> None:
        super().__init__(ring_id, rank, nranks, label)
        self._world, self._comm = world, comm
        self._xp = cuda.module()
        self._last = ""

    def _stream(self, what: str) -> int:
        self._last = what
        return int(cuda.current_stream().ptr)

    def _reduce(
        self, values: Sequence[Any], op: str, names: Sequence[str]
    ) -> list[Any]:
        xp, nccl = self._xp, self._world.nccl
        stream = self._stream(f"all_reduce {op} of {names[0]} to {names[-1]}")
        given = [xp.ascontiguousarray(v) for v in values]
        results = [xp.empty_like(v) for v in given]
        kinds = [_dtype(v, n) for v, n in zip(given, names)]
        nccl.groupStart()
        try:
            for value, result, kind in zip(given, results, kinds):
                self._comm.allReduce(
                    value.data.ptr,
                    result.data.ptr,
                    value.size,
                    kind,
                    _OPS[op],
                    stream,
                )
        finally:
            nccl.groupEnd()
        return results

    def _broadcast(self, value: Any, root: int, name: str) -> Any:
        result = self._xp.array(value, order="C")
        stream = self._stream(f"broadcast of {name} from {root}")
        pointer = result.data.ptr
        self._comm.broadcast(pointer, pointer, result.nbytes, _BYTES, root, stream)
        return result

    def _gather(self, value: Any, name: str) -> Any:
        given = self._xp.ascontiguousarray(value)
        shape = (self.nranks * value.shape[0], *value.shape[1:])
        result = self._xp.empty(shape, value.dtype)
        stream = self._stream(f"all_gather of {name}")
        self._comm.allGather(
            given.data.ptr, result.data.ptr, given.nbytes, _BYTES, stream
        )
        return result

    def _gather_uneven(self, value: Any, name: str) -> Any:
        # each rank pads to the longest: NCCL gathers equal lengths only
        xp = self._xp
        lengths = self._gather(xp.array([value.shape[0]], np.int64), f"{name}: sizes")
        lengths = lengths.get().tolist()
        padded = xp.zeros((max(lengths), *value.shape[1:]), value.dtype)
        padded[: value.shape[0]] = value
        if not padded.size:
            return value.copy()
        whole = self._gather(padded[None], name)
        return xp.concatenate([whole[i, :n] for i, n in enumerate(lengths)])

    def _reduce_scatter(self, value: Any, name: str) -> Any:
        given = self._xp.ascontiguousarray(value)
        shape = (value.shape[0] // self.nranks, *value.shape[1:])
        result = self._xp.empty(shape, value.dtype)
        self._comm.reduceScatter(
            given.data.ptr,
            result.data.ptr,
            result.size,
            _dtype(given, name),
            _OPS["sum"],
            self._stream(f"reduce_scatter of {name}"),
        )
        return result

    def barrier(self) -> None:
        self._reduce([self._xp.zeros(1, np.float32)], "sum", ["barrier"])
        self.settle()

    def settle(self) -> None:
        """Wait for the stream, with a bound; ClusterError if NCCL failed."""
        event = cuda.event()
        deadline = self._world.config.deadline
        begun = time.monotonic()
        while not event.done:
            error = self._comm.check_async_error()
            if error not in (0, None, _IN_PROGRESS):
                self._comm.abort()
                raise ClusterError(
                    f"ring {self.label}, rank {self.rank}: NCCL failed with {error} in "
                    f"or before {self._last}: a rank is gone?"
                )
            if time.monotonic() - begun > deadline:
                self._comm.abort()
                raise WaitTimeout(
                    f"ring {self.label}, rank {self.rank}: waited for {deadline:g} s "
                    f"in or before {self._last}"
                )
            time.sleep(_PAUSE)

    def close(self) -> None:
        self._comm.destroy()


def _dtype(value: Any, name: str) -> int:
    kind = _DTYPES.get(value.dtype.name)
    if kind is None:
        raise ClusterError(f"collective ops cannot reduce {value.dtype} ({name})")
    return kind
