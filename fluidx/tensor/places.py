"""Places: where a program runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CPUPlace", "CUDAPlace", "CUDAPinnedPlace", "Place", "cpu_places"]


class Place:
    """Base of all places."""


@dataclass(frozen=True)
class CPUPlace(Place):
    """The processor; arrays are numpy's.

    >>> CPUPlace() == CPUPlace(), str(CPUPlace())
    (True, 'CPUPlace')
    """

    def __str__(self) -> str:
        return "CPUPlace"


@dataclass(frozen=True)
class CUDAPlace(Place):
    """One NVIDIA GPU, by index; arrays are CuPy's (extra ``cuda13``)."""

    device_id: int = 0

    def __post_init__(self) -> None:
        if self.device_id < 0:
            raise ValueError(f"CUDAPlace: an index from 0 on, not {self.device_id}")

    def __str__(self) -> str:
        return f"CUDAPlace({self.device_id})"


@dataclass(frozen=True)
class CUDAPinnedPlace(Place):
    """Host memory that a GPU can read directly; arrays are numpy's."""

    def __str__(self) -> str:
        return "CUDAPinnedPlace"


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """As many CPU places as asked for, by default ``CPU_NUM`` or 1."""
    import os

    count = device_count or int(os.environ.get("CPU_NUM", "1"))
    return [CPUPlace()] * count
