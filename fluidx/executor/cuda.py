"""The one module that touches CuPy."""

from __future__ import annotations

import functools
import importlib
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import CUDAPlace, Place

__all__ = [
    "SideStream",
    "array_module",
    "cuda_profile",
    "current_stream",
    "device_count",
    "event",
    "module",
    "nccl",
    "to_host",
]


@functools.cache
def _cupy() -> Any:
    try:
        import cupy
    except ImportError:
        raise EnforceNotMet(
            "CUDAPlace needs CuPy: install fluidx with the extra cuda13 "
            "(pip install 'fluidx[cuda13]'), or use CPUPlace()"
        ) from None
    return cupy


def device_count() -> int:
    """How many CUDA devices this process can use (0 without CuPy or driver)."""
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except Exception:
        return 0


def cuda_profile() -> Any:
    """A context in which profilers that wait for the program's word record."""
    return importlib.import_module(f"{_cupy().__name__}x.profiler").profile()


def array_module(place: Place) -> Any:
    """numpy for CPU places; CuPy, with the device made current, for CUDA places.

    EnforceNotMet: no CuPy, no driver, or no such device.
    """
    if not isinstance(place, CUDAPlace):
        return np
    cupy = _cupy()
    count = device_count()
    if place.device_id >= count:
        found = f"{count} device(s)" if count else "no usable CUDA device"
        raise EnforceNotMet(
            f"CUDAPlace({place.device_id}): this machine has {found}; use CPUPlace()"
        )
    cupy.cuda.Device(place.device_id).use()
    return cupy


def module() -> Any:
    """CuPy itself."""
    return _cupy()


def nccl() -> Any:
    """CuPy's NCCL binding. EnforceNotMet where it cannot be loaded."""
    _cupy()
    try:
        from cupy.cuda import nccl as binding

        binding.get_version()
    except (ImportError, AttributeError, RuntimeError) as error:
        raise EnforceNotMet(
            "collective ops on CUDAPlace need NCCL: install fluidx with the extra "
            f"cuda13 (pip install 'fluidx[cuda13]'). {error}"
        ) from None
    return binding


def current_stream() -> Any:
    """The stream that kernels of this thread run on."""
    return _cupy().cuda.get_current_stream()


def event() -> Any:
    """An event recorded now on the current stream; ``done`` tells of its end."""
    made = _cupy().cuda.Event(disable_timing=True)
    made.record(current_stream())
    return made


class SideStream:
    """Copies of arrays to a device, beside what it computes.

    The memory belongs to the stream that computes, so it can be freed and used again
    as any other; the copy waits until what used it before is done.
    """

    def __init__(self) -> None:
        self._cuda = _cupy().cuda
        self._stream = self._cuda.Stream(non_blocking=True)
        self._pinned: deque[tuple[Any, list[Any]]] = deque()

    def send(self, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        """Begin to copy numpy arrays; gives them on the device, and when that is done.

        Nothing may use them before `meet`. Arrays that a device cannot hold stay.
        """
        while self._pinned and self._pinned[0][0].done:
            self._pinned.popleft()
        cupy = _cupy()
        sent = [i for i, a in enumerate(arrays) if a.size and a.dtype.kind in "biufc"]
        hosts = [self._pin(arrays[i]) for i in sent]
        found = list(arrays)
        for i in sent:
            found[i] = cupy.empty(arrays[i].shape, arrays[i].dtype)
        self._stream.wait_event(event())
        for i, host in zip(sent, hosts):
            found[i].set(host, stream=self._stream)
        done = self._cuda.Event(disable_timing=True)
        done.record(self._stream)
        self._pinned.append((done, hosts))
        return found, done

    def _pin(self, array: Any) -> Any:
        """A copy in memory that the device reads by itself."""
        memory = self._cuda.alloc_pinned_memory(array.nbytes)
        host = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        np.copyto(host, array)
        return host

    def meet(self, done: Any) -> None:
        """What this thread's stream computes from here on finds the copies done."""
        current_stream().wait_event(done)


def to_host(value: Any) -> Any:
    """A numpy array of an array of either kind."""
    return value.get() if hasattr(value, "get") else value
