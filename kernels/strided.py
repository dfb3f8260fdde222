"""strided_slice and reverse: every n-th element, and axes turned round.

Outputs are views. Bounds are Python's, with one exception of the reference's: with a
negative stride an end of -1 lies before the first element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .grad import GradContext, OpSpec, grad_op
from .infer import InferContext
from .manipulation import numbers
from .registry import op
from .schema import Attr, AttrType, In, Out
from .slicing import axis_in

__all__: list[str] = []

_TENSORS = (
    In("StartsTensor", False, True, True),
    In("EndsTensor", False, True, True),
    In("StridesTensor", False, True, True),
    In("StartsTensorList", True, True, True),
    In("EndsTensorList", True, True, True),
    In("StridesTensorList", True, True, True),
)


def _part(start: int, end: int, stride: int) -> slice:
    return slice(start, None if stride < 0 and end == -1 else end, stride)


def _infer_strided(op: InferContext) -> None:
    x = op.input("Input")
    out = list(x.shape)
    axes = [axis_in(op, a, len(out)) for a in op.attr("axes")]
    bounds = [op.attr(key) for key in ("starts", "ends", "strides")]
    flags = op.attr("infer_flags") or [1] * len(axes)
    whole = ("StartsTensor", "EndsTensor", "StridesTensor")
    unknown = any(op.has(slot) for slot in whole)
    unknown = unknown or any(len(given) != len(axes) for given in bounds)
    for i, axis in enumerate(axes):
        if unknown or flags[i] == -1:
            out[axis] = -1
            continue
        start, end, stride = (given[i] for given in bounds)
        op.check(stride != 0, f"the stride of axis {axis} is 0")
        if out[axis] >= 0:
            left = len(range(*_part(start, end, stride).indices(out[axis])))
            op.check(
                left > 0,
                f"{start}:{end}:{stride} leaves nothing of axis {axis} of {x.shape}",
            )
            out[axis] = left
    gone = {axis_in(op, a, len(out)) for a in op.attr("decrease_axis")}
    for a in gone:
        op.check(out[a] in (1, -1), f"decrease_axis {a} has size {out[a]}, not 1")
    if gone:
        out = [d for i, d in enumerate(out) if i not in gone] or [1]
    op.set("Out", out, x.dtype)


strided_slice = op(
    "strided_slice",
    ins=[In("Input"), *_TENSORS],
    outs=[Out("Out")],
    attrs=[
        Attr("axes", AttrType.INTS),
        Attr("starts", AttrType.INTS, []),
        Attr("ends", AttrType.INTS, []),
        Attr("strides", AttrType.INTS, []),
        Attr("infer_flags", AttrType.INTS, []),
        Attr("decrease_axis", AttrType.INTS, []),
    ],
    infer=_infer_strided,
    grad=grad_op(needs=["Input", *(s.name for s in _TENSORS)], shape_only=["Input"]),
    view=True,
    lod=None,
)


def _parts(
    rank: int, axes: Sequence[int], given: Sequence[Any], attrs: Sequence[Any]
) -> tuple[slice, ...]:
    """The slice of each axis; tensors override the attributes."""
    bounds = [numbers(given[i + 3], given[i]) or attrs[i] for i in range(len(attrs))]
    parts = [slice(None)] * rank
    for axis, start, end, stride in zip(axes, *bounds):
        parts[axis] = _part(start, end, stride)
    return tuple(parts)


@strided_slice.kernel
def _(
    xp: Any,
    x: Any,
    *tensors: Any,
    axes: Any,
    starts: Any,
    ends: Any,
    strides: Any,
    decrease_axis: Any,
) -> Any:
    out = x[_parts(x.ndim, axes, tensors, (starts, ends, strides))]
    if not decrease_axis:
        return out
    gone = {a % x.ndim for a in decrease_axis}
    return out.reshape([d for i, d in enumerate(out.shape) if i not in gone] or [1])


@strided_slice.grad_kernel
def _(
    xp: Any,
    x: Any,
    *tensors: Any,
    axes: Any,
    starts: Any,
    ends: Any,
    strides: Any,
) -> Any:
    d_out = tensors[-1]
    d_x = xp.zeros(x.shape, d_out.dtype)
    place = d_x[_parts(x.ndim, axes, tensors, (starts, ends, strides))]
    place[...] = d_out.reshape(place.shape)
    return d_x


def _grad_reverse(op: GradContext) -> list[OpSpec]:
    """Turned round again."""
    inputs = {"X": op.output_grad("Out")}
    return [OpSpec("reverse", inputs, {"Out": op.input_grad("X")}, dict(op.attrs))]


def _infer_reverse(op: InferContext) -> None:
    x, axes = op.input("X"), op.attr("axis")
    rank = len(x.shape)
    op.check(
        not rank or all(-rank <= axis < rank for axis in axes),
        f"axis {list(axes)} is outside of X {x.shape}",
    )
    op.set("Out", like=x)


reverse = op(
    "reverse",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("axis", AttrType.INTS)],
    infer=_infer_reverse,
    grad=_grad_reverse,
    view=True,
    lod=None,
)


@reverse.kernel
def _(xp: Any, x: Any, *, axis: Any) -> Any:
    return xp.flip(x, axis=tuple(axis))
