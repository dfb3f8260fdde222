"""An elementwise op together with an activation: `fused_elemwise_activation`.

functor_list says which comes first: ["relu", "elementwise_add"] is relu(X + Y),
["elementwise_add", "relu"] is X + relu(Y). Known are the pairs of `_PAIRS`, as in the
reference. IntermediateOut is what the inner one gives, if it is to be saved; otherwise
it is empty, and the gradient computes it anew (the reference goes wrong there, where
tanh or sigmoid of a smaller Y is multiplied).
"""

from __future__ import annotations

from typing import Any

from .arrays import sum_to
from .dtypes import is_floating
from .elementwise import aligned
from .grad import GRAD, GradContext, OpSpec
from .infer import InferContext, broadcast_shape
from .registry import op
from .schema import Attr, AttrType, In, Out
from .unary import sigmoid_of

__all__: list[str] = []

_PAIRS = {
    ("elementwise_add", "scale"),
    ("scale", "elementwise_add"),
    ("elementwise_add", "relu"),
    ("relu", "elementwise_add"),
    ("tanh", "elementwise_add"),
    ("elementwise_mul", "scale"),
    ("elementwise_mul", "tanh"),
    ("elementwise_mul", "sigmoid"),
}
_ATTRS = (
    Attr("axis", int, -1),
    Attr("scale", float, 0.0),
    Attr("save_intermediate_out", bool, False),
    Attr("functor_list", AttrType.STRINGS),
)
_NAME = "fused_elemwise_activation"


def _infer(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    pair = tuple(op.attr("functor_list"))
    op.check(pair in _PAIRS, f"functor_list {list(pair)} is none of {sorted(_PAIRS)}")
    op.check(is_floating(x.dtype), f"X must be of floats, got {x.dtype.name}")
    shape = broadcast_shape(op, x.shape, y.shape, op.attr("axis"))
    op.set("Out", shape, like=x)
    if not op.attr("save_intermediate_out"):
        op.set("IntermediateOut", (), x.dtype)
    elif pair[0].startswith("elementwise"):
        op.set("IntermediateOut", like=y)
    else:
        op.set("IntermediateOut", shape, like=x)


def _grad_rule(op: GradContext) -> list[OpSpec]:
    saved = op.attrs["save_intermediate_out"]
    slots = ("X", "Y"), ("Out", "IntermediateOut") if saved else ("Out",)
    inputs = {s: op.input(s) for s in slots[0]} | {s: op.output(s) for s in slots[1]}
    inputs["Out" + GRAD] = op.output_grad("Out")
    outputs = {s + GRAD: op.input_grad(s) for s in slots[0]}
    if saved:
        outputs["IntermediateOut" + GRAD] = op.output_grad("IntermediateOut")
    attrs = dict(op.attrs)
    attrs["functor_list"] = [f"{name}_grad" for name in attrs["functor_list"]]
    return [OpSpec(f"{_NAME}_grad", inputs, outputs, attrs)]


def _infer_grad(op: InferContext) -> None:
    for slot in op.out_counts:
        source = slot[: -len(GRAD)]
        if op.has(source):
            op.set(slot, like=op.input(source))


def _activated(xp: Any, kind: str, x: Any, scale: float) -> Any:
    if kind == "scale":
        return x * scale
    if kind == "relu":
        return xp.maximum(x, 0)
    return xp.tanh(x) if kind == "tanh" else sigmoid_of(xp, x)


def _slope(kind: str, y: Any, scale: float) -> Any:
    """The derivative of an activation, by what it gave."""
    if kind == "scale":
        return scale
    if kind == "relu":
        return y > 0
    return 1.0 - y * y if kind == "tanh" else y * (1.0 - y)


def _combined(kind: str, x: Any, y: Any, axis: int) -> Any:
    x, y = aligned(_NAME, x, y, axis)
    return x + y if kind == "elementwise_add" else x * y


def _inner(xp: Any, pair: Any, x: Any, y: Any, axis: int, scale: float) -> Any:
    """What the first of the two gives: of Y alone, or of both."""
    outer, inner = pair
    if outer.startswith("elementwise"):
        return _activated(xp, inner, y, scale)
    return _combined(inner, x, y, axis)


fused = op(
    _NAME,
    ins=[In("X"), In("Y")],
    outs=[Out("Out"), Out("IntermediateOut", intermediate=True)],
    attrs=_ATTRS,
    infer=_infer,
    grad=_grad_rule,
)
fused_grad = op(
    f"{_NAME}_grad",
    ins=[
        *(In(slot) for slot in ("X", "Y", "Out")),
        In("IntermediateOut", dispensable=True),
        In("Out" + GRAD),
    ],
    outs=[Out(slot + GRAD, dispensable=True) for slot in ("X", "Y", "IntermediateOut")],
    attrs=_ATTRS,
    infer=_infer_grad,
    grad=None,
    lod=None,
)


@fused.kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    *,
    functor_list: Any,
    axis: int,
    scale: float,
    save_intermediate_out: bool,
) -> Any:
    outer, _ = functor_list
    inner = _inner(xp, functor_list, x, y, axis, scale)
    if outer.startswith("elementwise"):
        out = _combined(outer, x, inner, axis)
    else:
        out = _activated(xp, outer, inner, scale)
    return out, inner if save_intermediate_out else xp.empty(0, x.dtype)


@fused_grad.kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    out: Any,
    inner: Any,
    d_out: Any,
    *,
    functor_list: Any,
    axis: int,
    scale: float,
) -> Any:
    outer, innermost = (name.removesuffix("_grad") for name in functor_list)
    if inner is None or not inner.size:
        inner = _inner(xp, (outer, innermost), x, y, axis, scale)
    if outer.startswith("elementwise"):
        d_x, d_inner = _parts(xp, outer, x, inner, d_out, axis)
        return d_x, d_inner * _slope(innermost, inner, scale), d_inner
    d_inner = d_out * _slope(outer, out, scale)
    return (*_parts(xp, innermost, x, y, d_inner, axis), d_inner)


def _parts(xp: Any, kind: str, x: Any, y: Any, d: Any, axis: int) -> tuple[Any, Any]:
    """The gradient of a sum or product for both operands, in arrays of their own."""
    p, q = aligned(_NAME, x, y, axis)
    both = (d, d) if kind == "elementwise_add" else (d * q, d * p)
    found = []
    for each, like, operand in zip(both, (p, q), (x, y)):
        made = sum_to(xp, each, like.shape).reshape(operand.shape)
        found.append(made.copy() if made.size == d.size else made)
    return found[0], found[1]
