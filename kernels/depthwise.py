"""Convolution in which every filter sees one channel: a sum over taps, no GEMM.

The same three functions as `conv_gemm`, for weights (filters, 1, kh, kw) where group
g of the filters belongs to channel g.

With stride 1 a tap is a shift of the padded image's flat memory: the sums then run
over whole images, junk between the rows included, instead of over short rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .conv_gemm import Geometry
from .scratch import scratch

__all__ = ["forward", "grad_filter", "grad_input"]

# Bytes of products at a time, where the sums run over whole images. Measured for
# 16x32x56x56 and 3x3, one thread of a busy machine: forward 30 ms on all images at
# once, 11 to 15 ms in blocks; 8x64x28x28: 12 and 4 to 6 ms.
HOST_BLOCK = 512 << 10


def _taps(g: Geometry) -> Any:
    """(kernel row, kernel column, windows, what they read), both as index pairs."""
    for i in range(g.y.kernel):
        down, at_y = g.y.inside(i)
        for j in range(g.x.kernel):
            right, at_x = g.x.inside(j)
            yield i, j, (..., down, right), (..., at_y, at_x)


def _flat_taps(g: Geometry) -> tuple[list[tuple[int, int, int]], tuple[int, int, int]]:
    """(kernel row, kernel column, shift) of each tap; and height and width of the
    padded image with the number of positions of a shifted one that are used."""
    y, x = g.y, g.x
    width = x.size + x.before + x.after
    height = y.size + y.before + y.after
    used = (y.out - 1) * width + x.out
    taps = [
        (i, j, i * y.dilation * width + j * x.dilation)
        for i in range(y.kernel)
        for j in range(x.kernel)
    ]
    return taps, (height, width, used)


def _is_flat(g: Geometry) -> bool:
    pads = (g.y.before, g.y.after, g.x.before, g.x.after)
    return g.y.stride == g.x.stride == 1 and min(pads) >= 0


def _padded(xp: Any, images: Any, g: Geometry, height: int, width: int) -> Any:
    """(n, channels, 1, height * width) with zeros around each image."""
    n, channels = images.shape[:2]
    padded = scratch(xp, "padded", (n, channels, height, width), images.dtype)
    inner = slice(g.y.before, g.y.before + g.y.size)
    padded[:, :, : inner.start] = 0
    padded[:, :, inner.stop :] = 0
    padded[:, :, inner, : g.x.before] = 0
    padded[:, :, inner, g.x.before + g.x.size :] = 0
    padded[:, :, inner, g.x.before : g.x.before + g.x.size] = images
    return padded.reshape(n, channels, 1, height * width)


def _per_group(array: Any, groups: int) -> Any:
    """(n, groups, filters of a group, height, width) view."""
    n, filters, height, width = array.shape
    return array.reshape(n, groups, filters // groups, height, width)


def _spread(xp: Any, array: Any, g: Geometry, width: int) -> Any:
    """(n, groups, filters of a group, rows * width): rows with zeros between them."""
    split = _per_group(array, g.groups)
    wide = scratch(xp, "wide", (*split.shape[:4], width), array.dtype)
    wide[..., : g.x.out] = split
    wide[..., g.x.out :] = 0
    return wide.reshape(*split.shape[:3], g.y.out * width)


def _blocks(xp: Any, g: Geometry, images: int, filters: int, item: int) -> list[slice]:
    """Stretches of images whose products stay in the cache from tap to tap."""
    height = g.y.size + g.y.before + g.y.after
    width = g.x.size + g.x.before + g.x.after
    one = max(filters * height * width * item, 1)
    step = max(HOST_BLOCK // one, 1) if xp is np else max(images, 1)
    return [slice(i, i + step) for i in range(0, images, step)]


def forward(xp: Any, images: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """As `conv_gemm.forward`."""
    if _is_flat(g):
        for b in _blocks(xp, g, len(images), out.shape[1], out.itemsize):
            _forward(xp, images[b], weight, g, out[b])
        return out
    return _forward(xp, images, weight, g, out)


def _forward(xp: Any, images: Any, weight: Any, g: Geometry, out: Any) -> Any:
    into = _per_group(out, g.groups)
    kernel = weight.reshape(g.groups, -1, *weight.shape[2:])
    if not _is_flat(g):
        out[...] = 0
        source = images[:, :, None]
        product = scratch(xp, "col", into.shape, out.dtype)
        for i, j, windows, there in _taps(g):
            part = product[windows]
            xp.multiply(source[there], kernel[:, :, i, j, None, None], out=part)
            into[windows] += part
        return out
    taps, (height, width, used) = _flat_taps(g)
    source = _padded(xp, images, g, height, width)
    shape = (*into.shape[:3], g.y.out * width)
    total = scratch(xp, "wide", shape, out.dtype)
    product = scratch(xp, "col", (*shape[:3], used), out.dtype)
    first = True
    for i, j, shift in taps:
        tap = kernel[:, :, i, j, None]
        shifted = source[..., shift : shift + used]
        if first:
            xp.multiply(shifted, tap, out=total[..., :used])
        else:
            xp.multiply(shifted, tap, out=product)
            total[..., :used] += product
        first = False
    into[...] = total.reshape(*shape[:3], g.y.out, width)[..., : g.x.out]
    return out


def grad_input(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """As `conv_gemm.grad_input`."""
    if _is_flat(g):
        for b in _blocks(xp, g, len(d_out), d_out.shape[1], out.itemsize):
            _grad_input(xp, d_out[b], weight, g, out[b])
        return out
    return _grad_input(xp, d_out, weight, g, out)


def _grad_input(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    kernel = weight.reshape(g.groups, -1, *weight.shape[2:])
    if not _is_flat(g):
        source = _per_group(d_out, g.groups)
        out[...] = 0
        product = scratch(xp, "col", source.shape, out.dtype)
        for i, j, windows, there in _taps(g):
            part = product[windows]
            xp.multiply(source[windows], kernel[:, :, i, j, None, None], out=part)
            out[there] += part.sum(2)
        return out
    taps, (height, width, used) = _flat_taps(g)
    source = _spread(xp, d_out, g, width)[..., :used]
    n, channels = out.shape[:2]
    total = scratch(xp, "padded", (n, channels, height * width), out.dtype)
    total[...] = 0
    product = scratch(xp, "col", source.shape, out.dtype)
    for i, j, shift in taps:
        xp.multiply(source, kernel[:, :, i, j, None], out=product)
        part = total[..., shift : shift + used]
        part += product[:, :, 0] if product.shape[2] == 1 else product.sum(2)
    y, x = g.y, g.x
    whole = total.reshape(n, channels, height, width)
    out[...] = whole[:, :, y.before : y.before + y.size, x.before : x.before + x.size]
    return out


def grad_filter(xp: Any, images: Any, d_out: Any, g: Geometry) -> Any:
    """As `conv_gemm.grad_filter`."""
    filters = d_out.shape[1]
    total = xp.empty(
        (g.groups, filters // g.groups, g.y.kernel, g.x.kernel), d_out.dtype
    )
    if not _is_flat(g):
        source, given = images[:, :, None], _per_group(d_out, g.groups)
        product = scratch(xp, "col", given.shape, images.dtype)
        for i, j, windows, there in _taps(g):
            part = product[windows]
            xp.multiply(given[windows], source[there], out=part)
            total[:, :, i, j] = part.sum((0, 3, 4))
        return total.reshape(filters, 1, g.y.kernel, g.x.kernel)
    taps, (height, width, used) = _flat_taps(g)
    source = _padded(xp, images, g, height, width)[:, :, 0]
    given = _spread(xp, d_out, g, width)[..., :used]
    for i, j, shift in taps:
        shifted = source[..., shift : shift + used]
        total[:, :, i, j] = xp.einsum("ncmi,nci->ncm", given, shifted).sum(0)
    return total.reshape(filters, 1, g.y.kernel, g.x.kernel)
