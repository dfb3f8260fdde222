"""Resizing of images and volumes: nearest, (bi)linear, trilinear and cubic.

Each axis is a fixed linear map, so the axes are done one after the other: forward as
weighted sums of gathered lines, backward as products with the map's matrix.

Keys, "Cubic convolution interpolation for digital image processing" (1981) is the
source of the cubic weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .grad import grad_op
from .infer import InferContext, InferRule
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out

__all__ = ["bicubic_interp", "bilinear_interp", "nearest_interp", "trilinear_interp"]

# of Keys' family of cubics, as in the reference
_CUBIC = -0.75
_SIZES = ("out_d", "out_h", "out_w")


@lru_cache(maxsize=256)
def _plan(
    size: int, out: int, method: str, corners: bool, mode: int
) -> tuple[tuple[Any, Any], ...]:
    """(positions, weights) of each term of one axis; weights None: all are 1.

    Positions are found in float32, as in the reference: they decide which pixel is
    the nearest.
    """
    one = np.float32(1)
    if corners:
        ratio = np.float32(size - 1) / np.float32(out - 1) if out > 1 else one * 0
    else:
        ratio = np.float32(size) / np.float32(out)
    place = np.arange(out, dtype="float32") * ratio
    if method == "nearest":
        near = (place + np.float32(0.5)).astype("int64") if corners else place
        return ((np.minimum(near.astype("int64"), size - 1), None),)
    if not corners and (method == "bicubic" or mode == 0):
        place = (np.arange(out, dtype="float32") + one / 2) * ratio - one / 2
    if method == "bicubic":
        return _cubic(place, size)
    low = np.maximum(place.astype("int64"), 0)
    high = np.minimum(low + 1, size - 1)
    share = (np.maximum(place, 0) - low).astype("float64")
    return (low, 1 - share), (high, share)


def _cubic(place: Any, size: int) -> tuple[tuple[Any, Any], ...]:
    low = np.floor(place)
    t = place - low
    first = low.astype("int64")

    def near(d: Any) -> Any:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return tuple(
        (np.clip(first + i - 1, 0, size - 1), w) for i, w in enumerate(weights)
    )


@lru_cache(maxsize=256)
def _terms(xp: Any, key: tuple[Any, ...], dtype: Any) -> list[tuple[Any, Any]]:
    """The plan as arrays of this device and type. Not to be written to."""
    return [
        (xp.asarray(places), None if w is None else xp.asarray(w, dtype))
        for places, w in _plan(*key)
    ]


@lru_cache(maxsize=64)
def _matrix(xp: Any, key: tuple[Any, ...], dtype: Any) -> Any:
    """(out, size): the plan as a matrix. Not to be written to."""
    size, out = key[:2]
    made = np.zeros((out, size), dtype)
    rows = np.arange(out)
    for places, w in _plan(*key):
        made[rows, places] += 1 if w is None else w
    return xp.asarray(made)


def _resize(xp: Any, x: Any, axis: int, key: tuple[Any, ...]) -> Any:
    total = None
    for places, w in _terms(xp, key, x.dtype):
        part = x.take(places, axis)
        if w is not None:
            part *= w.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        if total is None:
            total = part
        else:
            total += part
    return total


def _resize_grad(xp: Any, d: Any, axis: int, key: tuple[Any, ...]) -> Any:
    matrix = _matrix(xp, key, d.dtype)
    shape = d.shape
    if axis == d.ndim - 1:
        return d @ matrix
    rest = math.prod(shape[axis + 1 :])
    flat = matrix.T @ d.reshape(*shape[: axis + 1], rest)
    return flat.reshape(*shape[:axis], key[0], *shape[axis + 1 :])


def _sizes(
    size: Sequence[int],
    given: Sequence[int],
    scale: float,
    out_size: Any,
    size_tensor: Any,
    scale_tensor: Any,
) -> list[int]:
    """The output's size: tensors go before attributes, sizes before a scale."""
    if size_tensor:
        return [int(t.reshape(-1)[0]) for t in size_tensor]
    if out_size is not None:
        return [int(n) for n in out_size]
    if scale_tensor is not None:
        scale = float(scale_tensor.reshape(-1)[0])
    if scale > 0:
        return [int(n * scale) for n in size]
    return list(given)


def _axes(dims: int, data_layout: str) -> range:
    return range(1, dims + 1) if data_layout == "NHWC" else range(2, dims + 2)


def _steps(
    x: Any, outs: Sequence[int], axes: range, interp: tuple[Any, ...]
) -> list[tuple[int, tuple[Any, ...]]]:
    """(axis, key of its plan) of the axes that change."""
    return [
        (axis, (x.shape[axis], out, *interp))
        for axis, out in zip(axes, outs)
        if out != x.shape[axis]
    ]


def _rule(dims: int) -> InferRule:
    def infer(op: InferContext) -> None:
        x = op.input("X")
        op.check(
            len(x.shape) == dims + 2,
            f"X needs {dims + 2} dimensions, got shape {x.shape}",
        )
        layout = op.attr("data_layout")
        op.check(
            layout in ("NCHW", "NHWC"),
            f"data_layout must be NCHW or NHWC, not {layout!r}",
        )
        axes = _axes(dims, layout)
        shape = list(x.shape)
        names = _SIZES[-dims:]
        given = [op.attr(name) for name in names]
        scale = op.attr("scale")
        sizes = given
        if op.has("SizeTensor"):
            op.check(
                len(op.inputs("SizeTensor")) == dims,
                f"SizeTensor needs {dims} tensors, got {len(op.inputs('SizeTensor'))}",
            )
        elif op.has("Scale"):
            sizes = [-1] * dims
        elif not op.has("OutSize"):
            if scale > 0:
                sizes = [int(shape[a] * scale) if shape[a] > 0 else -1 for a in axes]
            else:
                for name, size in zip(names, given):
                    op.check(size > 0, f"{name} must be positive, got {size}")
        for axis, size in zip(axes, sizes):
            shape[axis] = size
        op.set("Out", shape, like=x)

    return infer


def _forward(
    xp: Any,
    x: Any,
    out_size: Any,
    size_tensor: Any,
    scale_tensor: Any,
    *,
    data_layout: str,
    out_d: int,
    out_h: int,
    out_w: int,
    scale: float,
    interp_method: str,
    align_corners: bool,
    align_mode: int,
) -> Any:
    dims = x.ndim - 2
    axes = _axes(dims, data_layout)
    size = [x.shape[a] for a in axes]
    given = (out_d, out_h, out_w)[-dims:]
    outs = _sizes(size, given, scale, out_size, size_tensor, scale_tensor)
    interp = (interp_method, align_corners, align_mode)
    steps = _steps(x, outs, axes, interp)
    for axis, key in steps:
        x = _resize(xp, x, axis, key)
    return x if steps else x.copy()


def _backward(
    xp: Any,
    x: Any,
    out_size: Any,
    size_tensor: Any,
    scale_tensor: Any,
    d_out: Any,
    *,
    data_layout: str,
    interp_method: str,
    align_corners: bool,
    align_mode: int,
) -> Any:
    axes = _axes(x.ndim - 2, data_layout)
    outs = [d_out.shape[a] for a in axes]
    interp = (interp_method, align_corners, align_mode)
    steps = _steps(x, outs, axes, interp)
    for axis, key in reversed(steps):
        d_out = _resize_grad(xp, d_out, axis, key)
    return d_out if steps else d_out.copy()


def _declare(type: str, dims: int) -> OpDef:
    made = op(
        type,
        ins=[
            In("X"),
            In("OutSize", dispensable=True, no_grad=True),
            In("SizeTensor", duplicable=True, dispensable=True, no_grad=True),
            In("Scale", dispensable=True, no_grad=True),
        ],
        outs=[Out("Out")],
        attrs=[
            Attr("data_layout", str, "NCHW"),
            *(Attr(name, int, 0) for name in _SIZES),
            Attr("scale", float, 0.0),
            Attr("interp_method", str, "bilinear"),
            Attr("align_corners", bool, True),
            Attr("align_mode", AttrType.INT, 1),
        ],
        infer=_rule(dims),
        grad=grad_op(needs=["X", "OutSize", "SizeTensor", "Scale"], shape_only=["X"]),
    )
    made.kernel(_forward)
    made.grad_kernel(_backward)
    return made


bilinear_interp = _declare("bilinear_interp", 2)
nearest_interp = _declare("nearest_interp", 2)
bicubic_interp = _declare("bicubic_interp", 2)
trilinear_interp = _declare("trilinear_interp", 3)
