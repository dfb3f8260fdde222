"""Elementwise ops of two operands, with the reference's axis rule.

The shorter operand is laid over the longer one from dimension `axis` on (-1:
aligned at the end), see `broadcast_shape`; sizes of one broadcast. Both operands
have one dtype, and so has the result. Gradients are summed down to their operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arrays import fit, lay, sum_to
from .grad import grad_op
from .infer import InferContext, Shape, broadcast_shape
from .registry import OpDef, op
from .schema import Attr, In, Out
from .selected_rows import SelectedRows

__all__ = ["laid"]

_ATTRS = (
    Attr("axis", int, -1),
    Attr("use_mkldnn", bool, False),
    Attr("x_data_format", str, ""),
    Attr("y_data_format", str, ""),
)


def _infer(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    shape = broadcast_shape(op, x.shape, y.shape, op.attr("axis"))
    op.set("Out", shape, like=x)


def _declare(name: str, grad: grad_op | None, **traits: Any) -> OpDef:
    made = op(
        f"elementwise_{name}",
        ins=[In("X"), In("Y")],
        outs=[Out("Out")],
        attrs=_ATTRS,
        infer=_infer,
        grad=grad,
        **traits,
    )
    if grad is not None:
        made.grad_def.overwrites = "Out@GRAD"
    return made


def laid(x: Any, y: Any, axis: int) -> tuple[Shape, Shape]:
    """Shapes of both operands that numpy's own broadcasting takes right."""
    p, q = x.shape, y.shape
    if axis < 0 or p == q or axis + min(len(p), len(q)) == max(len(p), len(q)):
        return p, q
    if len(p) >= len(q):
        return p, lay(q, len(p), axis)
    return lay(p, len(q), axis), q


def aligned(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Both operands in shapes that numpy's own broadcasting takes right."""
    if x.dtype != y.dtype:
        raise TypeError(f"{name}: X is {x.dtype} but Y is {y.dtype}; cast one of them")
    if axis < 0 or x.shape == y.shape or axis + y.ndim == x.ndim:
        return x, y
    p, q = laid(x, y, axis)
    return x.reshape(p), y.reshape(q)


def _target(out: Any, x: Any, y: Any) -> Any:
    """`out` where the result has X's shape and dtype, else None."""
    if out is None or fit(out, x) is None:
        return None
    p, q = x.shape, y.shape
    if p == q or (len(q) == 1 and q[0] in (1, p[-1])):
        return out
    fits = len(q) <= len(p) and all(b in (1, a) for a, b in zip(p[::-1], q[::-1]))
    return out if fits else None


def _ufunc_kernel(made: OpDef, ufunc: str) -> None:
    name = made.type

    @made.kernel
    def _(xp: Any, x: Any, y: Any, *, axis: int, out: Any = None) -> Any:
        x, y = aligned(name, x, y, axis)
        return getattr(xp, ufunc)(x, y, out=_target(out, x, y))


_Part = Callable[..., Any]


def _grad_kernel(made: OpDef, d_x: _Part, d_y: _Part) -> None:
    """The gradient kernel from the two partial products in full shape.

    d_x(xp, d, x, y) takes x and y aligned to d; each result is then summed down to
    the shape of its operand.
    """
    name = made.type

    @made.grad_kernel
    def _(
        xp: Any, x: Any, y: Any, d: Any, *, axis: int, wants: tuple[bool, bool]
    ) -> Any:
        p, q = aligned(name, x, y, axis)
        gx = gy = None
        if wants[0]:
            gx = sum_to(xp, d_x(xp, d, p, q), p.shape).reshape(x.shape)
        if wants[1]:
            gy = sum_to(xp, d_y(xp, d, p, q), q.shape).reshape(y.shape)
        return gx, gy


def _linear_grad(made: OpDef, negative: bool) -> None:
    """Gradients of X + Y and X - Y: the incoming one, passed on."""

    @made.grad_kernel
    def _(
        xp: Any,
        x: Any,
        y: Any,
        d: Any,
        *,
        axis: int,
        wants: tuple[bool, bool],
        out: Any = None,
    ) -> Any:
        gx = gy = None
        p, q = laid(x, y, axis)
        if wants[1]:
            gy = sum_to(xp, d, q)
            if negative:
                gy = xp.negative(gy)
            elif gy is d:
                gy = d.copy()
            gy = gy.reshape(y.shape)
        if wants[0]:
            gx = sum_to(xp, d, p)
            if gx is d and out is not d:  # a dead gradient is handed on as it is
                gx = d.copy()
            if gx.shape != x.shape:
                gx = gx.reshape(x.shape)
        return gx, gy


_needs_shapes = grad_op(needs=["X", "Y"], shape_only=["X", "Y"])
_needs_both = grad_op(needs=["X", "Y"])

add = _declare("add", _needs_shapes, overwrites="X")
_ufunc_kernel(add, "add")
_linear_grad(add, False)

sub = _declare("sub", _needs_shapes, overwrites="X")
_ufunc_kernel(sub, "subtract")
_linear_grad(sub, True)

mul = _declare("mul", _needs_both, overwrites="X")
_grad_kernel(mul, lambda xp, d, x, y: d * y, lambda xp, d, x, y: d * x)


@mul.kernel
def _(xp: Any, x: Any, y: Any, *, axis: int, out: Any = None) -> Any:
    if x.__class__ is SelectedRows:  # sparse gradients are clipped by a factor
        return SelectedRows(x.rows, x.value * y, x.height)
    x, y = aligned("elementwise_mul", x, y, axis)
    return xp.multiply(x, y, out=_target(out, x, y))


div = _declare(
    "div", grad_op(needs=["X", "Y", "Out"], shape_only=["X"]), overwrites="X"
)


@div.kernel
def _(xp: Any, x: Any, y: Any, *, axis: int, out: Any = None) -> Any:
    x, y = aligned("elementwise_div", x, y, axis)
    if x.dtype.kind == "f":
        return xp.divide(x, y, out=_target(out, x, y))
    return _truncated(xp, x, y)


@div.grad_kernel
def _(
    xp: Any, x: Any, y: Any, z: Any, d: Any, *, axis: int, wants: tuple[bool, bool]
) -> Any:
    p, q = laid(x, y, axis)
    ratio = d / y.reshape(q)
    gx = gy = None
    if wants[0]:
        gx = sum_to(xp, ratio, p).reshape(x.shape)
    if wants[1]:
        gy = sum_to(xp, xp.negative(ratio * z), q).reshape(y.shape)
    return gx, gy


def _truncated(xp: Any, x: Any, y: Any) -> Any:
    """Integer division rounded toward zero, as C does it."""
    return (x - xp.fmod(x, y)) // y


# of equal values, Y gets the gradient, as in the reference
maximum = _declare("max", _needs_both, overwrites="X")
_ufunc_kernel(maximum, "maximum")
_grad_kernel(maximum, lambda xp, d, x, y: d * (x > y), lambda xp, d, x, y: d * (x <= y))

minimum = _declare("min", _needs_both, overwrites="X")
_ufunc_kernel(minimum, "minimum")
_grad_kernel(minimum, lambda xp, d, x, y: d * (x < y), lambda xp, d, x, y: d * (x >= y))

power = _declare("pow", _needs_both, overwrites="X")
_ufunc_kernel(power, "power")
_grad_kernel(
    power,
    lambda xp, d, x, y: d * y * x ** (y - 1),
    lambda xp, d, x, y: d * xp.log(x) * x**y,
)

mod = _declare("mod", None)


@mod.kernel
def _(xp: Any, x: Any, y: Any, *, axis: int) -> Any:
    """The sign is the divisor's for floats but the dividend's for integers."""
    x, y = aligned("elementwise_mod", x, y, axis)
    return xp.mod(x, y) if x.dtype.kind == "f" else xp.fmod(x, y)


floordiv = _declare("floordiv", None)


@floordiv.kernel
def _(xp: Any, x: Any, y: Any, *, axis: int) -> Any:
    """Rounds toward zero in spite of its name, as in the reference."""
    x, y = aligned("elementwise_floordiv", x, y, axis)
    if x.dtype.kind == "f":
        raise TypeError(f"elementwise_floordiv: takes integers, X is {x.dtype}")
    return _truncated(xp, x, y)
