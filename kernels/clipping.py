"""Clipping and norms: clip, clip_by_norm, squared_l2_norm, l1_norm.

All take `SelectedRows` too: server programs clip sparse gradients. Their rows are
merged first, since a row that comes twice counts as one.
"""

from __future__ import annotations

from typing import Any

from .arrays import fit
from .grad import grad_op
from .infer import InferContext, same_as
from .registry import op
from .schema import Attr, In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []

clip = op(
    "clip",
    ins=[
        In("X"),
        In("Min", dispensable=True, no_grad=True),
        In("Max", dispensable=True, no_grad=True),
    ],
    outs=[Out("Out")],
    attrs=[Attr("max", float), Attr("min", float)],
    infer=same_as("X"),
    grad=grad_op(needs=["X", "Min", "Max"]),
    overwrites="X",
)
clip.grad_def.overwrites = "Out@GRAD"


@clip.kernel
def _(
    xp: Any, x: Any, low: Any, high: Any, *, min: float, max: float, out: Any = None
) -> Any:
    """X cut off at Min and Max (tensors of one value) or at the attributes."""
    low = min if low is None else low
    high = max if high is None else high
    if x.__class__ is SelectedRows:
        merged = x.merged(xp)
        value = xp.minimum(xp.maximum(merged.value, low), high)
        return SelectedRows(merged.rows, value, merged.height)
    y = xp.maximum(x, low, out=fit(out, x))
    return xp.minimum(y, high, out=y)


@clip.grad_kernel
def _(
    xp: Any,
    x: Any,
    low: Any,
    high: Any,
    d: Any,
    *,
    min: float,
    max: float,
    out: Any = None,
) -> Any:
    """Values at or beyond a bound get no gradient."""
    inside = (x > (min if low is None else low)) & (x < (max if high is None else high))
    return xp.multiply(d, inside, out=fit(out, d))


clip_by_norm = op(
    "clip_by_norm",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("max_norm", float)],
    infer=same_as("X"),
    grad=None,
    overwrites="X",
)


@clip_by_norm.kernel
def _(xp: Any, x: Any, *, max_norm: float, out: Any = None) -> Any:
    """X scaled down to L2 norm `max_norm` if it has more. All zeros stay zeros (the
    reference returns NaN for them)."""
    if x.__class__ is SelectedRows:
        merged = x.merged(xp)
        value = _clip_norm(xp, merged.value, max_norm, None)
        return SelectedRows(merged.rows, value, merged.height)
    return _clip_norm(xp, x, max_norm, fit(out, x))


def _clip_norm(xp: Any, x: Any, max_norm: float, out: Any) -> Any:
    norm = xp.sqrt(_square_sum(xp, x))
    return xp.multiply(x, max_norm / xp.maximum(norm, max_norm), out=out)


def _square_sum(xp: Any, x: Any) -> Any:
    flat = x.reshape(-1)
    return xp.dot(flat, flat)


def _infer_norm(op: InferContext) -> None:
    op.set("Out", (1,), op.input("X").dtype)


squared_l2_norm = op(
    "squared_l2_norm",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_norm,
    grad=grad_op(needs=["X"]),
    lod=None,
)


@squared_l2_norm.kernel
def _(xp: Any, x: Any) -> Any:
    if x.__class__ is SelectedRows:
        x = x.merged(xp).value
    return _square_sum(xp, x).reshape(1)


@squared_l2_norm.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return x * (d * 2.0)


l1_norm = op(
    "l1_norm",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_norm,
    grad=grad_op(needs=["X"]),
    lod=None,
)


@l1_norm.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.abs(x).sum().reshape(1)


@l1_norm.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    return xp.sign(x) * d
