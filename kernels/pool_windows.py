"""Array code of pooling over any number of axes.

Maxima and sums are taken along one axis after the other: as many passes over whole
arrays as the kernel's sizes add up to, no reduction over a short axis. Images are
(n, channels, size, ...), of any strides; window axes are counted from axis 2 on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import pool_phases
from .scratch import scratch
from .window import Axis, Fail, explicit_pads, plan_axis

__all__ = [
    "Geometry",
    "at",
    "avg_grad",
    "counts",
    "geometry",
    "is_padded",
    "lowest",
    "max_grad",
    "pool",
    "raise_error",
    "taps",
    "tiles",
]

Bounds = list[tuple[int, int]]
# up to so many elements, the fewest calls win
FEW = 16384


class Geometry(NamedTuple):
    """A resolved pooling.

    axes: one sliding window per axis. bounds: per axis the (start, stop) of each
    window, for adaptive pooling that does not divide evenly; else None.
    """

    axes: tuple[Axis, ...]
    bounds: tuple[Bounds, ...] | None = None


def raise_error(message: str) -> None:
    raise ValueError(message)


def geometry(
    size: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str = "EXPLICIT",
    ceil_mode: bool = False,
    global_pooling: bool = False,
    adaptive: bool = False,
    fail: Fail = raise_error,
) -> Geometry:
    """How an input of this size (without batch and channels) is pooled."""
    if global_pooling:
        whole = (plan_axis(n, n, 1, 1, (0, 0), "VALID") for n in size)
        return Geometry(tuple(a._replace(out=1) for a in whole))
    if adaptive:
        axes = tuple(_adaptive_axis(n, k) for n, k in zip(size, ksize))
        if all(a.kernel * a.out == a.size for a in axes):
            return Geometry(axes)
        return Geometry(axes, tuple(_adaptive_bounds(a) for a in axes))
    pads = explicit_pads(paddings, fail, len(size))
    return Geometry(
        tuple(
            plan_axis(n, k, s, 1, p, algorithm, ceil_mode)
            for n, k, s, p in zip(size, ksize, strides, pads)
        )
    )


def _adaptive_axis(size: int, out: int) -> Axis:
    """The axis of an adaptive pooling whose windows are all alike."""
    kernel = max(size // out, 1)
    return Axis(size, kernel, kernel, 1, 0, 0, out)


def _adaptive_bounds(a: Axis) -> Bounds:
    return [(o * a.size // a.out, -(-(o + 1) * a.size // a.out)) for o in range(a.out)]


def lowest(dtype: Any) -> float:
    """What a window without elements has as its maximum (as in the reference)."""
    return float(np.finfo(dtype).min)


def taps(axes: Sequence[Axis]) -> Iterator[tuple[Any, Any]]:
    """(windows, what they read), as index tuples, for each tap of the window."""
    every = ([a.inside(tap) for tap in range(a.kernel)] for a in axes)
    for chosen in itertools.product(*every):
        yield (..., *(w for w, _ in chosen)), (..., *(there for _, there in chosen))


def _cells(bounds: Sequence[Bounds]) -> Iterator[tuple[Any, Any]]:
    """The same for each window of an uneven pooling."""
    every = (
        [(slice(o, o + 1), slice(*ends)) for o, ends in enumerate(axis)]
        for axis in bounds
    )
    for chosen in itertools.product(*every):
        yield (..., *(w for w, _ in chosen)), (..., *(there for _, there in chosen))


def is_padded(g: Geometry) -> bool:
    """Whether a sliding window reaches out of the input anywhere."""
    return any(
        a.before > 0 or (a.out - 1) * a.stride - a.before + a.kernel > a.size
        for a in g.axes
    )


def counts(xp: Any, g: Geometry, exclusive: bool, dtype: Any) -> Any:
    """What the sums of an average are divided by: a number, or an array of windows.

    A window without elements has count 1, and so average 0.
    """
    if g.bounds is not None:
        each = [[stop - start for start, stop in ends] for ends in g.bounds]
    else:
        if not is_padded(g) or not exclusive:
            product = 1
            for a in g.axes:
                product *= a.kernel
            return product
        each = [
            [
                max(min(start + a.kernel, a.size) - max(start, 0), 1)
                for start in range(-a.before, a.out * a.stride - a.before, a.stride)
            ]
            for a in g.axes
        ]
    total = xp.asarray(each[0], dtype)
    for more in each[1:]:
        total = total[..., None] * xp.asarray(more, dtype)
    return total


def at(axis: int, index: slice) -> tuple[slice, ...]:
    """The index tuple that says something of one axis only."""
    return (*(slice(None),) * axis, index)


def _slide(
    xp: Any, combine: Callable[..., Any], start: float, x: Any, a: Axis, axis: int
) -> Any:
    """Combine what the taps of one axis read, over all windows."""
    spans = [a.inside(tap) for tap in range(a.kernel)]
    whole = [
        there
        for windows, there in spans
        if windows.start == 0 and windows.stop == a.out
    ]
    if len(whole) == len(spans):  # no padding: no array to initialise
        if len(spans) == 1:
            return x[at(axis, whole[0])]
        out = combine(x[at(axis, whole[0])], x[at(axis, whole[1])])
        rest = [(slice(None), there) for there in whole[2:]]
    else:
        shape = list(x.shape)
        shape[axis] = a.out
        out = xp.full(shape, start, x.dtype)
        rest = spans
    for windows, there in rest:
        part = out[at(axis, windows)]
        combine(part, x[at(axis, there)], out=part)
    return out


def _uneven(xp: Any, x: Any, bounds: Sequence[Bounds], kind: str) -> Any:
    """Windows of unequal size: one reduction for each row of windows."""
    for axis, ends in enumerate(bounds, 2):
        parts = [
            getattr(x[at(axis, slice(*where))], kind)(axis, keepdims=True)
            for where in ends
        ]
        x = xp.concatenate(parts, axis)
    return x


def pool(xp: Any, x: Any, g: Geometry, kind: str, exclusive: bool = True) -> Any:
    """The "max" or "avg" of each window; an array of its own."""
    if g.bounds is not None:
        out = _uneven(xp, x, g.bounds, "max" if kind == "max" else "sum")
    else:
        combine = xp.maximum if kind == "max" else xp.add
        start = lowest(x.dtype) if kind == "max" else 0.0
        out = x
        for axis, a in enumerate(g.axes, 2):
            out = _slide(xp, combine, start, out, a, axis)
        if all(a.kernel == 1 for a in g.axes):
            out = out.copy()
    if kind == "avg":
        out /= counts(xp, g, exclusive, x.dtype)
    return out


def tiles(g: Geometry) -> bool:
    """Whether the windows cover the input, each element once, without padding."""
    return all(
        a.stride == a.kernel and a.before == 0 and a.out * a.kernel == a.size
        for a in g.axes
    )


def max_grad(xp: Any, x: Any, out: Any, d_out: Any, g: Geometry) -> Any:
    """The gradient goes to the first maximum of each window, row by row."""
    if g.bounds is not None:
        return _uneven_max_grad(xp, x, d_out, g.bounds)
    whole = tiles(g)
    if len(g.axes) == 2 and not whole and x.size > FEW:
        return pool_phases.max_grad(xp, x, out, d_out, *g.axes)
    dx = (xp.empty if whole else xp.zeros)(x.shape, x.dtype)
    free = scratch(xp, "free", out.shape, bool)  # windows without a maximum so far
    free[...] = True
    hits = scratch(xp, "hits", out.shape, bool)
    for windows, there in taps(g.axes):
        left, hit = free[windows], hits[windows]
        xp.equal(x[there], out[windows], out=hit)
        hit &= left
        left ^= hit
        if whole:
            xp.multiply(d_out[windows], hit, out=dx[there])
        else:
            part = dx[there]
            part += d_out[windows] * hit
    return dx


def _uneven_max_grad(xp: Any, x: Any, d_out: Any, bounds: Sequence[Bounds]) -> Any:
    """As `max_grad`, one window after the other: argmax finds the first maximum."""
    n, c = x.shape[:2]
    dx = xp.zeros(x.shape, x.dtype)
    every = xp.arange(n * c)
    for windows, there in _cells(bounds):
        window = x[there]
        window = window.reshape(n * c, math.prod(window.shape[2:]))
        one = xp.zeros(window.shape, x.dtype)
        one[every, window.argmax(1)] = d_out[windows].reshape(-1)
        part = dx[there]
        part += one.reshape(part.shape)
    return dx


def avg_grad(xp: Any, x: Any, d_out: Any, g: Geometry, exclusive: bool) -> Any:
    """The gradient is shared out evenly."""
    share = d_out / counts(xp, g, exclusive, x.dtype)
    if g.bounds is None and tiles(g):
        dx = xp.empty(x.shape, x.dtype)
        for windows, there in taps(g.axes):
            dx[there] = share[windows]
        return dx
    dx = xp.zeros(x.shape, x.dtype)
    for windows, there in taps(g.axes) if g.bounds is None else _cells(g.bounds):
        part = dx[there]
        part += share[windows]
    return dx
