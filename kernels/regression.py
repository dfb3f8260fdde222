"""Losses on real-valued targets: huber, log, smooth l1, squared distance."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext, known_product
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _check_alike(op: InferContext, one: str, two: str) -> None:
    p, q = op.shape(one), op.shape(two)
    op.check(
        len(p) == len(q) and all(a == b or -1 in (a, b) for a, b in zip(p, q)),
        f"{one} {p} and {two} {q} differ in shape",
    )


# --- huber_loss ---------------------------------------------------------------


def _infer_huber(op: InferContext) -> None:
    _check_alike(op, "X", "Y")
    x = op.input("X")
    op.set("Residual", x.shape, x.dtype)
    op.set("Out", x.shape, x.dtype, x.lod_level)


huber_loss = op(
    "huber_loss",
    ins=[In("X"), In("Y")],
    outs=[Out("Residual", intermediate=True), Out("Out")],
    attrs=[Attr("delta", float)],
    infer=_infer_huber,
    grad=grad_op(needs=["Residual"]),
)


@huber_loss.kernel
def _(xp: Any, x: Any, y: Any, *, delta: float) -> Any:
    residual = y - x
    size = xp.abs(residual)
    # c (|r| - c / 2) with c = min(|r|, delta) is both branches in one
    clipped = xp.minimum(size, delta)
    size -= clipped * 0.5
    size *= clipped
    return residual, size


@huber_loss.grad_kernel
def _(xp: Any, residual: Any, d_out: Any, *, delta: float, wants: Any) -> Any:
    d_y = xp.minimum(residual, delta)
    xp.maximum(d_y, -delta, out=d_y)
    d_y *= d_out
    return -d_y if wants[0] else None, d_y if wants[1] else None


def _infer_huber_grad(op: InferContext) -> None:
    for slot in ("X@GRAD", "Y@GRAD"):
        op.set(slot, like=op.input("Residual"))


huber_loss.grad_def.infer = _infer_huber_grad

# --- log_loss -----------------------------------------------------------------


def _infer_log_loss(op: InferContext) -> None:
    _check_alike(op, "Predicted", "Labels")
    op.set("Loss", like=op.input("Predicted"))


log_loss = op(
    "log_loss",
    ins=[In("Predicted"), In("Labels", no_grad=True)],
    outs=[Out("Loss")],
    attrs=[Attr("epsilon", float)],
    infer=_infer_log_loss,
    grad=grad_op(needs=["Predicted", "Labels"]),
)


@log_loss.kernel
def _(xp: Any, p: Any, label: Any, *, epsilon: float) -> Any:
    loss = label * xp.log(p + epsilon)
    loss += (1 - label) * xp.log(1 - p + epsilon)
    return xp.negative(loss, out=loss)


@log_loss.grad_kernel
def _(xp: Any, p: Any, label: Any, d_loss: Any, *, epsilon: float) -> Any:
    d_p = (1 - label) / (1 - p + epsilon)
    d_p -= label / (p + epsilon)
    d_p *= d_loss
    return d_p


# --- smooth_l1_loss -----------------------------------------------------------


def _infer_smooth_l1(op: InferContext) -> None:
    _check_alike(op, "X", "Y")
    x = op.input("X")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (n, ...)")
    for slot in ("InsideWeight", "OutsideWeight"):
        if op.has(slot):
            _check_alike(op, "X", slot)
    op.set("Diff", x.shape, x.dtype)
    op.set("Out", (x.shape[0], 1), x.dtype)


smooth_l1_loss = op(
    "smooth_l1_loss",
    ins=[
        In("X"),
        In("Y"),
        In("InsideWeight", dispensable=True, no_grad=True),
        In("OutsideWeight", dispensable=True, no_grad=True),
    ],
    outs=[Out("Diff", intermediate=True), Out("Out")],
    attrs=[Attr("sigma", float, 1.0)],
    infer=_infer_smooth_l1,
    grad=grad_op(needs=["InsideWeight", "OutsideWeight", "Diff"]),
    lod=None,
)


@smooth_l1_loss.kernel
def _(xp: Any, x: Any, y: Any, inside: Any, outside: Any, *, sigma: float) -> Any:
    diff = x - y
    if inside is not None:
        diff *= inside
    size = xp.abs(diff)
    # s c (|d| - c / 2) with c = min(|d|, 1 / s) is both branches in one
    square = sigma * sigma
    clipped = xp.minimum(size, 1.0 / square)
    size -= clipped * 0.5
    size *= clipped
    size *= square
    if outside is not None:
        size *= outside
    return diff, size.reshape(len(x), -1).sum(axis=1, keepdims=True)


@smooth_l1_loss.grad_kernel
def _(
    xp: Any,
    inside: Any,
    outside: Any,
    diff: Any,
    d_out: Any,
    *,
    sigma: float,
    wants: Any,
) -> Any:
    d_x = diff * (sigma * sigma)
    xp.minimum(d_x, 1, out=d_x)
    xp.maximum(d_x, -1, out=d_x)
    d_x *= d_out.reshape(-1, *(1,) * (diff.ndim - 1))
    if inside is not None:
        d_x *= inside
    if outside is not None:
        d_x *= outside
    return d_x if wants[0] else None, -d_x if wants[1] else None


def _infer_smooth_l1_grad(op: InferContext) -> None:
    for slot in ("X@GRAD", "Y@GRAD"):
        op.set(slot, like=op.input("Diff"))


smooth_l1_loss.grad_def.infer = _infer_smooth_l1_grad

# --- squared_l2_distance ------------------------------------------------------


def _infer_distance(op: InferContext) -> None:
    x, y = op.input("X"), op.shape("Y")
    op.check(
        len(x.shape) >= 2 and len(y) == len(x.shape),
        f"X {x.shape} and Y {y} are not both (n, ...)",
    )
    width = known_product(x.shape[1:])
    other = known_product(y[1:])
    op.check(-1 in (width, other) or width == other, f"X {x.shape}, Y {y}: widths")
    op.check(
        -1 in (y[0], x.shape[0]) or y[0] in (1, x.shape[0]),
        f"Y has {y[0]} rows for {x.shape[0]} of X",
    )
    op.set("sub_result", (x.shape[0], width), x.dtype)
    op.set("Out", (x.shape[0], 1), x.dtype, x.lod_level)


squared_l2_distance = op(
    "squared_l2_distance",
    ins=[In("X"), In("Y")],
    outs=[Out("sub_result", intermediate=True), Out("Out")],
    infer=_infer_distance,
    grad=grad_op(needs=["X", "Y", "sub_result"], shape_only=["X", "Y"]),
)


@squared_l2_distance.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    diff = x.reshape(len(x), -1) - y.reshape(len(y), -1)
    return diff, (diff * diff).sum(axis=1, keepdims=True)


@squared_l2_distance.grad_kernel
def _(xp: Any, x: Any, y: Any, diff: Any, d_out: Any, *, wants: Any) -> Any:
    d_x = diff * d_out
    d_x += d_x
    d_y = None
    if wants[1]:
        whole = d_x if len(y) == len(x) else d_x.sum(axis=0)
        d_y = (-whole).reshape(y.shape)
    return d_x.reshape(x.shape) if wants[0] else None, d_y
