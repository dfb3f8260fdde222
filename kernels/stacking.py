"""stack, unstack and expand. unstack and the gradient of stack return views."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .manipulation import numbers
from .registry import op
from .schema import Attr, AttrType, In, Out
from .slicing import axis_in

__all__: list[str] = []


def _infer_stack(op: InferContext) -> None:
    metas = op.inputs("X")
    op.check(bool(metas), "needs input X")
    first = metas[0]
    for meta in metas:
        op.check(
            len(meta.shape) == len(first.shape)
            and all(p == q or -1 in (p, q) for p, q in zip(meta.shape, first.shape)),
            f"shapes differ: {first.shape} and {meta.shape}",
        )
    axis = axis_in(op, op.attr("axis"), len(first.shape) + 1)
    shape = (*first.shape[:axis], len(metas), *first.shape[axis:])
    op.set("Y", shape, like=first)


def _infer_stack_grad(op: InferContext) -> None:
    y = op.input("Y@GRAD")
    axis = axis_in(op, op.attr("axis"), len(y.shape))
    op.set("X@GRAD", y.shape[:axis] + y.shape[axis + 1 :], y.dtype)


def _layers(y: Any, axis: int) -> list[Any]:
    before = (slice(None),) * (axis % y.ndim)
    return [y[before + (i,)] for i in range(y.shape[axis])]


stack = op(
    "stack",
    ins=[In("X", duplicable=True)],
    outs=[Out("Y")],
    attrs=[Attr("axis", int, 0)],
    infer=_infer_stack,
    grad=grad_op(view=True),
)
stack.grad_def.infer = _infer_stack_grad


@stack.kernel
def _(xp: Any, xs: Any, *, axis: int) -> Any:
    return xp.stack(xs, axis)


@stack.grad_kernel
def _(xp: Any, d_y: Any, *, axis: int) -> Any:
    return _layers(d_y, axis)


def _infer_unstack(op: InferContext) -> None:
    x = op.input("X")
    axis = axis_in(op, op.attr("axis"), len(x.shape))
    count = op.out_counts["Y"]
    op.check(
        x.shape[axis] in (-1, count),
        f"axis {axis} of {x.shape} does not fall into {count} outputs",
    )
    op.set("Y", x.shape[:axis] + x.shape[axis + 1 :], x.dtype)


def _infer_unstack_grad(op: InferContext) -> None:
    metas = op.inputs("Y@GRAD")
    first = metas[0]
    axis = axis_in(op, op.attr("axis"), len(first.shape) + 1)
    shape = (*first.shape[:axis], len(metas), *first.shape[axis:])
    op.set("X@GRAD", shape, first.dtype)


unstack = op(
    "unstack",
    ins=[In("X")],
    outs=[Out("Y", duplicable=True)],
    attrs=[Attr("axis", int, 0), Attr("num", int)],
    infer=_infer_unstack,
    grad=grad_op(),
    view=True,
    lod=None,
)
unstack.grad_def.infer = _infer_unstack_grad


@unstack.kernel
def _(xp: Any, x: Any, *, axis: int) -> Any:
    return _layers(x, axis)


@unstack.grad_kernel
def _(xp: Any, d_ys: Any, *, axis: int) -> Any:
    return xp.stack(d_ys, axis)


def _infer_expand(op: InferContext) -> None:
    x, times = op.input("X"), list(op.attr("expand_times"))
    if op.has("expand_times_tensor") or op.has("ExpandTimes"):
        times = times or [-1] * len(x.shape)
    op.check(
        len(times) == len(x.shape),
        f"expand_times {times} has not one number per axis of {x.shape}",
    )
    out = [-1 if d < 0 or t < 0 else d * t for d, t in zip(x.shape, times)]
    keeps = bool(out) and out[0] == x.shape[0]
    op.set("Out", out, x.dtype, x.lod_level if keeps else 0)


expand = op(
    "expand",
    ins=[
        In("X"),
        In("ExpandTimes", False, True, True),
        In("expand_times_tensor", True, True, True),
    ],
    outs=[Out("Out")],
    attrs=[Attr("expand_times", AttrType.INTS, [])],
    infer=_infer_expand,
    grad=grad_op(needs=["X", "ExpandTimes", "expand_times_tensor"], shape_only=["X"]),
)


@expand.kernel
def _(xp: Any, x: Any, given: Any, tensors: Any, *, expand_times: Any) -> Any:
    return xp.tile(x, numbers(tensors, given) or expand_times)


@expand.grad_kernel
def _(
    xp: Any, x: Any, given: Any, tensors: Any, d_out: Any, *, expand_times: Any
) -> Any:
    times = numbers(tensors, given) or expand_times
    split_axes = [n for pair in zip(times, x.shape) for n in pair]
    copies = tuple(range(0, 2 * len(times), 2))
    return d_out.reshape(split_axes).sum(axis=copies)


@expand.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    times = attrs["expand_times"]
    return {"Out": lod["X"]} if times and times[0] == 1 else {}
