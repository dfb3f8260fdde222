"""erf, selu, mish and label_smooth."""

from __future__ import annotations

import math
from typing import Any

from .erf import erf as erf_of
from .grad import grad_op
from .infer import same_as
from .registry import op
from .schema import Attr, In, Out
from .unary import unary

__all__: list[str] = []

erf = unary("erf", ["X"])


@erf.kernel
def _(xp: Any, x: Any) -> Any:
    return erf_of(xp, x)


@erf.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return d * (2.0 / math.sqrt(math.pi)) * xp.exp(-(x * x))


selu = unary(
    "selu",
    ["Out"],
    [
        Attr("scale", float, 1.0507009873554805),
        Attr("alpha", float, 1.6732632423543772),
    ],
)


@selu.kernel
def _(xp: Any, x: Any, *, scale: float, alpha: float) -> Any:
    """Klambauer et al., "Self-normalizing neural networks" (2017)."""
    return scale * xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0.0)))


@selu.grad_kernel
def _(xp: Any, out: Any, d: Any, *, scale: float, alpha: float) -> Any:
    # where x <= 0, scale * alpha * exp(x) is out + scale * alpha
    return d * xp.where(out > 0, scale, out + scale * alpha)


mish = unary("mish", ["X"], [Attr("threshold", float, 20.0)])


def _softplus(xp: Any, x: Any, threshold: float) -> Any:
    """log(1 + exp(x)), by what it comes near to beyond the threshold."""
    middle = xp.log1p(xp.exp(xp.minimum(x, threshold)))
    return xp.where(x > threshold, x, xp.where(x < -threshold, xp.exp(x), middle))


@mish.kernel
def _(xp: Any, x: Any, *, threshold: float) -> Any:
    """Misra, "Mish: a self regularized non-monotonic activation function" (2019)."""
    return x * xp.tanh(_softplus(xp, x, threshold))


@mish.grad_kernel
def _(xp: Any, x: Any, d: Any, *, threshold: float) -> Any:
    soft = _softplus(xp, x, threshold)
    y = xp.tanh(soft)
    return d * (y - x * (1.0 - y * y) * xp.expm1(-soft))


label_smooth = op(
    "label_smooth",
    ins=[In("X"), In("PriorDist", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("epsilon", float, 0.0)],
    infer=same_as("X"),
    grad=grad_op(needs=[]),
)


@label_smooth.kernel
def _(xp: Any, x: Any, prior: Any, *, epsilon: float) -> Any:
    """Szegedy et al., "Rethinking the inception architecture" (2015)."""
    out = x * (1.0 - epsilon)
    out += epsilon / x.shape[-1] if prior is None else epsilon * prior.reshape(-1)
    return out


@label_smooth.grad_kernel
def _(xp: Any, d: Any, *, epsilon: float) -> Any:
    return d * (1.0 - epsilon)
