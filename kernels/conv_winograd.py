"""Convolution with kernels three columns wide by Winograd's F(4, 3) along rows.

Four neighbouring output columns cost six products instead of twelve: tiles of six
input columns, four apart, and the three filter columns are transformed, multiplied
(the sum over channels and kernel rows stays a matrix product), and transformed back.
Half the multiplications of `conv_gemm` remain, and additions that run over memory
without gaps: columns are kept by phase (column modulo 4), images innermost.

Measured for 16 images of 64x28x28 and 64 filters 3x3, one thread, best of 40 in turn:
forward 12.4 ms against 15.5, both gradients 26 against 33. In float32 the error is 2e-6
of the largest value. An infinite input makes more of its row NaN than the outputs whose
windows hold it.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), with the
interpolation points 0, 1, -1, 2, -2 and infinity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .scratch import scratch
from .window import Axis, inside

__all__ = ["forward", "grad_filter", "pays"]

# bytes of transformed tiles at a time
BLOCK = 16 << 20
# elements of a transform's arrays, so that they stay near the second level cache
CHUNK = 16384
# filter transform: six points of the polynomial whose coefficients the columns are
_FILTER = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)


class _Tiles(NamedTuple):
    """Sizes of one block: tiles per row, images, floats of one row of tiles.

    A row has one tile more than is used: tile t also reads two columns of t + 1.
    """

    per_row: int
    images: int
    width: int


def pays(xp: Any, images: Any, filters: int, groups: int, y: Axis, x: Axis) -> bool:
    """Whether a convolution can be done this way, and is large enough to gain.

    On numpy only: the loop over rows that keeps the additions inside the second
    level cache would be a loop of small launches on a GPU.
    """
    n, channels = images.shape[:2]
    return (
        xp is np
        and x.kernel == 3
        and x.stride == y.stride == x.dilation == y.dilation == 1
        and groups == 1
        and min(channels, filters) >= 32
        and x.out >= 24
        and n * -(-x.out // 4) >= 64
    )


def _blocks(images: Any, y: Axis, x: Axis) -> list[slice]:
    """Stretches of images, alike in size, whose tiles are not too large."""
    n, channels = images.shape[:2]
    rows = y.out + y.kernel - 1
    per_image = 6 * rows * channels * (-(-x.out // 4) + 1) * images.itemsize
    step = -(-n // -(-n * per_image // BLOCK))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _fill_phases(phases: Any, source: Any, left: int) -> None:
    """phases (4, ..., tiles + 1, n) from source (..., width, n): column 4 t + phase
    holds input column c - left, or zero."""
    for phase in range(4):
        plane = phases[phase]
        across, at = inside(phase - left, 4, plane.shape[-2], source.shape[-2])
        plane[..., : across.start, :] = 0
        plane[..., across.stop :, :] = 0
        plane[..., across, :] = source[..., at, :]


def _transform_input(xp: Any, phases: Any, out: Any, shift: int, spare: Any) -> None:
    """out (6, size) from flat phases (4, size).

    shift: floats of one tile. The last tile of a row is of no use. spare: (2, size).
    """
    size = phases.shape[1] - shift
    d0, d1, d2, d3 = phases[:, :size]
    d4, d5 = phases[:2, shift:]
    v0, v1, v2, v3, v4, v5 = out[:, :size]
    even, odd = spare[:, :size]
    out[:, size:] = 0
    xp.subtract(d4, d2, out=even)
    xp.subtract(d0, d2, out=v0)
    v0 *= 4
    v0 += even  # 4 d0 - 5 d2 + d4
    xp.subtract(d3, d1, out=odd)
    odd *= 2
    xp.add(even, odd, out=v3)  # -2 d1 - d2 + 2 d3 + d4
    xp.subtract(even, odd, out=v4)  # 2 d1 - d2 - 2 d3 + d4
    xp.subtract(d5, d3, out=v5)
    odd *= 2
    v5 -= odd  # 4 d1 - 5 d3 + d5
    xp.multiply(d2, -4, out=even)
    even += d4
    xp.multiply(d1, -4, out=odd)
    odd += d3
    xp.add(even, odd, out=v1)  # -4 d1 - 4 d2 + d3 + d4
    xp.subtract(even, odd, out=v2)  # 4 d1 - 4 d2 - d3 + d4


def _transform_output(xp: Any, products: Any, out: Any, spare: Any) -> None:
    """out (4, size) from products (6, size)."""
    m0, m1, m2, m3, m4, m5 = products
    y0, y1, y2, y3 = out
    twos, eights = spare
    xp.add(m1, m2, out=y0)
    xp.subtract(m1, m2, out=y1)
    xp.add(m3, m4, out=twos)
    xp.subtract(m3, m4, out=eights)
    xp.multiply(twos, 4, out=y2)
    y2 += y0  # m1 + m2 + 4 m3 + 4 m4
    y0 += m0
    y0 += twos  # m0 + m1 + m2 + m3 + m4
    xp.multiply(eights, 8, out=y3)
    y3 += y1
    y3 += m5  # m1 - m2 + 8 m3 - 8 m4 + m5
    eights *= 2
    y1 += eights  # m1 - m2 + 2 m3 - 2 m4


def _transform_gradient(xp: Any, phases: Any, out: Any, odd: Any) -> None:
    """out (6, size) from phases (4, size): the transpose of `_transform_output`."""
    d0, d1, d2, d3 = phases
    v0, v1, v2, v3, v4, v5 = out
    v0[...] = d0
    v5[...] = d3
    xp.add(d1, d3, out=odd)
    xp.add(d0, d2, out=v2)
    xp.add(v2, odd, out=v1)  # d0 + d1 + d2 + d3
    v2 -= odd  # d0 - d1 + d2 - d3
    xp.multiply(d3, 4, out=odd)
    odd += d1
    odd *= 2
    xp.multiply(d2, 4, out=v4)
    v4 += d0
    xp.add(v4, odd, out=v3)  # d0 + 2 d1 + 4 d2 + 8 d3
    v4 -= odd  # d0 - 2 d1 + 4 d2 - 8 d3


def _tiling(n: int, x: Axis) -> _Tiles:
    count = -(-x.out // 4)
    return _Tiles(count, n, (count + 1) * n)


def _input_by_rows(xp: Any, images: Any, y: Axis, x: Axis, tiles: _Tiles) -> Any:
    """(6, rows, channels, row of tiles) of the rows that output rows need."""
    n, channels = images.shape[:2]
    rows = y.out + y.kernel - 1
    out = scratch(xp, "tiles", (6, rows, channels * tiles.width), images.dtype)
    size = channels * tiles.width
    phases = scratch(xp, "phases", (4, channels, tiles.per_row + 1, n), images.dtype)
    spare = scratch(xp, "spare", (2, size), images.dtype)
    source = images.transpose(2, 1, 3, 0)
    within, _ = inside(-y.before, 1, rows, y.size)
    out[:, : within.start] = 0
    out[:, within.stop :] = 0
    for row in range(within.start, within.stop):
        _fill_phases(phases, source[row - y.before], x.before)
        _transform_input(xp, phases.reshape(4, size), out[:, row], n, spare)
    return out.reshape(6, rows, channels, tiles.width)


def forward(xp: Any, images: Any, weight: Any, y: Axis, x: Axis, out: Any) -> Any:
    """Convolve (n, channels, height, width) into out (n, filters, rows, columns)."""
    filters, channels, kh, _ = weight.shape
    turn = xp.asarray(_FILTER, weight.dtype)
    # (6, filters, kernel rows * channels)
    matrix = xp.tensordot(turn, weight, ((1,), (3,))).transpose(0, 1, 3, 2)
    matrix = matrix.reshape(6, filters, kh * channels)
    for block in _blocks(images, y, x):
        tiles = _tiling(len(images[block]), x)
        v = _input_by_rows(xp, images[block], y, x, tiles)
        v = v.reshape(6, -1, tiles.width)
        used = tiles.per_row * tiles.images
        products = scratch(xp, "products", (6, filters, used), v.dtype)
        done = scratch(xp, "phases", (4, filters, tiles.per_row, tiles.images), v.dtype)
        spare = scratch(xp, "spare", (2, filters * used), v.dtype)
        into = out[block].transpose(2, 1, 3, 0)
        for row in range(y.out):  # one by one: the rest stays in the cache
            first = row * channels
            xp.matmul(matrix, v[:, first : first + kh * channels, :used], out=products)
            _transform_output(xp, products.reshape(6, -1), done.reshape(4, -1), spare)
            for phase in range(4):
                columns = into[row, :, phase::4]
                columns[...] = done[phase, :, : columns.shape[1]]
    return out


def _by_channels(
    xp: Any, key: str, images: Any, y: Axis, x: Axis, tiles: _Tiles
) -> Any:
    """(6, channels, rows, row of tiles): of the input rows that output rows need, or,
    for key "gradient", of the rows of an output gradient."""
    n, channels, height, _ = images.shape
    is_input = key == "tiles"
    rows = y.out + y.kernel - 1 if is_input else height
    top, left = (y.before, x.before) if is_input else (0, 0)
    size = rows * tiles.width
    at_once = min(max(CHUNK // size, 1), channels)
    out = scratch(xp, key, (6, channels * size), images.dtype)
    shape = (4, at_once, rows, tiles.per_row + 1, n)
    phases = scratch(xp, "phases", shape, images.dtype)
    spare = scratch(xp, "spare", (2, at_once * size), images.dtype)
    within, there = inside(-top, 1, rows, height)
    phases[:, :, : within.start] = 0
    phases[:, :, within.stop :] = 0
    source = images[:, :, there].transpose(1, 2, 3, 0)
    for first in range(0, channels, at_once):
        part = source[first : first + at_once]
        _fill_phases(phases[:, : len(part), within], part, left)
        flat = phases.reshape(4, -1)[:, : len(part) * size]
        into = out[:, first * size : first * size + flat.shape[1]]
        if is_input:
            _transform_input(xp, flat, into, n, spare)
        else:
            _transform_gradient(xp, flat, into, spare[0, : flat.shape[1]])
    return out.reshape(6, channels, rows, tiles.width)


def grad_filter(xp: Any, images: Any, d_out: Any, y: Axis, x: Axis) -> Any:
    """The gradient of a filter (filters, channels, kh, 3)."""
    channels, filters = images.shape[1], d_out.shape[1]
    total: Any = 0
    for block in _blocks(images, y, x):
        tiles = _tiling(len(images[block]), x)
        d = _by_channels(xp, "gradient", d_out[block], y, x, tiles)
        d = d.reshape(6, 1, filters, -1)
        v = _by_channels(xp, "tiles", images[block], y, x, tiles)
        s = v.strides
        # row r + tap of a channel for every r is one stretch of memory; where the
        # unused tiles between rows meet, `d` is zero
        shape = (6, y.kernel, channels, d.shape[3])
        windows = xp.lib.stride_tricks.as_strided(v, shape, (s[0], s[2], s[1], s[3]))
        total = total + xp.matmul(d, windows.swapaxes(2, 3))
    turn = xp.asarray(_FILTER, images.dtype)
    # (filters, channels, kernel rows, 3) from (6, kernel rows, filters, channels)
    grad = xp.tensordot(total, turn, ((0,), (0,))).transpose(1, 2, 0, 3)
    return xp.ascontiguousarray(grad)
