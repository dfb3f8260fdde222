"""Convolution straight from padded images: a product without its lowered matrix.

For each output pixel the values that its window reads lie in the padded image at
distances that are the same for all pixels. So the matrix product of pixels by filters
takes them from there, by a table of these distances, four pixels at a time.

As in `lowered`, images are volumes (n, channels, depth, height, width), the axes z, y
and x; for flat images z is `lowered.FLAT`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fluidx.kernels.scratch import scratch
from fluidx.kernels.threads import share
from fluidx.kernels.window import Axis

from .lanes import LANES, ROWS, table_products, transpose
from .tiles import width_of
from .vectors import JIT, copy

__all__ = ["convolve", "pays"]

_products24, _products16, _products8 = (table_products[w] for w in (24, 16, 8))


# taps of all channels up to which the filters of a product stay in the first cache
MOST = 600


def pays(channels: int, groups: int, *axes: Axis) -> bool:
    """Whether a convolution can be done this way, and gains by it.

    Measured beside `lowered`, ms with one thread and with two: 8x3x112x112 and 32
    filters of 7x7 / 2 (147 taps) 3.0 and 2.6 against 4.6 and 7.7, 64x20x12x12 and 50 of
    5x5 (500) 3.6 and 3.8 against 4.6 and 3.4, 8x64x56x56 and 128 of 3x3 / 2 (576) 14.5
    and 7.9 against 17.0 and 12.0; 8x128x28x28 and 256 of 3x3 / 2 (1152) 17.3 and 9.9
    against 12.9 and 8.4.
    """
    window = math.prod(axis.kernel for axis in axes)
    return (
        groups == 1
        and window > 1
        and channels * window <= MOST
        and all(min(axis.before, axis.after) >= 0 for axis in axes)
    )


class _Frame(NamedTuple):
    """Sizes, each by the axes z, y and x: of a padded image, of padding before it, of
    the image, and of the output; and strides."""

    channels: int
    wide: tuple[int, ...]
    before: tuple[int, ...]
    size: tuple[int, ...]
    out: tuple[int, ...]
    stride: tuple[int, ...]


@njit(**JIT)
def _pad(images: Any, at: Any, frame: Any, into: Any) -> None:
    """Image `at` into the middle of flat into, which is full of zeros."""
    depth, height, width = frame.size
    for c in range(frame.channels):
        for z in range(depth):
            for y in range(height):
                i = ((at * frame.channels + c) * depth + z) * height + y
                j = (c * frame.wide[0] + frame.before[0] + z) * frame.wide[1]
                j = (j + frame.before[1] + y) * frame.wide[2] + frame.before[2]
                copy(into, j, images, i * width, width)


@njit(**JIT)
def _rows(
    begin: Any,
    end: Any,
    images: Any,
    frame: Any,
    table: Any,
    matrix: Any,
    filters: Any,
    out: Any,
    spares: Any,
) -> None:
    """Output rows from begin to end of all images. matrix: of filters in eights."""
    image, row = spares
    depth, height, width = frame.out
    taps, along = len(table), frame.stride[2]
    wide = len(matrix) // taps
    here = -1
    for u in range(begin, end):
        at, z, y = u // (depth * height), u // height % depth, u % height
        if at != here:
            here = at
            _pad(images, at, frame, image)
        first = z * frame.stride[0] * frame.wide[1] + y * frame.stride[1]
        f = 0
        while f < wide:
            many, j = width_of(wide - f), f * taps
            for x in range(0, width, ROWS):
                i, k = first * frame.wide[2] + x * along, x * wide + f
                if many == 24:
                    _products24(
                        image, i, along, table, matrix, j, 24, taps, row, k, wide
                    )
                elif many == 16:
                    _products16(
                        image, i, along, table, matrix, j, 16, taps, row, k, wide
                    )
                else:
                    _products8(image, i, along, table, matrix, j, 8, taps, row, k, wide)
            f += many
        first = at * filters * depth * height + z * height + y
        _give(row, wide, width, filters, out, first * width, depth * height * width)


@njit(**JIT)
def _give(
    row: Any, wide: Any, width: Any, filters: Any, out: Any, j: Any, plane: Any
) -> None:
    """row (width, wide) to rows of flat out, the first at j, `plane` apart."""
    whole = filters // 8 * 8 if width >= 8 else 0
    for f in range(0, whole, 8):
        for x in range(0, width - 7, 8):
            transpose(row, x * wide + f, wide, out, j + f * plane + x, plane)
        if width % 8:
            x = width - 8  # the last ones overlap
            transpose(row, x * wide + f, wide, out, j + f * plane + x, plane)
    for f in range(whole, filters):
        for x in range(width):
            out[j + f * plane + x] = row[x * wide + f]


@lru_cache(maxsize=256)
def _frame(channels: int, *axes: Axis) -> tuple[_Frame, Any]:
    """The sizes, and the distances of all taps of a window."""
    frame = _Frame(
        channels,
        tuple(a.size + a.before + a.after for a in axes),
        tuple(a.before for a in axes),
        tuple(a.size for a in axes),
        tuple(a.out for a in axes),
        tuple(a.stride for a in axes),
    )
    table: Any = np.arange(channels)
    for axis, wide in zip(axes, frame.wide):
        steps = np.arange(axis.kernel) * axis.dilation
        table = table[..., None] * wide + steps
    return frame, table.reshape(-1)


def _packed(weight: Any) -> Any:
    """Filters in the order of `_rows`, and zeros beside the last."""
    matrix = weight.reshape(len(weight), -1)
    taps, wide = matrix.shape[1], -(-len(weight) // LANES) * LANES
    packed = scratch(np, "direct filter", (taps * wide,), np.float32)
    f = 0
    while f < wide:
        many = width_of(wide - f)
        some = matrix[f : f + many].T
        into = packed[f * taps : (f + many) * taps].reshape(taps, many)
        into[:, : some.shape[1]] = some
        into[:, some.shape[1] :] = 0
        f += many
    return packed


def convolve(images: Any, weight: Any, z: Axis, y: Axis, x: Axis, out: Any) -> None:
    """images into out (n, filters, depth, rows, columns); both contiguous."""
    frame, table = _frame(images.shape[1], z, y, x)
    matrix, filters = _packed(weight), len(weight)
    flat, into = images.reshape(-1), out.reshape(-1)
    # pixels beyond the last of a row are made too, of anything
    size = frame.channels * math.prod(frame.wide) + ROWS * x.stride
    room = (x.out + ROWS) * len(matrix) // len(table)

    def work(begin: int, end: int) -> None:
        image = scratch(np, "direct image", (size,), np.float32)
        image[...] = 0
        spares = image, scratch(np, "direct row", (room,), np.float32)
        _rows(begin, end, flat, frame, table, matrix, filters, into, spares)

    share(len(images) * z.out * y.out, out.size * len(table), work)
