"""Compiled pooling of images and volumes, with its gradients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from fluidx.kernels import compiled
from fluidx.kernels.pool import WINDOW, geometry_of
from fluidx.kernels.pool_windows import Geometry, counts, is_padded, lowest, tiles
from fluidx.kernels.registry import declared, takes
from fluidx.kernels.scratch import scratch
from fluidx.kernels.threads import share
from fluidx.kernels.window import Axis

from . import windows
from .maxima import find, hand_back, maxima
from .planes import Layout, buffers, fill, layout, read, squeeze, widen
from .taps import correlate, spread
from .vectors import JIT, corners

__all__ = ["pool2d", "pool2d_grad"]

_LOWEST = np.float32(lowest(np.float32))
# floats of stacked images: their phase planes and windows stay in the second cache
_BLOCK = 8192
# the depth of an image
_FLAT = Axis(1, 1, 1, 1, 0, 0, 1)
_INFINITE = np.float32(-np.inf)


@njit(**JIT)
def _largest(
    images: Any, least: Any, plan: Any, shifts: Any, planes: Any, wide: Any, out: Any
) -> None:
    """images (planes, size) into out (planes, windows)."""
    y, x = plan
    total = wide[: (y[6] - 1) * x[7] + x[6]]
    for p in range(len(images)):
        fill(images[p], planes, y, x)
        if x[7] == x[6]:
            maxima(planes, shifts, least, out[p])
        else:
            maxima(planes, shifts, least, total)
            squeeze(total, out[p], y, x)


@njit(**JIT)
def _sums(
    images: Any, ones: Any, plan: Any, shifts: Any, planes: Any, wide: Any, out: Any
) -> None:
    y, x = plan
    total = wide[: (y[6] - 1) * x[7] + x[6]]
    for p in range(len(images)):
        fill(images[p], planes, y, x)
        if x[7] == x[6]:
            correlate(planes, shifts, ones, out[p])
        else:
            correlate(planes, shifts, ones, total)
            squeeze(total, out[p], y, x)


@njit(**JIT)
def _largest_back(
    images: Any,
    best: Any,
    given: Any,
    axes: Any,
    shifts: Any,
    reach: Any,
    spare: Any,
    out: Any,
) -> None:
    """Volumes (planes, depth, height * width); axes: z, y and x."""
    z, y, x = axes
    planes, wide, at = spare
    used = (y[6] - 1) * x[7] + x[6]
    for p in range(len(images)):
        out[p] = 0
        for k in range(z[6]):
            first = k * z[2] - z[4]
            for tap in range(z[1]):
                if 0 <= first + tap < z[0]:
                    fill(images[p, first + tap], planes[tap], y, x)
                else:
                    planes[tap] = np.nan  # equals nothing
            flat = planes.reshape(-1)
            if x[7] == x[6]:
                find(flat, shifts, best[p, k], reach, at)
            else:
                widen(best[p, k], wide, 0, y, x)
                find(flat, shifts, wide[:used], reach, at[:used])
            hand_back(at, given[p, k], first * y[0] * x[0], out[p].reshape(-1), y, x)


@njit(**JIT)
def _corners_back(x: Any, best: Any, given: Any, out: Any, width: Any) -> None:
    """Windows of 2 by 2 side by side; all flat, rows of `width` windows."""
    for r in range(len(best) // width):
        first = 4 * r * width
        second = first + 2 * width
        corners(x, first, second, best, given, r * width, out, width)


@njit(**JIT)
def _sums_back(
    given: Any, ones: Any, plan: Any, table: Any, planes: Any, wide: Any, out: Any
) -> None:
    y, x = plan
    order, places, first, lead = table
    for p in range(len(given)):
        widen(given[p], wide, lead, y, x)
        spread(wide, lead, order, places, first, ones, planes)
        read(planes, out[p], y, x)


def _stacked(planes: int, g: Geometry) -> tuple[int, Layout | None]:
    """How many images are worked on as one, on top of each other, and its layout.

    Where windows lie side by side and cover the image, stacked images are one image:
    small ones then cost no more per element than large ones.
    """
    if len(g.axes) != 2:
        return 1, None
    y, x = g.axes
    many = 1
    if all(
        a.before == a.after == 0 and a.stride == a.kernel and a.out * a.stride == a.size
        for a in g.axes
    ):
        most = min(max(_BLOCK // (y.size * x.size), 1), planes)
        many = next(m for m in range(most, 0, -1) if planes % m == 0)
    return many, layout(y._replace(size=y.size * many, out=y.out * many), x)


def _counts(g: Geometry, exclusive: bool) -> Any:
    made = counts(np, g, exclusive, np.float32)
    return made if isinstance(made, np.ndarray) else np.float32(made)


def _slide(
    x: Any, g: Geometry, many: int, plan: Layout, kind: str, exclusive: bool
) -> Any:
    """Pool contiguous images by phase planes."""
    out = np.empty((*x.shape[:2], plan.y[6] // many, plan.x[6]), np.float32)
    axes, count = (plan.y, plan.x), len(x) * x.shape[1] // many
    images, into = x.reshape(count, -1), out.reshape(count, -1)
    if kind == "max":
        run, first = _largest, _LOWEST if is_padded(g) else _INFINITE
    else:
        run, first = _sums, _ones(len(plan.shifts))

    def work(begin: int, end: int) -> None:
        spare = buffers(plan, padding=first if kind == "max" else 0.0)
        some = images[begin:end]
        run(some, first, axes, plan.shifts, *spare, into[begin:end])

    share(count, x.size, work)
    if kind == "avg":
        out /= _counts(g, exclusive)
    return out


def _largest_to(x: Any, out: Any, given: Any, g: Geometry) -> Any:
    """The gradient of sliding maxima; None where there is no layout for them."""
    into = np.empty(x.shape, np.float32)
    if len(g.axes) == 2 and tiles(g) and all(a.kernel == 2 for a in g.axes):
        width = g.axes[1].out
        pairs = [a.reshape(-1, 2 * width, 2) for a in (x, into)]
        ones = [a.reshape(-1, width) for a in (out, given)]

        def some_rows(begin: int, end: int) -> None:
            flat = [a[begin:end].reshape(-1) for a in (pairs[0], *ones, pairs[1])]
            _corners_back(*flat, width)

        share(len(ones[0]), x.size, some_rows)
        return into
    if len(g.axes) == 2:
        count, plan = _stacked(len(x) * x.shape[1], g)
        z = _FLAT
    else:
        count, plan = 1, layout(*g.axes[1:])
        z = g.axes[0]
    if plan is None or min(z.before, z.after) < 0:
        return None
    volumes = len(x) * x.shape[1] // count
    shape, many = (volumes, z.size, -1), (volumes, z.out, -1)
    images, best, d = x.reshape(shape), out.reshape(many), given.reshape(many)
    axes, reach, back = (tuple(z), plan.y, plan.x), _reach(z, plan), into.reshape(shape)

    def work(begin: int, end: int) -> None:
        planes, wide = buffers(plan)
        planes = scratch(np, "compiled volumes", (z.kernel, len(planes)), np.float32)
        planes[...] = np.nan  # it equals nothing
        spare = planes, wide, scratch(np, "compiled places", wide.shape, np.int32)
        some = [a[begin:end] for a in (images, best, d)]
        _largest_back(*some, axes, *reach, spare, back[begin:end])

    share(volumes, x.size, work)
    return into


def _sums_to(x: Any, given: Any, g: Geometry, exclusive: bool) -> Any:
    """The gradient of sliding averages of images, in the same way."""
    count, plan = _stacked(len(x) * x.shape[1], g)
    if plan is None:
        return None
    into = np.empty(x.shape, np.float32)
    rows = len(x) * x.shape[1] // count
    shared = (given / _counts(g, exclusive)).reshape(rows, -1)
    table = plan.order, plan.places, plan.first, plan.lead
    back, axes, ones = into.reshape(rows, -1), (plan.y, plan.x), _ones(len(plan.shifts))

    def work(begin: int, end: int) -> None:
        spare = buffers(plan)
        _sums_back(shared[begin:end], ones, axes, table, *spare, back[begin:end])

    share(rows, x.size, work)
    return into


def _reach(z: Axis, plan: Layout) -> tuple[Any, Any]:
    """Where taps are in the stacked planes of a window, and how far from what the
    window's first tap reads."""
    y, x = plan.y, plan.x
    each = np.arange(z.kernel)[:, None]
    shifts = each * (plan.phases * plan.size) + plan.shifts
    row, column = np.arange(y[1]) - y[4], np.arange(x[1]) - x[4]
    reach = each * (y[0] * x[0]) + (row[:, None] * x[0] + column).reshape(-1)
    return shifts.reshape(-1), reach.reshape(-1).astype(np.int32)


@lru_cache(maxsize=64)
def _ones(count: int) -> Any:
    return np.ones(count, np.float32)


def _bounds(g: Geometry) -> list[Any]:
    """The (start, stop) of uneven windows along three axes."""
    assert g.bounds is not None
    made = [np.array(ends, np.int64) for ends in g.bounds]
    return [np.array([[0, 1]])] * (3 - len(made)) + made


def _volumes(array: Any) -> Any:
    """(planes, depth, height, width)."""
    size = array.shape[2:]
    return array.reshape(-1, *(1,) * (3 - len(size)), *size)


def _each(x: Any, g: Geometry, kind: str, exclusive: bool) -> Any:
    """Pool window by window."""
    out = np.empty((*x.shape[:2], *(a.out for a in g.axes)), np.float32)
    z, y, columns = _bounds(g)
    into = _volumes(out)
    if kind == "max":
        windows.largest(_volumes(x), z, y, columns, _INFINITE, into)
    else:
        shared = np.full(into.shape[1:], _counts(g, exclusive), np.float32)
        windows.averages(_volumes(x), z, y, columns, shared, into)
    return out


def _each_back(
    x: Any, out: Any, given: Any, g: Geometry, kind: str, exclusive: bool
) -> Any:
    into = np.empty(x.shape, np.float32)
    if kind == "max" and all(a.out == 1 for a in g.axes):
        rows = len(x) * x.shape[1], -1
        best, d = out.reshape(-1), given.reshape(-1)
        windows.whole_back(x.reshape(rows), best, d, into.reshape(rows))
        return into
    z, y, columns = _bounds(g)
    given = _volumes(given)
    if kind == "max":
        windows.largest_back(
            _volumes(x), _volumes(out), given, z, y, columns, _volumes(into)
        )
    else:
        shared = np.full(given.shape[1:], _counts(g, exclusive), np.float32)
        windows.averages_back(given, z, y, columns, shared, _volumes(into))
    return into


def _fits(window: dict[str, Any], *arrays: Any) -> bool:
    return (
        arrays[0].size >= max(compiled.SMALLEST, 1)
        and window["data_format"] not in ("NHWC", "NDHWC")
        and all(a.dtype == np.float32 and a.flags.c_contiguous for a in arrays)
    )


@takes(WINDOW)
def pool2d(xp: Any, x: Any, **window: Any) -> Any:
    """pool2d and pool3d."""
    kind, exclusive = window["pooling_type"], window["exclusive"]
    if _fits(window, x) and window["global_pooling"] and kind == "avg":
        out = np.empty(x.shape[:2] + (1,) * (x.ndim - 2), np.float32)
        windows.whole_averages(x.reshape(out.size, -1), out.reshape(-1))
        return out
    if _fits(window, x) and not window["global_pooling"]:
        g = geometry_of(x.shape[2:], window)
        if g.bounds is not None:
            return _each(x, g, kind, exclusive)
        many, plan = _stacked(len(x) * x.shape[1], g)
        if plan is not None:
            return _slide(x, g, many, plan, kind, exclusive)
    run: Any = declared("pool2d").run
    return run(xp, x, **window)


@takes(WINDOW)
def pool2d_grad(xp: Any, x: Any, out: Any, d_out: Any, **window: Any) -> Any:
    """pool2d_grad and pool3d_grad."""
    kind, exclusive = window["pooling_type"], window["exclusive"]
    if _fits(window, x, out, d_out):
        g = geometry_of(x.shape[2:], window)
        made = None
        if g.bounds is not None:
            made = _each_back(x, out, d_out, g, kind, exclusive)
        elif kind == "max":
            made = _largest_to(x, out, d_out, g)
        elif len(g.axes) == 2:
            made = _sums_to(x, d_out, g, exclusive)
        if made is not None:
            return made
    run: Any = declared("pool2d_grad").run
    return run(xp, x, out, d_out, **window)
