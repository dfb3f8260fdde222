"""Functions of one tensor, value by value: exp, log, sqrt, sin, tanh and so on.

Outputs have the shape and dtype of X. Gradient ops take X or Out as the
reference's do, so that what need not be kept is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .arrays import fit
from .grad import grad_op
from .infer import InferRule, same_as
from .registry import OpDef, op
from .schema import Attr, In, Out

__all__ = ["CUDNN", "MKLDNN", "sigmoid_of", "unary"]

MKLDNN = (Attr("use_mkldnn", bool, False),)
CUDNN = (Attr("use_cudnn", bool, False), *MKLDNN)


def unary(
    name: str,
    needs: Iterable[str],
    attrs: Iterable[Attr] = (),
    infer: InferRule | None = None,
) -> OpDef:
    """Declare an op of X whose output looks like X.

    Its kernels may write into X's and Out@GRAD's buffers (if they take `out`).
    """
    made = op(
        name,
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=attrs,
        infer=infer or same_as("X"),
        grad=grad_op(needs=list(needs)),
        overwrites="X",
    )
    made.grad_def.overwrites = "Out@GRAD"
    return made


_Gradient = Callable[[Any, Any, Any], Any]


def _function(
    name: str, ufunc: str, needs: str, gradient: _Gradient, attrs: Iterable[Attr]
) -> None:
    """An op that is one ufunc; gradient(xp, d, X or Out as `needs` says)."""
    made = unary(name, [needs], attrs)

    @made.kernel
    def _(xp: Any, x: Any, *, out: Any = None) -> Any:
        if x.dtype.kind in "iu":  # the reference's exp cuts off, too
            return getattr(xp, ufunc)(x).astype(x.dtype)
        return getattr(xp, ufunc)(x, out=fit(out, x))

    @made.grad_kernel
    def _(xp: Any, kept: Any, d: Any) -> Any:
        return gradient(xp, d, kept)


def _doubled(g: Any) -> Any:
    g += g
    return g


_function("exp", "exp", "Out", lambda xp, d, y: d * y, CUDNN)
_function("log", "log", "X", lambda xp, d, x: d / x, CUDNN)
_function("log1p", "log1p", "X", lambda xp, d, x: d / (x + 1.0), CUDNN)
_function("sqrt", "sqrt", "Out", lambda xp, d, y: 0.5 * d / y, CUDNN)
_function("square", "square", "X", lambda xp, d, x: _doubled(d * x), CUDNN)
_function("abs", "abs", "X", lambda xp, d, x: d * xp.sign(x), CUDNN)
_function("reciprocal", "reciprocal", "Out", lambda xp, d, y: -d * y * y, CUDNN)
_function("sin", "sin", "X", lambda xp, d, x: d * xp.cos(x), CUDNN)
_function("cos", "cos", "X", lambda xp, d, x: -d * xp.sin(x), CUDNN)
_function("asin", "arcsin", "X", lambda xp, d, x: d / xp.sqrt(1.0 - x * x), ())
_function("acos", "arccos", "X", lambda xp, d, x: -d / xp.sqrt(1.0 - x * x), ())
_function("atan", "arctan", "X", lambda xp, d, x: d / (1.0 + x * x), ())


def _step(name: str, ufunc: str) -> None:
    """A piecewise constant function: its gradient is zero."""
    made = unary(name, [], CUDNN)

    @made.kernel
    def _(xp: Any, x: Any, *, out: Any = None) -> Any:
        return getattr(xp, ufunc)(x, out=fit(out, x))

    @made.grad_kernel
    def _(xp: Any, d: Any) -> Any:
        return xp.zeros_like(d)

    made.grad_def.shape_only = frozenset(["Out@GRAD"])


_step("ceil", "ceil")
_step("floor", "floor")
# halves go to the even neighbour; the reference does so in full SIMD registers but
# rounds the last few values of an array away from zero
_step("round", "rint")

rsqrt = unary("rsqrt", ["Out"], CUDNN)


@rsqrt.kernel
def _(xp: Any, x: Any, *, out: Any = None) -> Any:
    y = xp.sqrt(x, out=fit(out, x))
    return xp.divide(1.0, y, out=y)


@rsqrt.grad_kernel
def _(xp: Any, y: Any, d: Any) -> Any:
    g = y * y
    g *= y
    g *= d
    g *= -0.5
    return g


tanh = unary("tanh", ["Out"], CUDNN)


@tanh.kernel
def _(xp: Any, x: Any, *, out: Any = None) -> Any:
    return xp.tanh(x, out=fit(out, x))


@tanh.grad_kernel
def _(xp: Any, y: Any, d: Any) -> Any:
    g = y * y
    xp.subtract(1.0, g, out=g)
    return xp.multiply(d, g, out=g)


# the largest argument whose exp is finite, by item size
_EXP_LIMIT = {2: 11.0, 4: 88.0, 8: 709.0}


def sigmoid_of(xp: Any, x: Any, out: Any = None) -> Any:
    """1 / (1 + exp(-x)) without overflow, into `out` if that fits."""
    y = xp.negative(x, out=fit(out, x))
    xp.minimum(y, _EXP_LIMIT[x.itemsize], out=y)
    xp.exp(y, out=y)
    y += 1.0
    return xp.reciprocal(y, out=y)


sigmoid = unary("sigmoid", ["Out"], CUDNN)


@sigmoid.kernel
def _(xp: Any, x: Any, *, out: Any = None) -> Any:
    return sigmoid_of(xp, x, out)


@sigmoid.grad_kernel
def _(xp: Any, y: Any, d: Any) -> Any:
    g = xp.subtract(1.0, y)
    g *= y
    return xp.multiply(d, g, out=g)


logsigmoid = unary("logsigmoid", ["X"], CUDNN)


@logsigmoid.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.minimum(x, 0.0) - xp.log1p(xp.exp(-xp.abs(x)))


@logsigmoid.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return d * sigmoid_of(xp, -x)


softplus = unary("softplus", ["X"], CUDNN)


@softplus.kernel
def _(xp: Any, x: Any) -> Any:
    """log(1 + exp(x)) in the form that neither overflows nor cancels."""
    return xp.maximum(x, 0.0) + xp.log1p(xp.exp(-xp.abs(x)))


@softplus.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return d * sigmoid_of(xp, x)


softsign = unary("softsign", ["X"], CUDNN)


@softsign.kernel
def _(xp: Any, x: Any) -> Any:
    return x / (1.0 + xp.abs(x))


@softsign.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return d / xp.square(1.0 + xp.abs(x))


tanh_shrink = unary("tanh_shrink", ["X"], CUDNN)


@tanh_shrink.kernel
def _(xp: Any, x: Any) -> Any:
    return x - xp.tanh(x)


@tanh_shrink.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return d * xp.square(xp.tanh(x))
