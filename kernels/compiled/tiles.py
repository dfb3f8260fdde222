"""Tiles of images and their points, for `winograd`: compiled functions.

An image (channels, height, width) is cut into `down` rows of `along` tiles; rows of
all images are counted through. Points are arrays (36, tiles, channels), whose points
lie some floats more apart than their size (GAP).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .lanes import (
    ROWS,
    add_products,
    products,
    transform_filter,
    transform_grad_filter,
    transform_gradient,
    transform_input,
    transform_output,
    transpose,
)
from .vectors import JIT

__all__ = [
    "GAP",
    "Side",
    "add_filter_grad",
    "convolve",
    "pack",
    "points",
    "unpack",
    "width_of",
]

#: floats between points, so that these do not meet in the cache
GAP = 16

_products24, _products16, _products8 = (products[w] for w in (24, 16, 8))
_add24, _add16, _add8 = (add_products[w] for w in (24, 16, 8))


class Side(NamedTuple):
    """The images that are read, or the outputs, and how tiles lie on them.

    top, left: padding. down, along: rows of tiles of an image, and tiles of a row.
    reach: rows and columns of a tile, which begin four apart.
    """

    channels: int
    height: int
    width: int
    top: int
    left: int
    down: int
    along: int
    reach: int

    @property
    def columns(self) -> int:
        """That all tiles of a row reach."""
        return 4 * self.along - 4 + self.reach


@njit(**JIT)
def _take(images: Any, at: Any, row: Any, side: Any, into: Any) -> None:
    """The rows of image `at` from `row` on that a row of tiles reaches, into flat into
    (reach, columns, channels), with zeros around the image."""
    channels, width, left = side.channels, side.width, side.left
    plane, line = side.height * width, (4 * side.along - 4 + side.reach) * channels
    used = min(width, line // channels - left)
    for r in range(side.reach):
        start, y = r * line, row + r
        if y < 0 or y >= side.height:
            into[start : start + line] = 0
            continue
        into[start : start + left * channels] = 0
        into[start + (left + used) * channels : start + line] = 0
        for c in range(0, channels, 8):
            i = (at * channels + c) * plane + y * width
            j = start + left * channels + c
            if used < 8:
                for k in range(8):
                    for x in range(used):
                        into[j + x * channels + k] = images[i + k * plane + x]
                continue
            for x in range(0, used - 7, 8):
                transpose(images, i + x, plane, into, j + x * channels, channels)
            if used % 8:
                x = used - 8  # the last ones overlap
                transpose(images, i + x, plane, into, j + x * channels, channels)


@njit(**JIT)
def _give(images: Any, at: Any, row: Any, side: Any, source: Any) -> None:
    """The inverse, for outputs: flat source (4, columns, channels) into those of the
    rows of image `at` from `row` on that there are."""
    channels, width = side.channels, side.width
    plane, line = side.height * width, 4 * side.along * channels
    for r in range(min(4, side.height - row)):
        for c in range(0, channels, 8):
            i, j = r * line + c, (at * channels + c) * plane + (row + r) * width
            if width < 8:
                for k in range(8):
                    for x in range(width):
                        images[j + k * plane + x] = source[i + x * channels + k]
                continue
            for x in range(0, width - 7, 8):
                transpose(source, i + x * channels, channels, images, j + x, plane)
            if width % 8:
                x = width - 8
                transpose(source, i + x * channels, channels, images, j + x, plane)


@njit(**JIT)
def points(
    first: Any,
    stop: Any,
    zero: Any,
    images: Any,
    side: Any,
    apart: Any,
    spare: Any,
    out: Any,
) -> None:
    """The points of rows of tiles from first to stop of images, or of gradients of
    outputs, in out, which begins with row `zero` and has its points `apart`."""
    channels = side.channels
    line = (4 * side.along - 4 + side.reach) * channels
    for u in range(first, stop):
        _take(images, u // side.down, u % side.down * 4 - side.top, side, spare)
        for x in range(side.along):
            into = ((u - zero) * side.along + x) * channels
            for c in range(0, channels, 8):
                i, j = x * 4 * channels + c, into + c
                if side.reach == 4:
                    transform_gradient(spare, i, out, j, line, channels, apart)
                else:
                    transform_input(spare, i, out, j, line, channels, apart)


@njit(**JIT)
def width_of(left: Any) -> Any:
    """How many of so many columns of a product to make now: few of 8 alone."""
    if left >= 24 and left != 32:
        return 24
    return 16 if left >= 16 else 8


@njit(**JIT)
def pack(
    begin: Any, end: Any, weight: Any, filters: Any, channels: Any, spare: Any, out: Any
) -> None:
    """The points of flat filters (filters, channels, 3, 3) from begin to end, as
    `_multiply` takes them: for each point, of the columns (of filters) that are made
    together, all channels."""
    apart = filters * channels + GAP
    first = 0
    while first < filters:
        width = width_of(filters - first)
        for f in range(max(first, begin), min(first + width, end), 8):
            for k in range(channels * 9 // 8):
                i = f * channels * 9 + k * 8
                transpose(weight, i, channels * 9, spare, k * 64, 8)
            for c in range(channels):
                j = first * channels + c * width + f - first
                transform_filter(spare, c * 72, out, j, 24, 8, apart)
        first += width


@njit(**JIT)
def unpack(
    begin: Any, end: Any, parts: Any, filters: Any, channels: Any, out: Any
) -> None:
    """Flat gradients of filters from begin to end, from parts of the sums of their
    points (36, filters, channels)."""
    apart = filters * channels + GAP
    spare = np.empty(36 * 8, np.float32)
    made = np.empty(9 * 8, np.float32)
    for f in range(begin, end):
        for c in range(0, channels, 8):
            i = f * channels + c
            for p in range(36):
                for t in range(8):
                    spare[p * 8 + t] = parts[0, p * apart + i + t]
                for n in range(1, len(parts)):
                    for t in range(8):
                        spare[p * 8 + t] += parts[n, p * apart + i + t]
            transform_grad_filter(spare, 0, made, 0, 24, 8, 8)
            for t in range(8):
                for k in range(9):
                    out[(i + t) * 9 + k] = made[k * 8 + t]


@njit(**JIT)
def _multiply(
    v: Any, step: Any, count: Any, channels: Any, u: Any, filters: Any, out: Any
) -> Any:
    """The points (36, count, filters) of points v (36, count, channels) `step` apart
    and packed filters u; returns how far they are apart."""
    rows = -(-count // ROWS) * ROWS
    apart = rows * filters + GAP
    for p in range(36):
        f, j = 0, p * (channels * filters + GAP)
        while f < filters:
            width = width_of(filters - f)
            for t in range(0, rows, ROWS):
                i, k = p * step + t * channels, p * apart + t * filters + f
                if width == 24:
                    _products24(v, i, channels, 1, u, j, 24, channels, out, k, filters)
                elif width == 16:
                    _products16(v, i, channels, 1, u, j, 16, channels, out, k, filters)
                else:
                    _products8(v, i, channels, 1, u, j, 8, channels, out, k, filters)
            f += width
            j += width * channels
    return apart


@njit(**JIT)
def _add_sums(
    d: Any,
    apart: Any,
    filters: Any,
    v: Any,
    step: Any,
    channels: Any,
    count: Any,
    out: Any,
) -> None:
    """Add to out (36, filters, channels) the products over `count` tiles of points d
    (36, count, filters) `apart` and v (36, count, channels) `step` apart."""
    for p in range(36):
        c = 0
        while c < channels:
            width = width_of(channels - c)
            j = p * step + c
            for f in range(0, filters, ROWS):
                i, k = p * apart + f, p * (filters * channels + GAP) + f * channels + c
                if width == 24:
                    _add24(d, i, 1, filters, v, j, channels, count, out, k, channels)
                elif width == 16:
                    _add16(d, i, 1, filters, v, j, channels, count, out, k, channels)
                else:
                    _add8(d, i, 1, filters, v, j, channels, count, out, k, channels)
            c += width


@njit(**JIT)
def convolve(
    begin: Any,
    end: Any,
    step: Any,
    images: Any,
    source: Any,
    matrix: Any,
    out: Any,
    target: Any,
    spares: Any,
) -> None:
    """Rows of tiles from begin to end of images, `step` at a time, with packed filters
    into outputs."""
    spare, v, m = spares
    channels, filters, along = source.channels, target.channels, source.along
    for first in range(begin, end, step):
        stop = min(first + step, end)
        count = (stop - first) * along
        apart = count * channels + GAP
        points(first, stop, first, images, source, apart, spare, v)
        apart = _multiply(v, apart, count, channels, matrix, filters, m)
        for u in range(first, stop):
            for x in range(along):
                i, j = ((u - first) * along + x) * filters, x * 4 * filters
                line = 4 * along * filters
                for f in range(0, filters, 8):
                    transform_output(m, i + f, spare, j + f, line, filters, apart)
            _give(out, u // source.down, u % source.down * 4, target, spare)


@njit(**JIT)
def add_filter_grad(
    begin: Any,
    end: Any,
    step: Any,
    images: Any,
    source: Any,
    given: Any,
    target: Any,
    out: Any,
    spares: Any,
) -> None:
    """Add to the sums out (36, filters, channels) those over rows of tiles from begin
    to end, `step` at a time, of images and gradients of outputs."""
    spare, v, d = spares
    channels, filters = source.channels, target.channels
    for first in range(begin, end, step):
        stop = min(first + step, end)
        count = (stop - first) * source.along
        here, there = count * channels + GAP, count * filters + GAP
        points(first, stop, first, images, source, here, spare, v)
        points(first, stop, first, given, target, there, spare, d)
        _add_sums(d, there, filters, v, here, channels, count, out)
