"""Activation functions with a shape of their own, and softmax.

Outputs have the shape and dtype of X. The plain functions (sigmoid, tanh, ...) are
in `unary`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arrays import blocks, fit, kept
from .erf import erf
from .infer import InferContext
from .schema import Attr
from .unary import CUDNN, MKLDNN, sigmoid_of, unary

__all__: list[str] = []

relu = unary("relu", ["Out"], CUDNN)


def _floor(xp: Any, x: Any) -> Any:
    """Zero in the form against which `maximum` is fastest.

    Against a scalar numpy's loop is not vectorised: 128 x 200 float32 take 13.4
    microseconds, against an array of zeros 4.1.
    """
    if xp is not np or x.size < 1024:
        return 0
    if x.size <= 32768:
        return kept(xp, 0.0, x.size, x.dtype).reshape(x.shape)
    row = x.size // x.shape[0]
    if 64 <= row <= 65536:
        return kept(xp, 0.0, row, x.dtype).reshape(x.shape[1:])
    return 0


@relu.kernel
def _(xp: Any, x: Any, *, out: Any = None) -> Any:
    return xp.maximum(x, _floor(xp, x), out=fit(out, x))


@relu.grad_kernel
def _(xp: Any, y: Any, d: Any, *, out: Any = None) -> Any:
    return xp.multiply(d, y > 0, out=fit(out, d))


relu6 = unary("relu6", ["Out"], [Attr("threshold", float, 6.0)])


@relu6.kernel
def _(xp: Any, x: Any, *, threshold: float, out: Any = None) -> Any:
    y = xp.maximum(x, 0, out=fit(out, x))
    return xp.minimum(y, threshold, out=y)


@relu6.grad_kernel
def _(xp: Any, y: Any, d: Any, *, threshold: float, out: Any = None) -> Any:
    return xp.multiply(d, (y > 0) & (y < threshold), out=fit(out, d))


leaky_relu = unary("leaky_relu", ["Out"], [Attr("alpha", float, 0.02), *MKLDNN])


@leaky_relu.kernel
def _(xp: Any, x: Any, *, alpha: float) -> Any:
    """The larger of x and alpha x, for any alpha, as in the reference."""
    y = x * alpha
    return xp.maximum(x, y, out=y)


@leaky_relu.grad_kernel
def _(xp: Any, y: Any, d: Any, *, alpha: float) -> Any:
    return xp.where(y > 0, d, d * alpha)


brelu = unary("brelu", ["X"], [Attr("t_min", float, 0.0), Attr("t_max", float, 24.0)])


@brelu.kernel
def _(xp: Any, x: Any, *, t_min: float, t_max: float, out: Any = None) -> Any:
    y = xp.maximum(x, t_min, out=fit(out, x))
    return xp.minimum(y, t_max, out=y)


@brelu.grad_kernel
def _(xp: Any, x: Any, d: Any, *, t_min: float, t_max: float, out: Any = None) -> Any:
    return xp.multiply(d, (x > t_min) & (x < t_max), out=fit(out, d))


thresholded_relu = unary("thresholded_relu", ["X"], [Attr("threshold", float, 1.0)])


@thresholded_relu.kernel
def _(xp: Any, x: Any, *, threshold: float) -> Any:
    return x * (x > threshold)


@thresholded_relu.grad_kernel
def _(xp: Any, x: Any, d: Any, *, threshold: float, out: Any = None) -> Any:
    return xp.multiply(d, x > threshold, out=fit(out, d))


hard_shrink = unary("hard_shrink", ["X"], [Attr("threshold", float, 0.5)])


@hard_shrink.kernel
def _(xp: Any, x: Any, *, threshold: float) -> Any:
    return x * (xp.abs(x) > threshold)


@hard_shrink.grad_kernel
def _(xp: Any, x: Any, d: Any, *, threshold: float, out: Any = None) -> Any:
    return xp.multiply(d, xp.abs(x) > threshold, out=fit(out, d))


softshrink = unary("softshrink", ["X"], [Attr("lambda", float, 0.5)])


@softshrink.kernel
def _(xp: Any, x: Any, **attrs: float) -> Any:
    bound = attrs["lambda"]
    return x - xp.minimum(xp.maximum(x, -bound), bound)


@softshrink.grad_kernel
def _(xp: Any, x: Any, d: Any, **attrs: float) -> Any:
    return d * (xp.abs(x) > attrs["lambda"])


# `lambda` cannot be written as a parameter
softshrink.keywords = softshrink.grad_def.keywords = ("lambda",)

hard_sigmoid = unary(
    "hard_sigmoid", ["Out"], [Attr("slope", float, 0.2), Attr("offset", float, 0.5)]
)


@hard_sigmoid.kernel
def _(xp: Any, x: Any, *, slope: float, offset: float, out: Any = None) -> Any:
    y = xp.multiply(x, slope, out=fit(out, x))
    y += offset
    xp.maximum(y, 0.0, out=y)
    return xp.minimum(y, 1.0, out=y)


@hard_sigmoid.grad_kernel
def _(xp: Any, y: Any, d: Any, *, slope: float) -> Any:
    return d * ((y > 0) & (y < 1)) * slope


hard_swish = unary(
    "hard_swish",
    ["X"],
    [
        Attr("threshold", float, 6.0),
        Attr("scale", float, 6.0),
        Attr("offset", float, 3.0),
    ],
)


@hard_swish.kernel
def _(xp: Any, x: Any, *, threshold: float, scale: float, offset: float) -> Any:
    gate = xp.minimum(xp.maximum(x + offset, 0.0), threshold)
    gate *= x
    gate /= scale
    return gate


@hard_swish.grad_kernel
def _(xp: Any, x: Any, d: Any, *, threshold: float, scale: float, offset: float) -> Any:
    """Above the threshold the slope is 1, as in the reference: exact for the
    defaults, where threshold equals scale."""
    moved = x + offset
    inner = d * (x + moved) / scale
    return xp.where(moved >= threshold, d, inner * (moved > 0))


swish = unary("swish", ["X"], [Attr("beta", float, 1.0), *MKLDNN])


@swish.kernel
def _(xp: Any, x: Any, *, beta: float) -> Any:
    y = sigmoid_of(xp, x * beta)
    y *= x
    return y


@swish.grad_kernel
def _(xp: Any, x: Any, d: Any, *, beta: float) -> Any:
    s = sigmoid_of(xp, x * beta)
    return d * (s + beta * x * s * (1.0 - s))


elu = unary("elu", ["X"], [Attr("alpha", float, 1.0)])


@elu.kernel
def _(xp: Any, x: Any, *, alpha: float) -> Any:
    low = xp.expm1(xp.minimum(x, 0.0))
    low *= alpha
    return xp.where(x > 0, x, low)


@elu.grad_kernel
def _(xp: Any, x: Any, d: Any, *, alpha: float) -> Any:
    low = xp.exp(xp.minimum(x, 0.0))
    low *= alpha
    low *= d
    return xp.where(x > 0, d, low)


soft_relu = unary("soft_relu", ["Out"], [Attr("threshold", float, 40.0)])


@soft_relu.kernel
def _(xp: Any, x: Any, *, threshold: float) -> Any:
    x = xp.minimum(xp.maximum(x, -threshold), threshold)
    return xp.maximum(x, 0.0) + xp.log1p(xp.exp(-xp.abs(x)))


@soft_relu.grad_kernel
def _(xp: Any, y: Any, d: Any, *, threshold: float) -> Any:
    """Zero where Out reaches the threshold: the reference looks at Out, not X."""
    return d * -xp.expm1(-y) * ((y > -threshold) & (y < threshold))


stanh = unary(
    "stanh", ["X"], [Attr("scale_a", float, 0.67), Attr("scale_b", float, 1.7159)]
)


@stanh.kernel
def _(xp: Any, x: Any, *, scale_a: float, scale_b: float) -> Any:
    y = xp.tanh(x * scale_a)
    y *= scale_b
    return y


@stanh.grad_kernel
def _(xp: Any, x: Any, d: Any, *, scale_a: float, scale_b: float) -> Any:
    y = xp.tanh(x * scale_a)
    return d * (1.0 - y * y) * (scale_a * scale_b)


gelu = unary("gelu", ["X"], [Attr("approximate", bool, False), *CUDNN])
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2.0 / math.pi)
_CUBIC = 0.044715


@gelu.kernel
def _(xp: Any, x: Any, *, approximate: bool) -> Any:
    """Hendrycks and Gimpel, "Gaussian error linear units" (2016)."""
    flat, out = x.reshape(-1), xp.empty(x.size, x.dtype)
    for b in blocks(xp, x.size):
        part = flat[b]
        if approximate:
            gate = xp.tanh(part * (_SQRT_2_PI + (_SQRT_2_PI * _CUBIC) * (part * part)))
        else:
            gate = erf(xp, part * _SQRT_HALF)
        gate += 1.0
        gate *= 0.5
        xp.multiply(gate, part, out=out[b])
    return out.reshape(x.shape)


@gelu.grad_kernel
def _(xp: Any, x: Any, d: Any, *, approximate: bool) -> Any:
    flat, given, out = x.reshape(-1), d.reshape(-1), xp.empty(x.size, x.dtype)
    slope = _tanh_slope if approximate else _erf_slope
    for b in blocks(xp, x.size):
        xp.multiply(given[b], slope(xp, flat[b]), out=out[b])
    return out.reshape(x.shape)


def _erf_slope(xp: Any, x: Any) -> Any:
    slope = x * x
    slope *= -0.5
    xp.exp(slope, out=slope)
    slope *= _SQRT_2_PI * 0.5
    slope *= x
    gate = erf(xp, x * _SQRT_HALF)
    gate *= 0.5
    slope += gate
    slope += 0.5
    return slope


def _tanh_slope(xp: Any, x: Any) -> Any:
    square = x * x
    t = xp.tanh(x * (_SQRT_2_PI + (_SQRT_2_PI * _CUBIC) * square))
    inner = (1.0 - t * t) * (_SQRT_2_PI + (3.0 * _SQRT_2_PI * _CUBIC) * square)
    return 0.5 * (1.0 + t) + 0.5 * x * inner


#: no probability is 0 (math::ValueClip in the reference): a loss stays finite
SOFTMAX_FLOOR = -64.0


def _infer_softmax(op: InferContext) -> None:
    x, axis = op.input("X"), op.attr("axis")
    rank = len(x.shape)
    op.check(
        not rank or -rank <= axis < rank,
        f"axis {axis} is outside of X {x.shape}",
    )
    op.set("Out", like=x)


softmax = unary(
    "softmax",
    ["Out"],
    [
        Attr("axis", int, -1),
        Attr("data_format", str, "AnyLayout"),
        Attr("is_test", bool, False),
        *CUDNN,
    ],
    infer=_infer_softmax,
)


@softmax.kernel
def _(xp: Any, x: Any, *, axis: int, out: Any = None) -> Any:
    y = xp.subtract(x, x.max(axis=axis, keepdims=True), out=fit(out, x))
    xp.maximum(y, SOFTMAX_FLOOR, out=y)
    xp.exp(y, out=y)
    y /= y.sum(axis=axis, keepdims=True)
    return y


@softmax.grad_kernel
def _(xp: Any, y: Any, d: Any, *, axis: int) -> Any:
    g = y * d
    g -= y * g.sum(axis=axis, keepdims=True)
    return g
