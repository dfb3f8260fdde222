"""Borders added and cut off: pad, pad_constant_like, pad2d, crop, crop_tensor.

Crops and the gradients of pads are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .grad import GRAD, grad_op
from .infer import InferContext, Shape
from .manipulation import numbers
from .registry import op
from .rows import add_rows
from .schema import Attr, AttrType, In, Out
from .window import channels_last

__all__: list[str] = []

_VALUE = Attr("pad_value", float, 0.0)


def _grown(
    xp: Any, x: Any, shape: Sequence[int], start: Sequence[int], fill: Any
) -> Any:
    """x inside an array of a larger shape, from `start` on."""
    out = xp.full(shape, fill, x.dtype)
    out[_box(start, x.shape)] = x
    return out


def _box(start: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(s, s + n) for s, n in zip(start, shape))


# --- pad, pad_constant_like --------------------------------------------------------


def _infer_pad(op: InferContext) -> None:
    x, pads = op.input("X"), op.attr("paddings")
    op.check(
        len(pads) == 2 * len(x.shape),
        f"paddings {list(pads)} has not two numbers per axis of {x.shape}",
    )
    op.check(min(pads, default=0) >= 0, f"paddings {list(pads)} has negative numbers")
    grown = zip(x.shape, pads[::2], pads[1::2])
    op.set("Out", [-1 if n < 0 else n + p + q for n, p, q in grown], like=x)


def _infer_pad_grad(op: InferContext) -> None:
    d, pads = op.input("Out" + GRAD), op.attr("paddings")
    shrunk = zip(d.shape, pads[::2], pads[1::2])
    op.set("X" + GRAD, [-1 if n < 0 else n - p - q for n, p, q in shrunk], like=d)


pad = op(
    "pad",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[_VALUE, Attr("paddings", AttrType.INTS)],
    infer=_infer_pad,
    grad=grad_op(view=True),
)
pad.grad_def.infer = _infer_pad_grad


@pad.kernel
def _(xp: Any, x: Any, *, paddings: Sequence[int], pad_value: float) -> Any:
    before, after = paddings[::2], paddings[1::2]
    shape = [n + p + q for n, p, q in zip(x.shape, before, after)]
    return _grown(xp, x, shape, before, pad_value)


@pad.grad_kernel
def _(xp: Any, d: Any, *, paddings: Sequence[int]) -> Any:
    edges = zip(d.shape, paddings[::2], paddings[1::2])
    return d[tuple(slice(p, n - q) for n, p, q in edges)]


def _infer_pad_like(op: InferContext) -> None:
    x, y = op.shape("X"), op.input("Y")
    op.check(len(x) == len(y.shape), f"ranks differ: X {x} and Y {y.shape}")
    op.check(
        all(p >= q or p < 0 for p, q in zip(x, y.shape)),
        f"Y {y.shape} does not fit into X {x}",
    )
    op.set("Out", x, y.dtype, op.input("X").lod_level)


pad_constant_like = op(
    "pad_constant_like",
    ins=[In("X", no_grad=True), In("Y")],
    outs=[Out("Out")],
    attrs=[_VALUE],
    infer=_infer_pad_like,
    grad=grad_op(needs=["Y"], shape_only=["Y"], view=True),
)


@pad_constant_like.kernel
def _(xp: Any, x: Any, y: Any, *, pad_value: float) -> Any:
    """Y filled up at the ends to the shape of X."""
    if x.ndim != y.ndim or any(p < q for p, q in zip(x.shape, y.shape)):
        raise ValueError(f"pad_constant_like: Y {y.shape} does not fit into {x.shape}")
    return _grown(xp, y, x.shape, (0,) * y.ndim, pad_value)


@pad_constant_like.grad_kernel
def _(xp: Any, d: Any, y: Any) -> Any:
    return d[_box((0,) * y.ndim, y.shape)]


# --- pad2d -------------------------------------------------------------------------


def _planes(op: InferContext) -> int:
    """The axis of the height; the width is the next one."""
    return 1 if channels_last(op.attr("data_format"), op.fail) else 2


def _infer_pad2d(op: InferContext) -> None:
    x, pads = op.input("X"), list(op.attr("paddings"))
    op.check(len(x.shape) == 4, f"X has shape {x.shape}, not four dimensions")
    mode = op.attr("mode")
    op.check(
        mode in ("constant", "reflect", "edge"),
        f"mode must be constant, reflect or edge, not {mode!r}",
    )
    out, height = list(x.shape), _planes(op)
    if op.has("Paddings"):
        out[height : height + 2] = [-1, -1]
    else:
        op.check(len(pads) == 4, f"paddings {pads} are not 4 numbers")
        for axis, around in ((height, pads[:2]), (height + 1, pads[2:])):
            if out[axis] >= 0:
                out[axis] += sum(around)
    op.set("Out", out, like=x)


pad2d = op(
    "pad2d",
    ins=[In("X"), In("Paddings", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("data_format", str, "NCHW"),
        Attr("mode", str, "constant"),
        _VALUE,
        Attr("paddings", AttrType.INTS),
    ],
    infer=_infer_pad2d,
    grad=grad_op(needs=["X", "Paddings"], shape_only=["X"]),
)


def _sources(size: int, before: int, after: int, mode: str) -> Any:
    """Which element each place of a padded axis shows (host array)."""
    places = np.arange(-before, size + after)
    if mode == "edge":
        return places.clip(0, max(size - 1, 0))
    places = abs(places)
    # mirrored at the last element, too, which does not appear twice
    places = np.minimum(places, 2 * size - 2 - places)
    if len(places) and places.min() < 0:
        raise ValueError(
            f"pad2d: cannot reflect {before} and {after} elements of an axis of {size}"
        )
    return places


def _axes(pads: Sequence[int], layout: str) -> list[tuple[int, int, int]]:
    """(axis, before, after) of height and width."""
    height = 1 if layout == "NHWC" else 2
    return [(height, pads[0], pads[1]), (height + 1, pads[2], pads[3])]


def _overlap(size: int, before: int, after: int) -> tuple[slice, slice]:
    """Where x goes in the padded axis, and what of x; negative pads cut."""
    inner = slice(max(before, 0), size + before + min(after, 0))
    return inner, slice(max(-before, 0), size + min(after, 0))


def _inner(shape: Shape, axes: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    """Shape of the padded array, the place of x in it, and the part of x there."""
    full, place, part = list(shape), [slice(None)] * 4, [slice(None)] * 4
    for axis, before, after in axes:
        full[axis] += before + after
        place[axis], part[axis] = _overlap(shape[axis], before, after)
    return full, tuple(place), tuple(part)


@pad2d.kernel
def _(
    xp: Any,
    x: Any,
    given: Any,
    *,
    paddings: Sequence[int],
    mode: str,
    pad_value: float,
    data_format: str,
) -> Any:
    axes = _axes(numbers(None, given) or paddings, data_format)
    if mode != "constant":
        for axis, before, after in axes:
            index = xp.asarray(_sources(x.shape[axis], before, after, mode))
            x = x.take(index, axis=axis)
        return x
    full, place, part = _inner(x.shape, axes)
    out = xp.full(full, pad_value, x.dtype)
    out[place] = x[part]
    return out


@pad2d.grad_kernel
def _(
    xp: Any,
    x: Any,
    given: Any,
    d: Any,
    *,
    paddings: Sequence[int],
    mode: str,
    data_format: str,
) -> Any:
    axes = _axes(numbers(None, given) or paddings, data_format)
    if mode == "constant":
        _, place, part = _inner(x.shape, axes)
        d_x = xp.zeros(x.shape, d.dtype)
        d_x[part] = d[place]
        return d_x
    for axis, before, after in axes:
        size = x.shape[axis]
        index = xp.asarray(_sources(size, before, after, mode))
        rows = xp.moveaxis(d, axis, 0)
        total = xp.zeros((size, *rows.shape[1:]), d.dtype)
        add_rows(xp, total, index, rows)
        d = xp.moveaxis(total, 0, axis)
    return d


# --- crop, crop_tensor -------------------------------------------------------------

_CROP = (Attr("offsets", AttrType.INTS, []), Attr("shape", AttrType.INTS, []))


def _window(name: str, x: Any, shape: Sequence[int], offsets: Any) -> Any:
    """The part of x; a size that is not positive reaches to the end."""
    if len(shape) != x.ndim or len(offsets) != x.ndim:
        raise ValueError(
            f"{name}: shape {list(shape)} and offsets {list(offsets)} have not one "
            f"number per axis of {x.shape}"
        )
    sizes = [n if n > 0 else full - s for n, full, s in zip(shape, x.shape, offsets)]
    if any(s < 0 or s + n > full for n, full, s in zip(sizes, x.shape, offsets)):
        raise ValueError(
            f"{name}: {sizes} from {list(offsets)} on is not inside {x.shape}"
        )
    return _box(offsets, sizes)


def _uncrop(xp: Any, x: Any, d: Any, offsets: Sequence[int]) -> Any:
    return _grown(xp, d, x.shape, offsets, 0)


def _infer_crop(op: InferContext) -> None:
    x = op.input("X")
    shape = op.shape("Y") if op.has("Y") else op.attr("shape")
    op.check(
        len(shape) == len(x.shape),
        f"shape {list(shape)} has not one size per axis of {x.shape}",
    )
    op.set("Out", shape, x.dtype)


crop = op(
    "crop",
    ins=[
        In("X"),
        In("Y", dispensable=True, no_grad=True),
        In("Offsets", dispensable=True, no_grad=True),
    ],
    outs=[Out("Out")],
    attrs=_CROP,
    infer=_infer_crop,
    grad=grad_op(needs=["X", "Offsets"], shape_only=["X"]),
    view=True,
    lod=None,
)


@crop.kernel
def _(xp: Any, x: Any, like: Any, given: Any, *, shape: Any, offsets: Any) -> Any:
    sizes = shape if like is None else like.shape
    return x[_window("crop", x, sizes, numbers(None, given) or offsets)]


@crop.grad_kernel
def _(xp: Any, x: Any, given: Any, d: Any, *, offsets: Any) -> Any:
    return _uncrop(xp, x, d, numbers(None, given) or offsets)


def _infer_crop_tensor(op: InferContext) -> None:
    x, shape = op.input("X"), list(op.attr("shape"))
    if op.has("Shape") or (op.has("ShapeTensor") and not shape):
        shape = [0] * len(x.shape)
    op.check(
        len(shape) == len(x.shape),
        f"shape {shape} has not one size per axis of {x.shape}",
    )
    known = not (op.has("Offsets") or op.has("OffsetsTensor") or op.has("ShapeTensor"))
    starts = op.attr("offsets") if known else []
    out = []
    for i, (size, full) in enumerate(zip(shape, x.shape)):
        if size == -1 and full >= 0 and i < len(starts):
            size = full - starts[i]
        out.append(size if size > 0 else -1)
    op.set("Out", out, x.dtype)


crop_tensor = op(
    "crop_tensor",
    ins=[
        In("X"),
        In("Shape", dispensable=True, no_grad=True),
        In("Offsets", dispensable=True, no_grad=True),
        In("ShapeTensor", duplicable=True, dispensable=True, no_grad=True),
        In("OffsetsTensor", duplicable=True, dispensable=True, no_grad=True),
    ],
    outs=[Out("Out")],
    attrs=_CROP,
    infer=_infer_crop_tensor,
    grad=grad_op(needs=["X", "Offsets", "OffsetsTensor"], shape_only=["X"]),
    view=True,
    lod=None,
)


@crop_tensor.kernel
def _(
    xp: Any,
    x: Any,
    size: Any,
    start: Any,
    sizes: Any,
    starts: Any,
    *,
    shape: Any,
    offsets: Any,
) -> Any:
    wanted = numbers(sizes, size) or shape
    return x[_window("crop_tensor", x, wanted, numbers(starts, start) or offsets)]


@crop_tensor.grad_kernel
def _(xp: Any, x: Any, start: Any, starts: Any, d: Any, *, offsets: Any) -> Any:
    return _uncrop(xp, x, d, numbers(starts, start) or offsets)
