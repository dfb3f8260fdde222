"""Normalizations without statistics: lrn (across channels) and norm (unit length).

Source of lrn: Krizhevsky, Sutskever and Hinton, "ImageNet Classification with Deep
Convolutional Neural Networks" (2012), section 3.3.
"""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out
from .window import channels_last, inside

__all__ = ["lrn", "norm"]


def _infer_lrn(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) == 4, f"X needs 4 dimensions, got shape {x.shape}")
    channels_last(op.attr("data_format"), op.fail)
    n = op.attr("n")
    op.check(n > 0 and n % 2 == 1, f"n must be odd and positive, got {n}")
    op.set("Out", like=x)
    op.set("MidOut", like=x)


lrn = op(
    "lrn",
    ins=[In("X")],
    outs=[Out("Out"), Out("MidOut")],
    attrs=[
        Attr("n", int, 5),
        Attr("k", float, 2.0),
        Attr("alpha", float, 1e-4),
        Attr("beta", float, 0.75),
        Attr("data_format", str, "AnyLayout"),
        Attr("is_test", bool, False),
        Attr("use_mkldnn", bool, False),
    ],
    infer=_infer_lrn,
    grad=grad_op(needs=["X", "Out", "MidOut"], of=["Out"]),
)


def _channel_sums(xp: Any, values: Any, n: int, axis: int) -> Any:
    """Sums over n neighbouring channels, centred, clipped at the ends."""
    channels = values.shape[axis]
    total = values.copy()
    lead = (slice(None),) * axis
    for offset in range(-(n // 2), n // 2 + 1):
        if offset:
            here, there = inside(offset, 1, channels, channels)
            target, source = (*lead, here), (*lead, there)
            part = total[target]
            part += values[source]
    return total


@lrn.kernel
def _(
    xp: Any,
    x: Any,
    *,
    n: int,
    k: float,
    alpha: float,
    beta: float,
    data_format: str,
) -> Any:
    middle = _channel_sums(xp, x * x, n, 3 if data_format == "NHWC" else 1)
    middle *= alpha
    middle += k
    return x * middle**-beta, middle


@lrn.grad_kernel
def _(
    xp: Any,
    x: Any,
    out: Any,
    middle: Any,
    d_out: Any,
    *,
    n: int,
    alpha: float,
    beta: float,
    data_format: str,
) -> Any:
    ratio = d_out * out
    ratio /= middle
    sums = _channel_sums(xp, ratio, n, 3 if data_format == "NHWC" else 1)
    sums *= x
    sums *= -2.0 * alpha * beta
    sums += d_out * middle**-beta
    return sums


def _infer_norm(op: InferContext) -> None:
    x = op.input("X")
    axis = op.attr("axis")
    rank = len(x.shape)
    op.check(-rank <= axis < rank, f"axis {axis} is outside of X {x.shape}")
    op.set("Out", like=x)
    shape = list(x.shape)
    shape[axis] = 1
    op.set("Norm", shape, x.dtype)


norm = op(
    "norm",
    ins=[In("X")],
    outs=[Out("Norm", intermediate=True), Out("Out")],
    attrs=[Attr("axis", int), Attr("epsilon", float, 1e-10)],
    infer=_infer_norm,
    grad=grad_op(needs=["X", "Norm"]),
)


@norm.kernel
def _(xp: Any, x: Any, *, axis: int, epsilon: float) -> Any:
    length = (x * x).sum(axis, keepdims=True)
    length += epsilon
    length = xp.sqrt(length)
    return length, x / length


@norm.grad_kernel
def _(xp: Any, x: Any, length: Any, d_out: Any, *, axis: int) -> Any:
    along = (x * d_out).sum(axis, keepdims=True)
    along /= length * length
    d_x = d_out - x * along
    d_x /= length
    return d_x
