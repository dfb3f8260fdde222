"""Convolution with 3x3 kernels by Winograd's F(4x4, 3x3), shared out over threads.

Sixteen neighbouring outputs cost 36 products per channel and filter instead of 144. A
row of tiles is taken from its image with channels innermost and transformed into
points; for some rows of tiles together, whose points stay in the second cache, the sums
over channels are a small matrix product for each point; these are transformed back.
So nothing goes through the main memory but images and filters.

Measured for 16 images of 64x28x28 and 64 filters, with one thread and with two: forward
4.6 ms and 2.5 (`conv_winograd`: 12.5 and 16), the filter's gradient 5.1 and 2.9 (12.6
and 15). See `lanes` for the rounding. An infinite input makes NaN of all outputs of the
tiles that read it.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.kernels.scratch import scratch
from fluidx.kernels.threads import parts_of, share
from fluidx.kernels.window import Axis

from . import tiles
from .lanes import LANES, ROWS
from .tiles import GAP, Side

__all__ = ["convolve", "filter_grad", "pays"]

# bytes of points at a time
BLOCK = 1 << 20
# products of channels and filters from which on sums over tiles are larger than the
# cache, and bytes of points at a time then
LARGE, LARGE_BLOCK = 1 << 14, 32 << 20


def pays(images: Any, filters: int, groups: int, y: Axis, x: Axis) -> bool:
    """Whether a convolution can be done this way, and gains by it.

    It does where the tiles are not few beside the filters, whose points have to be
    made, or summed: measured for 8x256x14x14 and 256 filters (128 tiles), 15 ms and 17
    for the filter's gradient against 25 and 34 by `lowered`; for a quarter of the
    images the gradient takes longer than there.
    """
    n, channels = images.shape[:2]
    return bool(
        y.kernel == x.kernel == 3
        and y.stride == x.stride == y.dilation == x.dilation == 1
        and min(y.before, y.after, x.before, x.after) >= 0
        and groups == 1
        and channels % LANES == filters % LANES == 0
        and min(channels, filters) >= 16
        and n * -(-y.out // 4) * -(-x.out // 4) * 512 >= channels * filters
    )


def _sides(images: Any, filters: int, y: Axis, x: Axis) -> tuple[Side, Side]:
    grid = -(-y.out // 4), -(-x.out // 4)
    return (
        Side(images.shape[1], y.size, x.size, y.before, x.before, *grid, 6),
        Side(filters, y.out, x.out, 0, 0, *grid, 4),
    )


def _size(rows: int, sides: tuple[Side, Side]) -> int:
    """Floats of the points of both sides."""
    source, target = sides
    return 36 * rows * source.along * (source.channels + target.channels)


def _step(sides: tuple[Side, Side], most: int) -> int:
    """Rows of tiles whose points take about so many bytes."""
    return max(1, round(most / 4 / _size(1, sides)))


def _spares(step: int, sides: tuple[Side, Side]) -> tuple[Any, Any, Any]:
    """Of this thread: for rows of an image, and for points of both sides."""
    source, target = sides
    rows = -(-step * source.along // ROWS) * ROWS
    most = max(side.reach * side.columns * side.channels for side in sides)
    sizes = (
        ("rows", most),
        # products read up to ROWS rows beyond the last
        ("points", 36 * (rows * source.channels + GAP) + ROWS * source.channels),
        ("products", 36 * (rows * target.channels + GAP)),
    )
    found = [scratch(np, f"winograd {k}", (size,), np.float32) for k, size in sizes]
    return found[0], found[1], found[2]


def convolve(images: Any, weight: Any, y: Axis, x: Axis, out: Any) -> None:
    """images (n, channels, height, width) into out (n, filters, rows, columns)."""
    filters, channels = weight.shape[:2]
    sides = source, target = _sides(images, filters, y, x)
    step = _step(sides, BLOCK)
    matrix = scratch(
        np, "winograd filter", (36 * (filters * channels + GAP),), np.float32
    )
    given = np.ascontiguousarray(weight).reshape(-1)
    flat, into = images.reshape(-1), out.reshape(-1)

    def pack(begin: int, end: int) -> None:
        spare = scratch(np, "winograd rows", (channels * 9 * LANES,), np.float32)
        tiles.pack(begin * LANES, end * LANES, given, filters, channels, spare, matrix)

    def work(begin: int, end: int) -> None:
        spares = _spares(step, sides)
        tiles.convolve(begin, end, step, flat, source, matrix, into, target, spares)

    share(filters // LANES, len(matrix), pack)
    rows = len(images) * source.down
    share(rows, _size(rows, sides), work)


def filter_grad(images: Any, given: Any, y: Axis, x: Axis) -> Any:
    """The gradient of filters (filters, channels, 3, 3), from given (n, filters, rows,
    columns)."""
    filters, channels = given.shape[1], images.shape[1]
    sides = _sides(images, filters, y, x)
    rows = len(images) * sides[0].down
    sums = _large_sums if channels * filters > LARGE else _small_sums
    parts = sums(images.reshape(-1), given.reshape(-1), rows, sides)
    grad = np.empty((filters, channels, 3, 3), np.float32)

    def unpack(begin: int, end: int) -> None:
        tiles.unpack(begin, end, parts, filters, channels, grad.reshape(-1))

    share(filters, parts.size, unpack)
    return grad


def _small_sums(images: Any, given: Any, rows: int, sides: tuple[Side, Side]) -> Any:
    """The points of the gradient (parts, 36 * (filters * channels + GAP)): each thread
    makes a part, from some of the rows of tiles."""
    source, target = sides
    step, size = _step(sides, BLOCK), source.channels * target.channels + GAP
    begins = [begin for begin, _ in parts_of(rows, _size(rows, sides))]
    parts = scratch(np, "winograd filter", (len(begins), 36 * size), np.float32)

    def work(begin: int, end: int) -> None:
        part = parts[begins.index(begin)]
        part[...] = 0
        tiles.add_filter_grad(
            begin, end, step, images, source, given, target, part, _spares(step, sides)
        )

    share(rows, _size(rows, sides), work)
    return parts


def _large_sums(images: Any, given: Any, rows: int, sides: tuple[Side, Side]) -> Any:
    """The same in one part, by BLAS, of the points of many tiles at a time: so these
    sums go through the memory few times."""
    channels, filters = (side.channels for side in sides)
    size = channels * filters + GAP
    parts = scratch(np, "winograd filter", (1, 36 * size), np.float32)
    into = _without_gaps(parts[0], filters, channels)
    step = _step(sides, LARGE_BLOCK)
    for first in range(0, rows, step):
        count = min(step, rows - first)
        v, d = _many_points(images, given, first, count, sides)
        if first:
            into += np.matmul(d.swapaxes(1, 2), v)
        else:
            np.matmul(d.swapaxes(1, 2), v, out=into)
    return parts


def _many_points(
    images: Any, given: Any, first: int, rows: int, sides: tuple[Side, Side]
) -> tuple[Any, Any]:
    """(36, tiles, channels) and (36, tiles, filters) of `rows` rows of tiles."""
    count = rows * sides[0].along
    found = _spares(rows, sides)[1:]

    def work(begin: int, end: int) -> None:
        spare = _spares(1, sides)[0]
        for side, flat, out in zip(sides, (images, given), found):
            apart = count * side.channels + GAP
            at = first + begin, first + end, first
            tiles.points(*at, flat, side, apart, spare, out)

    share(rows, _size(rows, sides), work)
    v, d = (_without_gaps(out, count, side.channels) for out, side in zip(found, sides))
    return v, d


def _without_gaps(points: Any, rows: int, channels: int) -> Any:
    """(36, rows, channels) of flat points."""
    size = rows * channels + GAP
    return points[: 36 * size].reshape(36, size)[:, :-GAP].reshape(36, rows, channels)
