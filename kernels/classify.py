"""Losses on probabilities and their logs: kldiv_loss, sigmoid_focal_loss,
teacher_student_sigmoid_loss."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__ = ["kldiv_loss", "sigmoid_focal_loss", "teacher_student_sigmoid_loss"]

# --- kldiv_loss ---------------------------------------------------------------


def _infer_kldiv(op: InferContext) -> None:
    x, target = op.input("X"), op.shape("Target")
    op.check(
        len(x.shape) == len(target)
        and all(a == b or -1 in (a, b) for a, b in zip(x.shape, target)),
        f"X {x.shape} and Target {target} differ in shape",
    )
    kinds = ("none", "batchmean", "sum", "mean")
    how = op.attr("reduction")
    op.check(how in kinds, f"reduction must be one of {kinds}, not {how!r}")
    if how == "none":
        op.set("Loss", like=x)
    else:
        op.set("Loss", (1,), x.dtype)


kldiv_loss = op(
    "kldiv_loss",
    ins=[In("X"), In("Target", no_grad=True)],
    outs=[Out("Loss")],
    attrs=[Attr("reduction", str, "mean")],
    infer=_infer_kldiv,
    grad=grad_op(needs=["X", "Target"], shape_only=["X"]),
)


def _divisor(x: Any, reduction: str) -> int:
    """What the sum is divided by."""
    by: dict[str, int] = {"mean": x.size, "batchmean": len(x)}
    return by.get(reduction, 1)


@kldiv_loss.kernel
def _(xp: Any, x: Any, target: Any, *, reduction: str) -> Any:
    """x holds logs of probabilities; a target of 0 or less costs nothing."""
    used = ~(target <= 0)
    loss = xp.log(xp.where(used, target, 1))
    loss -= x
    loss *= target
    loss = xp.where(used, loss, 0)  # not a product: that of 0 and NaN is NaN
    if reduction == "none":
        return loss
    return (loss.sum() / _divisor(x, reduction)).reshape(1)


@kldiv_loss.grad_kernel
def _(xp: Any, x: Any, target: Any, d_loss: Any, *, reduction: str) -> Any:
    d_x = xp.maximum(target, 0)
    d_x *= d_loss if reduction == "none" else -d_loss / _divisor(x, reduction)
    return xp.negative(d_x, out=d_x) if reduction == "none" else d_x


# --- sigmoid_focal_loss -------------------------------------------------------
# Lin et al., "Focal Loss for Dense Object Detection" (2017)


def _infer_focal(op: InferContext) -> None:
    x, label = op.input("X"), op.shape("Label")
    op.check(len(x.shape) == 2, f"X needs shape (n, classes), got {x.shape}")
    op.check(
        len(label) == 2
        and label[1] in (1, -1)
        and (label[0] == x.shape[0] or -1 in (label[0], x.shape[0])),
        f"Label {label} is not (n, 1) for X {x.shape}",
    )
    op.check(op.shape("FgNum") == (1,), f"FgNum {op.shape('FgNum')} is not (1,)")
    op.set("Out", like=x)


sigmoid_focal_loss = op(
    "sigmoid_focal_loss",
    ins=[In("X"), In("Label", no_grad=True), In("FgNum", no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("gamma", float, 2.0), Attr("alpha", float, 0.25)],
    infer=_infer_focal,
    grad=grad_op(needs=["X", "Label", "FgNum"]),
)


def _focal(xp: Any, x: Any, label: Any, count: Any, alpha: float) -> tuple[Any, ...]:
    """(signed x, its sign, weight): each element as if its label were yes.

    Class c (from 0) is wanted where the label is c + 1; label -1 is ignored.
    """
    classes = xp.arange(1, x.shape[1] + 1)
    wanted = label == classes
    sign = xp.where(wanted, 1, -1).astype(x.dtype)
    weight = xp.where(wanted, alpha, 1 - alpha).astype(x.dtype)
    weight *= label != -1
    weight /= xp.maximum(count, 1).astype(x.dtype)
    return x * sign, sign, weight


@sigmoid_focal_loss.kernel
def _(xp: Any, x: Any, label: Any, count: Any, *, gamma: float, alpha: float) -> Any:
    signed, _, weight = _focal(xp, x, label, count, alpha)
    # -log p and (1 - p) of the label's own probability p
    cost = xp.logaddexp(-signed, 0)
    missed = xp.exp(-xp.logaddexp(signed, 0))
    return missed**gamma * cost * weight


@sigmoid_focal_loss.grad_kernel
def _(
    xp: Any, x: Any, label: Any, count: Any, d_out: Any, *, gamma: float, alpha: float
) -> Any:
    signed, sign, weight = _focal(xp, x, label, count, alpha)
    cost = xp.logaddexp(-signed, 0)
    missed = xp.exp(-xp.logaddexp(signed, 0))
    right = 1 - missed
    # d (m ** gamma * cost) with dm = -m r and d cost = -m
    slope = missed**gamma * (gamma * right * cost + missed)
    return slope * -sign * weight * d_out


# --- teacher_student_sigmoid_loss ---------------------------------------------


def _infer_teacher(op: InferContext) -> None:
    x, label = op.input("X"), op.shape("Label")
    op.check(len(x.shape) == 2 and x.shape[1] in (1, -1), f"X {x.shape} is not (n, 1)")
    op.check(len(label) == 2 and label[1] in (1, -1), f"Label {label} is not (n, 1)")
    op.set("Y", (x.shape[0], 1), x.dtype, x.lod_level)


teacher_student_sigmoid_loss = op(
    "teacher_student_sigmoid_loss",
    ins=[In("X"), In("Label", no_grad=True)],
    outs=[Out("Y")],
    attrs=[
        Attr("soft_max_up_bound", float, 15.0),
        Attr("soft_max_lower_bound", float, -15.0),
    ],
    infer=_infer_teacher,
    grad=grad_op(needs=["X", "Label"]),
)


def _teacher(xp: Any, label: Any) -> tuple[Any, Any]:
    """(factor of softplus, factor of x) that a label stands for.

    Below -1: no click; below 0: a click; below 1: no click and a teacher's score
    `label`; else: a click and a score `label` - 1. Both losses are softplus(x) minus
    x times their target.
    """
    losses = xp.where(label < 0, 1, 2).astype(label.dtype)
    target = xp.where(label < -1, 0, xp.where(label < 0, 1, label))
    return losses, target.astype(label.dtype)


@teacher_student_sigmoid_loss.kernel
def _(xp: Any, x: Any, label: Any) -> Any:
    losses, target = _teacher(xp, label)
    loss = xp.logaddexp(x, 0)
    loss *= losses
    loss -= x * target
    return loss


@teacher_student_sigmoid_loss.grad_kernel
def _(
    xp: Any,
    x: Any,
    label: Any,
    d_y: Any,
    *,
    soft_max_up_bound: float,
    soft_max_lower_bound: float,
) -> Any:
    losses, target = _teacher(xp, label)
    d_x = xp.exp(-xp.logaddexp(-x, 0))
    d_x *= losses
    d_x -= target
    d_x *= d_y
    # outside of the bounds there is no gradient
    d_x *= (x > soft_max_lower_bound) & (x < soft_max_up_bound)
    return d_x
