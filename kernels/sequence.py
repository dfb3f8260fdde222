"""Ops on sequences: rows of a tensor, grouped by the offsets of its LoD."""

from __future__ import annotations

from typing import Any

from .grad import GRAD, GradContext, OpSpec
from .infer import InferContext
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


def _offsets(xp: Any, op_name: str, lod: Any, rows: int) -> tuple[Any, Any]:
    """Offsets of the innermost level, and the sequences' lengths."""
    levels = lod.get("X")
    if not levels:
        raise ValueError(f"{op_name}: X has no LoD, so no sequences to pool")
    offsets = xp.asarray(levels[-1])
    if int(levels[-1][-1]) != rows:
        raise ValueError(
            f"{op_name}: the LoD of X ends at {levels[-1][-1]}, X has {rows} rows"
        )
    return offsets, offsets[1:] - offsets[:-1]


def _column(values: Any, like: Any) -> Any:
    """A vector, shaped to scale the rows of `like`."""
    return values.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 1))


def _first_maxima(xp: Any, x: Any, starts: Any, lengths: Any) -> tuple[Any, Any]:
    """Each sequence's maximum per column, and the row where it first stands."""
    top = xp.maximum.reduceat(x, starts, axis=0)
    row = xp.arange(len(x), dtype="i4").reshape(-1, *(1,) * (x.ndim - 1))
    row = xp.where(x == xp.repeat(top, lengths, axis=0), row, len(x))
    return top, xp.minimum.reduceat(row, starts, axis=0).astype("i4")


@sequence_pool.kernel
def _(xp: Any, x: Any, *, pooltype: str, pad_value: float, lod: Any) -> Any:
    """Out (sequences, ...); an empty sequence gives `pad_value`.

    MaxIndex (MAX only): the row of x that each element came from, -1 for padding.
    """
    offsets, lengths = _offsets(xp, "sequence_pool", lod, len(x))
    shape = (len(lengths), *x.shape[1:])
    full = lengths > 0
    whole = bool(full.all())
    starts, ends = offsets[:-1], offsets[1:]
    if not whole:
        starts, ends, lengths = starts[full], ends[full], lengths[full]
    index = None
    if not len(starts):
        pooled = x[:0]
        index = xp.zeros(pooled.shape, "i4") if pooltype == "MAX" else None
    elif pooltype == "MAX":
        pooled, index = _first_maxima(xp, x, starts, lengths)
    elif pooltype == "FIRST":
        pooled = x.take(starts, axis=0)
    elif pooltype == "LAST":
        pooled = x.take(ends - 1, axis=0)
    else:
        pooled = xp.add.reduceat(x, starts, axis=0)
        if pooltype == "AVERAGE":
            pooled /= _column(lengths, x)
        elif pooltype == "SQRT":
            pooled /= xp.sqrt(_column(lengths, x))
    if whole:
        return pooled, index
    out = xp.full(shape, pad_value, x.dtype)
    out[full] = pooled
    if index is not None:
        padded = xp.full(shape, -1, "i4")
        padded[full] = index
        index = padded
    return out, index


@sequence_pool_grad.kernel
def _(xp: Any, x: Any, index: Any, d_out: Any, *, pooltype: str, lod: Any) -> Any:
    offsets, lengths = _offsets(xp, "sequence_pool_grad", lod, len(x))
    if pooltype in ("SUM", "AVERAGE", "SQRT"):
        if pooltype != "SUM":
            size = _column(xp.maximum(lengths, 1), d_out)
            d_out = d_out / (size if pooltype == "AVERAGE" else xp.sqrt(size))
        return xp.repeat(d_out, lengths, axis=0)
    d_x = xp.zeros(x.shape, d_out.dtype)
    full = lengths > 0
    d_out = d_out[full]
    if pooltype == "MAX":
        width = x.size // max(len(x), 1)
        flat = index[full].reshape(-1, width) * width + xp.arange(width)
        d_x.reshape(-1)[flat] = d_out.reshape(-1, width)
    else:
        rows = offsets[:-1] if pooltype == "FIRST" else offsets[1:] - 1
        d_x[rows[full]] = d_out
    return d_x
