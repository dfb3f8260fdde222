"""Small array tools that several families share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["add_rows", "beside", "blocks", "fit", "kept", "lay", "ones", "sum_to"]


def fit(out: Any, like: Any) -> Any:
    """`out` where an array like this can be written into it, else None."""
    if out is like or (
        out is not None and out.shape == like.shape and out.dtype == like.dtype
    ):
        return out
    return None


# elements that a few arrays of stay in a processor's own cache
_BLOCK = 16384


def blocks(xp: Any, count: int) -> list[slice]:
    """Stretches of so many elements on which chains of ufuncs run from the cache."""
    if xp is not np or count <= _BLOCK:
        return [slice(0, count)]
    return [slice(i, min(i + _BLOCK, count)) for i in range(0, count, _BLOCK)]


@lru_cache(maxsize=64)
def kept(xp: Any, value: float, count: int, dtype: Any) -> Any:
    """A vector of one value, made once. Not to be written to; 65536 at most."""
    return xp.full(count, value, dtype)


def beside(xp: Any, value: float, x: Any) -> Any:
    """A number in the form in which `minimum` and `maximum` take it fastest beside X,
    a flat block: against a number numpy's loop is not vectorised (16384 float32: 13
    microseconds, against an array 3.4)."""
    if xp is not np or not 1024 <= x.size <= _BLOCK:
        return value
    return kept(xp, value, _BLOCK, x.dtype)[: x.size]


def ones(xp: Any, count: int, dtype: Any) -> Any:
    """A vector of ones; short ones are kept. Not to be written to."""
    return xp.ones(count, dtype) if count > 65536 else kept(xp, 1.0, count, dtype)


def lay(shape: tuple[int, ...], rank: int, axis: int) -> tuple[int, ...]:
    """The shape that broadcasts like `shape` laid over a rank from `axis` on.

    Trailing ones that do not fit any more are dropped (`broadcast_shape`).

    >>> lay((3,), 4, 1), lay((3, 1, 1), 3, 1)
    ((1, 3, 1, 1), (1, 3, 1))
    """
    laid = (1,) * axis + shape
    return (laid + (1,) * (rank - len(laid)))[:rank]


def sum_to(xp: Any, d: Any, laid: tuple[int, ...]) -> Any:
    """`d` summed down to a shape that broadcasts to d's; `d` itself if there already.

    The result has shape `laid`; missing axes in front count as ones.
    """
    if d.shape == laid:
        return d
    if d.ndim == 2 and laid == d.shape[1:] and d.dtype.kind == "f":
        return xp.dot(ones(xp, d.shape[0], d.dtype), d)
    full = (1,) * (d.ndim - len(laid)) + laid
    first, last = _span(d.shape, full)
    if full[first:last] != d.shape[first:last] or d.dtype.kind != "f":
        axes = tuple(i for i, n in enumerate(full) if n == 1 and d.shape[i] != 1)
        return d.sum(axis=axes, dtype=d.dtype).reshape(laid)
    return _sum_around(xp, d, first, last).reshape(laid)


def _span(full: tuple[int, ...], laid: tuple[int, ...]) -> tuple[int, int]:
    """The range of axes outside of which `laid` has only ones."""
    first, last = 0, len(laid)
    while first < last and laid[first] == 1 and full[first] != 1:
        first += 1
    while last > first and laid[last - 1] == 1 and full[last - 1] != 1:
        last -= 1
    return first, last


def _sum_around(xp: Any, d: Any, first: int, last: int) -> Any:
    """Sum over the axes before `first` and from `last` on.

    As products with a vector of ones. Measured with numpy 2, float32, one thread,
    microseconds, `add.reduce(d, axis=0)` against `dot(ones, d)`: (20, 1) 1.2 / 0.7;
    (128, 10) 3.8 / 1.0; (128, 200) 5.8 / 2.1; (1000, 400) 96 / 37; (4096, 64)
    205 / 23; and for the bias of a convolution `d.sum(axis=(0, 2, 3))` against two
    products: (64, 20, 24, 24) 440 / 77; (16, 64, 28, 28) 180 / 87.
    """
    shape = d.shape
    before = _count(shape[:first])
    width = _count(shape[first:last])
    if last < len(shape):
        after = _count(shape[last:])
        d = xp.dot(d.reshape(before * width, after), ones(xp, after, d.dtype))
    if before == 1:
        return d
    return xp.dot(ones(xp, before, d.dtype), d.reshape(before, width))


def _count(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def add_rows(xp: Any, dense: Any, sparse: Any) -> Any:
    """Add a `SelectedRows` into a dense array, in place; returns the array."""
    merged = sparse.merged(xp)
    dense[merged.rows] += merged.value
    return dense
