"""`tensor_array_to_tensor`: the elements of a tensor array as one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out
from .tensor_array import zeros_for

__all__: list[str] = []


def _infer(op: InferContext) -> None:
    x, axis, stacks = op.input("X"), op.attr("axis"), op.attr("use_stack")
    op.check(
        x.kind == VarType.LOD_TENSOR_ARRAY,
        f"X must be an array of tensors, it is {x.kind}",
    )
    shape = list(x.shape)
    places = len(shape) + (1 if stacks else 0)
    op.check(
        -places <= axis < places,
        f"axis is {axis}, not in [{-places}, {places}) for elements of shape {x.shape}",
    )
    axis %= places
    if stacks:
        shape.insert(axis, -1)
    else:
        shape[axis] = -1
    op.set("Out", shape, x.dtype)
    op.set("OutIndex", None, VarType.INT32)


tensor_array_to_tensor = op(
    "tensor_array_to_tensor",
    ins=[In("X")],
    outs=[Out("Out"), Out("OutIndex")],
    attrs=[Attr("axis", int, 0), Attr("use_stack", bool, False)],
    infer=_infer,
    grad=grad_op(needs=["X"], of=["Out"]),
    lod=None,
)


def _elements(name: str, x: Any) -> list[Any]:
    found = list(x or ())
    for i, value in enumerate(found):
        if value is None:
            raise ValueError(f"{name}: nothing was written at index {i} of X")
    if not found:
        raise ValueError(f"{name}: the array X has no elements")
    return found


@tensor_array_to_tensor.kernel
def _(xp: Any, x: Any, *, axis: int, use_stack: bool) -> Any:
    """Out: the elements laid end to end, or stacked, along `axis`.

    OutIndex: the size of each along that axis (1 where a stack has it last; the
    reference then reads what is not there).
    """
    values = _elements("tensor_array_to_tensor", x)
    places = values[0].ndim + (1 if use_stack else 0)
    axis %= places
    sizes = [v.shape[axis] if axis < v.ndim else 1 for v in values]
    out = xp.stack(values, axis) if use_stack else xp.concatenate(values, axis)
    return out, xp.asarray(np.array(sizes, "i4"))


@tensor_array_to_tensor.grad_kernel
def _(xp: Any, x: Any, d_out: Any, *, axis: int, use_stack: bool) -> Any:
    """An array of the parts."""
    if d_out is None:
        return [zeros_for(xp, value) for value in x]
    axis %= d_out.ndim
    if use_stack:
        return [d.copy() for d in xp.moveaxis(d_out, axis, 0)]
    ends = np.cumsum([v.shape[axis] for v in x])[:-1].tolist()
    return [d.copy() for d in xp.split(d_out, ends, axis)]
