"""Ops that make tensors from attributes: constants, ranges, shapes, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dtypes import VarType, to_numpy
from .grad import GradContext, OpSpec
from .infer import InferContext, same_as
from .registry import op
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows
from .tensor_array import zeros_for

__all__ = [
    "SHAPE_INPUTS",
    "batch_like_shape",
    "infer_batch_like",
    "infer_shape_attr",
    "run_time_shape",
]

SHAPE_INPUTS = (
    In("ShapeTensor", dispensable=True, no_grad=True),
    In("ShapeTensorList", duplicable=True, dispensable=True, no_grad=True),
)
_DTYPE = Attr("dtype", int, 5)


def infer_shape_attr(op: InferContext) -> None:
    """Out has the attributes' shape and dtype; tensors decide unknown sizes."""
    shape = op.attr("shape")
    if not shape and op.has("ShapeTensor"):
        # one element per dimension
        rank = op.shape("ShapeTensor")[:1]
        shape = [-1] * rank[0] if rank and rank[0] > 0 else shape
    op.set("Out", shape, VarType(op.attr("dtype")))


def run_time_shape(tensor: Any, parts: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape from ShapeTensor, from ShapeTensorList, or from the attribute."""
    if tensor is not None:
        return tuple(int(d) for d in tensor.tolist())
    if parts:
        return tuple(int(p.reshape(-1)[0]) for p in parts)
    return tuple(shape)


# --- fill_constant -----------------------------------------------------------------


def _infer_fill_constant(op: InferContext) -> None:
    shape = op.attr("shape")
    op.check(
        op.has("ShapeTensor")
        or op.has("ShapeTensorList")
        or min(shape, default=0) >= 0,
        f"shape must not hold negative sizes, got {list(shape)}",
    )
    infer_shape_attr(op)


fill_constant = op(
    "fill_constant",
    ins=[In("ValueTensor", dispensable=True, no_grad=True), *SHAPE_INPUTS],
    outs=[Out("Out")],
    attrs=[
        _DTYPE,
        Attr("force_cpu", bool, False),
        Attr("shape", AttrType.LONGS, []),
        Attr("str_value", str, ""),
        Attr("value", float, 0.0),
    ],
    infer=_infer_fill_constant,
    grad=None,
    lod=None,
)


def _number(text: str, value: float, dtype: Any) -> Any:
    """str_value where it is given (it is exact where a float is not), else value."""
    if not text:
        return value if dtype.kind in "fb" else int(value)
    if text in ("True", "False"):
        return text == "True"
    try:
        if dtype.kind not in "iu":
            return float(text)
        return int(text) if text.lstrip("+-").isdigit() else int(float(text))
    except ValueError:
        raise ValueError(f"str_value {text!r} is not a number") from None


@fill_constant.kernel
def _(
    xp: Any,
    value_tensor: Any,
    shape_tensor: Any,
    shape_parts: Any,
    *,
    shape: Sequence[int],
    dtype: int,
    value: float,
    str_value: str,
) -> Any:
    sizes = run_time_shape(shape_tensor, shape_parts, shape)
    kind = to_numpy(dtype)
    if value_tensor is not None:
        filled = xp.empty(sizes, kind)
        filled[...] = value_tensor.reshape(-1)[0]
        return filled
    return xp.full(sizes, _number(str_value, value, kind), kind)


# --- like another tensor -----------------------------------------------------------


def infer_batch_like(op: InferContext) -> None:
    """The attribute's shape, with one size taken from Input."""
    shape = batch_like_shape(
        op.shape("Input"),
        op.attr("shape"),
        op.attr("input_dim_idx"),
        op.attr("output_dim_idx"),
    )
    op.set("Out", shape, VarType(op.attr("dtype")))


def batch_like_shape(
    given: Sequence[int], shape: Sequence[int], source: int, target: int
) -> list[int]:
    """`shape` with size `target` replaced by size `source` of another shape."""
    sizes = list(shape)
    sizes[target] = given[source]
    return sizes


fill_constant_batch_size_like = op(
    "fill_constant_batch_size_like",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        _DTYPE,
        Attr("force_cpu", bool, False),
        Attr("input_dim_idx", int, 0),
        Attr("output_dim_idx", int, 0),
        Attr("shape", AttrType.INTS),
        Attr("str_value", str, ""),
        Attr("value", float, 0.0),
    ],
    infer=infer_batch_like,
    grad=None,
    lod=None,
)


@fill_constant_batch_size_like.kernel
def _(
    xp: Any,
    x: Any,
    *,
    shape: Sequence[int],
    dtype: int,
    value: float,
    str_value: str,
    input_dim_idx: int,
    output_dim_idx: int,
) -> Any:
    sizes = batch_like_shape(x.shape, shape, input_dim_idx, output_dim_idx)
    kind = to_numpy(dtype)
    return xp.full(sizes, _number(str_value, value, kind), kind)


fill_zeros_like = op(
    "fill_zeros_like",
    ins=[In("X", no_grad=True)],
    outs=[Out("Out")],
    infer=same_as("X"),
    grad=None,
)


@fill_zeros_like.kernel
def _(xp: Any, x: Any) -> Any:
    """None where X has no value: what a branch that was not taken would have made."""
    return zeros_for(xp, x)


def _infer_like(op: InferContext) -> None:
    kind = op.attr("dtype")
    x = op.input("X")
    op.set("Out", dtype=x.dtype if kind < 0 else VarType(kind), like=x)


fill_zeros_like2 = op(
    "fill_zeros_like2",
    ins=[In("X", no_grad=True)],
    outs=[Out("Out")],
    attrs=[_DTYPE],
    infer=_infer_like,
    grad=None,
)


@fill_zeros_like2.kernel
def _(xp: Any, x: Any, *, dtype: int) -> Any:
    return xp.zeros(x.shape, to_numpy(dtype))


fill_any_like = op(
    "fill_any_like",
    ins=[In("X", no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("dtype", int, -1), Attr("value", float, 0.0)],
    infer=_infer_like,
    grad=None,
)


@fill_any_like.kernel
def _(xp: Any, x: Any, *, dtype: int, value: float) -> Any:
    kind = x.dtype if dtype < 0 else to_numpy(dtype)
    return xp.full(x.shape, _number("", value, kind), kind)


# --- assign, assign_value ----------------------------------------------------------


def _assign_grad(op: GradContext) -> Sequence[OpSpec]:
    return [
        OpSpec("assign", {"X": op.output_grad("Out")}, {"Out": op.input_grad("X")}, {})
    ]


assign = op(
    "assign",
    ins=[In("X", dispensable=True)],
    outs=[Out("Out")],
    infer=same_as("X"),
    grad=_assign_grad,
)


@assign.kernel
def _(xp: Any, x: Any) -> Any:
    if x.__class__ is SelectedRows:
        return SelectedRows(x.rows.copy(), x.value.copy(), x.height)
    return x.copy()  # of an array of tensors: the list, not the tensors


assign_value = op(
    "assign_value",
    outs=[Out("Out")],
    attrs=[
        Attr("bool_values", AttrType.INTS, []),
        Attr("dtype", int),
        Attr("fp32_values", AttrType.FLOATS, []),
        Attr("int32_values", AttrType.INTS, []),
        Attr("int64_values", AttrType.LONGS, []),
        Attr("shape", AttrType.INTS),
    ],
    infer=infer_shape_attr,
    grad=None,
    lod=None,
)


@assign_value.kernel
def _(
    xp: Any,
    *,
    shape: Sequence[int],
    dtype: int,
    bool_values: Sequence[int],
    fp32_values: Sequence[float],
    int32_values: Sequence[int],
    int64_values: Sequence[int],
) -> Any:
    values: Any = {
        VarType.BOOL: bool_values,
        VarType.FP32: fp32_values,
        VarType.INT32: int32_values,
        VarType.INT64: int64_values,
    }.get(VarType(dtype))
    if values is None:
        raise TypeError(f"assign_value: holds no values of {VarType(dtype)}")
    return xp.asarray(np.array(values, to_numpy(dtype)).reshape(tuple(shape)))


# --- shape, size, range, linspace --------------------------------------------------


def _infer_shape(op: InferContext) -> None:
    op.set("Out", (len(op.shape("Input")),), VarType.INT32)


shape = op(
    "shape",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_shape,
    grad=None,
    lod=None,
)


@shape.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.asarray(np.array(x.shape, np.int32))


def _infer_size(op: InferContext) -> None:
    op.input("Input")
    op.set("Out", (1,), VarType.INT64)


size = op(
    "size",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_size,
    grad=None,
    lod=None,
)


@size.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.full(1, x.size, "i8")


def _infer_range(op: InferContext) -> None:
    op.set("Out", (-1,), op.input("Start").dtype)


range_ = op(
    "range",
    ins=[In("Start", no_grad=True), In("End", no_grad=True), In("Step", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_range,
    grad=None,
    lod=None,
)


@range_.kernel
def _(xp: Any, start: Any, end: Any, step: Any) -> Any:
    """Start, Start + Step, ... before End; Step may be negative but not zero."""
    first, last, by = start.item(), end.item(), step.item()
    if by == 0 or not 0 <= (last - first) / by < float("inf"):
        raise ValueError(f"range: no way from {first} to {last} in steps of {by}")
    return xp.arange(first, last, by, dtype=start.dtype)


linspace = op(
    "linspace",
    ins=[In("Start", no_grad=True), In("Stop", no_grad=True), In("Num", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_range,
    grad=None,
    lod=None,
)


@linspace.kernel
def _(xp: Any, start: Any, stop: Any, num: Any) -> Any:
    """Num values evenly from Start to Stop, both included."""
    count = int(num.item())
    if count < 1:
        raise ValueError(f"linspace: Num is {count}, not positive")
    return xp.linspace(start.item(), stop.item(), count, dtype=start.dtype)
