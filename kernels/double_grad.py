"""Gradients of gradient ops, for those gradients that have one in the reference.

Slots are named after what they hold: ``DX`` is the gradient of X, ``DDX`` the gradient
that arrives for that one, ``DDOut`` the gradient of the output gradient. A gradient
op whose every output is wanted gives all ``DD`` slots; an absent one counts as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import activation, linear, manipulation, reduce, slicing, stacking, unary
from .arrays import sum_to
from .elementwise import laid
from .grad import EMPTY, GRAD, GradContext, GradRule, OpSpec
from .infer import InferContext
from .registry import OpDef, declared, op
from .schema import In, Out

__all__ = ["second_order"]

# imported so that their ops are declared
_FAMILIES = (activation, linear, manipulation, reduce, slicing, stacking, unary)


def second_order(
    type: str,
    kept: Mapping[str, str],
    arriving: Mapping[str, str],
    made: Mapping[str, tuple[str, str]],
    only_with: Mapping[str, str] | None = None,
) -> OpDef:
    """Declare ``<type>_grad_grad`` as the gradient of ``<type>_grad``.

    kept: its slots for what the gradient op reads or makes, and that op's slots.
    arriving: slots for gradients of what the gradient op makes. made: output slots,
    each with the gradient op's input that it is the gradient of, and the own input
    slot that it looks like. only_with: outputs that are made only where something
    arrives in that slot.
    """
    first = declared(type).grad_def
    name = f"{type}_grad_grad"
    depends = only_with or {}

    def rule(op: GradContext) -> list[OpSpec]:
        inputs = {s: op.input(of) or op.output(of) for s, of in kept.items()}
        inputs = {s: v for s, v in inputs.items() if EMPTY not in v}
        for slot, of in arriving.items():
            if EMPTY not in op.output(of):
                inputs[slot] = op.output_grad(of)
        outputs = {
            slot: op.input_grad(of)
            for slot, (of, _) in made.items()
            if slot not in depends or inputs.get(depends[slot])
        }
        return [
            OpSpec(
                name,
                {k: v for k, v in inputs.items() if v},
                {k: v for k, v in outputs.items() if v},
                dict(op.attrs),
            )
        ]

    def infer(op: InferContext) -> None:
        for slot, (_, like) in made.items():
            op.set(slot, like=op.input(like))

    first.grad = rule
    return op(
        name,
        ins=[
            *(In(slot) for slot in kept),
            *(In(slot, dispensable=True) for slot in arriving),
        ],
        outs=[Out(slot, dispensable=True) for slot in made],
        attrs=first.attrs.values(),
        infer=infer,
        grad=None,
        lod=None,
    )


def _forward_again(type: str, source: str, *further: str) -> None:
    """The gradient of this op's gradient is the op itself."""

    def rule(op: GradContext) -> list[OpSpec]:
        inputs = {source: op.output_grad(source + GRAD)}
        inputs |= {slot: op.input(slot) for slot in further if op.input(slot)}
        outputs = {"Out": op.input_grad("Out" + GRAD)}
        return [OpSpec(type, inputs, outputs, dict(op.attrs))]

    again: GradRule = rule
    declared(type).grad_def.grad = again


_forward_again("reduce_sum", "X")
_forward_again("reduce_mean", "X")
_forward_again("expand", "X", "ExpandTimes", "expand_times_tensor")
_SLICE_TENSORS = ("StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList")
_forward_again("slice", "Input", *_SLICE_TENSORS)


# --- functions of one tensor ---------------------------------------------------------

_DD_OUT = {"DDOut": ("Out" + GRAD, "DDX")}
_X_GRAD = {"DDX": "X" + GRAD}
_BOTH = {"DX": ("X", "X"), "DDOut": ("Out" + GRAD, "X")}

relu_grad_grad = second_order("relu", {"Out": "Out"}, _X_GRAD, _DD_OUT)


@relu_grad_grad.kernel
def _(xp: Any, y: Any, dd_x: Any) -> Any:
    return dd_x * (y > 0)


leaky_relu_grad_grad = second_order("leaky_relu", {"Out": "Out"}, _X_GRAD, _DD_OUT)


@leaky_relu_grad_grad.kernel
def _(xp: Any, y: Any, dd_x: Any, *, alpha: float) -> Any:
    return xp.where(y > 0, dd_x, dd_x * alpha)


_OF_X = {"X": "X", "DOut": "Out" + GRAD}
square_grad_grad = second_order("square", _OF_X, _X_GRAD, _BOTH)


@square_grad_grad.kernel
def _(xp: Any, x: Any, d: Any, dd_x: Any) -> Any:
    return 2.0 * d * dd_x, 2.0 * x * dd_x


elu_grad_grad = second_order("elu", _OF_X, _X_GRAD, _BOTH)


@elu_grad_grad.kernel
def _(xp: Any, x: Any, d: Any, dd_x: Any, *, alpha: float) -> Any:
    slope = alpha * xp.exp(xp.minimum(x, 0))
    negative = x < 0
    return dd_x * d * slope * negative, dd_x * xp.where(negative, slope, 1)


sqrt_grad_grad = second_order(
    "sqrt",
    {"Out": "Out", "DX": "X" + GRAD},
    _X_GRAD,
    {"DOut": ("Out", "Out"), "DDOut": ("Out" + GRAD, "Out")},
)


@sqrt_grad_grad.kernel
def _(xp: Any, y: Any, d_x: Any, dd_x: Any) -> Any:
    ratio = dd_x / y
    return -ratio * d_x, 0.5 * ratio


reshape2_grad_grad = second_order(
    "reshape2",
    {"DOut": "Out" + GRAD},
    _X_GRAD,
    {"DDOut": ("Out" + GRAD, "DOut")},
)


@reshape2_grad_grad.kernel
def _(xp: Any, d: Any, dd_x: Any) -> Any:
    return dd_x.reshape(d.shape)


# --- elementwise ops of two operands -------------------------------------------------

_XY_GRAD = {"DDX": "X" + GRAD, "DDY": "Y" + GRAD}


def _sum_of(xp: Any, like: Any, p: Any, q: Any, a: Any, b: Any) -> Any:
    """a + b in the shape of `like`; a and b are None or reshape to p and q."""
    total = xp.zeros_like(like)
    if a is not None:
        total += a.reshape(p)
    if b is not None:
        total += b.reshape(q)
    return total


def _linear(name: str, sign: int) -> None:
    made = second_order(
        name,
        {"Y": "Y", "DOut": "Out" + GRAD},
        _XY_GRAD,
        {"DDOut": ("Out" + GRAD, "DOut")},
    )

    @made.kernel
    def _(xp: Any, y: Any, d: Any, dd_x: Any, dd_y: Any, *, axis: int) -> Any:
        p, q = laid(d if dd_x is None else dd_x, y, axis)
        if dd_y is not None and sign < 0:
            dd_y = -dd_y
        return _sum_of(xp, d, p, q, dd_x, dd_y)


_linear("elementwise_add", 1)
_linear("elementwise_sub", -1)

elementwise_mul_grad_grad = second_order(
    "elementwise_mul",
    {"X": "X", "Y": "Y", "DOut": "Out" + GRAD},
    _XY_GRAD,
    {
        "DDOut": ("Out" + GRAD, "DOut"),
        "X" + GRAD: ("X", "X"),
        "Y" + GRAD: ("Y", "Y"),
    },
)


@elementwise_mul_grad_grad.kernel
def _(xp: Any, x: Any, y: Any, d: Any, dd_x: Any, dd_y: Any, *, axis: int) -> Any:
    p, q = laid(x, y, axis)
    x_, y_ = x.reshape(p), y.reshape(q)
    g_x, g_y = xp.zeros_like(x), xp.zeros_like(y)
    dd = xp.zeros_like(d)
    if dd_x is not None:
        part = dd_x.reshape(p)
        dd += part * y_
        g_y = sum_to(xp, d * part, q).reshape(y.shape)
    if dd_y is not None:
        part = dd_y.reshape(q)
        dd += part * x_
        g_x = sum_to(xp, d * part, p).reshape(x.shape)
    return dd, g_x, g_y


elementwise_div_grad_grad = second_order(
    "elementwise_div",
    {"Y": "Y", "Out": "Out", "DX": "X" + GRAD},
    _XY_GRAD,
    {
        "Y" + GRAD: ("Y", "Y"),
        "DDOut": ("Out" + GRAD, "Out"),
        "DOut": ("Out", "Out"),
    },
)


def _div_rule(op: GradContext) -> list[OpSpec]:
    """The reference refuses where dX is not made; here d / y is then made anew."""
    specs: list[OpSpec] = list(_plain_div_rule(op))
    if "DX" in specs[-1].inputs:
        return specs
    d, y = op.input("Out" + GRAD), op.input("Y")
    ratio = [f"{op.input('Out')[0]}@RATIO"]
    axis = {"axis": op.attrs.get("axis", -1)}
    made = OpSpec("elementwise_div", {"X": d, "Y": y}, {"Out": ratio}, axis)
    specs[-1].inputs["DX"] = ratio
    return [made, *specs]


_div_grad = declared("elementwise_div").grad_def
_plain_div_rule: Any = _div_grad.grad
_div_grad.grad = _div_rule


@elementwise_div_grad_grad.kernel
def _(xp: Any, y: Any, out: Any, d_x: Any, dd_x: Any, dd_y: Any, *, axis: int) -> Any:
    """With r = out: dX = d / y and dY = -d r / y; X has the shape of Out."""
    p, q = laid(out, y, axis)
    change = -_sum_of(xp, out, p, q, None, dd_y)
    d_out = change * d_x
    change *= out
    if dd_x is not None:
        change += dd_x.reshape(p)
    change /= y.reshape(q)
    return sum_to(xp, -change * d_x, q).reshape(y.shape), change, d_out


# --- mul -----------------------------------------------------------------------------

mul_grad_grad = second_order(
    "mul",
    {"X": "X", "Y": "Y", "DOut": "Out" + GRAD},
    _XY_GRAD,
    {"DX": ("X", "X"), "DY": ("Y", "Y"), "DDOut": ("Out" + GRAD, "DOut")},
    {"DX": "DDY", "DY": "DDX"},
)


@mul_grad_grad.kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    d: Any,
    dd_x: Any,
    dd_y: Any,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
) -> Any:
    a = linear.matrix(x, x_num_col_dims)
    b = linear.matrix(y, y_num_col_dims)
    d_ = linear.matrix(d, x_num_col_dims)
    g_x, g_y, dd = xp.zeros_like(x), xp.zeros_like(y), xp.zeros_like(d_)
    if dd_x is not None:
        part = dd_x.reshape(a.shape)
        dd += xp.dot(part, b)
        g_y = xp.dot(part.T, d_).reshape(y.shape)
    if dd_y is not None:
        part = dd_y.reshape(b.shape)
        dd += xp.dot(a, part)
        g_x = xp.dot(d_, part.T).reshape(x.shape)
    return g_x, g_y, dd.reshape(d.shape)
