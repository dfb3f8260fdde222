"""Collective ops between processes: which backend carries them, and its rings.

In a role of an `InProcessCluster`: in-process. On a CUDA place: NCCL. Started by
``mpiexec`` (or ``fluidx launch --collective``): MPI. Else a process is alone, and a
program of several ranks gets an error that says how to start it.
"""

from __future__ import annotations

import os
from typing import Any

from fluidx.distributed.transport import current_network
from fluidx.tensor import CUDAPlace

from .base import BaseWorld, Traffic
from .environment import adopt, under_mpi

__all__ = ["Traffic", "adopt", "close", "traffic", "world"]

_worlds: dict[str, BaseWorld] = {}


def world(place: Any) -> BaseWorld:
    """The world of this process, or of the in-process role that runs here."""
    network = current_network.get()
    if network is not None:
        from .inprocess import world_of

        return world_of(network)
    kind = "nccl" if isinstance(place, CUDAPlace) else "host"
    found = _worlds.get(kind)
    if found is None:
        found = _worlds[kind] = _make(kind)
    return found


def _make(kind: str) -> BaseWorld:
    mpi = under_mpi(os.environ)
    if kind == "nccl":
        from fluidx.tensor import CPUPlace

        from .nccl import NcclWorld

        return NcclWorld(world(CPUPlace()) if mpi else None)
    if mpi:
        from .mpi import MpiWorld

        return MpiWorld()
    from .alone import AloneWorld

    return AloneWorld()


def traffic(place: Any = None) -> dict[int, dict[str, Traffic]]:
    """ring -> kind of collective -> calls of this process and their bytes."""
    return world(place).traffic()


def close() -> None:
    """Close all rings of this process; a startup program opens them again."""
    while _worlds:
        _worlds.popitem()[1].close()
