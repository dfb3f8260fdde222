"""Pooling of images and volumes: pool2d, pool3d."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .grad import grad_op
from .infer import InferContext, InferRule
from .pool_windows import (
    Geometry,
    avg_grad,
    geometry,
    max_grad,
    pool,
    raise_error,
)
from .registry import OpDef, op, takes
from .schema import Attr, AttrType, In, Out
from .window import Fail, channels_last

__all__ = ["pool2d", "pool3d"]

_NAMES = {2: ("height", "width"), 3: ("depth", "height", "width")}


def _window(dims: int, data_format: str) -> tuple[Attr, ...]:
    """The attributes that mean something."""
    return (
        Attr("pooling_type", str),
        Attr("ksize", AttrType.INTS),
        Attr("strides", AttrType.INTS, [1] * dims),
        Attr("paddings", AttrType.INTS, [0] * dims),
        Attr("padding_algorithm", str, "EXPLICIT"),
        Attr("global_pooling", bool, False),
        Attr("adaptive", bool, False),
        Attr("exclusive", bool, True),
        Attr("ceil_mode", bool, False),
        Attr("data_format", str, data_format),
    )


WINDOW = _window(2, "NCHW")


def check_windows(op: InferContext, g: Geometry) -> None:
    """Refuse a window that does not fit."""
    for name, a in zip(_NAMES[len(g.axes)], g.axes):
        op.check(
            a.size < 0 or a.out > 0,
            f"a window of {a.kernel} does not fit {name} {a.size} with padding "
            f"{a.before} and {a.after}",
        )


def check_counts(op: InferContext, dims: int) -> None:
    """``ksize`` and ``strides`` have a positive number for each axis."""
    for name in ("ksize", "strides"):
        value = op.attr(name)
        op.check(
            op.attr("global_pooling") or (len(value) == dims and min(value) > 0),
            f"{name} needs {dims} positive numbers, got {list(value)}",
        )


def geometry_of(
    size: Sequence[int], window: Mapping[str, Any], fail: Fail = raise_error
) -> Geometry:
    """How an input of this size is pooled under these attributes."""
    g = geometry(
        size,
        window["ksize"],
        window["strides"],
        window["paddings"],
        window["padding_algorithm"],
        window["ceil_mode"],
        window["global_pooling"],
        window["adaptive"],
        fail,
    )
    if window["global_pooling"]:  # one window: argmax instead of a tap per element
        g = g._replace(bounds=tuple([(0, a.size)] for a in g.axes))
    return g


def _rule(dims: int) -> InferRule:
    def infer(op: InferContext) -> None:
        shape = op.shape("X")
        op.check(
            len(shape) == dims + 2,
            f"X needs {dims + 2} dimensions, got shape {shape}",
        )
        kind = op.attr("pooling_type")
        op.check(
            kind in ("max", "avg"), f"pooling_type must be max or avg, not {kind!r}"
        )
        check_counts(op, dims)
        last = channels_last(op.attr("data_format"), op.fail, dims)
        size = shape[1:-1] if last else shape[2:]
        g = geometry_of(size, {a.name: op.attr(a.name) for a in WINDOW}, op.fail)
        check_windows(op, g)
        out = tuple(a.out for a in g.axes)
        whole = (shape[0], *out, shape[-1]) if last else (*shape[:2], *out)
        op.set("Out", whole, like=op.input("X"))

    return infer


def _first(x: Any, last: bool) -> Any:
    """A view with the channels before the window axes."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1)) if last else x


def _as_format(xp: Any, x: Any, last: bool) -> Any:
    """The inverse, as an array of its own."""
    if not last:
        return x
    return xp.ascontiguousarray(x.transpose(0, *range(2, x.ndim), 1))


@takes(WINDOW)
def _forward(xp: Any, x: Any, **window: Any) -> Any:
    last = window["data_format"] in ("NHWC", "NDHWC")
    kind = window["pooling_type"]
    if window["global_pooling"]:
        return _global(xp, x, kind, last)
    images = _first(x, last)
    g = geometry_of(images.shape[2:], window)
    return _as_format(xp, pool(xp, images, g, kind, window["exclusive"]), last)


def _global(xp: Any, x: Any, kind: str, last: bool) -> Any:
    """One window."""
    axes = tuple(range(1, x.ndim - 1) if last else range(2, x.ndim))
    return x.max(axes, keepdims=True) if kind == "max" else x.mean(axes, keepdims=True)


@takes(WINDOW)
def _backward(xp: Any, x: Any, out: Any, d_out: Any, **window: Any) -> Any:
    last = window["data_format"] in ("NHWC", "NDHWC")
    x, out, d_out = (_first(a, last) for a in (x, out, d_out))
    g = geometry_of(x.shape[2:], window)
    if window["pooling_type"] == "avg":
        dx = avg_grad(xp, x, d_out, g, window["exclusive"])
    else:
        dx = max_grad(xp, x, out, d_out, g)
    return _as_format(xp, dx, last)


def _declare(type: str, dims: int, data_format: str, more: Iterable[Attr]) -> OpDef:
    made = op(
        type,
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=[
            *_window(dims, data_format),
            Attr("use_cudnn", bool, False),
            Attr("use_mkldnn", bool, False),
            *more,
        ],
        infer=_rule(dims),
        grad=grad_op(needs=["X", "Out"]),
    )
    made.kernel(_forward)
    made.grad_kernel(_backward)
    return made


pool2d = _declare(
    "pool2d",
    2,
    "NCHW",
    [Attr("is_test", bool, False), Attr("use_quantizer", bool, False)],
)
pool3d = _declare("pool3d", 3, "NCDHW", [])
