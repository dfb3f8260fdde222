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

import threading
from typing import Any, NamedTuple

import numpy as np

from .window import Axis, inside

__all__ = ["Geometry", "forward", "grad_filter", "grad_input"]

# Bytes of lowered rows at a time: blocks of images that stay near the caches on a
# CPU, few launches on a GPU.
HOST_BLOCK = 8 << 20
DEVICE_BLOCK = 256 << 20

_local = threading.local()


class Geometry(NamedTuple):
    """A resolved convolution: groups, and both axes of its window."""

    groups: int
    y: Axis
    x: Axis


def scratch(xp: Any, key: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array with any content that lives until this thread asks for `key` again.

    Fresh pages cost more than the copy into them, so numpy buffers are kept (one
    per thread and key, as large as the largest so far); CuPy pools by itself.
    """
    if xp is not np:
        return xp.empty(shape, dtype)
    size = np.dtype(dtype).itemsize
    for n in shape:
        size *= n
    kept = _local.__dict__.get(key)
    if kept is None or kept.nbytes < size:
        kept = _local.__dict__[key] = np.empty(size, np.uint8)
    return kept[:size].view(dtype).reshape(shape)


def _rows(y: Axis) -> tuple[int, int]:
    """Lowered rows, and how far the windows of two output rows are apart in them."""
    if y.dilation == 1 and y.stride <= y.kernel:
        return (y.out - 1) * y.stride + y.kernel, y.stride
    return y.out * y.kernel, y.kernel


def _block(xp: Any, geometry: Geometry, images: int, channels: int, item: int) -> int:
    """Images per block."""
    rows, _ = _rows(geometry.y)
    per_image = rows * geometry.x.kernel * channels * geometry.x.out * item
    budget = HOST_BLOCK if xp is np else DEVICE_BLOCK
    return min(images, max(1, budget // max(per_image, 1)))


def _windows(xp: Any, images: Any, geometry: Geometry) -> Any:
    """(groups, out rows, taps * channels, images * out columns), overlapping rows.

    images: (n, channels, height, width), of any strides.
    """
    n, channels, height, width = images.shape
    groups, y, x = geometry
    per_group = channels // groups
    rows, step = _rows(y)
    col = scratch(
        xp, "col", (groups, rows, x.kernel, per_group, n, x.out), images.dtype
    )
    source = images.reshape(n, groups, per_group, height, width)
    source = source.transpose(1, 3, 2, 0, 4)
    if step == y.stride and y.dilation == 1:
        _lower(col, source, -y.before, 1, x)
    else:
        for tap in range(y.kernel):
            _lower(col[:, tap :: y.kernel], source, y.first(tap), y.stride, x)
    s = col.strides
    shape = (groups, y.out, y.kernel * x.kernel * per_group, n * x.out)
    return xp.lib.stride_tricks.as_strided(
        col, shape, (s[0], step * s[1], s[3], col.itemsize)
    )


def _lower(col: Any, source: Any, first: int, every: int, x: Axis) -> None:
    """Fill col (groups, rows, taps, channels, n, out) from source (groups, height,
    channels, n, width): row r holds input row first + r * every, zero outside."""
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
            target[..., : columns.start] = 0
        if columns.stop < x.out:
            target[..., columns.stop :] = 0
        target[..., columns] = source[..., at]


def _filter_matrix(weight: Any, geometry: Geometry) -> Any:
    """(groups, 1, filters, taps * channels) from (filters, channels, kh, kw)."""
    filters, channels, kh, kw = weight.shape
    groups = geometry.groups
    split = weight.reshape(groups, filters // groups, channels, kh, kw)
    return split.transpose(0, 1, 3, 4, 2).reshape(groups, 1, filters // groups, -1)


def _is_pointwise(g: Geometry) -> bool:
    return (
        g.y.kernel == g.x.kernel == g.y.stride == g.x.stride == 1
        and not (g.y.before or g.y.after or g.x.before or g.x.after)
        and g.groups == 1
    )


def forward(xp: Any, images: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """Convolve (n, channels, height, width) into out (n, filters, rows, columns).

    `out` may have any strides. Returns it.
    """
    if _is_pointwise(g) and out.flags.c_contiguous:
        n, channels = images.shape[:2]
        flat = out.reshape(n, out.shape[1], -1)
        matrix = weight.reshape(weight.shape[:2])
        xp.matmul(matrix, images.reshape(n, channels, -1), out=flat)
        return out
    n, filters = out.shape[:2]
    matrix = _filter_matrix(weight, g)
    per_group = filters // g.groups
    into = out.reshape(n, g.groups, per_group, g.y.out, g.x.out)
    step = _block(xp, g, n, images.shape[1], images.itemsize)
    for start in range(0, n, step):
        part = images[start : start + step]
        shape = (g.groups, g.y.out, per_group, len(part) * g.x.out)
        rows = scratch(xp, "rows", shape, out.dtype)
        xp.matmul(matrix, _windows(xp, part, g), out=rows)
        rows = rows.reshape(g.groups, g.y.out, per_group, len(part), g.x.out)
        into[start : start + step] = rows.transpose(3, 0, 2, 1, 4)
    return out


def _gradient_rows(xp: Any, d_out: Any, g: Geometry) -> Any:
    """(groups, rows, filters, n * columns) from (n, filters, rows, columns)."""
    n, filters, height, width = d_out.shape
    per_group = filters // g.groups
    rows = scratch(xp, "rows", (g.groups, height, per_group, n, width), d_out.dtype)
    split = d_out.reshape(n, g.groups, per_group, height, width)
    rows[...] = split.transpose(1, 3, 2, 0, 4)
    return rows.reshape(g.groups, height, per_group, n * width)


def grad_filter(xp: Any, images: Any, d_out: Any, g: Geometry) -> Any:
    """The gradient of a filter (filters, channels, kh, kw)."""
    n, channels = images.shape[:2]
    filters = d_out.shape[1]
    if _is_pointwise(g):
        d_flat = d_out.reshape(n, filters, -1)
        flat = images.reshape(n, channels, -1)
        total = xp.matmul(d_flat, flat.transpose(0, 2, 1)).sum(0)
        return total.reshape(filters, channels, 1, 1)
    total = None
    step = _block(xp, g, n, channels, images.itemsize)
    for start in range(0, n, step):
        rows = _gradient_rows(xp, d_out[start : start + step], g)
        windows = _windows(xp, images[start : start + step], g)
        each = scratch(xp, "each", rows.shape[:3] + (windows.shape[2],), images.dtype)
        xp.matmul(rows, windows.swapaxes(2, 3), out=each)
        part = each.sum(1)
        total = part if total is None else total + part
    per_group = channels // g.groups
    split = total.reshape(filters, g.y.kernel, g.x.kernel, per_group)  # type: ignore[union-attr]
    return xp.ascontiguousarray(split.transpose(0, 3, 1, 2))


def grad_input(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """The gradient of the images, into out (n, channels, height, width).

    `out` may have any strides. Returns it.
    """
    if _is_pointwise(g) and out.flags.c_contiguous:
        n, filters = d_out.shape[:2]
        flat = out.reshape(n, out.shape[1], -1)
        matrix = weight.reshape(weight.shape[:2])
        xp.matmul(matrix.T, d_out.reshape(n, filters, -1), out=flat)
        return out
    if g.y.stride == g.x.stride == 1:
        return forward(xp, d_out, *_flipped(xp, weight, g), out)
    return _scatter(xp, d_out, weight, g, out)


def _flipped(xp: Any, weight: Any, g: Geometry) -> tuple[Any, Geometry]:
    """The convolution (stride 1) that is the input gradient of a stride 1 one."""
    filters, channels, kh, kw = weight.shape
    split = weight.reshape(g.groups, filters // g.groups, channels, kh, kw)
    turned = split[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
    turned = turned.reshape(g.groups * channels, filters // g.groups, kh, kw)
    axes = []
    for a in (g.y, g.x):
        reach = (a.kernel - 1) * a.dilation
        before = reach - a.before
        after = a.size + reach - a.out - before
        axes.append(Axis(a.out, a.kernel, 1, a.dilation, before, after, a.size))
    return turned, Geometry(g.groups, *axes)


def _scatter(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """`grad_input` for any stride: a product, then kh * kw strided additions."""
    n, channels, height, width = out.shape
    per_group = channels // g.groups
    matrix = _filter_matrix(weight, g).swapaxes(2, 3)
    into = out.reshape(n, g.groups, per_group, height, width)
    step = _block(xp, g, n, channels, out.itemsize)
    for start in range(0, n, step):
        rows = _gradient_rows(xp, d_out[start : start + step], g)
        count = rows.shape[3] // g.x.out
        taps = (g.groups, g.y.out, g.y.kernel, g.x.kernel, per_group, count, g.x.out)
        col = scratch(xp, "col", taps, out.dtype)
        flat = col.reshape(g.groups, g.y.out, -1, count * g.x.out)
        xp.matmul(matrix, rows, out=flat)
        total = scratch(
            xp, "total", (g.groups, height, per_group, count, width), out.dtype
        )
        total[...] = 0
        for i in range(g.y.kernel):
            down, at_y = g.y.inside(i)
            for j in range(g.x.kernel):
                right, at_x = g.x.inside(j)
                total[:, at_y, :, :, at_x] += col[:, down, i, j, :, :, right]
        into[start : start + step] = total.transpose(3, 0, 2, 1, 4)
    return out
