"""Helpers for features of attention and of click models: add_position_encoding,
similarity_focus, cvm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__ = ["add_position_encoding", "cvm", "similarity_focus"]

# --- add_position_encoding ----------------------------------------------------
# Vaswani et al., "Attention Is All You Need" (2017), section 3.5


def _infer_position(op: InferContext) -> None:
    shape = op.shape("X")
    op.check(
        len(shape) in (2, 3),
        f"X needs shape (n, length, width), or (rows, width) with LoD, got {shape}",
    )
    op.check(shape[-1] % 2 == 0 or shape[-1] < 0, f"the width of X {shape} is odd")
    op.set("Out", like=op.input("X"))


add_position_encoding = op(
    "add_position_encoding",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("alpha", float, 1.0), Attr("beta", float, 1.0)],
    infer=_infer_position,
    grad=grad_op(),
)


@lru_cache(maxsize=16)
def _encoding(xp: Any, length: int, width: int, dtype: Any) -> Any:
    """(length, width): sines, then cosines, of the positions. Not to be written to."""
    half = width // 2
    step = np.arange(half) / (half - 1) if half > 1 else np.ones(1)
    angle = np.arange(length)[:, None] / 10000.0**step
    return xp.asarray(np.concatenate([np.sin(angle), np.cos(angle)], 1), dtype)


@add_position_encoding.kernel
def _(xp: Any, x: Any, *, alpha: float, beta: float, lod: Mapping[str, Any]) -> Any:
    """alpha * x + beta * encoding of the position in the sequence."""
    offsets = lod.get("X")
    if offsets and x.ndim == 2:
        ends = offsets[-1]
        lengths = [b - a for a, b in zip(ends, ends[1:])]
        table = _encoding(xp, max(lengths, default=0), x.shape[1], x.dtype)
        # a stretch of the table for each sequence: one copy per sequence
        added = xp.concatenate([table[:n] for n in lengths])
    else:
        added = _encoding(xp, x.shape[-2], x.shape[-1], x.dtype)
    out = x * alpha
    out += added * beta
    return out


@add_position_encoding.grad_kernel
def _(xp: Any, d_out: Any, *, alpha: float) -> Any:
    return d_out * alpha


def _infer_position_grad(op: InferContext) -> None:
    op.set("X@GRAD", like=op.input("Out@GRAD"))


add_position_encoding.grad_def.infer = _infer_position_grad

# --- similarity_focus ---------------------------------------------------------
# He and Lin, "Pairwise Word Interaction Modeling" (2016)


def _infer_focus(op: InferContext) -> None:
    x, axis, indexes = op.input("X"), op.attr("axis"), op.attr("indexes")
    op.check(len(x.shape) == 4, f"X needs 4 dimensions, got shape {x.shape}")
    op.check(axis in (1, 2, 3), f"axis must be 1, 2 or 3, got {axis}")
    op.check(len(indexes) > 0, "indexes is empty")
    size = x.shape[axis]
    for i in indexes:
        op.check(
            i >= 0 and (i < size or size < 0), f"index {i} is outside of axis {axis}"
        )
    op.set("Out", like=x)


similarity_focus = op(
    "similarity_focus",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("axis", int), Attr("indexes", AttrType.INTS)],
    infer=_infer_focus,
    grad=None,
)


@similarity_focus.kernel
def _(xp: Any, x: Any, *, axis: int, indexes: Sequence[int]) -> Any:
    """1 where a slice of `axis` has the largest value of a row and column not yet
    taken, again and again; the slices at `indexes` count together."""
    out = xp.zeros(x.shape, x.dtype)
    front = xp.moveaxis(x, axis, 1)
    seen = xp.zeros((len(x), *front.shape[2:]), bool)
    every = xp.arange(len(x))
    for i in indexes:
        free = front[:, i].copy()
        rows, columns = free.shape[1:]
        for _ in range(min(rows, columns)):
            best = free.reshape(len(x), rows * columns).argmax(1)
            row, column = best // columns, best % columns
            seen[every, row, column] = True
            free[every, row] = -xp.inf
            free[every, :, column] = -xp.inf
    xp.moveaxis(out, axis, 1)[...] = seen[:, None]
    return out


# --- cvm ----------------------------------------------------------------------


def _infer_cvm(op: InferContext) -> None:
    x = op.input("X")
    op.check(
        len(x.shape) == 2 and (x.shape[1] > 2 or x.shape[1] < 0),
        f"X needs shape (n, 2 + width), got {x.shape}",
    )
    if op.attr("use_cvm"):
        op.set("Y", like=x)
    else:
        op.set("Y", (x.shape[0], x.shape[1] - 2), x.dtype, x.lod_level)


cvm = op(
    "cvm",
    ins=[In("X"), In("CVM", no_grad=True)],
    outs=[Out("Y")],
    attrs=[Attr("use_cvm", bool, True)],
    infer=_infer_cvm,
    grad=grad_op(needs=["X", "CVM"], shape_only=["X"]),
)


@cvm.kernel
def _(xp: Any, x: Any, seen: Any, *, use_cvm: bool) -> Any:
    """The first two columns count shows and clicks: their logs, or nothing."""
    if not use_cvm:
        return x[:, 2:].copy()
    y = x.copy()
    logs = xp.log1p(x[:, :2])
    y[:, 0] = logs[:, 0]
    y[:, 1] = logs[:, 1] - logs[:, 0]
    return y


@cvm.grad_kernel
def _(xp: Any, x: Any, seen: Any, d_y: Any, *, use_cvm: bool) -> Any:
    """Mirrors CVMGradOp: the counts come back as the gradient of their columns."""
    d_x = xp.empty(x.shape, x.dtype)
    d_x[:, :2] = seen
    d_x[:, 2:] = d_y[:, 2:] if use_cvm else d_y
    return d_x
