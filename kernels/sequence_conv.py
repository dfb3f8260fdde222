"""Convolutions along sequences: `sequence_conv` and the look-ahead `row_conv`.

Both see sequences as one tall tensor of rows. A shift by o lays row r + o under row r
for all sequences at once; the few rows whose neighbour is in another sequence (or
nowhere) are then put right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .grad import GRAD, GradContext, OpSpec, grad_op
from .infer import InferContext
from .lod import lengths_of, sole_level
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer_conv(op: InferContext) -> None:
    x, weight = op.input("X"), op.shape("Filter")
    length = op.attr("contextLength")
    op.check(length > 0, f"contextLength must be positive, got {length}")
    op.check(
        op.attr("contextStride") == 1,
        f"contextStride must be 1, got {op.attr('contextStride')}",
    )
    op.check(
        len(x.shape) == len(weight) == 2,
        f"takes matrices, got X {x.shape} and Filter {weight}",
    )
    op.check(
        -1 in (x.shape[1], weight[0]) or weight[0] == length * x.shape[1],
        f"Filter has {weight[0]} rows, not contextLength {length} times the width of "
        f"X, {x.shape[1]}",
    )
    if op.attr("paddingTrainable"):
        start = op.attr("contextStart")
        wanted = (max(0, -start) + max(0, start + length - 1), x.shape[1])
        given = op.shape("PaddingData")
        op.check(given == wanted, f"PaddingData is {given}, not {wanted}")
    op.set("Out", (x.shape[0], weight[1]), x.dtype, x.lod_level)


_ATTRS = (
    Attr("paddingTrainable", bool, False),
    Attr("contextLength", int),
    Attr("contextStart", int, 0),
    Attr("contextStride", int, 1),
)


def _grad_conv(op: GradContext) -> list[OpSpec]:
    """One `sequence_conv_grad`, which takes PaddingData only where it is trained."""
    slots = ["X", "Filter"]
    if op.attrs["paddingTrainable"] and op.input("PaddingData"):
        slots.insert(1, "PaddingData")
    inputs = {slot: op.input(slot) for slot in slots}
    inputs["Out" + GRAD] = op.output_grad("Out")
    outputs = {slot + GRAD: op.input_grad(slot) for slot in slots}
    return [OpSpec("sequence_conv_grad", inputs, outputs, dict(op.attrs))]


def _infer_conv_grad(op: InferContext) -> None:
    for slot in ("X", "PaddingData", "Filter"):
        if op.wants(slot + GRAD):
            op.set(slot + GRAD, like=op.input(slot))


sequence_conv = op(
    "sequence_conv",
    ins=[In("X"), In("PaddingData", dispensable=True), In("Filter")],
    outs=[Out("Out")],
    attrs=_ATTRS,
    infer=_infer_conv,
    grad=_grad_conv,
)
sequence_conv_grad = op(
    "sequence_conv_grad",
    ins=[
        In("X"),
        In("PaddingData", dispensable=True),
        In("Filter"),
        In("Out" + GRAD),
    ],
    outs=[
        Out("X" + GRAD, dispensable=True),
        Out("PaddingData" + GRAD, dispensable=True),
        Out("Filter" + GRAD, dispensable=True),
    ],
    attrs=_ATTRS,
    infer=_infer_conv_grad,
    grad=None,
    forward=sequence_conv,
    lod=None,
)


class _Shifts:
    """Which rows meet under each shift of a tall tensor of sequences."""

    def __init__(self, offsets: Any) -> None:
        self.rows = int(offsets[-1])
        row, lengths = np.arange(self.rows), lengths_of(offsets)
        self.place = row - np.repeat(offsets[:-1], lengths)
        self.left = np.repeat(offsets[1:], lengths) - row

    def span(self, shift: int) -> tuple[slice, slice]:
        """The rows that have another one `shift` below, and those others."""
        low = min(max(0, -shift), self.rows)
        high = max(min(self.rows, self.rows - shift), low)
        return slice(low, high), slice(low + shift, high + shift)

    def outside(self, shift: int) -> Any:
        """Rows r for which r + shift is not in the same sequence."""
        if shift < 0:
            return np.flatnonzero(self.place < -shift)
        return np.flatnonzero(self.left <= shift)

    def padding(self, shift: int, rows: Any, above: int) -> Any:
        """Which row of PaddingData stands for the missing neighbour of these rows."""
        if shift < 0:
            return self.place[rows] + shift + above
        return shift - self.left[rows] + above


def _windows(xp: Any, x: Any, padding: Any, shifts: _Shifts, start: int, n: int) -> Any:
    """(rows, n, width): each row's neighbours from `start` on."""
    made = xp.zeros((len(x), n, x.shape[1]), x.dtype)
    for i in range(n):
        here, there = shifts.span(start + i)
        made[here, i] = x[there]
        missing = shifts.outside(start + i)
        if len(missing):
            filler: Any = 0
            if padding is not None:
                which = shifts.padding(start + i, missing, max(0, -start))
                filler = padding.take(xp.asarray(which), axis=0)
            made[xp.asarray(missing), i] = filler
    return made


@sequence_conv.kernel
def _(
    xp: Any,
    x: Any,
    padding: Any,
    weight: Any,
    *,
    paddingTrainable: bool,
    contextLength: int,
    contextStart: int,
    lod: Any,
) -> Any:
    """Out (rows, filters): the windows of `contextLength` rows times the filter.

    What lies before or behind a sequence counts as zero, or as rows of PaddingData.
    """
    offsets = sole_level("sequence_conv", "X", lod.get("X"), len(x))
    shifts = _Shifts(offsets)
    padding = padding if paddingTrainable else None
    seen = _windows(xp, x, padding, shifts, contextStart, contextLength)
    return xp.dot(seen.reshape(len(x), len(weight)), weight)


@sequence_conv_grad.kernel
def _(
    xp: Any,
    x: Any,
    padding: Any,
    weight: Any,
    d_out: Any,
    *,
    paddingTrainable: bool,
    contextLength: int,
    contextStart: int,
    lod: Any,
    wants: tuple[bool, ...],
) -> Any:
    shifts = _Shifts(sole_level("sequence_conv_grad", "X", lod.get("X"), len(x)))
    padding = padding if paddingTrainable else None
    d_x = d_padding = d_weight = None
    if wants[2]:
        seen = _windows(xp, x, padding, shifts, contextStart, contextLength)
        d_weight = xp.dot(seen.reshape(len(x), len(weight)).T, d_out)
    if wants[0] or wants[1]:
        d_seen = xp.dot(d_out, weight.T)
        d_seen = d_seen.reshape(len(x), contextLength, x.shape[1])
        d_x = xp.zeros(x.shape, d_out.dtype)
        if padding is not None:
            d_padding = xp.zeros(padding.shape, d_out.dtype)
        for i in range(contextLength):
            shift, part = contextStart + i, d_seen[:, i]
            missing = shifts.outside(shift)
            if len(missing):
                places = xp.asarray(missing)
                if padding is not None:
                    which = shifts.padding(shift, missing, max(0, -contextStart))
                    xp.add.at(d_padding, xp.asarray(which), part[places])
                part[places] = 0
            here, there = shifts.span(shift)
            d_x[there] += part[here]
    return d_x, d_padding, d_weight


def _infer_row_conv(op: InferContext) -> None:
    x, weight = op.input("X"), op.shape("Filter")
    op.check(
        len(weight) == 2 and len(x.shape) in (2, 3),
        f"takes X of 2 or 3 dimensions and a matrix, got {x.shape} and {weight}",
    )
    op.check(
        -1 in (x.shape[-1], weight[1]) or x.shape[-1] == weight[1],
        f"X has width {x.shape[-1]}, Filter {weight[1]}",
    )
    op.set("Out", like=x)


row_conv = op(
    "row_conv",
    ins=[In("X"), In("Filter")],
    outs=[Out("Out")],
    infer=_infer_row_conv,
    grad=grad_op(needs=["X", "Filter"]),
)


def _row_shifts(name: str, x: Any, levels: Any) -> _Shifts:
    """Sequences by LoD, or those of a batch (N, length, width)."""
    if x.ndim == 3:
        return _Shifts(np.arange(x.shape[0] + 1) * x.shape[1])
    return _Shifts(sole_level(name, "X", levels, len(x)))


@row_conv.kernel
def _(xp: Any, x: Any, weight: Any, *, lod: Any) -> Any:
    """Out[t] = sum over j of X[t + j] * Filter[j] inside each sequence.

    Amodei et al., "Deep Speech 2" (2015).
    """
    shifts = _row_shifts("row_conv", x, lod.get("X"))
    flat = x.reshape(-1, x.shape[-1])
    out = flat * weight[0]
    for j in range(1, len(weight)):
        here, there = shifts.span(j)
        part = xp.zeros(flat.shape, flat.dtype)
        xp.multiply(flat[there], weight[j], out=part[here])
        part[xp.asarray(shifts.outside(j))] = 0
        out += part
    return out.reshape(x.shape)


@row_conv.grad_kernel
def _(xp: Any, x: Any, weight: Any, d_out: Any, *, lod: Any) -> Any:
    shifts = _row_shifts("row_conv_grad", x, lod.get("X"))
    flat, d_flat = x.reshape(-1, x.shape[-1]), d_out.reshape(-1, x.shape[-1])
    d_x = d_flat * weight[0]
    d_weight = xp.zeros(weight.shape, d_out.dtype)
    d_weight[0] = xp.add.reduce(flat * d_flat, axis=0)
    for j in range(1, len(weight)):
        here, there = shifts.span(j)
        part = d_flat.copy()
        part[xp.asarray(shifts.outside(j))] = 0
        d_weight[j] = xp.add.reduce(flat[there] * part[here], axis=0)
        d_x[there] += part[here] * weight[j]
    return d_x.reshape(x.shape), d_weight
