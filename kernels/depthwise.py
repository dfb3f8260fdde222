"""Convolution in which every filter sees one channel: a sum over taps, no GEMM.

The same three functions as `conv_gemm`, for weights (filters, 1, kh, kw) where group
g of the filters belongs to channel g.
"""

from __future__ import annotations

from typing import Any

from .conv_gemm import Geometry, scratch

__all__ = ["forward", "grad_filter", "grad_input"]


def _taps(g: Geometry) -> Any:
    """(kernel row, kernel column, windows, what they read), both as index pairs."""
    for i in range(g.y.kernel):
        down, at_y = g.y.inside(i)
        for j in range(g.x.kernel):
            right, at_x = g.x.inside(j)
            yield i, j, (..., down, right), (..., at_y, at_x)


def _per_group(array: Any, groups: int) -> Any:
    """(n, groups, filters of a group, height, width) view."""
    n, filters, height, width = array.shape
    return array.reshape(n, groups, filters // groups, height, width)


def _weights(weight: Any, groups: int, i: int, j: int) -> Any:
    return weight[:, 0, i, j].reshape(groups, -1, 1, 1)


def forward(xp: Any, images: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """As `conv_gemm.forward`."""
    source = images[:, :, None]
    into = _per_group(out, g.groups)
    out[...] = 0
    product = scratch(xp, "col", into.shape, out.dtype)
    for i, j, windows, there in _taps(g):
        part = product[windows]
        xp.multiply(source[there], _weights(weight, g.groups, i, j), out=part)
        into[windows] += part
    return out


def grad_input(xp: Any, d_out: Any, weight: Any, g: Geometry, out: Any) -> Any:
    """As `conv_gemm.grad_input`."""
    source = _per_group(d_out, g.groups)
    out[...] = 0
    product = scratch(xp, "col", source.shape, out.dtype)
    for i, j, windows, there in _taps(g):
        part = product[windows]
        xp.multiply(source[windows], _weights(weight, g.groups, i, j), out=part)
        out[there] += part.sum(2) if part.shape[2] > 1 else part[:, :, 0]
    return out


def grad_filter(xp: Any, images: Any, d_out: Any, g: Geometry) -> Any:
    """As `conv_gemm.grad_filter`."""
    source = images[:, :, None]
    given = _per_group(d_out, g.groups)
    product = scratch(xp, "col", given.shape, images.dtype)
    filters = d_out.shape[1]
    total = xp.empty((filters, 1, g.y.kernel, g.x.kernel), images.dtype)
    for i, j, windows, there in _taps(g):
        part = product[windows]
        xp.multiply(given[windows], source[there], out=part)
        total[:, 0, i, j] = part.sum((0, 3, 4)).reshape(-1)
    return total
