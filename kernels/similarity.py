"""Similarity of vectors: cos_sim."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

# under the root of each norm, as the reference has it
_EPSILON = 1e-8


def _infer_cos_sim(op: InferContext) -> None:
    x, y = op.input("X"), op.shape("Y")
    op.check(
        len(x.shape) >= 2 and len(y) == len(x.shape),
        f"X {x.shape} and Y {y} are not both (n, ...)",
    )
    op.check(
        -1 in (y[0], x.shape[0]) or y[0] in (1, x.shape[0]),
        f"Y has {y[0]} rows for {x.shape[0]} of X",
    )
    op.set("Out", (x.shape[0], 1), x.dtype, x.lod_level)
    op.set("XNorm", (x.shape[0], 1), x.dtype)
    op.set("YNorm", (y[0], 1), x.dtype)


cos_sim = op(
    "cos_sim",
    ins=[In("X"), In("Y")],
    outs=[
        Out("Out"),
        Out("XNorm", intermediate=True),
        Out("YNorm", intermediate=True),
    ],
    attrs=[Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", bool, True)],
    infer=_infer_cos_sim,
    grad=grad_op(needs=["X", "Y", "Out", "XNorm", "YNorm"]),
)


@cos_sim.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    """Out (n, 1): the cosine of the rows of x (n, ...) and y (n or 1, ...)."""
    p, q = x.reshape(len(x), -1), y.reshape(len(y), -1)
    p_norm = xp.sqrt((p * p).sum(axis=1, keepdims=True) + _EPSILON)
    q_norm = xp.sqrt((q * q).sum(axis=1, keepdims=True) + _EPSILON)
    out = (p * q).sum(axis=1, keepdims=True)
    out /= p_norm
    out /= q_norm
    return out, p_norm, q_norm


@cos_sim.grad_kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    out: Any,
    x_norm: Any,
    y_norm: Any,
    d_out: Any,
    *,
    wants: Any,
) -> Any:
    p, q = x.reshape(len(x), -1), y.reshape(len(y), -1)
    across = d_out / (x_norm * y_norm)
    along = d_out * out
    d_x = d_y = None
    if wants[0]:
        d_x = (q * across - p * (along / (x_norm * x_norm))).reshape(x.shape)
    if wants[1]:
        d_q = p * across - q * (along / (y_norm * y_norm))
        if len(y) != len(x):
            d_q = d_q.sum(axis=0)
        d_y = d_q.reshape(y.shape)
    return d_x, d_y
