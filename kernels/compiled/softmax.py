"""Compiled softmax and softmax_with_cross_entropy along the last axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidx.kernels import compiled
from fluidx.kernels.activation import SOFTMAX_FLOOR
from fluidx.kernels.arrays import fit
from fluidx.kernels.loss import labels
from fluidx.kernels.threads import share

from .functions import above, exact, exp, from_order, in_order, loops, own

__all__ = [
    "softmax",
    "softmax_grad",
    "softmax_with_cross_entropy",
]


def _rows(x: Any, *others: Any) -> Any:
    """X as contiguous rows along its last axis; None where this is not for us."""
    # short rows are what NumPy is slowest at
    if x.size < compiled.SMALLEST // 8 or x.dtype.char not in "fd":
        return None
    if not all(a.dtype == x.dtype for a in others):
        return None
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])


def _is_last(axis: int, rank: int) -> bool:
    return axis == -1 or axis == rank - 1


def _target(out: Any, like: Any) -> Any:
    """`out` where it takes an array like this, else a new one."""
    out = fit(out, like)
    if out is not None and out.flags.c_contiguous:
        return out
    return np.empty(like.shape, like.dtype)


@exact
def _gap(value: Any, largest: Any, floor: Any) -> Any:
    """How far a value is below the largest, `floor` at most; NaN stays."""
    gap = value - largest
    return floor if gap < floor else gap


@loops
def _exponents(row: Any, y: Any) -> Any:
    """Write exp(row - its largest) into y; returns (largest, 1 / sum, log(sum))."""
    top = in_order(row[0])
    for j in range(1, len(row)):
        top = above(in_order(row[j]), top)
    largest = from_order(top)
    total, floor = row.dtype.type(0), row.dtype.type(SOFTMAX_FLOOR)
    for j in range(len(row)):
        e = exp(_gap(row[j], largest, floor))
        y[j] = e
        total += e
    return largest, row.dtype.type(1) / total, row.dtype.type(math.log(total))


@loops
def _softmax(x: Any, y: Any, begin: int, end: int) -> None:
    for i in range(begin, end):
        out = y[i]
        _, factor, _ = _exponents(x[i], out)
        for j in range(len(out)):
            out[j] *= factor


def softmax(xp: Any, x: Any, *, axis: int, out: Any = None) -> Any:
    rows = _rows(x) if _is_last(axis, x.ndim) else None
    if rows is None:
        return own("softmax")(xp, x, axis=axis, out=out)
    y = _target(out, x)
    flat = y.reshape(rows.shape)
    share(len(rows), x.size, lambda a, b: _softmax(rows, flat, a, b))
    return y


@loops
def _softmax_grad(y: Any, d: Any, g: Any, begin: int, end: int) -> None:
    for i in range(begin, end):
        p, given, out = y[i], d[i], g[i]
        total = y.dtype.type(0)
        for j in range(len(p)):
            total += p[j] * given[j]
        for j in range(len(p)):
            out[j] = p[j] * (given[j] - total)


def softmax_grad(xp: Any, y: Any, d: Any, *, axis: int) -> Any:
    rows = _rows(y, d) if _is_last(axis, y.ndim) else None
    if rows is None:
        return own("softmax_grad")(xp, y, d, axis=axis)
    given = np.ascontiguousarray(d).reshape(rows.shape)
    g = np.empty(y.shape, y.dtype)
    out = g.reshape(rows.shape)
    share(len(rows), y.size, lambda a, b: _softmax_grad(rows, given, out, a, b))
    return g


@loops
def _loss_of_classes(
    x: Any, label: Any, y: Any, loss: Any, begin: int, end: int
) -> None:
    """Softmax into y and -log of each label's probability into loss."""
    floor = x.dtype.type(SOFTMAX_FLOOR)
    for i in range(begin, end):
        out = y[i]
        largest, factor, size = _exponents(x[i], out)
        for j in range(len(out)):
            out[j] *= factor
        loss[i] = size - _gap(x[i, label[i]], largest, floor)


@loops
def _loss_of_shares(
    x: Any, label: Any, y: Any, loss: Any, begin: int, end: int
) -> None:
    """Softmax into y and -sum(label * log softmax) into loss."""
    floor = x.dtype.type(SOFTMAX_FLOOR)
    for i in range(begin, end):
        row, weights, out = x[i], label[i], y[i]
        largest, factor, size = _exponents(row, out)
        cost = x.dtype.type(0)
        for j in range(len(out)):
            out[j] *= factor
            cost += weights[j] * (size - _gap(row[j], largest, floor))
        loss[i] = cost


def softmax_with_cross_entropy(
    xp: Any, x: Any, label: Any, *, soft_label: bool, ignore_index: int, axis: int
) -> Any:
    name = "softmax_with_cross_entropy"
    ours = _is_last(axis, x.ndim)
    rows = _rows(x, *([label] if soft_label else [])) if ours else None
    if rows is None:
        how: Any = {"soft_label": soft_label, "ignore_index": ignore_index}
        return own(name)(xp, x, label, axis=axis, **how)
    y, loss = np.empty(rows.shape, x.dtype), np.empty(len(rows), x.dtype)
    ignored = None
    if soft_label:
        kernel, given = _loss_of_shares, np.ascontiguousarray(label).reshape(rows.shape)
    else:
        kernel = _loss_of_classes
        given, ignored = labels(xp, name, label, x.shape[-1], ignore_index)
    share(len(rows), 2 * x.size, lambda a, b: kernel(rows, given, y, loss, a, b))
    if ignored is not None:
        loss[ignored] = 0
    return y.reshape(x.shape), loss.reshape(*x.shape[:-1], 1)
