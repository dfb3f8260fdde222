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
    "mish",
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

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array({at}, "float32"))
    >>> y = fluid.layers.{type}(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array({values}, dtype=float32)
    """


def _plain(type: str, formula: str, at: str, values: str) -> Callable[..., Variable]:
    """at, values: two elements of the example in its documentation."""

    def layer(x: Variable, name: str | None = None) -> Variable:
        return emit(type, {"X": x}, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = _DOC.format(type=type, formula=formula, at=at, values=values)
    return layer


abs = _plain("abs", "|x|", "[-2, 3]", "[2., 3.]")
acos = _plain("acos", "Inverse cosine", "[1, 0]", "[0.    , 1.5708]")
asin = _plain("asin", "Inverse sine", "[0, 1]", "[0.    , 1.5708]")
atan = _plain("atan", "Inverse tangent", "[0, 1]", "[0.    , 0.7854]")
ceil = _plain("ceil", "Smallest whole number not below x", "[1.2, -1.2]", "[ 2., -1.]")
cos = _plain("cos", "Cosine", "[0, 3.1416]", "[ 1., -1.]")
exp = _plain("exp", "e to the power of x", "[0, 1]", "[1.    , 2.7183]")
floor = _plain("floor", "Largest whole number not above x", "[1.2, -1.2]", "[ 1., -2.]")
log = _plain("log", "Natural logarithm", "[1, 10]", "[0.    , 2.3026]")
logsigmoid = _plain(
    "logsigmoid", "log(1 / (1 + exp(-x)))", "[0, -2]", "[-0.6931, -2.1269]"
)
reciprocal = _plain("reciprocal", "1 / x", "[2, 4]", "[0.5 , 0.25]")
relu = _plain("relu", "max(x, 0)", "[-1, 2]", "[0., 2.]")
round = _plain(
    "round", "Nearest whole number, halves to the even one", "[0.5, 1.5]", "[0., 2.]"
)
rsqrt = _plain("rsqrt", "1 / sqrt(x)", "[4, 0.25]", "[0.5, 2. ]")
sigmoid = _plain("sigmoid", "1 / (1 + exp(-x))", "[0, 2]", "[0.5   , 0.8808]")
sin = _plain("sin", "Sine", "[0, 1.5708]", "[0., 1.]")
softplus = _plain("softplus", "log(1 + exp(x))", "[0, 3]", "[0.6931, 3.0486]")
softsign = _plain("softsign", "x / (1 + |x|)", "[1, -3]", "[ 0.5 , -0.75]")
sqrt = _plain("sqrt", "Square root", "[4, 9]", "[2., 3.]")
square = _plain("square", "x * x", "[-2, 3]", "[4., 9.]")
tanh = _plain("tanh", "Hyperbolic tangent", "[0, 1]", "[0.    , 0.7616]")
tanh_shrink = _plain("tanh_shrink", "x - tanh(x)", "[0, 1]", "[0.    , 0.2384]")


def erf(x: Variable) -> Variable:
    """The error function. Mirrors ``fluid.layers.erf``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([0, 1], "float32"))
    >>> y = fluid.layers.erf(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0.    , 0.8427], dtype=float32)
    """
    return emit("erf", {"X": x})


def sign(x: Variable) -> Variable:
    """-1, 0 or 1. Mirrors ``fluid.layers.sign``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-2, 0, 3], "float32"))
    >>> y = fluid.layers.sign(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-1.0, 0.0, 1.0]
    """
    return emit("sign", {"X": x})


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """x times the normal distribution function of x.

    approximate: by tanh. Hendrycks and Gimpel (2016). ``fluid.layers.gelu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-1, 0, 1], "float32"))
    >>> y = fluid.layers.gelu(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    return emit("gelu", {"X": x}, {"approximate": approximate})


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """x where x is positive, else alpha * x. Mirrors ``fluid.layers.leaky_relu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-1, 2], "float32"))
    >>> y = fluid.layers.leaky_relu(x, alpha=0.5)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-0.5, 2.0]
    """
    return emit("leaky_relu", {"X": x}, {"alpha": alpha}, name=name)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where x is positive, else alpha * (exp(x) - 1). ``fluid.layers.elu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-1, 2], "float32"))
    >>> y = fluid.layers.elu(x, alpha=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([-0.6321,  2.    ], dtype=float32)
    """
    return emit("elu", {"X": x}, {"alpha": alpha}, name=name)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """min(max(x, 0), threshold). Mirrors ``fluid.layers.relu6``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-1, 2, 8], "float32"))
    >>> y = fluid.layers.relu6(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0.0, 2.0, 6.0]
    """
    return emit("relu6", {"X": x}, {"threshold": threshold}, name=name)


def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """x cut to [t_min, t_max]. Mirrors ``fluid.layers.brelu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-1, 5, 30], "float32"))
    >>> y = fluid.layers.brelu(x, t_min=0.0, t_max=24.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0.0, 5.0, 24.0]
    """
    return emit("brelu", {"X": x}, {"t_min": t_min, "t_max": t_max}, name=name)


def soft_relu(
    x: Variable, threshold: float = 40.0, name: str | None = None
) -> Variable:
    """log(1 + exp(x cut to [-threshold, threshold])). ``fluid.layers.soft_relu``.

    >>> import fluidx as fluid
    >>> x = fluid.data("soft_relu_x", [None, 4])
    >>> fluid.layers.soft_relu(x).shape
    (-1, 4)
    """
    return emit("soft_relu", {"X": x}, {"threshold": threshold}, name=name)


def hard_sigmoid(
    x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None
) -> Variable:
    """slope * x + offset, cut to [0, 1]. Mirrors ``fluid.layers.hard_sigmoid``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-9, 0, 1], "float32"))
    >>> y = fluid.layers.hard_sigmoid(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0. , 0.5, 0.7], dtype=float32)
    """
    return emit("hard_sigmoid", {"X": x}, {"slope": slope, "offset": offset}, name=name)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """x * min(max(x + offset, 0), threshold) / scale. ``fluid.layers.hard_swish``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-4, 0, 4], "float32"))
    >>> y = fluid.layers.hard_swish(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-0.0, 0.0, 4.0]
    """
    attrs = {"threshold": threshold, "scale": scale, "offset": offset}
    return emit("hard_swish", {"X": x}, attrs, name=name)


def mish(x: Variable, threshold: float = 20, name: str | None = None) -> Variable:
    """x * tanh(log(1 + exp(x))). Mirrors ``fluid.layers.mish``.

    threshold: beyond it log(1 + exp(x)) is x, and below -threshold exp(x).
    ValueError unless it is positive.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-3, 0, 40], "float32"))
    >>> y = fluid.layers.mish(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4).tolist()
    [-0.14560000598430634, 0.0, 40.0]
    """
    if threshold <= 0:
        raise ValueError(f"mish: threshold must be positive, got {threshold}")
    return emit("mish", {"X": x}, {"threshold": threshold}, name=name)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """x * sigmoid(beta * x). Mirrors ``fluid.layers.swish``.

    The reference leaves `beta` out of the op, so that it always is 1 there.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([0, 2], "float32"))
    >>> y = fluid.layers.swish(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0.    , 1.7616], dtype=float32)
    """
    return emit("swish", {"X": x}, {"beta": beta}, name=name)


def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """scale_b * tanh(scale_a * x). Mirrors ``fluid.layers.stanh``.

    >>> import fluidx as fluid
    >>> x = fluid.data("stanh_x", [None, 4])
    >>> fluid.layers.stanh(x).shape
    (-1, 4)
    """
    return emit("stanh", {"X": x}, {"scale_a": scale_a, "scale_b": scale_b}, name=name)


def selu(
    x: Variable,
    scale: float | None = None,
    alpha: float | None = None,
    name: str | None = None,
) -> Variable:
    """scale * (x, or alpha * (exp(x) - 1) where x is not positive).

    None: the constants of Klambauer et al. (2017). Mirrors ``fluid.layers.selu``.

    >>> import fluidx as fluid
    >>> x = fluid.data("selu_x", [None, 4])
    >>> fluid.layers.selu(x).shape
    (-1, 4)
    """
    return emit("selu", {"X": x}, {"scale": scale, "alpha": alpha}, name=name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """x moved towards zero by alpha (0.5), zero in between. ``layers.softshrink``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-2, 0.3, 2], "float32"))
    >>> y = fluid.layers.softshrink(x, alpha=0.5)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-1.5, 0.0, 1.5]
    """
    return emit("softshrink", {"X": x}, {"lambda": alpha})


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """x, but zero within threshold (0.5) of zero. Mirrors ``layers.hard_shrink``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-2, 0.3, 2], "float32"))
    >>> y = fluid.layers.hard_shrink(x, threshold=0.5)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-2.0, 0.0, 2.0]
    """
    return emit("hard_shrink", {"X": x}, {"threshold": threshold})


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """x where it exceeds threshold (1.0), else zero. ``layers.thresholded_relu``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([0.5, 2], "float32"))
    >>> y = fluid.layers.thresholded_relu(x, threshold=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0.0, 2.0]
    """
    return emit("thresholded_relu", {"X": x}, {"threshold": threshold})


def pow(x: Variable, factor: Any = 1.0, name: str | None = None) -> Variable:
    """x to the power of factor, a number or a Variable of shape [1].

    Mirrors ``fluid.layers.pow``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([2, 3], "float32"))
    >>> y = fluid.layers.pow(x, factor=2.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [4.0, 9.0]
    """
    if isinstance(factor, Variable):
        return emit("pow", {"X": x, "FactorTensor": factor}, name=name)
    return emit("pow", {"X": x}, {"factor": factor}, name=name)
