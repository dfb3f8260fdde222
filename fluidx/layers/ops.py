"""Activations and other functions of one tensor, element by element.

All keep shape and dtype of their input. The plain ones (no argument but the input)
are made from one table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidx.ir import Variable
from fluidx.layers.emit import emit

__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "brelu",
    "ceil",
    "cos",
    "elu",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "logsigmoid",
    "pow",
    "reciprocal",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "soft_relu",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
]

_DOC = """{formula}, element by element.

    x: a float tensor of any shape. Returns a Variable of the same shape and dtype.
    TypeError if x is not a Variable. Mirrors ``fluid.layers.{type}``.

    >>> import fluidx as fluid
    >>> x = fluid.data("x_of_{type}", [None, 4])
    >>> fluid.layers.{type}(x).shape
    (-1, 4)
    """


def _plain(type: str, formula: str) -> Callable[..., Variable]:
    def layer(x: Variable, name: str | None = None) -> Variable:
        return emit(type, {"X": x}, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = _DOC.format(type=type, formula=formula)
    return layer


abs = _plain("abs", "|x|")
acos = _plain("acos", "Inverse cosine")
asin = _plain("asin", "Inverse sine")
atan = _plain("atan", "Inverse tangent")
ceil = _plain("ceil", "Smallest whole number not below x")
cos = _plain("cos", "Cosine")
exp = _plain("exp", "e to the power of x")
floor = _plain("floor", "Largest whole number not above x")
log = _plain("log", "Natural logarithm")
logsigmoid = _plain("logsigmoid", "log(1 / (1 + exp(-x)))")
reciprocal = _plain("reciprocal", "1 / x")
relu = _plain("relu", "max(x, 0)")
round = _plain("round", "Nearest whole number, halves away from zero")
rsqrt = _plain("rsqrt", "1 / sqrt(x)")
sigmoid = _plain("sigmoid", "1 / (1 + exp(-x))")
sin = _plain("sin", "Sine")
softplus = _plain("softplus", "log(1 + exp(x))")
softsign = _plain("softsign", "x / (1 + |x|)")
sqrt = _plain("sqrt", "Square root")
square = _plain("square", "x * x")
tanh = _plain("tanh", "Hyperbolic tangent")
tanh_shrink = _plain("tanh_shrink", "x - tanh(x)")


def erf(x: Variable) -> Variable:
    """The error function. Mirrors ``fluid.layers.erf``."""
    return emit("erf", {"X": x})


def sign(x: Variable) -> Variable:
    """-1, 0 or 1. Mirrors ``fluid.layers.sign``."""
    return emit("sign", {"X": x})


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """x times the normal distribution function of x.

    approximate: by tanh. Hendrycks and Gimpel (2016). ``fluid.layers.gelu``.
    """
    return emit("gelu", {"X": x}, {"approximate": approximate})


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """x where x is positive, else alpha * x. Mirrors ``fluid.layers.leaky_relu``.

    >>> import fluidx as fluid
    >>> fluid.layers.leaky_relu(fluid.data("leaky_in", [None, 3]), alpha=0.1).shape
    (-1, 3)
    """
    return emit("leaky_relu", {"X": x}, {"alpha": alpha}, name=name)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where x is positive, else alpha * (exp(x) - 1). ``fluid.layers.elu``."""
    return emit("elu", {"X": x}, {"alpha": alpha}, name=name)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """min(max(x, 0), threshold). Mirrors ``fluid.layers.relu6``."""
    return emit("relu6", {"X": x}, {"threshold": threshold}, name=name)


def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """x cut to [t_min, t_max]. Mirrors ``fluid.layers.brelu``."""
    return emit("brelu", {"X": x}, {"t_min": t_min, "t_max": t_max}, name=name)


def soft_relu(
    x: Variable, threshold: float = 40.0, name: str | None = None
) -> Variable:
    """log(1 + exp(x cut to [-threshold, threshold])). ``fluid.layers.soft_relu``."""
    return emit("soft_relu", {"X": x}, {"threshold": threshold}, name=name)


def hard_sigmoid(
    x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None
) -> Variable:
    """slope * x + offset, cut to [0, 1]. Mirrors ``fluid.layers.hard_sigmoid``."""
    return emit("hard_sigmoid", {"X": x}, {"slope": slope, "offset": offset}, name=name)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """x * min(max(x + offset, 0), threshold) / scale. ``fluid.layers.hard_swish``."""
    attrs = {"threshold": threshold, "scale": scale, "offset": offset}
    return emit("hard_swish", {"X": x}, attrs, name=name)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """x * sigmoid(beta * x). Mirrors ``fluid.layers.swish``.

    The reference leaves `beta` out of the op, so that it always is 1 there.
    """
    return emit("swish", {"X": x}, {"beta": beta}, name=name)


def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """scale_b * tanh(scale_a * x). Mirrors ``fluid.layers.stanh``."""
    return emit("stanh", {"X": x}, {"scale_a": scale_a, "scale_b": scale_b}, name=name)


def selu(
    x: Variable,
    scale: float | None = None,
    alpha: float | None = None,
    name: str | None = None,
) -> Variable:
    """scale * (x, or alpha * (exp(x) - 1) where x is not positive).

    None: the constants of Klambauer et al. (2017). Mirrors ``fluid.layers.selu``.
    """
    return emit("selu", {"X": x}, {"scale": scale, "alpha": alpha}, name=name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """x moved towards zero by alpha (0.5), zero in between. ``layers.softshrink``."""
    return emit("softshrink", {"X": x}, {"lambda": alpha})


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """x, but zero within threshold (0.5) of zero. Mirrors ``layers.hard_shrink``."""
    return emit("hard_shrink", {"X": x}, {"threshold": threshold})


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """x where it exceeds threshold (1.0), else zero. ``layers.thresholded_relu``."""
    return emit("thresholded_relu", {"X": x}, {"threshold": threshold})


def pow(x: Variable, factor: Any = 1.0, name: str | None = None) -> Variable:
    """x to the power of factor, a number or a Variable of shape [1].

    Mirrors ``fluid.layers.pow``.
    """
    if isinstance(factor, Variable):
        return emit("pow", {"X": x, "FactorTensor": factor}, name=name)
    return emit("pow", {"X": x}, {"factor": factor}, name=name)
