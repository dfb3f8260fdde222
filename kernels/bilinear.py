"""Products of two inputs: bilinear_tensor_product, fsp."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import In, Out

__all__ = ["bilinear_tensor_product", "fsp"]


def _infer_bilinear(op: InferContext) -> None:
    x, y, weight = op.input("X"), op.shape("Y"), op.shape("Weight")
    op.check(
        len(x.shape) == 2 and len(y) == 2, f"X {x.shape} and Y {y} are not (n, width)"
    )
    op.check(
        len(weight) == 3
        and (x.shape[1], y[1]) == weight[1:]
        and (x.shape[0] == y[0] or -1 in (x.shape[0], y[0])),
        f"X {x.shape}, Y {y} and Weight {weight} (size, width of X, width of Y) do "
        "not go together",
    )
    if op.has("Bias"):
        bias = op.shape("Bias")
        op.check(bias == (1, weight[0]), f"Bias {bias} is not (1, {weight[0]})")
    op.set("Out", (x.shape[0], weight[0]), x.dtype, x.lod_level)


def _infer_bilinear_grad(op: InferContext) -> None:
    for slot in ("X", "Y", "Weight"):
        op.set(slot + "@GRAD", like=op.input(slot))
    weight = op.input("Weight")
    op.set("Bias@GRAD", (1, weight.shape[0]), weight.dtype)


bilinear_tensor_product = op(
    "bilinear_tensor_product",
    ins=[In("X"), In("Y"), In("Weight"), In("Bias", dispensable=True)],
    outs=[Out("Out")],
    infer=_infer_bilinear,
    grad=grad_op(needs=["X", "Y", "Weight"]),
)
bilinear_tensor_product.grad_def.infer = _infer_bilinear_grad


def _half(x: Any, weight: Any) -> Any:
    """(n, size, width of y): x times each matrix."""
    size, width, other = weight.shape
    matrix = weight.transpose(1, 0, 2).reshape(width, size * other)
    return (x @ matrix).reshape(len(x), size, other)


@bilinear_tensor_product.kernel
def _(xp: Any, x: Any, y: Any, weight: Any, bias: Any) -> Any:
    """out[n, k] = x[n] @ weight[k] @ y[n] + bias[k]."""
    out = (_half(x, weight) @ y[:, :, None])[:, :, 0]
    return out if bias is None else out + bias


@bilinear_tensor_product.grad_kernel
def _(
    xp: Any, x: Any, y: Any, weight: Any, d_out: Any, *, wants: tuple[bool, ...]
) -> Any:
    size, width, other = weight.shape
    dx = dy = dw = db = None
    outer = (d_out[:, :, None] * y[:, None]).reshape(len(x), size * other)
    if wants[0]:
        dx = outer @ weight.transpose(0, 2, 1).reshape(size * other, width)
    if wants[1]:
        dy = (d_out[:, None] @ _half(x, weight))[:, 0]
    if wants[2]:
        dw = (x.T @ outer).reshape(width, size, other).transpose(1, 0, 2)
        dw = xp.ascontiguousarray(dw)
    if wants[3]:
        db = d_out.sum(axis=0, keepdims=True)
    return dx, dy, dw, db


# --- fsp ----------------------------------------------------------------------
# Yim et al., "A Gift from Knowledge Distillation" (2017)


def _infer_fsp(op: InferContext) -> None:
    x, y = op.input("X"), op.shape("Y")
    op.check(
        len(x.shape) == 4
        and len(y) == 4
        and all(
            a == b or -1 in (a, b)
            for a, b in zip((x.shape[0], *x.shape[2:]), (y[0], *y[2:]))
        ),
        f"X {x.shape} and Y {y} are not (n, channels, h, w) with the same n, h and w",
    )
    op.set("Out", (x.shape[0], x.shape[1], y[1]), x.dtype)


fsp = op(
    "fsp",
    ins=[In("X"), In("Y")],
    outs=[Out("Out")],
    infer=_infer_fsp,
    grad=grad_op(needs=["X", "Y"]),
)


@fsp.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    """Products of all pairs of channels, averaged over the pixels."""
    p, q = x.reshape(*x.shape[:2], -1), y.reshape(*y.shape[:2], -1)
    out = p @ q.swapaxes(1, 2)
    out /= p.shape[2]
    return out


@fsp.grad_kernel
def _(xp: Any, x: Any, y: Any, d_out: Any, *, wants: tuple[bool, ...]) -> Any:
    p, q = x.reshape(*x.shape[:2], -1), y.reshape(*y.shape[:2], -1)
    d = d_out / p.shape[2]
    dx = dy = None
    if wants[0]:
        dx = (d @ q).reshape(x.shape)
    if wants[1]:
        dy = (d.swapaxes(1, 2) @ p).reshape(y.shape)
    return dx, dy
