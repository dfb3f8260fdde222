"""Maximum pooling that also tells where each maximum was.

``Mask`` holds positions in the flattened image (or volume) of one channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext, InferRule
from .pool import check_counts, check_windows
from .pool_windows import Geometry, at, geometry, lowest, taps
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out

__all__ = ["max_pool2d_with_index", "max_pool3d_with_index"]


def _rule(dims: int) -> InferRule:
    def infer(op: InferContext) -> None:
        x = op.input("X")
        op.check(
            len(x.shape) == dims + 2,
            f"X needs {dims + 2} dimensions, got shape {x.shape}",
        )
        check_counts(op, dims)
        g = geometry(
            x.shape[2:],
            op.attr("ksize"),
            op.attr("strides"),
            op.attr("paddings"),
            global_pooling=op.attr("global_pooling"),
            adaptive=op.attr("adaptive"),
            fail=op.fail,
        )
        check_windows(op, g)
        shape = (*x.shape[:2], *(a.out for a in g.axes))
        op.set("Out", shape, like=x)
        op.set("Mask", shape, VarType.INT32)

    return infer


def _sliding(xp: Any, x: Any, g: Geometry) -> tuple[Any, Any]:
    """Tap by tap; only a larger value replaces, so the first maximum stays."""
    shape = (*x.shape[:2], *(a.out for a in g.axes))
    out = xp.full(shape, lowest(x.dtype), x.dtype)
    mask = xp.full(shape, -1, "int32")
    every = xp.arange(math.prod(x.shape[2:]), dtype="int32").reshape(x.shape[2:])
    for windows, there in taps(g.axes):
        values, best = x[there], out[windows]
        hit = values > best
        xp.copyto(best, values, where=hit)
        xp.copyto(mask[windows], every[there], where=hit)
    return out, mask


def _uneven(xp: Any, x: Any, g: Geometry) -> tuple[Any, Any]:
    """Axis by axis, last first: the maximum of each stretch and its position."""
    out, place = x, None
    for axis in range(x.ndim - 1, 1, -1):
        values, places = [], []
        for start, stop in g.bounds[axis - 2]:  # type: ignore[index]
            part = out[at(axis, slice(start, stop))]
            best = xp.expand_dims(part.argmax(axis), axis)
            values.append(xp.take_along_axis(part, best, axis))
            here = (best + start) * math.prod(x.shape[axis + 1 :])
            if place is not None:
                inner = place[at(axis, slice(start, stop))]
                here += xp.take_along_axis(inner, best, axis)
            places.append(here)
        out = xp.concatenate(values, axis)
        place = xp.concatenate(places, axis)
    return out, place.astype("int32")  # type: ignore[union-attr]


def _forward(
    xp: Any,
    x: Any,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    global_pooling: bool,
    adaptive: bool,
) -> Any:
    if global_pooling:
        flat = x.reshape(*x.shape[:2], -1)
        mask = flat.argmax(2).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))
        return flat.max(2).reshape(mask.shape), mask.astype("int32")
    g = geometry(x.shape[2:], ksize, strides, paddings, adaptive=adaptive)
    return _sliding(xp, x, g) if g.bounds is None else _uneven(xp, x, g)


def _backward(xp: Any, x: Any, mask: Any, d_out: Any) -> Any:
    """Each gradient is added where its maximum was; -1 stands for nowhere."""
    count = x.shape[0] * x.shape[1]
    dx = xp.zeros(x.size, x.dtype)
    size = math.prod(x.shape[2:])
    first = xp.arange(0, count * size, max(size, 1), dtype="int64")
    flat = mask.reshape(count, math.prod(mask.shape[2:]))
    d_flat = xp.where(flat < 0, 0, d_out.reshape(flat.shape))
    xp.add.at(dx, (flat + first[:, None]).reshape(-1), d_flat.reshape(-1))
    return dx.reshape(x.shape)


def _declare(type: str, dims: int) -> OpDef:
    made = op(
        type,
        ins=[In("X")],
        outs=[Out("Out"), Out("Mask")],
        attrs=[
            Attr("ksize", AttrType.INTS),
            Attr("strides", AttrType.INTS, [1] * dims),
            Attr("paddings", AttrType.INTS, [0] * dims),
            Attr("global_pooling", bool, False),
            Attr("adaptive", bool, False),
        ],
        infer=_rule(dims),
        grad=grad_op(needs=["X", "Mask"], of=["Out"], shape_only=["X"]),
        lod=None,
    )
    made.kernel(_forward)
    made.grad_kernel(_backward)
    return made


max_pool2d_with_index = _declare("max_pool2d_with_index", 2)
max_pool3d_with_index = _declare("max_pool3d_with_index", 3)
