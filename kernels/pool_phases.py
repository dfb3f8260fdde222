"""The gradient of overlapping maximum pooling, in long loops.

With stride s the taps of all windows are shifted reads of s * s phase planes (every
s-th row and column of the padded image). Rows of the outputs are widened to those of
the planes, so that a whole image is one stretch of memory: junk between the rows is
computed and left out. Measured for 8x64x56x56, 3x3 windows, stride 2, one thread:
45 ms tap by tap on strided views, 17 ms here (with the machine as busy in both).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .scratch import scratch
from .window import Axis, inside

__all__ = ["max_grad"]

# Bytes of one phase plane at a time: all arrays of a block fit the second cache.
HOST_BLOCK = 256 << 10


class _Plan(NamedTuple):
    """Both axes, and the size of a phase plane."""

    y: Axis
    x: Axis
    height: int
    width: int


def _plan(y: Axis, x: Axis) -> _Plan:
    down, right = (y.kernel - 1) // y.stride, (x.kernel - 1) // x.stride
    return _Plan(y, x, y.out + down, x.out + right)


Place = tuple[slice, slice, slice]


def _spans(p: _Plan) -> list[tuple[int, int, Place, Place]]:
    """(phase row, phase column, where in the planes, where in the images)."""
    every = slice(None)
    found = []
    for a in range(p.y.stride):
        down, at_y = inside(a - p.y.before, p.y.stride, p.height, p.y.size)
        for b in range(p.x.stride):
            right, at_x = inside(b - p.x.before, p.x.stride, p.width, p.x.size)
            found.append((a, b, (every, down, right), (every, at_y, at_x)))
    return found


def _wide(xp: Any, key: str, array: Any, width: int, used: int) -> Any:
    """(images, used): rows with zeros between them."""
    n, rows, columns = array.shape
    wide = scratch(xp, key, (n, rows, width), array.dtype)
    wide[..., :columns] = array
    wide[..., columns:] = 0
    return wide.reshape(n, rows * width)[:, :used]


def _block(xp: Any, x: Any, out: Any, d_out: Any, p: _Plan, dx: Any) -> None:
    """Some images (n, height, width); the gradient goes into dx."""
    n, size = len(x), p.height * p.width
    shape = (p.y.stride, p.x.stride, n, p.height, p.width)
    planes = scratch(xp, "planes", shape, x.dtype)
    planes[...] = xp.nan  # padding equals nothing
    grads = scratch(xp, "grads", shape, x.dtype)
    grads[...] = 0
    spans = _spans(p)
    for a, b, here, there in spans:
        planes[a, b][here] = x[there]
    used = (p.y.out - 1) * p.width + p.x.out
    best = _wide(xp, "best", out, p.width, used)
    given = _wide(xp, "given", d_out, p.width, used)
    free = scratch(xp, "free", best.shape, bool)  # windows without a maximum so far
    free[...] = True
    hit = scratch(xp, "hits", best.shape, bool)
    part = scratch(xp, "part", best.shape, x.dtype)
    flat = planes.reshape(*shape[:3], size)
    into = grads.reshape(*shape[:3], size)
    for i in range(p.y.kernel):
        for j in range(p.x.kernel):
            phase = (i % p.y.stride, j % p.x.stride)
            shift = i // p.y.stride * p.width + j // p.x.stride
            xp.equal(flat[phase][:, shift : shift + used], best, out=hit)
            hit &= free
            free ^= hit
            xp.multiply(given, hit, out=part)
            target = into[phase][:, shift : shift + used]
            target += part
    for a, b, here, there in spans:
        dx[there] = grads[a, b][here]


def max_grad(xp: Any, x: Any, out: Any, d_out: Any, y: Axis, columns: Axis) -> Any:
    """The gradient goes to the first maximum of each window, row by row."""
    n, channels, height, width = x.shape
    p = _plan(y, columns)
    images = n * channels
    dx = xp.empty((images, height, width), x.dtype)
    flat = x.reshape(dx.shape)
    out, d_out = (a.reshape(images, y.out, columns.out) for a in (out, d_out))
    plane = p.height * p.width * x.itemsize
    step = max(HOST_BLOCK // plane, 1) if xp is np else max(images, 1)
    for start in range(0, images, step):
        b = slice(start, start + step)
        _block(xp, flat[b], out[b], d_out[b], p, dx[b])
    return dx.reshape(x.shape)
