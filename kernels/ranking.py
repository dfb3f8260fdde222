"""Losses that rank or cluster: bpr_loss, margin_rank_loss, rank_loss, center_loss."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .rows import add_rows
from .schema import Attr, In, Out

__all__ = ["bpr_loss", "center_loss", "margin_rank_loss", "rank_loss"]


def _sigmoid(xp: Any, x: Any) -> Any:
    """Exact at both ends, without overflow."""
    half = xp.tanh(x * 0.5)
    half += 1
    half *= 0.5
    return half


def _check_same(op: InferContext, *slots: str) -> None:
    first = op.shape(slots[0])
    for slot in slots[1:]:
        shape = op.shape(slot)
        op.check(
            len(shape) == len(first)
            and all(a == b or -1 in (a, b) for a, b in zip(first, shape)),
            f"{slots[0]} {first} and {slot} {shape} differ in shape",
        )


# --- bpr_loss -----------------------------------------------------------------
# Hidasi et al., "Session-based Recommendations with Recurrent Neural Networks" (2016)


def _infer_bpr(op: InferContext) -> None:
    x, label = op.input("X"), op.shape("Label")
    op.check(
        len(label) == len(x.shape)
        and all(a == b or -1 in (a, b) for a, b in zip(x.shape[:-1], label)),
        f"Label {label} must be like X {x.shape} but for the last dimension",
    )
    op.check(label[-1] in (1, -1), f"Label {label} must end with 1")
    op.set("Y", (*x.shape[:-1], 1), x.dtype, x.lod_level)


bpr_loss = op(
    "bpr_loss",
    ins=[In("X"), In("Label", no_grad=True)],
    outs=[Out("Y")],
    infer=_infer_bpr,
    grad=grad_op(needs=["X", "Label"]),
)


def _lead(xp: Any, x: Any, label: Any) -> tuple[Any, Any]:
    """How much each score exceeds the label's; and the labels as a column."""
    rows = x.reshape(-1, x.shape[-1])
    column = label.reshape(-1, 1)
    return rows - xp.take_along_axis(rows, column, 1), column


@bpr_loss.kernel
def _(xp: Any, x: Any, label: Any) -> Any:
    lead, column = _lead(xp, x, label)
    each = xp.logaddexp(lead, 0)
    loss = each.sum(axis=1, keepdims=True)
    loss -= xp.take_along_axis(each, column, 1)  # the label's own
    loss /= x.shape[-1] - 1
    return loss.reshape(*x.shape[:-1], 1)


@bpr_loss.grad_kernel
def _(xp: Any, x: Any, label: Any, d_y: Any) -> Any:
    lead, column = _lead(xp, x, label)
    d_x = _sigmoid(xp, lead)
    xp.put_along_axis(d_x, column, 0, 1)
    d_x *= d_y.reshape(-1, 1) / (x.shape[-1] - 1)
    xp.put_along_axis(d_x, column, -d_x.sum(axis=1, keepdims=True), 1)
    return d_x.reshape(x.shape)


# --- margin_rank_loss ---------------------------------------------------------


def _infer_margin_rank(op: InferContext) -> None:
    _check_same(op, "X1", "X2", "Label")
    x = op.input("X1")
    op.check(len(x.shape) == 2 and x.shape[1] in (1, -1), f"X1 {x.shape} is not (n, 1)")
    op.set("Activated", x.shape, x.dtype)
    op.set("Out", like=x)


margin_rank_loss = op(
    "margin_rank_loss",
    ins=[In("X1"), In("X2"), In("Label", no_grad=True)],
    outs=[Out("Activated", intermediate=True), Out("Out")],
    attrs=[Attr("margin", float, 0.0)],
    infer=_infer_margin_rank,
    grad=grad_op(needs=["Label", "Activated"]),
)


@margin_rank_loss.kernel
def _(xp: Any, x1: Any, x2: Any, label: Any, *, margin: float) -> Any:
    out = (x2 - x1) * label
    out += margin
    xp.maximum(out, 0, out=out)
    return (out > 0).astype(out.dtype), out


@margin_rank_loss.grad_kernel
def _(xp: Any, label: Any, active: Any, d_out: Any, *, wants: tuple[bool, ...]) -> Any:
    d = d_out * label
    d *= active
    return -d if wants[0] else None, d if wants[1] else None


def _infer_margin_rank_grad(op: InferContext) -> None:
    for slot in ("X1@GRAD", "X2@GRAD"):
        op.set(slot, like=op.input("Label"))


margin_rank_loss.grad_def.infer = _infer_margin_rank_grad

# --- rank_loss ----------------------------------------------------------------
# Burges et al., "Learning to Rank using Gradient Descent" (2005)


def _infer_rank(op: InferContext) -> None:
    _check_same(op, "Label", "Left", "Right")
    op.set("Out", like=op.input("Left"))


rank_loss = op(
    "rank_loss",
    ins=[In("Label", no_grad=True), In("Left"), In("Right")],
    outs=[Out("Out")],
    infer=_infer_rank,
    grad=grad_op(needs=["Label", "Left", "Right"]),
)


@rank_loss.kernel
def _(xp: Any, label: Any, left: Any, right: Any) -> Any:
    lead = left - right
    out = xp.logaddexp(lead, 0)
    lead *= label
    out -= lead
    return out


@rank_loss.grad_kernel
def _(
    xp: Any, label: Any, left: Any, right: Any, d_out: Any, *, wants: tuple[bool, ...]
) -> Any:
    d = _sigmoid(xp, left - right)
    d -= label
    d *= d_out
    return d if wants[0] else None, -d if wants[1] else None


# --- center_loss --------------------------------------------------------------
# Wen et al., "A Discriminative Feature Learning Approach" (2016)


def _infer_center(op: InferContext) -> None:
    x, centers = op.input("X"), op.input("Centers")
    op.check(len(x.shape) == 2, f"X needs shape (n, width), got {x.shape}")
    op.check(
        len(centers.shape) == 2
        and (centers.shape[1] == x.shape[1] or -1 in (x.shape[1], centers.shape[1])),
        f"Centers {centers.shape} are not as wide as X {x.shape}",
    )
    op.set("CentersOut", centers.shape, centers.dtype)
    op.set("SampleCenterDiff", x.shape, x.dtype)
    op.set("Loss", (x.shape[0], 1), x.dtype, x.lod_level)


center_loss = op(
    "center_loss",
    ins=[
        In("X"),
        In("Label", no_grad=True),
        In("Centers", no_grad=True),
        In("CenterUpdateRate", no_grad=True),
    ],
    outs=[Out("CentersOut"), Out("SampleCenterDiff"), Out("Loss")],
    attrs=[Attr("cluster_num", int), Attr("need_update", bool)],
    infer=_infer_center,
    grad=grad_op(needs=["X", "SampleCenterDiff"], of=["Loss"], shape_only=["X"]),
    inplace={"CentersOut": "Centers"},
)


@center_loss.kernel
def _(
    xp: Any,
    x: Any,
    label: Any,
    centers: Any,
    rate: Any,
    *,
    cluster_num: int,
    need_update: bool,
) -> Any:
    """A centre moves by rate * (sum of its differences) / (1 + their number)."""
    rows = label.reshape(-1)
    diff = x - centers[rows]
    loss = (diff * diff).sum(axis=1, keepdims=True)
    loss *= 0.5
    if need_update:
        total = xp.zeros(centers.shape, centers.dtype)
        add_rows(xp, total, rows, diff)
        seen = xp.bincount(rows, minlength=cluster_num).astype(centers.dtype)
        total *= rate.reshape(-1)[0] / (seen + 1)[:, None]
        centers += total
    return centers, diff, loss


@center_loss.grad_kernel
def _(xp: Any, x: Any, diff: Any, d_loss: Any) -> Any:
    return diff * d_loss
