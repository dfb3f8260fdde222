"""Phase planes: padded images laid out so that every tap of a window is a shift.

With stride s the taps of all windows read s * s phases of the padded image (every s-th
row and column). Rows of a phase are as long for windows as for the image, so the
windows of a whole image run through one stretch of memory for each tap: long inner
loops even where rows are short. The values between the rows are junk and left out.

Compiled functions get an axis as the plain tuple of `window.Axis` with the length of a
phase added: (size, kernel, stride, dilation, before, after, out, extent).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fluidx.kernels.scratch import scratch
from fluidx.kernels.window import Axis

from .vectors import JIT, copy, split, zip_rows

__all__ = ["Layout", "buffers", "fill", "layout", "read", "squeeze", "widen"]


class Layout(NamedTuple):
    """Both axes, and the taps of the window in phase planes.

    taps: (4, taps) by row: where the first window's tap is; then, with taps in order
    of their phases: their numbers, and their places inside their phase. first: where
    each phase starts in that order. size: of one phase; lead: the largest place.
    """

    y: tuple[int, ...]
    x: tuple[int, ...]
    shifts: Any
    order: Any
    places: Any
    first: Any
    phases: int
    size: int
    lead: int


@lru_cache(maxsize=1024)
def layout(y: Axis, x: Axis) -> Layout | None:
    """The phase planes of a window; None where they are not made for it."""
    if min(y.before, y.after, x.before, x.after) < 0:
        return None
    if min(y.size, y.out, x.size, x.out) < 1:
        return None
    height, width = (a.out + (a.kernel - 1) * a.dilation // a.stride for a in (y, x))
    row = np.repeat(np.arange(y.kernel) * y.dilation, x.kernel)
    column = np.tile(np.arange(x.kernel) * x.dilation, y.kernel)
    phase = row % y.stride * x.stride + column % x.stride
    place = row // y.stride * width + column // x.stride
    order = np.argsort(phase, kind="stable")
    phases, size = y.stride * x.stride, height * width
    return Layout(
        (*y, height),
        (*x, width),
        phase * size + place,
        order,
        place[order],
        np.searchsorted(phase[order], np.arange(phases + 1)),
        phases,
        size,
        int(place.max()),
    )


def buffers(plan: Layout, count: int = 1, padding: float = 0.0) -> tuple[Any, ...]:
    """The phase planes of an image, full of padding, and `count` arrays of wide
    windows with `lead` places before them, full of zeros."""
    planes = scratch(np, "compiled planes", (plan.phases * plan.size,), np.float32)
    planes[...] = padding
    shape = (count, plan.lead + plan.size)
    wide = scratch(np, "compiled wide", shape, np.float32)
    wide[...] = 0
    return planes, *wide


@njit(**JIT)
def _span(axis: Any, phase: Any) -> Any:
    """(first place in a phase, position there, places) that lie inside the image."""
    size, stride, before = axis[0], axis[2], axis[4]
    first = max(0, -((phase - before) // stride))
    position = first * stride + phase - before
    inside = (size - position + stride - 1) // stride
    return first, position, max(0, min(axis[7] - first, inside))


@njit(**JIT)
def _halves(x: Any) -> Any:
    """Stride 2: where the image's even and odd columns go, and how many pairs."""
    size, before, width = x[0], x[4], x[7]
    even, odd = before // 2, (before + 1) // 2
    pairs = min(size // 2, width - even, width - odd)
    return even, odd, max(pairs, 0)


@njit(**JIT)
def fill(image: Any, planes: Any, y: Any, x: Any) -> None:
    """Write a flat image into its phase planes; padding stays as it is."""
    for a in range(y[2]):
        top, at_y, rows = _span(y, a)
        place = (a * x[2] * y[7] + top) * x[7]
        if x[2] == 1:
            left, at_x, columns = _span(x, 0)
            for r in range(rows):
                start = (at_y + r * y[2]) * x[0] + at_x
                copy(planes, place + r * x[7] + left, image, start, columns)
            continue
        done = 0
        if x[2] == 2:
            even, odd, done = _halves(x)
            even += x[4] % 2 * y[7] * x[7]
            odd += (x[4] + 1) % 2 * y[7] * x[7]
            for r in range(rows):
                start, row = (at_y + r * y[2]) * x[0], place + r * x[7]
                split(planes, row + even, row + odd, image, start, done)
        for b in range(x[2]):
            left, at_x, columns = _span(x, b)
            skip = max(0, (2 * done - at_x + 1) // 2) if done else 0
            for r in range(rows if skip < columns else 0):
                start = (at_y + r * y[2]) * x[0] + at_x
                row = place + (b * y[7] + r) * x[7] + left
                for t in range(skip, columns):
                    planes[row + t] = image[start + t * x[2]]


@njit(**JIT)
def read(planes: Any, image: Any, y: Any, x: Any) -> None:
    """Read a flat image back from its phase planes; what they lack becomes zero."""
    if y[7] * y[2] < y[0] + y[4] or x[7] * x[2] < x[0] + x[4]:
        image[:] = 0
    for a in range(y[2]):
        top, at_y, rows = _span(y, a)
        place = (a * x[2] * y[7] + top) * x[7]
        if x[2] == 1:
            left, at_x, columns = _span(x, 0)
            for r in range(rows):
                start = (at_y + r * y[2]) * x[0] + at_x
                copy(image, start, planes, place + r * x[7] + left, columns)
            continue
        done = 0
        if x[2] == 2:
            even, odd, done = _halves(x)
            even += x[4] % 2 * y[7] * x[7]
            odd += (x[4] + 1) % 2 * y[7] * x[7]
            for r in range(rows):
                start, row = (at_y + r * y[2]) * x[0], place + r * x[7]
                zip_rows(image, start, planes, row + even, row + odd, done)
        for b in range(x[2]):
            left, at_x, columns = _span(x, b)
            skip = max(0, (2 * done - at_x + 1) // 2) if done else 0
            for r in range(rows if skip < columns else 0):
                start = (at_y + r * y[2]) * x[0] + at_x
                row = place + (b * y[7] + r) * x[7] + left
                for t in range(skip, columns):
                    image[start + t * x[2]] = planes[row + t]


@njit(**JIT)
def widen(rows: Any, wide: Any, lead: Any, y: Any, x: Any) -> None:
    """Windows (out rows * out columns) into zeros, a phase's row apart."""
    for r in range(y[6]):
        copy(wide, lead + r * x[7], rows, r * x[6], x[6])


@njit(**JIT)
def squeeze(wide: Any, rows: Any, y: Any, x: Any) -> None:
    """The inverse of `widen`, without a lead."""
    for r in range(y[6]):
        copy(rows, r * x[6], wide, r * x[7], x[6])
