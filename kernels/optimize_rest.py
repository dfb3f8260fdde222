"""Rarer updates: proximal steps, private SGD, compressed momentum, averaging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .infer import InferContext, same_as
from .optimize import _batched, _declare
from .optimize_more import _dense, _norm
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

Arrays = Sequence[Any]
Outs = tuple[Any, ...]

# --- proximal_gd, proximal_adagrad --------------------------------------------

_PENALTIES = (Attr("l1", float, 0.0), Attr("l2", float, 0.0))

proximal_gd = _declare(
    "proximal_gd",
    [In("Param"), In("Grad"), In("LearningRate")],
    ["Param"],
    _PENALTIES,
)

proximal_adagrad = _declare(
    "proximal_adagrad",
    [In("Param"), In("Moment"), In("Grad"), In("LearningRate")],
    ["Param", "Moment"],
    _PENALTIES,
)


def _proximal(xp: Any, param: Any, step: Any, rate: float, attrs: Any) -> None:
    """Take a step, then shrink toward zero (Duchi and Singer, 2009)."""
    param -= step
    if attrs["l1"] > 0:
        size = xp.absolute(param)
        size -= rate * attrs["l1"]
        xp.maximum(size, 0, out=size)
        xp.copysign(size, param, out=param)
    param /= 1 + rate * attrs["l2"]


def _proximal_gd(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    param, grad, rate = inputs
    value = rates(rate)
    _proximal(xp, param, _dense("proximal_gd", grad) * value, value, attrs)
    return (param,)


def _proximal_adagrad(xp: Any, inputs: Arrays, attrs: Any, rates: Any) -> Outs:
    param, moment, grad, rate = inputs
    grad, value = _dense("proximal_adagrad", grad), rates(rate)
    moment += grad * grad
    step = grad / xp.sqrt(moment)
    step *= value
    _proximal(xp, param, step, value, attrs)
    return param, moment


_batched(proximal_gd, _proximal_gd)
_batched(proximal_adagrad, _proximal_adagrad)

# --- dpsgd --------------------------------------------------------------------

dpsgd = op(
    "dpsgd",
    ins=[In("Param"), In("Grad"), In("LearningRate")],
    outs=[Out("ParamOut")],
    attrs=[
        Attr("clip", float, 10.0),
        Attr("batch_size", float, 16.0),
        Attr("sigma", float, 1.0),
        Attr("seed", int, 0),
    ],
    infer=same_as("Param", "ParamOut"),
    grad=None,
    inplace={"ParamOut": "Param"},
    lod=None,
    random=True,
)


@dpsgd.kernel
def _(
    xp: Any,
    param: Any,
    grad: Any,
    rate: Any,
    *,
    clip: float,
    batch_size: float,
    sigma: float,
    seed: int,
    ctx: Any,
) -> Any:
    """Abadi et al., 2016; one number of noise for all elements, as the reference."""
    grad = _dense("dpsgd", grad)
    value = float(rate.reshape(-1)[0])
    shrink = max(_norm(xp, grad) / clip, 1.0)
    noise = sigma * float(ctx.host_generator(seed).standard_normal())
    param -= grad * (value / shrink)
    param -= value * noise / batch_size
    return param


# --- dgc_momentum, dgc_clip_by_norm -------------------------------------------


def _infer_dgc(op: InferContext) -> None:
    op.set("Grad_out", like=op.input("Grad"))
    op.set("ParamOut", like=op.input("Param"))
    op.set("VelocityOut", like=op.input("Velocity"))


dgc_momentum = op(
    "dgc_momentum",
    ins=[
        In("current_step"),
        In("nranks"),
        In("Param"),
        In("Grad"),
        In("Velocity"),
        In("LearningRate"),
    ],
    outs=[Out("Grad_out"), Out("ParamOut"), Out("VelocityOut")],
    attrs=[
        Attr("mu", float),
        Attr("use_nesterov", bool, False),
        Attr("rampup_begin_step", float, -1.0),
    ],
    infer=_infer_dgc,
    grad=None,
    inplace={"Grad_out": "Grad", "ParamOut": "Param", "VelocityOut": "Velocity"},
    lod=None,
)


@dgc_momentum.kernel
def _(
    xp: Any,
    step: Any,
    nranks: Any,
    param: Any,
    grad: Any,
    velocity: Any,
    rate: Any,
    *,
    mu: float,
    use_nesterov: bool,
    rampup_begin_step: float,
) -> Outs:
    """Momentum before `rampup_begin_step`, SGD on averaged gradients from there.

    Lin et al., 2018. A negative rampup_begin_step: nothing happens.
    """
    if rampup_begin_step < 0:
        return grad, param, velocity
    grad = _dense("dgc_momentum", grad)
    value = float(rate.reshape(-1)[0])
    grad /= float(nranks.reshape(-1)[0])
    if float(step.reshape(-1)[0]) >= rampup_begin_step:
        param -= grad * value
        return grad, param, velocity
    velocity *= mu
    velocity += grad
    if use_nesterov:
        param -= grad * value
        param -= velocity * (mu * value)
    else:
        param -= velocity * value
    return grad, param, velocity


dgc_clip_by_norm = op(
    "dgc_clip_by_norm",
    ins=[In("current_step"), In("X")],
    outs=[Out("Out")],
    attrs=[Attr("max_norm", float), Attr("rampup_begin_step", float, -1.0)],
    infer=same_as("X"),
    grad=None,
    lod="X",
)


@dgc_clip_by_norm.kernel
def _(xp: Any, step: Any, x: Any, *, max_norm: float, rampup_begin_step: float) -> Any:
    """`clip_by_norm` from `rampup_begin_step` on."""
    started = 0 <= rampup_begin_step <= float(step.reshape(-1)[0])
    if not started:
        return x.copy()
    norm = _norm(xp, x)
    return x.copy() if norm <= max_norm else x * (max_norm / norm)


# --- average_accumulates ------------------------------------------------------

_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")
#: after so many updates sum_1 moves into sum_2, to keep its precision
_PRECISE = 16384


def _infer_average(op: InferContext) -> None:
    for name in (*_SUMS, *_COUNTS):
        op.set(f"out_{name}", like=op.input(f"in_{name}"))


average_accumulates = op(
    "average_accumulates",
    ins=[In("param"), *(In(f"in_{n}") for n in (*_SUMS, *_COUNTS))],
    outs=[Out(f"out_{n}") for n in (*_SUMS, *_COUNTS)],
    attrs=[
        Attr("average_window", float, 0.0),
        Attr("max_average_window", AttrType.LONG),
        Attr("min_average_window", AttrType.LONG, 10000),
    ],
    infer=_infer_average,
    grad=None,
    inplace={f"out_{n}": f"in_{n}" for n in (*_SUMS, *_COUNTS)},
    lod=None,
)


@average_accumulates.kernel
def _(
    xp: Any,
    param: Any,
    sum_1: Any,
    sum_2: Any,
    sum_3: Any,
    num: Any,
    old: Any,
    updates: Any,
    *,
    average_window: float,
    max_average_window: int,
    min_average_window: int,
) -> Outs:
    """Sums of a parameter over a window of updates (Polyak averaging)."""
    updates += 1
    num += 1
    sum_1 += param
    done, count = int(updates.reshape(-1)[0]), int(num.reshape(-1)[0])
    if done % _PRECISE == 0:
        sum_2 += sum_1
        sum_1[...] = 0
    window = min(max_average_window, math.floor(done * average_window))
    if count >= min_average_window and count >= window:
        xp.add(sum_1, sum_2, sum_3)
        sum_1[...] = 0
        sum_2[...] = 0
        old[...] = num
        num[...] = 0
    return sum_1, sum_2, sum_3, num, old, updates
