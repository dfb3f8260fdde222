"""Ops on sequences: rows of a tensor, grouped by the offsets of its LoD."""

from __future__ import annotations

from typing import Any

import numpy as np

from .grad import GRAD, GradContext, OpSpec
from .infer import InferContext
from .lod import innermost, lengths_of, owners
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

_POOLS = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")


def _infer_pool(op: InferContext) -> None:
    # the number of sequences is not known here: the first size stays as it is in X,
    # as in the reference
    x = op.input("X")
    kind = op.attr("pooltype")
    op.check(kind in _POOLS, f"pooltype is {kind!r}, not one of {', '.join(_POOLS)}")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (rows, ...)")
    op.set("Out", x.shape, x.dtype, max(0, x.lod_level - 1))
    if op.wants("MaxIndex"):
        shape = x.shape if kind == "MAX" else ()
        # int32 when running; the reference declares it with X's dtype
        op.set("MaxIndex", shape, x.dtype)


def _grad_pool(op: GradContext) -> list[OpSpec]:
    """One `sequence_pool_grad`, which takes MaxIndex for MAX only."""
    inputs = {"X": op.input("X"), "Out" + GRAD: op.output_grad("Out")}
    if op.attrs["pooltype"] == "MAX":
        inputs["MaxIndex"] = op.output("MaxIndex")
    outputs = {"X" + GRAD: op.input_grad("X")}
    return [OpSpec("sequence_pool_grad", inputs, outputs, dict(op.attrs))]


_ATTRS = (
    Attr("is_test", bool, False),
    Attr("pooltype", str, "AVERAGE"),
    Attr("pad_value", float, 0.0),
)

sequence_pool = op(
    "sequence_pool",
    ins=[In("X")],
    outs=[Out("Out"), Out("MaxIndex", intermediate=True)],
    attrs=_ATTRS,
    infer=_infer_pool,
    grad=_grad_pool,
)
sequence_pool_grad = op(
    "sequence_pool_grad",
    ins=[In("X"), In("MaxIndex", dispensable=True), In("Out" + GRAD)],
    outs=[Out("X" + GRAD)],
    attrs=_ATTRS,
    infer=lambda op: op.set("X" + GRAD, like=op.input("X")),
    grad=None,
    shape_only=["X"],
    forward=sequence_pool,
    lod=None,
)


@sequence_pool.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """The innermost level goes into the pooling."""
    return {"Out": lod["X"][:-1]} if len(lod["X"]) > 1 else {}


def _column(xp: Any, values: Any, like: Any) -> Any:
    """A vector, shaped to scale the rows of `like`."""
    shape = (-1, *(1,) * (like.ndim - 1))
    return xp.asarray(values.astype(like.dtype).reshape(shape))


def _sums(xp: Any, x: Any, starts: Any, lengths: Any) -> Any:
    """The sum of each sequence; none is empty."""
    size, rest = divmod(len(x), len(lengths))
    if rest == 0 and bool((lengths == size).all()):
        # equal lengths: one reduction over an axis
        if size == 1:
            return x.copy()
        return xp.add.reduce(x.reshape(-1, size, *x.shape[1:]), axis=1)
    return xp.add.reduceat(x, xp.asarray(starts), axis=0)


def _first_maxima(xp: Any, x: Any, starts: Any, lengths: Any) -> tuple[Any, Any]:
    """Each sequence's maximum per column, and the row where it first stands."""
    starts = xp.asarray(starts)
    top = xp.maximum.reduceat(x, starts, axis=0)
    row = xp.arange(len(x), dtype="i4").reshape(-1, *(1,) * (x.ndim - 1))
    row = xp.where(x == top.take(xp.asarray(owners(lengths)), axis=0), row, len(x))
    return top, xp.minimum.reduceat(row, starts, axis=0).astype("i4")


def _pool(
    xp: Any, x: Any, kind: str, offsets: Any, lengths: Any, full: Any
) -> tuple[Any, Any]:
    """The pooled sequences that are not empty, and (MAX) where their maxima stand."""
    starts, ends, lengths = offsets[:-1][full], offsets[1:][full], lengths[full]
    if not len(starts):
        return x[:0], xp.zeros((0, *x.shape[1:]), "i4") if kind == "MAX" else None
    if kind == "MAX":
        return _first_maxima(xp, x, starts, lengths)
    if kind == "FIRST":
        return x.take(xp.asarray(starts), axis=0), None
    if kind == "LAST":
        return x.take(xp.asarray(ends - 1), axis=0), None
    pooled = _sums(xp, x, starts, lengths)
    if kind == "AVERAGE":
        pooled /= _column(xp, lengths, x)
    elif kind == "SQRT":
        pooled /= _column(xp, np.sqrt(lengths), x)
    return pooled, None


@sequence_pool.kernel
def _(xp: Any, x: Any, *, pooltype: str, pad_value: float, lod: Any) -> Any:
    """Out (sequences, ...); an empty sequence gives `pad_value`.

    MaxIndex (MAX only): the row of x that each element came from, -1 for padding.
    """
    offsets = innermost("sequence_pool", "X", lod.get("X"), len(x))
    lengths = lengths_of(offsets)
    full = lengths > 0
    pooled, index = _pool(xp, x, pooltype, offsets, lengths, full)
    if full.all():
        return pooled, index
    places = xp.asarray(np.flatnonzero(full))
    shape = (len(lengths), *x.shape[1:])
    out = xp.full(shape, pad_value, x.dtype)
    out[places] = pooled
    if index is not None:
        padded = xp.full(shape, -1, "i4")
        padded[places] = index
        index = padded
    return out, index


@sequence_pool_grad.kernel
def _(xp: Any, x: Any, index: Any, d_out: Any, *, pooltype: str, lod: Any) -> Any:
    offsets = innermost("sequence_pool_grad", "X", lod.get("X"), len(x))
    lengths = lengths_of(offsets)
    if pooltype in ("SUM", "AVERAGE", "SQRT"):
        if pooltype != "SUM":
            size = np.maximum(lengths, 1)
            size = size if pooltype == "AVERAGE" else np.sqrt(size)
            d_out = d_out / _column(xp, size, d_out)
        return d_out.take(xp.asarray(owners(lengths)), axis=0)
    d_x = xp.zeros(x.shape, d_out.dtype)
    full = np.flatnonzero(lengths)
    if not len(full):
        return d_x
    places = xp.asarray(full)
    d_out = d_out.take(places, axis=0)
    if pooltype == "MAX":
        width = x.size // max(len(x), 1)
        flat = index.take(places, axis=0).reshape(-1, width) * width
        flat = flat + xp.arange(width)
        d_x.reshape(-1)[flat] = d_out.reshape(-1, width)
    else:
        rows = offsets[:-1] if pooltype == "FIRST" else offsets[1:] - 1
        d_x[xp.asarray(rows[full])] = d_out
    return d_x
