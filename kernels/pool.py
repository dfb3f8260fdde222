"""Pooling over height and width: pool2d.

Maxima and sums are taken first over rows, then over columns: kernel height plus
kernel width passes over whole arrays, no reduction over a short axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out
from .scratch import scratch
from .window import Axis, Fail, channels_last, explicit_pads, plan_axis

__all__ = ["pool2d"]


class Geometry(NamedTuple):
    """A resolved pooling.

    y, x: the axes of a sliding window; None where `bounds` says it all. bounds:
    per axis the (start, stop) of each window, for adaptive pooling that does not
    divide evenly.
    """

    y: Axis
    x: Axis
    bounds: tuple[list[tuple[int, int]], list[tuple[int, int]]] | None


def _raise(message: str) -> None:
    raise ValueError(message)


def _geometry(
    size: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    ceil_mode: bool,
    global_pooling: bool,
    adaptive: bool,
    fail: Fail = _raise,
) -> Geometry:
    """How an input of this (height, width) is pooled."""
    if global_pooling:
        y, x = (plan_axis(n, n, 1, 1, (0, 0), "VALID") for n in size)
        one = (a._replace(out=1) for a in (y, x))
        return Geometry(*one, None)
    if adaptive:
        axes = [_adaptive_axis(n, k) for n, k in zip(size, ksize)]
        even = all(a.kernel * a.out == a.size for a in axes)
        bounds = None if even else tuple(_adaptive_bounds(a) for a in axes)
        return Geometry(axes[0], axes[1], bounds)  # type: ignore[arg-type]
    pads = explicit_pads(paddings, fail)
    y, x = (
        plan_axis(
            size[i],
            ksize[i],
            strides[i],
            1,
            pads[2 * i : 2 * i + 2],
            algorithm,
            ceil_mode,
        )
        for i in range(2)
    )
    return Geometry(y, x, None)


def _adaptive_axis(size: int, out: int) -> Axis:
    """The axis of an adaptive pooling whose windows are all alike."""
    kernel = max(size // out, 1)
    return Axis(size, kernel, kernel, 1, 0, 0, out)


def _adaptive_bounds(a: Axis) -> list[tuple[int, int]]:
    return [(o * a.size // a.out, -(-(o + 1) * a.size // a.out)) for o in range(a.out)]


def _infer(op: InferContext) -> None:
    shape = op.shape("X")
    op.check(len(shape) == 4, f"X needs 4 dimensions, got shape {shape}")
    kind = op.attr("pooling_type")
    op.check(kind in ("max", "avg"), f"pooling_type must be max or avg, not {kind!r}")
    for name in ("ksize", "strides"):
        value = op.attr(name)
        op.check(
            op.attr("global_pooling") or (len(value) == 2 and min(value) > 0),
            f"{name} needs 2 positive numbers, got {list(value)}",
        )
    last = channels_last(op.attr("data_format"), op.fail)
    size = shape[1:3] if last else shape[2:]
    g = _geometry(
        size,
        op.attr("ksize"),
        op.attr("strides"),
        op.attr("paddings"),
        op.attr("padding_algorithm"),
        op.attr("ceil_mode"),
        op.attr("global_pooling"),
        op.attr("adaptive"),
        op.fail,
    )
    for name, a in (("height", g.y), ("width", g.x)):
        op.check(
            a.size < 0 or a.out > 0,
            f"a window of {a.kernel} does not fit {name} {a.size} with padding "
            f"{a.before} and {a.after}",
        )
    if last:
        out = (shape[0], g.y.out, g.x.out, shape[3])
    else:
        out = (*shape[:2], g.y.out, g.x.out)
    op.set("Out", out, like=op.input("X"))


pool2d = op(
    "pool2d",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[
        Attr("pooling_type", str),
        Attr("ksize", AttrType.INTS),
        Attr("strides", AttrType.INTS, [1, 1]),
        Attr("paddings", AttrType.INTS, [0, 0]),
        Attr("padding_algorithm", str, "EXPLICIT"),
        Attr("global_pooling", bool, False),
        Attr("adaptive", bool, False),
        Attr("exclusive", bool, True),
        Attr("ceil_mode", bool, False),
        Attr("data_format", str, "NCHW"),
        Attr("is_test", bool, False),
        Attr("use_cudnn", bool, False),
        Attr("use_mkldnn", bool, False),
        Attr("use_quantizer", bool, False),
    ],
    infer=_infer,
    grad=grad_op(needs=["X", "Out"]),
)


def _lowest(dtype: Any) -> float:
    """What a window without elements has as its maximum (as in the reference)."""
    return float(np.finfo(dtype).min)


def _counts(xp: Any, g: Geometry, exclusive: bool, dtype: Any) -> Any:
    """What the sums of an average are divided by: a number, or (rows, columns).

    A window without elements has count 1, and so average 0.
    """
    if g.bounds is not None:
        each = [[stop - start for start, stop in ends] for ends in g.bounds]
    else:
        full = all(
            a.before <= 0 and (a.out - 1) * a.stride - a.before + a.kernel <= a.size
            for a in (g.y, g.x)
        )
        if full or not exclusive:
            return g.y.kernel * g.x.kernel
        each = [
            [
                max(min(start + a.kernel, a.size) - max(start, 0), 1)
                for start in range(-a.before, a.out * a.stride - a.before, a.stride)
            ]
            for a in (g.y, g.x)
        ]
    down, right = (xp.asarray(counts, dtype) for counts in each)
    return down[:, None] * right


def _slide(xp: Any, combine: Any, start: float, x: Any, a: Axis, axis: int) -> Any:
    """Combine what the taps of one axis (2 or 3) read, over all windows."""

    def at(index: slice) -> tuple[Any, ...]:
        return (..., index, slice(None)) if axis == 2 else (..., index)

    spans = [a.inside(tap) for tap in range(a.kernel)]
    whole = [there for windows, there in spans if _covers(windows, a.out)]
    if len(whole) == len(spans) > 1:  # no padding: no array to initialise
        out = combine(x[at(whole[0])], x[at(whole[1])])
        rest = [(slice(None), there) for there in whole[2:]]
    else:
        shape = list(x.shape)
        shape[axis] = a.out
        out = xp.full(shape, start, x.dtype)
        rest = spans
    for windows, there in rest:
        part = out[at(windows)]
        combine(part, x[at(there)], out=part)
    return out


def _covers(windows: slice, count: int) -> bool:
    return windows.start == 0 and windows.stop == count


def _uneven(x: Any, g: Geometry, kind: str) -> Any:
    """Windows of unequal size: one reduction per row and per column of windows."""
    down, right = g.bounds  # type: ignore[misc]
    n, c = x.shape[:2]
    rows = [getattr(x[:, :, i:j], kind)(2) for i, j in down]
    cells = [[getattr(row[..., i:j], kind)(2) for i, j in right] for row in rows]
    return cells, (n, c, len(down), len(right))


def _pool(xp: Any, x: Any, g: Geometry, kind: str, exclusive: bool) -> Any:
    """Pool (n, channels, height, width)."""
    if g.bounds is not None:
        cells, shape = _uneven(x, g, "max" if kind == "max" else "sum")
        out = xp.empty(shape, x.dtype)
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                out[:, :, i, j] = cell
    elif kind == "max":
        low = _lowest(x.dtype)
        rows = _slide(xp, xp.maximum, low, x, g.y, 2)
        return _slide(xp, xp.maximum, low, rows, g.x, 3)
    else:
        rows = _slide(xp, xp.add, 0.0, x, g.y, 2)
        out = _slide(xp, xp.add, 0.0, rows, g.x, 3)
    if kind == "avg":
        out /= _counts(xp, g, exclusive, x.dtype)
    return out


@pool2d.kernel
def _(
    xp: Any,
    x: Any,
    *,
    pooling_type: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    global_pooling: bool,
    adaptive: bool,
    exclusive: bool,
    ceil_mode: bool,
    data_format: str,
) -> Any:
    last = data_format == "NHWC"
    if global_pooling:
        axes = (1, 2) if last else (2, 3)
        if pooling_type == "max":
            return x.max(axes, keepdims=True)
        return x.mean(axes, keepdims=True)
    images = x.transpose(0, 3, 1, 2) if last else x
    g = _geometry(
        images.shape[2:],
        ksize,
        strides,
        paddings,
        padding_algorithm,
        ceil_mode,
        False,
        adaptive,
    )
    out = _pool(xp, images, g, pooling_type, exclusive)
    return xp.ascontiguousarray(out.transpose(0, 2, 3, 1)) if last else out


def _cells(g: Geometry) -> Iterator[tuple[Any, Any]]:
    """(windows, what they read) for each tap, or for each uneven window."""
    for i in range(g.y.kernel):
        down, at_y = g.y.inside(i)
        for j in range(g.x.kernel):
            right, at_x = g.x.inside(j)
            yield (..., down, right), (..., at_y, at_x)


def _tiles(g: Geometry) -> bool:
    """Whether the windows cover the input, each element once, without padding."""
    return all(
        a.stride == a.kernel and a.before == 0 and a.out * a.kernel == a.size
        for a in (g.y, g.x)
    )


def _max_grad(xp: Any, x: Any, out: Any, d_out: Any, g: Geometry) -> Any:
    """The gradient goes to the first maximum of each window, row by row."""
    whole = _tiles(g)
    dx = (xp.empty if whole else xp.zeros)(x.shape, x.dtype)
    free = scratch(xp, "free", out.shape, bool)  # windows without a maximum so far
    free[...] = True
    hits = scratch(xp, "hits", out.shape, bool)
    for windows, there in _cells(g):
        left, hit = free[windows], hits[windows]
        xp.equal(x[there], out[windows], out=hit)
        hit &= left
        left ^= hit
        if whole:
            xp.multiply(d_out[windows], hit, out=dx[there])
        else:
            part = dx[there]
            part += d_out[windows] * hit
    return dx


def _uneven_max_grad(
    xp: Any, x: Any, d_out: Any, bounds: Sequence[list[tuple[int, int]]]
) -> Any:
    """As `_max_grad`, one window after the other: argmax finds the first maximum."""
    n, c = x.shape[:2]
    dx = xp.zeros(x.shape, x.dtype)
    every = xp.arange(n * c)
    for i, (top, bottom) in enumerate(bounds[0]):
        for j, (left, right) in enumerate(bounds[1]):
            window = x[:, :, top:bottom, left:right].reshape(n * c, -1)
            one = xp.zeros(window.shape, x.dtype)
            one[every, window.argmax(1)] = d_out[:, :, i, j].reshape(-1)
            dx[:, :, top:bottom, left:right] += one.reshape(
                n, c, bottom - top, right - left
            )
    return dx


def _avg_grad(xp: Any, x: Any, d_out: Any, g: Geometry, exclusive: bool) -> Any:
    share = d_out / _counts(xp, g, exclusive, x.dtype)
    if g.bounds is None and _tiles(g):
        dx = xp.empty(x.shape, x.dtype)
        for windows, there in _cells(g):
            dx[there] = share[windows]
        return dx
    dx = xp.zeros(x.shape, x.dtype)
    if g.bounds is None:
        for windows, there in _cells(g):
            part = dx[there]
            part += share[windows]
        return dx
    for i, (top, bottom) in enumerate(g.bounds[0]):
        for j, (left, right) in enumerate(g.bounds[1]):
            dx[:, :, top:bottom, left:right] += share[:, :, i : i + 1, j : j + 1]
    return dx


@pool2d.grad_kernel
def _(
    xp: Any,
    x: Any,
    out: Any,
    d_out: Any,
    *,
    pooling_type: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    global_pooling: bool,
    adaptive: bool,
    exclusive: bool,
    ceil_mode: bool,
    data_format: str,
) -> Any:
    last = data_format == "NHWC"
    if last:
        x, out, d_out = (a.transpose(0, 3, 1, 2) for a in (x, out, d_out))
    g = _geometry(
        x.shape[2:],
        ksize,
        strides,
        paddings,
        padding_algorithm,
        ceil_mode,
        global_pooling,
        adaptive,
    )
    if global_pooling:  # one window: argmax instead of a tap per element
        g = g._replace(bounds=([(0, g.y.size)], [(0, g.x.size)]))
    if pooling_type == "avg":
        dx = _avg_grad(xp, x, d_out, g, exclusive)
    elif g.bounds is not None:
        dx = _uneven_max_grad(xp, x, d_out, g.bounds)
    else:
        dx = _max_grad(xp, x, out, d_out, g)
    return xp.ascontiguousarray(dx.transpose(0, 2, 3, 1)) if last else dx
