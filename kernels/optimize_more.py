"""More optimizer updates: lars_momentum, adamax, rmsprop, ftrl, lamb and the like.

Like the updates in `optimize`: state changes in place and is returned; consecutive
updates of one kind run as one batch. A sparse gradient is taken where the reference
takes one (rmsprop, lamb); elsewhere it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .infer import InferContext
from .optimize import (
    _batched,
    _declare,
    _number,
    _pieces,
    _scratch,
    as_float32,
)
from .registry import op
from .schema import Attr, In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []

Arrays = Sequence[Any]
Outs = tuple[Any, ...]


def _dense(name: str, grad: Any) -> Any:
    if isinstance(grad, SelectedRows):
        raise TypeError(f"{name}: takes a dense gradient, got SelectedRows")
    return grad


def _norm(xp: Any, array: Any) -> float:
    flat = array.reshape(-1)
    return math.sqrt(float(flat.dot(flat)))


def _numbers(xp: Any, like: Any, *values: float) -> list[Any]:
    return [_number(xp, v, like) for v in values]


# --- lars_momentum ------------------------------------------------------------

lars_momentum = _declare(
    "lars_momentum",
    [In("Param"), In("Grad"), In("Velocity"), In("LearningRate")],
    ["Param", "Velocity"],
    [
        Attr("mu", float),
        Attr("lars_coeff", float, 0.001),
        Attr("lars_weight_decay", float, 0.0005),
    ],
)


def _lars(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """Momentum at rate * coeff * |param| / (|grad| + decay * |param|).

    You, Gitman and Ginsburg, 2017. The plain rate where a norm or the decay is 0.
    """
    param, grad, velocity, rate = inputs
    grad = _dense("lars_momentum", grad)
    decay = attrs["lars_weight_decay"]
    local = rates(rate)
    of_param, of_grad = _norm(xp, param), _norm(xp, grad)
    if of_param > 0 and of_grad > 0:
        local *= attrs["lars_coeff"] * of_param / (of_grad + decay * of_param)
    mu, decay, local = _numbers(xp, param, attrs["mu"], decay, local)
    for p, g, v in _pieces(xp, (param, grad, velocity)):
        t = _scratch(xp, p)
        xp.multiply(p, decay, t)
        xp.add(t, g, t)
        xp.multiply(t, local, t)
        xp.multiply(v, mu, v)
        xp.add(v, t, v)
        xp.subtract(p, v, p)
    return param, velocity


_batched(lars_momentum, _lars)

# --- decayed_adagrad ----------------------------------------------------------

decayed_adagrad = _declare(
    "decayed_adagrad",
    [In("Param"), In("Grad"), In("Moment"), In("LearningRate")],
    ["Param", "Moment"],
    [Attr("decay", float, 0.95), Attr("epsilon", float, 1e-6)],
)


def _decayed(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """moment = decay * moment + (1 - decay) * grad ** 2; an adagrad step."""
    param, grad, moment, rate = inputs
    grad = _dense("decayed_adagrad", grad)
    keep = as_float32(attrs["decay"])
    keep, rest, epsilon, value = _numbers(
        xp, param, keep, 1 - keep, attrs["epsilon"], rates(rate)
    )
    for p, g, m in _pieces(xp, (param, grad, moment)):
        t = _scratch(xp, p)
        xp.multiply(g, g, t)
        xp.multiply(t, rest, t)
        xp.multiply(m, keep, m)
        xp.add(m, t, m)
        xp.sqrt(m, t)
        xp.add(t, epsilon, t)
        xp.divide(g, t, t)
        xp.multiply(t, value, t)
        xp.subtract(p, t, p)
    return param, moment


_batched(decayed_adagrad, _decayed)

# --- adadelta -----------------------------------------------------------------

adadelta = _declare(
    "adadelta",
    [In("Param"), In("Grad"), In("AvgSquaredGrad"), In("AvgSquaredUpdate")],
    ["Param", "AvgSquaredGrad", "AvgSquaredUpdate"],
    [Attr("rho", float, 0.95), Attr("epsilon", float, 1e-6)],
)


def _adadelta(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """Zeiler, 2012, but the step is taken with the new average of squared steps.

    As the reference, whose in-place update gives that; there is no rate.
    """
    param, grad, of_grad, of_update = inputs
    grad = _dense("adadelta", grad)
    keep = as_float32(attrs["rho"])
    keep, rest, epsilon = _numbers(xp, param, keep, 1 - keep, attrs["epsilon"])
    for p, g, a, u in _pieces(xp, (param, grad, of_grad, of_update)):
        a *= keep
        a += g * g * rest
        below = a + epsilon
        squared = (u + epsilon) / below  # of the paper's step
        squared *= g * g
        squared *= rest
        u *= keep
        u += squared
        step = u + epsilon
        step /= below
        xp.sqrt(step, step)
        step *= g
        p -= step
    return param, of_grad, of_update


_batched(adadelta, _adadelta)

# --- adamax -------------------------------------------------------------------

adamax = _declare(
    "adamax",
    [
        In("Param"),
        In("Grad"),
        In("LearningRate"),
        In("Moment"),
        In("InfNorm"),
        In("Beta1Pow"),
    ],
    ["Param", "Moment", "InfNorm"],
    [Attr("beta1", float, 0.9), Attr("beta2", float, 0.999)]
    + [Attr("epsilon", float, 1e-8)],
)


def _adamax(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """Kingma and Ba, 2015, algorithm 2, with epsilon on the decayed norm."""
    param, grad, rate, moment, norm, power = inputs
    grad = _dense("adamax", grad)
    beta1, beta2 = as_float32(attrs["beta1"]), attrs["beta2"]
    value = rates(rate) / (1 - power.item())
    beta1, rest, beta2, epsilon, value = _numbers(
        xp, param, beta1, 1 - beta1, beta2, attrs["epsilon"], value
    )
    for p, g, m, n in _pieces(xp, (param, grad, moment, norm)):
        t = _scratch(xp, p)
        xp.multiply(g, rest, t)
        xp.multiply(m, beta1, m)
        xp.add(m, t, m)
        xp.multiply(n, beta2, n)
        xp.add(n, epsilon, n)
        xp.maximum(n, xp.absolute(g, t), out=n)
        xp.divide(m, n, t)
        xp.multiply(t, value, t)
        xp.subtract(p, t, p)
    return param, moment, norm


_batched(adamax, _adamax)

# --- rmsprop ------------------------------------------------------------------

rmsprop = _declare(
    "rmsprop",
    [
        In("Param"),
        In("MeanSquare"),
        In("MeanGrad", dispensable=True),
        In("LearningRate"),
        In("Grad"),
        In("Moment"),
    ],
    ["Param", "Moment", "MeanSquare", "MeanGrad"],
    [
        Attr("epsilon", float, 1e-10),
        Attr("decay", float, 0.9),
        Attr("momentum", float, 0.0),
        Attr("centered", bool, False),
    ],
)


def _rmsprop(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """Graves, 2013, equations 38 to 45; a sparse gradient is zero elsewhere."""
    param, square, mean, rate, grad, moment = inputs
    if isinstance(grad, SelectedRows):
        grad = grad.to_dense(xp)
    keep = as_float32(attrs["decay"])
    keep, rest, epsilon, mu, value = _numbers(
        xp,
        param,
        keep,
        1 - keep,
        attrs["epsilon"],
        attrs["momentum"],
        rates(rate),
    )
    centered = attrs["centered"]
    arrays = (param, grad, square, moment, mean if centered else square)
    for p, g, s, m, c in _pieces(xp, arrays):
        t = _scratch(xp, p)
        xp.multiply(g, g, t)
        xp.multiply(t, rest, t)
        xp.multiply(s, keep, s)
        xp.add(s, t, s)
        if centered:
            c *= keep
            c += g * rest
            xp.multiply(c, c, t)
            xp.subtract(s, t, t)
            xp.add(t, epsilon, t)
        else:
            xp.add(s, epsilon, t)
        xp.sqrt(t, t)
        xp.divide(g, t, t)
        xp.multiply(t, value, t)
        xp.multiply(m, mu, m)
        xp.add(m, t, m)
        xp.subtract(p, m, p)
    return param, moment, square, mean


_batched(rmsprop, _rmsprop)

# --- ftrl ---------------------------------------------------------------------


def _infer_ftrl(op: InferContext) -> None:
    op.set("ParamOut", like=op.input("Param"))
    op.set("SquaredAccumOut", like=op.input("SquaredAccumulator"))
    op.set("LinearAccumOut", like=op.input("LinearAccumulator"))


ftrl = op(
    "ftrl",
    ins=[
        In("Param"),
        In("SquaredAccumulator"),
        In("LinearAccumulator"),
        In("Grad"),
        In("LearningRate"),
    ],
    outs=[Out("ParamOut"), Out("SquaredAccumOut"), Out("LinearAccumOut")],
    attrs=[
        Attr("l1", float, 0.0),
        Attr("l2", float, 0.0),
        Attr("lr_power", float, -0.5),
    ],
    infer=_infer_ftrl,
    grad=None,
    inplace={
        "ParamOut": "Param",
        "SquaredAccumOut": "SquaredAccumulator",
        "LinearAccumOut": "LinearAccumulator",
    },
    lod=None,
    batch="ftrl",
)


def _ftrl(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """McMahan et al., 2013, algorithm 1; both penalties are raised by 1e-10."""
    param, squared, linear, grad, rate = inputs
    grad = _dense("ftrl", grad)
    l1, l2 = attrs["l1"] + 1e-10, attrs["l2"] + 1e-10
    power, value = -attrs["lr_power"], rates(rate)
    l1, twice, value = _numbers(xp, param, l1, 2 * l2, value)
    for p, s, z, g in _pieces(xp, (param, squared, linear, grad)):
        before = _raised(xp, s, power)
        s += g * g
        after = _raised(xp, s, power)
        before -= after  # minus the growth of 1 / (rate of the element)
        before /= value
        before *= p
        z += g
        z += before
        after /= value
        after += twice
        shrunk = xp.copysign(l1, z)
        shrunk -= z
        shrunk /= after
        p[...] = xp.where(xp.absolute(z) > l1, shrunk, 0)
    return param, squared, linear


def _raised(xp: Any, array: Any, power: float) -> Any:
    return xp.sqrt(array) if power == 0.5 else array**power


_batched(ftrl, _ftrl)

# --- lamb ---------------------------------------------------------------------

lamb = _declare(
    "lamb",
    [
        In("Param"),
        In("Grad"),
        In("LearningRate"),
        In("Moment1"),
        In("Moment2"),
        In("Beta1Pow"),
        In("Beta2Pow"),
    ],
    ["Param", "Moment1", "Moment2"],
    [
        Attr("weight_decay", float),
        Attr("beta1", float, 0.9),
        Attr("beta2", float, 0.999),
        Attr("epsilon", float, 1e-6),
    ],
)


def _lamb(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    """You et al., 2020, algorithm 2, as the reference without bias correction."""
    param, grad, rate, m, v = inputs[:5]
    if isinstance(grad, SelectedRows):
        grad = grad.to_dense(xp)
    beta1, beta2 = as_float32(attrs["beta1"]), as_float32(attrs["beta2"])
    m *= beta1
    m += grad * (1 - beta1)
    v *= beta2
    v += grad * grad * (1 - beta2)
    step = xp.sqrt(v)
    step += attrs["epsilon"]
    xp.divide(m, step, step)
    step += param * attrs["weight_decay"]
    of_param, of_step = _norm(xp, param), _norm(xp, step)
    ratio = of_param / of_step if of_param > 0 and of_step > 0 else 1.0
    step *= rates(rate) * ratio
    param -= step
    return param, m, v


_batched(lamb, _lamb)
