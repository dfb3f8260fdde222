"""Pooling of images and volumes: pool2d, pool3d."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .grad import grad_op
from .infer import InferContext, InferRule
from .pool_windows import Geometry, avg_grad, geometry, max_grad, pool
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out
from .window import channels_last

__all__ = ["pool2d", "pool3d"]

_NAMES = {2: ("height", "width"), 3: ("depth", "height", "width")}


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
        g = geometry(
            shape[1:-1] if last else shape[2:],
            op.attr("ksize"),
            op.attr("strides"),
            op.attr("paddings"),
            op.attr("padding_algorithm"),
            op.attr("ceil_mode"),
            op.attr("global_pooling"),
            op.attr("adaptive"),
            op.fail,
        )
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


def _forward(
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
    last = data_format in ("NHWC", "NDHWC")
    if global_pooling:
        axes = tuple(range(1, x.ndim - 1) if last else range(2, x.ndim))
        if pooling_type == "max":
            return x.max(axes, keepdims=True)
        return x.mean(axes, keepdims=True)
    images = _first(x, last)
    g = geometry(
        images.shape[2:],
        ksize,
        strides,
        paddings,
        padding_algorithm,
        ceil_mode,
        False,
        adaptive,
    )
    return _as_format(xp, pool(xp, images, g, pooling_type, exclusive), last)


def _backward(
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
    last = data_format in ("NHWC", "NDHWC")
    x, out, d_out = (_first(a, last) for a in (x, out, d_out))
    g = geometry(
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
        g = g._replace(bounds=tuple([(0, a.size)] for a in g.axes))
    if pooling_type == "avg":
        dx = avg_grad(xp, x, d_out, g, exclusive)
    else:
        dx = max_grad(xp, x, out, d_out, g)
    return _as_format(xp, dx, last)


def _declare(type: str, dims: int, data_format: str, more: Iterable[Attr]) -> OpDef:
    made = op(
        type,
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=[
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
