"""Arrays of all workers of a fleet."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.executor import hooks
from fluidx.tensor import CPUPlace

__all__ = ["exchange"]


def exchange(fleet: Any, array: Any) -> list[Any]:
    """The arrays that all workers came with, by worker; of one dtype and any length.

    Travels over ring 0 of the collective group; if none is open, the way that the
    fleet's role maker knows. RuntimeError: there is none.
    """
    world = hooks.world(CPUPlace()) if hooks.world is not None else None
    if world is None or not world.has(0):
        return _met(fleet, array)
    group = world.group(0)
    sizes = group.all_gather(np.array([len(array)], np.int64), "sizes of samples")
    most = max(1, int(sizes.max()))
    padded = np.zeros(most, array.dtype)
    padded[: len(array)] = array
    rows = group.all_gather(padded, "samples").reshape(len(sizes), most)
    return [row[: int(size)] for row, size in zip(rows, sizes)]


def _met(fleet: Any, array: Any) -> list[Any]:
    role = getattr(fleet, "_role_maker", None)
    if role is None:
        raise RuntimeError(
            f"the {fleet.worker_num()} workers of the fleet have no collective group "
            "to exchange samples over; shuffle locally, or run with `fluidx launch`"
        )
    found: list[Any] = role._gather("workers", "samples", np.ascontiguousarray(array))
    return found
