"""The one module that touches CuPy."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import CUDAPlace, Place

__all__ = [
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


def to_host(value: Any) -> Any:
    """A numpy array of an array of either kind."""
    return value.get() if hasattr(value, "get") else value
