"""Convolution with one channel per group (see `depthwise` in the parent package)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fluidx.kernels.threads import share

from .planes import Layout, buffers, fill, read, squeeze, widen
from .taps import correlate, products, spread
from .vectors import JIT

__all__ = ["backward", "forward"]


@njit(**JIT)
def _forward(
    begin: Any,
    end: Any,
    images: Any,
    kernels: Any,
    out: Any,
    axes: Any,
    shifts: Any,
    planes: Any,
    wide: Any,
) -> None:
    """Channels begin to end of images (n, channels, size); kernels (channels, taps)."""
    y, x = axes
    total = wide[: (y[6] - 1) * x[7] + x[6]]
    for c in range(begin, end):
        for n in range(len(images)):
            fill(images[n, c], planes, y, x)
            if x[7] == x[6]:
                correlate(planes, shifts, kernels[c], out[n, c])
            else:
                correlate(planes, shifts, kernels[c], total)
                squeeze(total, out[n, c], y, x)


def forward(images: Any, weight: Any, plan: Layout) -> Any:
    """The convolution of contiguous float32 images (n, channels, height, width)."""
    n, channels = images.shape[:2]
    out = np.empty((n, channels, plan.y[6], plan.x[6]), np.float32)
    given = (
        images.reshape(n, channels, -1),
        weight.reshape(channels, -1),
        out.reshape(n, channels, -1),
        (plan.y, plan.x),
        plan.shifts,
    )

    def work(begin: int, end: int) -> None:
        _forward(begin, end, *given, *buffers(plan))

    share(channels, images.size, work)
    return out


@njit(**JIT)
def _grad_images(
    begin: Any,
    end: Any,
    given: Any,
    kernels: Any,
    out: Any,
    axes: Any,
    table: Any,
    planes: Any,
    wide: Any,
) -> None:
    y, x = axes
    order, places, first, lead = table
    for c in range(begin, end):
        for n in range(len(given)):
            widen(given[n, c], wide, lead, y, x)
            spread(wide, lead, order, places, first, kernels[c], planes)
            read(planes, out[n, c], y, x)


@njit(**JIT)
def _grad_kernels(
    begin: Any,
    end: Any,
    images: Any,
    given: Any,
    out: Any,
    axes: Any,
    shifts: Any,
    planes: Any,
    wide: Any,
) -> None:
    y, x = axes
    used = wide[: (y[6] - 1) * x[7] + x[6]]
    for c in range(begin, end):
        for n in range(len(given)):
            fill(images[n, c], planes, y, x)
            widen(given[n, c], wide, 0, y, x)
            products(planes, shifts, used, out[c])


def backward(
    images: Any, weight: Any, given: Any, plan: Layout, wants: tuple[bool, ...]
) -> tuple[Any, Any]:
    """The gradients of images and weight, where wanted."""
    n, channels = images.shape[:2]
    d_images = np.empty(images.shape, np.float32) if wants[0] else None
    d_weight = np.zeros(weight.shape, np.float32) if wants[1] else None
    flat, d_flat = (a.reshape(n, channels, -1) for a in (images, given))
    axes = plan.y, plan.x
    table = plan.order, plan.places, plan.first, plan.lead

    def work(begin: int, end: int) -> None:
        if d_images is not None:
            into, kernels = d_images.reshape(flat.shape), weight.reshape(channels, -1)
            spare = buffers(plan)
            _grad_images(begin, end, d_flat, kernels, into, axes, table, *spare)
        if d_weight is not None:
            into, spare = d_weight.reshape(channels, -1), buffers(plan)
            _grad_kernels(begin, end, flat, d_flat, into, axes, plan.shifts, *spare)

    share(channels, images.size, work)
    return d_images, d_weight
