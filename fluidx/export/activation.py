"""ONNX rules: functions of one value, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph
from .rules import rule

__all__: list[str] = []

_SAME_NAME = {
    **{t: t.capitalize() for t in ("relu", "sigmoid", "tanh", "exp", "log", "sqrt")},
    **{t: t.capitalize() for t in ("abs", "ceil", "floor", "reciprocal", "erf")},
    **{t: t.capitalize() for t in ("sin", "cos", "softplus")},
    **{t: t.capitalize() for t in ("asin", "acos", "atan", "softsign", "sign")},
    "assign": "Identity",
}


@rule(*_SAME_NAME)
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node(_SAME_NAME[op.type], [g.take(op, "X")]))


class _Calculator:
    """Arithmetic on values of one dtype; numbers become constants of it."""

    def __init__(self, g: Graph, op: Operator) -> None:
        self.g = g
        self.dtype = g.dtype(op, "X")
        self.attr: dict[str, Any] = op.attrs

    def __call__(self, type: str, *inputs: Any, **attrs: Any) -> str:
        names = [
            i if isinstance(i, str) else self.g.constant(i, self.dtype) for i in inputs
        ]
        return self.g.node(type, names, **attrs)


Formula = Callable[[_Calculator, str], str]


def _formula(*types: str) -> Callable[[Formula], Formula]:
    """Register a rule that computes Out from X and the attributes."""

    def register(formula: Formula) -> Formula:
        @rule(*types)
        def _(g: Graph, op: Operator) -> None:
            calc = _Calculator(g, op)
            g.give(op, "Out", formula(calc, g.take(op, "X")))

        return formula

    return register


@_formula("relu6")
def _(c: _Calculator, x: str) -> str:
    return c("Clip", x, 0.0, c.attr["threshold"])


@_formula("brelu")
def _(c: _Calculator, x: str) -> str:
    return c("Clip", x, c.attr["t_min"], c.attr["t_max"])


@_formula("leaky_relu")
def _(c: _Calculator, x: str) -> str:
    return c("LeakyRelu", x, alpha=c.attr["alpha"])


@_formula("elu")
def _(c: _Calculator, x: str) -> str:
    return c("Elu", x, alpha=c.attr["alpha"])


@_formula("selu")
def _(c: _Calculator, x: str) -> str:
    return c("Selu", x, alpha=c.attr["alpha"], gamma=c.attr["scale"])


@_formula("hard_sigmoid")
def _(c: _Calculator, x: str) -> str:
    return c("HardSigmoid", x, alpha=c.attr["slope"], beta=c.attr["offset"])


@_formula("hard_swish")
def _(c: _Calculator, x: str) -> str:
    gate = c("Clip", c("Add", x, c.attr["offset"]), 0.0, c.attr["threshold"])
    return c("Div", c("Mul", x, gate), c.attr["scale"])


@_formula("swish")
def _(c: _Calculator, x: str) -> str:
    return c("Mul", x, c("Sigmoid", c("Mul", x, c.attr["beta"])))


@_formula("gelu")
def _(c: _Calculator, x: str) -> str:
    """Gelu itself came with opset 20."""
    if c.attr.get("approximate", False):
        cubic = c("Mul", c("Mul", c("Mul", x, x), x), 0.044715)
        inner = c("Mul", c("Add", x, cubic), math.sqrt(2 / math.pi))
        weight = c("Tanh", inner)
    else:
        weight = c("Erf", c("Mul", x, math.sqrt(0.5)))
    return c("Mul", c("Mul", x, 0.5), c("Add", weight, 1.0))


@_formula("stanh")
def _(c: _Calculator, x: str) -> str:
    return c("Mul", c("Tanh", c("Mul", x, c.attr["scale_a"])), c.attr["scale_b"])


@_formula("tanh_shrink")
def _(c: _Calculator, x: str) -> str:
    return c("Sub", x, c("Tanh", x))


@_formula("soft_relu")
def _(c: _Calculator, x: str) -> str:
    limit = c.attr["threshold"]
    return c("Softplus", c("Clip", x, -limit, limit))


@_formula("thresholded_relu")
def _(c: _Calculator, x: str) -> str:
    return c("ThresholdedRelu", x, alpha=c.attr["threshold"])


@_formula("hard_shrink")
def _(c: _Calculator, x: str) -> str:
    return c("Shrink", x, lambd=c.attr["threshold"], bias=0.0)


@_formula("softshrink")
def _(c: _Calculator, x: str) -> str:
    return c("Shrink", x, lambd=c.attr["lambda"], bias=c.attr["lambda"])


@_formula("logsigmoid")
def _(c: _Calculator, x: str) -> str:
    return c("Neg", c("Softplus", c("Neg", x)))


@_formula("square")
def _(c: _Calculator, x: str) -> str:
    return c("Mul", x, x)


@_formula("rsqrt")
def _(c: _Calculator, x: str) -> str:
    return c("Reciprocal", c("Sqrt", x))


@_formula("log1p")
def _(c: _Calculator, x: str) -> str:
    return c("Log", c("Add", x, 1.0))


@_formula("round")
def _(c: _Calculator, x: str) -> str:
    """Halves go away from zero; ONNX's Round takes them to even numbers."""
    return c("Mul", c("Sign", x), c("Floor", c("Add", c("Abs", x), 0.5)))


@_formula("clip")
def _(c: _Calculator, x: str) -> str:
    return c("Clip", x, c.attr["min"], c.attr["max"])


@_formula("increment")
def _(c: _Calculator, x: str) -> str:
    return c("Add", x, c.attr["step"])


@rule("pow")
def _(g: Graph, op: Operator) -> None:
    if g.has(op, "FactorTensor"):
        factor = g.take(op, "FactorTensor")
    else:
        factor = g.constant(op.attrs["factor"], g.dtype(op, "X"))
    g.give(op, "Out", g.node("Pow", [g.take(op, "X"), factor]))


@rule("scale")
def _(g: Graph, op: Operator) -> None:
    dtype, attrs, x = g.dtype(op, "X"), op.attrs, g.take(op, "X")
    bias = g.constant(attrs["bias"], dtype)
    if g.has(op, "ScaleTensor"):
        factor = g.take(op, "ScaleTensor")
    elif attrs["scale"] == 1 and attrs["bias"] == 0:
        g.give(op, "Out", g.node("Identity", [x]))
        return
    else:
        factor = g.constant(attrs["scale"], dtype)
    if attrs["bias_after_scale"]:
        value = g.node("Mul", [x, factor])
        value = g.node("Add", [value, bias]) if attrs["bias"] else value
    else:
        value = g.node("Mul", [g.node("Add", [x, bias]), factor])
    g.give(op, "Out", value)


@rule("dropout")
def _(g: Graph, op: Operator) -> None:
    if not op.attrs["is_test"]:
        raise Unsupported("it trains: export program.clone(for_test=True)")
    x, kept = g.take(op, "X"), 1.0 - op.attrs["dropout_prob"]
    if op.attrs["dropout_implementation"] == "upscale_in_train":
        g.give(op, "Out", g.node("Identity", [x]))
    else:
        factor = g.constant(kept, g.dtype(op, "X"))
        g.give(op, "Out", g.node("Mul", [x, factor]))


@rule("softmax")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Softmax", [g.take(op, "X")], axis=op.attrs["axis"]))


@rule("prelu")
def _(g: Graph, op: Operator) -> None:
    slope, mode, rank = g.take(op, "Alpha"), op.attrs["mode"], len(g.shape(op, "X"))
    if mode == "channel":
        slope = g.reshape(slope, -1, *[1] * (rank - 2))
    elif mode == "element":
        sizes = g.static(op, "X", range(1, rank))
        slope = g.reshape(slope, *sizes)
    g.give(op, "Out", g.node("PRelu", [g.take(op, "X"), slope]))
