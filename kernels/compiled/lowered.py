"""Convolution as one matrix product per image, lowered by row copies.

The package's `conv_gemm` lowers blocks of images in NumPy, in an order that keeps
the copies few; its products then have to be put in order. Compiled, the plain
lowering (every tap of every channel is a row of the matrix) is cheap enough to do
some rows at a time in the second cache, and the product is the output as it is.

Volumes go plane by plane: images are (n, channels, depth, height * width), the axes z,
y and x; for flat images z is `FLAT`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fluidx.kernels.scratch import scratch
from fluidx.kernels.threads import share
from fluidx.kernels.window import Axis

from .planes import Layout, buffers, fill, read
from .vectors import JIT, copy

__all__ = ["FLAT", "convolve", "filter_grad", "scatter"]

# the depth of an image
FLAT = Axis(1, 1, 1, 1, 0, 0, 1)
# bytes of lowered images at a time, for products and for gradients of filters
_BLOCK = 512 << 10
_LARGE_BLOCK = 1 << 20


class _Block(NamedTuple):
    """Images first to first + many: rows of output plane `plane`, `top` to stop."""

    first: int
    many: int
    plane: int
    top: int
    stop: int


@njit(**JIT)
def _lower(
    begin: Any,
    end: Any,
    images: Any,
    block: Any,
    axes: Any,
    shifts: Any,
    planes: Any,
    col: Any,
    item: Any,
    row: Any,
) -> None:
    """Channels begin to end of a block into flat col; item and row say how
    far apart two images, and two taps, are there. planes: of a whole volume, kept for
    its next block."""
    z, y, x = axes
    first, count, plane, top, stop = block
    depth, taps, size = z[0], len(shifts), (stop - top) * x[6]
    plain = y[2] == x[2] == 1 and y[4] == y[5] == x[4] == x[5] == 0
    fresh = plane == 0 and top == 0 and not plain
    for i in range(count):
        for c in range(begin, end):
            for at in range(depth if fresh else 0):
                fill(images[first + i, c, at], planes[c * depth + at], y, x)
            for tap in range(z[1]):
                start = i * item + (c * z[1] + tap) * taps * row
                at = plane * z[2] + tap * z[3] - z[4]
                if at < 0 or at >= depth:
                    for t in range(taps):
                        col[start + t * row : start + t * row + size] = 0
                    continue
                source = images[first + i, c, at] if plain else planes[c * depth + at]
                for t in range(taps):
                    into, place = start + t * row, shifts[t] + top * x[7]
                    if x[6] == x[7]:
                        copy(col, into, source, place, size)
                        continue
                    for r in range(stop - top):
                        copy(col, into + r * x[6], source, place + r * x[7], x[6])


@njit(**JIT)
def _spaced(
    begin: Any,
    end: Any,
    given: Any,
    wide: Any,
    block: Any,
    pitch: Any,
    columns: Any,
) -> None:
    """Filters begin to end of a block of gradients, into (filters, count, size), with
    zeros between the rows where they are more than `columns` apart."""
    first, count, plane, top, stop = block
    for f in range(begin, end):
        for i in range(count):
            source, into = given[first + i, f, plane], wide[f, i]
            if pitch != columns:
                into[:] = 0
            for r in range(stop - top):
                copy(into, r * pitch, source, (top + r) * columns, columns)


def _blocks(n: int, z: Axis, plan: Layout, width: int, most: int) -> Iterator[_Block]:
    """Blocks whose columns of `width` values are not too large: several flat images, or
    some rows of one."""
    rows, row = plan.y[6], width * plan.x[6] * 4
    if z == FLAT and 2 * rows * row <= most:
        step = most // (rows * row)
        for first in range(0, n, step):
            yield _Block(first, min(step, n - first), 0, 0, rows)
        return
    count = -(-rows * row // most)
    step = -(-rows // count)
    for first in range(n):
        for plane in range(z.out):
            for top in range(0, rows, step):
                yield _Block(first, 1, plane, top, min(top + step, rows))


def _source(images: Any, z: Axis, plan: Layout) -> tuple[Any, Any]:
    """Images with flat planes, and room for the phase planes of one of them."""
    shape = images.shape[1] * z.size, plan.phases * plan.size
    planes = scratch(np, "compiled volumes", shape, np.float32)
    planes[...] = 0
    return images.reshape(*images.shape[:3], -1), planes


def _shared(run: Any, count: int, elements: int, *given: Any) -> None:
    share(count, elements, lambda begin, end: run(begin, end, *given))


def convolve(images: Any, matrix: Any, z: Axis, plan: Layout, out: Any) -> None:
    """matrix (groups, filters, channels * taps) times lowered images, into out
    (n, filters of all, depth, height * width)."""
    groups, filters, width = matrix.shape
    flat, planes = _source(images, z, plan)
    axes, columns = (tuple(z), plan.y, plan.x), plan.x[6]
    for b in _blocks(len(out), z, plan, groups * width, _BLOCK):
        size = (b.stop - b.top) * columns
        shape = (b.many, groups, width, size)
        col = scratch(np, "compiled col", shape, np.float32)
        item = groups * width * size
        given = flat, b, axes, plan.shifts, planes, col.reshape(-1), item, size
        _shared(_lower, flat.shape[1], col.size, *given)
        into = out[b.first : b.first + b.many, :, b.plane]
        into = into[:, :, b.top * columns : b.stop * columns]
        np.matmul(matrix, col, out=into.reshape(b.many, groups, filters, size))


def filter_grad(images: Any, given: Any, groups: int, z: Axis, plan: Layout) -> Any:
    """(groups, filters, channels * taps) from given (n, filters, depth, size)."""
    filters = given.shape[1]
    width = images.shape[1] * z.kernel * len(plan.shifts)
    flat, planes = _source(images, z, plan)
    axes, columns = (tuple(z), plan.y, plan.x), plan.x[6]
    total: Any = None
    for b in _blocks(len(given), z, plan, width, _LARGE_BLOCK):
        size = (b.stop - b.top) * columns
        col = scratch(np, "compiled col", (width, b.many, size), np.float32)
        row = b.many * size
        parts = flat, b, axes, plan.shifts, planes, col.reshape(-1), size, row
        _shared(_lower, flat.shape[1], col.size, *parts)
        rows = scratch(np, "compiled rows", (filters, b.many, size), np.float32)
        _shared(_spaced, filters, rows.size, given, rows, b, columns, columns)
        d = rows.reshape(groups, filters // groups, row)
        made = np.matmul(d, col.reshape(groups, width // groups, row).swapaxes(1, 2))
        if total is None:
            total = made
        else:
            total += made
    return total


@njit(**JIT)
def _raise(
    begin: Any,
    end: Any,
    col: Any,
    lead: Any,
    axes: Any,
    table: Any,
    planes: Any,
    out: Any,
) -> None:
    """Sum products (channels, taps, lead + size) into flat images out."""
    y, x = axes
    order, places, first = table
    phases = len(first) - 1
    size = len(planes) // phases
    for c in range(begin, end):
        for phase in range(phases):
            total = planes[phase * size : (phase + 1) * size]
            k, stop = first[phase], first[phase + 1]
            if (stop - k) % 2:
                i = lead - places[k]
                a = col[c, order[k], i : i + size]
                for t in range(size):
                    total[t] = a[t]
                k += 1
            else:
                total[:] = 0
            while k < stop:
                i, j = lead - places[k], lead - places[k + 1]
                a, b = (
                    col[c, order[k], i : i + size],
                    col[c, order[k + 1], j : j + size],
                )
                for t in range(size):
                    total[t] += a[t] + b[t]
                k += 2
        read(planes, out[c], y, x)


def scatter(given: Any, matrix: Any, plan: Layout, out: Any) -> None:
    """The transpose of `convolve`, of flat images: given (n, filters, 1, size) into
    out (n, channels, height * width)."""
    groups, filters, width = matrix.shape
    n, channels = out.shape[:2]
    axes, table = (plan.y, plan.x), (plan.order, plan.places, plan.first)
    used = (plan.y[6] - 1) * plan.x[7] + plan.x[6]
    shape = (channels, len(plan.shifts), plan.lead + plan.size)
    col = scratch(np, "compiled col", shape, np.float32)
    col[:, :, : plan.lead] = 0
    col[:, :, plan.lead + used :] = 0
    products = col.reshape(groups, width, -1)[:, :, plan.lead : plan.lead + used]
    wide = scratch(np, "compiled rows", (groups * filters, 1, used), np.float32)
    turned = matrix.swapaxes(1, 2)
    for image in range(n):
        b = _Block(image, 1, 0, 0, plan.y[6])
        pitch, columns = plan.x[7], plan.x[6]
        _shared(_spaced, len(wide), wide.size, given, wide, b, pitch, columns)
        np.matmul(turned, wide.reshape(groups, filters, used), out=products)

        def work(begin: int, end: int, into: Any = out[image]) -> None:
            planes = buffers(plan)[0]
            _raise(begin, end, col, plan.lead, axes, table, planes, into)

        share(channels, col.size, work)
