"""Convolution as matrix products on rows that are lowered once.

The usual lowering (im2col) writes every input element kernel height times kernel
width times. Here it is written kernel width times only: `lower` lays a block of
images out as ``col[row, tap column, channel, image, output column]``, in which the
kernel height rows that one output row needs are neighbours. So an overlapping view
of ``col`` is the matrix of every output row, and one batched product gives them all.

Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning" (2014) describe
convolution by lowering.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import conv_winograd
from .scratch import scratch
from .window import Axis, inside

__all__ = [
    "Geometry",
    "flipped",
    "forward",
    "grad_filter",
    "grad_input",
    "is_pointwise",
]

# Bytes of lowered rows at a time: few blocks, but no more memory than that.
HOST_BLOCK = 16 << 20
DEVICE_BLOCK = 256 << 20
# Below so many output columns, images become the innermost axis of lowered rows:
# numpy's loops over a short last axis cost more than transposing once. Measured for
# 64 images of 20x12x12 and 50 filters 5x5 (8 columns), forward and input gradient:
# 4.3 and 9.6 ms with columns inside, 3.7 and 4.9 with images inside.
FEW_COLUMNS = 16


class Geometry(NamedTuple):
    """A resolved convolution: groups, and both axes of its window."""

    groups: int
    y: Axis
    x: Axis


def _rows(y: Axis) -> tuple[int, int]:
    """Lowered rows, and how far the windows of two output rows are apart in them."""
    if y.dilation == 1 and y.stride <= y.kernel:
        return (y.out - 1) * y.stride + y.kernel, y.stride
    return y.out * y.kernel, y.kernel


def _blocks(
    xp: Any, geometry: Geometry, images: int, channels: int, item: int
) -> list[slice]:
    """Stretches of images, alike in size, whose lowered rows are not too large."""
    rows, _ = _rows(geometry.y)
    per_image = rows * geometry.x.kernel * channels * geometry.x.out * item
    budget = HOST_BLOCK if xp is np else DEVICE_BLOCK
    count = min(-(-images * per_image // budget), images)
    step = -(-images // max(count, 1))
    return [slice(i, min(i + step, images)) for i in range(0, images, max(step, 1))]


def _rows_first(array: Any, groups: int, inner: bool) -> Any:
    """(groups, height, channels, n, width) or, with images inside, (..., width, n)
    as a view of (n, channels, height, width)."""
    n, channels, height, width = array.shape
    split = array.reshape(n, groups, channels // groups, height, width)
    return split.transpose((1, 3, 2, 4, 0) if inner else (1, 3, 2, 0, 4))


def _columns(index: slice, inner: bool) -> tuple[Any, ...]:
    """Index of the width axis in such an array."""
    return (..., index, slice(None)) if inner else (..., index)


def _windows(xp: Any, images: Any, geometry: Geometry) -> Any:
    """(groups, out rows, taps * channels, images * out columns), overlapping rows.

    images: (n, channels, height, width), of any strides.
    """
    n, channels = images.shape[:2]
    groups, y, x = geometry
    per_group = channels // groups
    rows, step = _rows(y)
    inner = x.out < FEW_COLUMNS
    source = _rows_first(images, groups, inner)
    if inner and x.kernel > 1:
        turned = scratch(xp, "turned", source.shape, images.dtype)
        turned[...] = source
        source = turned
    last = (x.out, n) if inner else (n, x.out)
    shape = (groups, rows, x.kernel, per_group, *last)
    col = scratch(xp, "col", shape, images.dtype)
    if step == y.stride and y.dilation == 1:
        _lower(col, source, -y.before, 1, x, inner)
    else:
        for tap in range(y.kernel):
            part = col[:, tap :: y.kernel]
            _lower(part, source, y.first(tap), y.stride, x, inner)
    s = col.strides
    shape = (groups, y.out, y.kernel * x.kernel * per_group, n * x.out)
    return xp.lib.stride_tricks.as_strided(
        col, shape, (s[0], step * s[1], s[3], col.itemsize)
    )


def _lower(col: Any, source: Any, first: int, every: int, x: Axis, inner: bool) -> None:
    """Fill col (groups, rows, taps, channels, ...) from source (groups, height,
    channels, ...): row r holds input row first + r * every, zero outside."""
    count = col.shape[1]
    rows, there = inside(first, every, count, source.shape[1])
    if rows.start:
        col[:, : rows.start] = 0
    if rows.stop < count:
        col[:, rows.stop :] = 0
    col, source = col[:, rows], source[:, there]
    for tap in range(x.kernel):
        columns, at = x.inside(tap)
        target = col[:, :, tap]
        if columns.start:
            target[_columns(slice(0, columns.start), inner)] = 0
        if columns.stop < x.out:
            target[_columns(slice(columns.stop, None), inner)] = 0
        target[_columns(columns, inner)] = source[_columns(at, inner)]


def _filter_matrix(weight: Any, geometry: Geometry) -> Any:
    """(groups, 1, filters, taps * channels) from (filters, channels, kh, kw)."""
    filters, channels, kh, kw = weight.shape
    groups = geometry.groups
    split = weight.reshape(groups, filters // groups, channels, kh, kw)
    return split.transpose(0, 1, 3, 4, 2).reshape(groups, 1, filters // groups, -1)


def is_pointwise(g: Geometry) -> bool:
    return (
        g.y.kernel == g.x.kernel == g.y.stride == g.x.stride == 1
        and not (g.y.before or g.y.after or g.x.before or g.x.after)
        and g.groups == 1
    )


def forward(xp: Any, images: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """Convolve (n, channels, height, width) into out (n, filters, rows, columns).

    `out` may have any strides. Returns it.
    """
    if is_pointwise(g) and out.flags.c_contiguous:
        n, channels = images.shape[:2]
        flat = out.reshape(n, out.shape[1], -1)
        matrix = weight.reshape(weight.shape[:2])
        xp.matmul(matrix, images.reshape(n, channels, -1), out=flat)
        return out
    n, filters = out.shape[:2]
    if conv_winograd.pays(xp, images, filters, *g):
        return conv_winograd.forward(xp, images, weight, g.y, g.x, out)
    matrix = _filter_matrix(weight, g)
    inner = g.x.out < FEW_COLUMNS
    for block in _blocks(xp, g, n, images.shape[1], images.itemsize):
        into = _rows_first(out[block], g.groups, inner)
        rows = scratch(xp, "rows", into.shape, out.dtype)
        flat = rows.reshape(*into.shape[:3], -1)
        xp.matmul(matrix, _windows(xp, images[block], g), out=flat)
        into[...] = rows
    return out


def _gradient_rows(xp: Any, d_out: Any, g: Geometry) -> Any:
    """(groups, rows, filters, n * columns) from (n, filters, rows, columns)."""
    source = _rows_first(d_out, g.groups, g.x.out < FEW_COLUMNS)
    rows = scratch(xp, "rows", source.shape, d_out.dtype)
    rows[...] = source
    return rows.reshape(*source.shape[:3], -1)


def grad_filter(xp: Any, images: Any, d_out: Any, g: Geometry) -> Any:
    """The gradient of a filter (filters, channels, kh, kw)."""
    n, channels = images.shape[:2]
    filters = d_out.shape[1]
    if n == 0:
        return xp.zeros(
            (filters, channels // g.groups, g.y.kernel, g.x.kernel), d_out.dtype
        )
    if is_pointwise(g):
        d_flat = d_out.reshape(n, filters, -1)
        flat = images.reshape(n, channels, -1)
        pointwise = xp.matmul(d_flat, flat.transpose(0, 2, 1)).sum(0)
        return pointwise.reshape(filters, channels, 1, 1)
    if conv_winograd.pays(xp, images, filters, *g):
        return conv_winograd.grad_filter(xp, images, d_out, g.y, g.x)
    total: Any = 0
    for block in _blocks(xp, g, n, channels, images.itemsize):
        rows = _gradient_rows(xp, d_out[block], g)
        windows = _windows(xp, images[block], g)
        each = scratch(xp, "each", rows.shape[:3] + (windows.shape[2],), images.dtype)
        xp.matmul(rows, windows.swapaxes(2, 3), out=each)
        total = total + each.sum(1)
    per_group = channels // g.groups
    split = total.reshape(filters, g.y.kernel, g.x.kernel, per_group)
    return xp.ascontiguousarray(split.transpose(0, 3, 1, 2))


def grad_input(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """The gradient of the images, into out (n, channels, height, width).

    `out` may have any strides. Returns it.
    """
    if is_pointwise(g) and out.flags.c_contiguous:
        n, filters = d_out.shape[:2]
        flat = out.reshape(n, out.shape[1], -1)
        matrix = weight.reshape(weight.shape[:2])
        xp.matmul(matrix.T, d_out.reshape(n, filters, -1), out=flat)
        return out
    # the flipped convolution multiplies for each input position, the product of
    # `_scatter` for each output position, but it adds kh * kw times
    larger = g.y.size * g.x.size > 1.3 * g.y.out * g.x.out
    if g.y.stride == g.x.stride == 1 and not larger:
        return forward(xp, d_out, *flipped(xp, weight, g), out)
    return _scatter(xp, d_out, weight, g, out)


def _flipped_axis(a: Axis) -> Axis:
    """The axis (stride 1) along which the input gradient slides."""
    reach = (a.kernel - 1) * a.dilation
    before = reach - a.before
    after = a.size + reach - a.out - before
    return Axis(a.out, a.kernel, 1, a.dilation, before, after, a.size)


def flipped(xp: Any, weight: Any, g: Geometry) -> tuple[Any, Geometry]:
    """The convolution (stride 1) that is the input gradient of a stride 1 one."""
    filters, channels, kh, kw = weight.shape
    split = weight.reshape(g.groups, filters // g.groups, channels, kh, kw)
    turned = split[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
    turned = turned.reshape(g.groups * channels, filters // g.groups, kh, kw)
    return turned, Geometry(g.groups, _flipped_axis(g.y), _flipped_axis(g.x))


def _scatter(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """`grad_input` for any stride: a product, then kh * kw strided additions."""
    n, channels = out.shape[:2]
    per_group = channels // g.groups
    matrix = _filter_matrix(weight, g).swapaxes(2, 3)
    inner = g.x.out < FEW_COLUMNS
    for block in _blocks(xp, g, n, channels, out.itemsize):
        rows = _gradient_rows(xp, d_out[block], g)
        count = rows.shape[3] // g.x.out
        last = (g.x.out, count) if inner else (count, g.x.out)
        taps = (g.groups, g.y.out, g.y.kernel, g.x.kernel, per_group, *last)
        col = scratch(xp, "col", taps, out.dtype)
        xp.matmul(matrix, rows, out=col.reshape(*taps[:2], -1, rows.shape[3]))
        into = _rows_first(out[block], g.groups, inner)
        total = scratch(xp, "total", into.shape, out.dtype)
        total[...] = 0
        for i in range(g.y.kernel):
            down, at_y = g.y.inside(i)
            for j in range(g.x.kernel):
                right, at_x = g.x.inside(j)
                part = total[:, at_y][_columns(at_x, inner)]
                part += col[:, down, i, j][_columns(right, inner)]
        into[...] = total
    return out
