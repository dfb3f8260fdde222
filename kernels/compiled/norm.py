"""Compiled batch_norm and layer_norm: every row or channel is read from the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidx.kernels import compiled
from fluidx.kernels.arrays import ones
from fluidx.kernels.infer import known_product
from fluidx.kernels.norm import by_channel, keep_running
from fluidx.kernels.threads import share

from .functions import loops, own

__all__ = ["batch_norm", "batch_norm_grad", "layer_norm", "layer_norm_grad"]

# rows that are added up before the sum goes to the total: errors stay small
_TOGETHER = 64


def _fits(x: Any, *others: Any) -> bool:
    """Whether X is large enough, and all are float32 or all float64."""
    if x.size < compiled.SMALLEST or x.dtype.char not in "fd":
        return False
    return all(a is None or a.dtype == x.dtype for a in others)


# --- layer_norm -------------------------------------------------------------------


@loops
def _layer_norm(
    x: Any, scale: Any, bias: Any, out: Any, epsilon: float, begin: int, end: int
) -> None:
    y, mean, variance = out
    width = x.dtype.type(x.shape[1])
    for i in range(begin, end):
        row, into = x[i], y[i]
        total = x.dtype.type(0)
        for j in range(len(row)):
            total += row[j]
        centre = total / width
        spread = x.dtype.type(0)
        for j in range(len(row)):
            spread += (row[j] - centre) * (row[j] - centre)
        spread /= width
        factor = x.dtype.type(1 / math.sqrt(spread + epsilon))
        for j in range(len(row)):
            into[j] = (row[j] - centre) * factor * scale[j] + bias[j]
        mean[i] = centre
        variance[i] = spread


def layer_norm(
    xp: Any, x: Any, scale: Any, bias: Any, *, begin_norm_axis: int, epsilon: float
) -> Any:
    if not _fits(x, scale, bias):
        how: Any = {"begin_norm_axis": begin_norm_axis, "epsilon": epsilon}
        return own("layer_norm")(xp, x, scale, bias, **how)
    left = known_product(x.shape[:begin_norm_axis])
    rows = np.ascontiguousarray(x).reshape(left, -1)
    width, dtype = rows.shape[1], x.dtype
    y = np.empty(rows.shape, dtype)
    mean, variance = np.empty(left, dtype), np.empty(left, dtype)
    factor = ones(np, width, dtype) if scale is None else scale
    shift = np.zeros(width, dtype) if bias is None else bias
    out = y, mean, variance
    share(
        left,
        x.size,
        lambda a, b: _layer_norm(rows, factor, shift, out, epsilon, a, b),
    )
    return y.reshape(x.shape), mean, variance


@loops
def _layer_norm_grad(
    x: Any, d: Any, scale: Any, saved: Any, d_x: Any, sums: Any, begin: int, end: int
) -> None:
    """d_x, and into sums (2, width) the gradients of scale and bias."""
    mean, inverse = saved
    part = np.empty(sums.shape, sums.dtype)
    width = x.dtype.type(x.shape[1])
    for first in range(begin, end, _TOGETHER):
        part[...] = 0
        for i in range(first, min(first + _TOGETHER, end)):
            row, given, into = x[i], d[i], d_x[i]
            centre, factor = mean[i], inverse[i]
            plain, along = x.dtype.type(0), x.dtype.type(0)
            for j in range(len(row)):
                normal = (row[j] - centre) * factor
                weighted = given[j] * scale[j]
                plain += weighted
                along += weighted * normal
                part[0, j] += given[j] * normal
                part[1, j] += given[j]
            plain /= width
            along /= width
            for j in range(len(row)):
                normal = (row[j] - centre) * factor
                into[j] = (given[j] * scale[j] - plain - normal * along) * factor
        sums += part


def layer_norm_grad(
    xp: Any,
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    d_y: Any,
    *,
    epsilon: float,
    wants: tuple[bool, ...],
) -> Any:
    if not wants[0] or not _fits(x, scale, mean, variance, d_y):
        inputs = x, scale, bias, mean, variance, d_y
        run = own("layer_norm_grad")
        return run(xp, *inputs, epsilon=epsilon, wants=wants)
    rows = np.ascontiguousarray(x).reshape(len(mean), -1)
    given = np.ascontiguousarray(d_y).reshape(rows.shape)
    width, dtype = rows.shape[1], x.dtype
    weight = ones(np, width, dtype) if scale is None else scale
    saved = mean, (variance + epsilon) ** -0.5
    d_x = np.empty(x.shape, dtype)
    out = d_x.reshape(rows.shape)

    def part(begin: int, end: int) -> Any:
        sums = np.zeros((2, width), dtype)
        _layer_norm_grad(rows, given, weight, saved, out, sums, begin, end)
        return sums

    parts = share(len(rows), 2 * x.size, part)
    d_scale, d_bias = parts[0] if len(parts) == 1 else sum(parts)
    return (
        d_x,
        None if scale is None or not wants[1] else d_scale,
        None if bias is None or not wants[2] else d_bias,
    )


# --- batch_norm -------------------------------------------------------------------


@loops
def _planes(
    x: Any, scale: Any, bias: Any, out: Any, epsilon: float, begin: int, end: int
) -> None:
    """x (n, channels, places); out: y, mean, variance and 1 / deviation."""
    y, mean, variance, inverse = out
    count = x.dtype.type(x.shape[0] * x.shape[2])
    for c in range(begin, end):
        centre, spread = x.dtype.type(0), x.dtype.type(0)
        for n in range(x.shape[0]):
            total = x.dtype.type(0)
            for i in range(x.shape[2]):
                total += x[n, c, i]
            centre += total
        centre /= count
        for n in range(x.shape[0]):
            total = x.dtype.type(0)
            for i in range(x.shape[2]):
                total += (x[n, c, i] - centre) * (x[n, c, i] - centre)
            spread += total
        spread /= count
        deviation = x.dtype.type(1 / math.sqrt(spread + epsilon))
        factor, shift = deviation * scale[c], bias[c]
        for n in range(x.shape[0]):
            for i in range(x.shape[2]):
                y[n, c, i] = (x[n, c, i] - centre) * factor + shift
        mean[c], variance[c], inverse[c] = centre, spread, deviation


@loops
def _lines(
    x: Any, scale: Any, bias: Any, out: Any, epsilon: float, begin: int, end: int
) -> None:
    """The same of x (places, channels)."""
    y, mean, variance, inverse = out
    count = x.dtype.type(len(x))
    part = np.empty(end - begin, x.dtype)
    centre, spread = mean[begin:end], variance[begin:end]
    centre[...] = 0
    spread[...] = 0
    for first in range(0, len(x), _TOGETHER):
        part[...] = 0
        for i in range(first, min(first + _TOGETHER, len(x))):
            row = x[i, begin:end]
            for c in range(len(part)):
                part[c] += row[c]
        centre += part
    centre /= count
    for first in range(0, len(x), _TOGETHER):
        part[...] = 0
        for i in range(first, min(first + _TOGETHER, len(x))):
            row = x[i, begin:end]
            for c in range(len(part)):
                part[c] += (row[c] - centre[c]) * (row[c] - centre[c])
        spread += part
    spread /= count
    shift = bias[begin:end]
    for c in range(len(part)):
        inverse[begin + c] = 1 / math.sqrt(spread[c] + epsilon)
        part[c] = inverse[begin + c] * scale[begin + c]
    for i in range(len(x)):
        row, into = x[i, begin:end], y[i, begin:end]
        for c in range(len(part)):
            into[c] = (row[c] - centre[c]) * part[c] + shift[c]


def batch_norm(
    xp: Any,
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    momentum_tensor: Any,
    *,
    momentum: float,
    epsilon: float,
    data_layout: str,
    is_test: bool,
    use_global_stats: bool,
    trainable_statistics: bool,
) -> Any:
    fixed = use_global_stats or (is_test and not trainable_statistics)
    if fixed or x.size <= scale.size or not _fits(x, scale, bias, mean, variance):
        return own("batch_norm")(
            xp,
            x,
            scale,
            bias,
            mean,
            variance,
            momentum_tensor,
            momentum=momentum,
            epsilon=epsilon,
            data_layout=data_layout,
            is_test=is_test,
            use_global_stats=use_global_stats,
            trainable_statistics=trainable_statistics,
        )
    flat, _, letters = by_channel(np.ascontiguousarray(x), data_layout == "NHWC")
    y = np.empty(flat.shape, x.dtype)
    now = [np.empty(scale.shape, x.dtype) for _ in range(3)]
    kernel, out = (_lines if letters == "nc" else _planes), (y, *now)
    share(
        len(scale),
        x.size,
        lambda a, b: kernel(flat, scale, bias, out, epsilon, a, b),
    )
    keep = momentum if momentum_tensor is None else momentum_tensor
    keep_running(mean, now[0], keep)
    keep_running(variance, now[1], keep)
    return y.reshape(x.shape), mean, variance, now[0], now[2], None


@loops
def _planes_grad(
    x: Any,
    d: Any,
    scale: Any,
    saved: Any,
    out: Any,
    through: bool,
    begin: int,
    end: int,
) -> None:
    """Gradients of x, scale and bias; through: also through the statistics."""
    mean, inverse = saved
    d_x, d_scale, d_bias = out
    count = x.dtype.type(x.shape[0] * x.shape[2])
    for c in range(begin, end):
        plain, along = x.dtype.type(0), x.dtype.type(0)
        centre, deviation = mean[c], inverse[c]
        for n in range(x.shape[0]):
            one, other = x.dtype.type(0), x.dtype.type(0)
            for i in range(x.shape[2]):
                one += d[n, c, i]
                other += d[n, c, i] * (x[n, c, i] - centre)
            plain += one
            along += other
        along *= deviation
        d_scale[c], d_bias[c] = along, plain
        factor = scale[c] * deviation
        down, slope = x.dtype.type(0), x.dtype.type(0)
        if through:
            down, slope = plain / count, along / count * deviation
        for n in range(x.shape[0]):
            for i in range(x.shape[2]):
                rest = d[n, c, i] - down - (x[n, c, i] - centre) * slope
                d_x[n, c, i] = rest * factor


@loops
def _lines_grad(
    x: Any,
    d: Any,
    scale: Any,
    saved: Any,
    out: Any,
    through: bool,
    begin: int,
    end: int,
) -> None:
    """The same of x (places, channels)."""
    d_x, d_scale, d_bias = out
    centre, deviation = saved[0][begin:end], saved[1][begin:end]
    along, plain = d_scale[begin:end], d_bias[begin:end]
    along[...] = 0
    plain[...] = 0
    part = np.empty((2, end - begin), x.dtype)
    for first in range(0, len(x), _TOGETHER):
        part[...] = 0
        for i in range(first, min(first + _TOGETHER, len(x))):
            row, given = x[i, begin:end], d[i, begin:end]
            for c in range(len(row)):
                part[0, c] += given[c] * (row[c] - centre[c])
                part[1, c] += given[c]
        along += part[0]
        plain += part[1]
    along *= deviation
    part[...] = 0
    if through:
        for c in range(len(plain)):
            part[0, c] = along[c] / len(x) * deviation[c]
            part[1, c] = plain[c] / len(x)
    factor = scale[begin:end] * deviation
    for i in range(len(x)):
        row, given, into = x[i, begin:end], d[i, begin:end], d_x[i, begin:end]
        for c in range(len(row)):
            rest = given[c] - part[1, c] - (row[c] - centre[c]) * part[0, c]
            into[c] = rest * factor[c]


def batch_norm_grad(
    xp: Any,
    x: Any,
    scale: Any,
    bias: Any,
    saved_mean: Any,
    saved_inverse: Any,
    reserve: Any,
    d_y: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float,
    data_layout: str,
    is_test: bool,
    use_global_stats: bool,
    trainable_statistics: bool,
    wants: tuple[bool, ...],
) -> Any:
    fixed = use_global_stats or (is_test and not trainable_statistics)
    if fixed:
        saved_mean, saved_inverse = mean, (variance + epsilon) ** -0.5
    ours = wants[0] and x.size > scale.size
    if not ours or not _fits(x, scale, saved_mean, saved_inverse, d_y):
        return own("batch_norm_grad")(
            xp,
            x,
            scale,
            bias,
            saved_mean,
            saved_inverse,
            reserve,
            d_y,
            mean,
            variance,
            epsilon=epsilon,
            data_layout=data_layout,
            is_test=is_test,
            use_global_stats=use_global_stats,
            trainable_statistics=trainable_statistics,
            wants=wants,
        )
    flat, _, letters = by_channel(np.ascontiguousarray(x), data_layout == "NHWC")
    given = np.ascontiguousarray(d_y).reshape(flat.shape)
    d_x = np.empty(flat.shape, x.dtype)
    d_scale, d_bias = np.empty(scale.shape, x.dtype), np.empty(scale.shape, x.dtype)
    kernel = _lines_grad if letters == "nc" else _planes_grad
    saved, out, through = (saved_mean, saved_inverse), (d_x, d_scale, d_bias), not fixed
    share(
        len(scale),
        2 * x.size,
        lambda a, b: kernel(flat, given, scale, saved, out, through, a, b),
    )
    return d_x.reshape(x.shape), d_scale, d_bias
