"""Softmax of sequences; padded tensors and masks from sequences and back; LoD set anew.

`lod_reset` changes no element: only its LoD rule does something.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType, to_numpy
from .grad import GRAD, grad_op
from .infer import InferContext, same_as
from .lod import host, innermost, joined, lengths_of, owners, ranges, sole_level
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

# --- softmax ------------------------------------------------------------------

sequence_softmax = op(
    "sequence_softmax",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[
        Attr("use_cudnn", bool, False),
        Attr("data_format", str, "AnyLayout"),
    ],
    infer=same_as("X"),
    grad=grad_op(needs=["X", "Out"], shape_only=["X"]),
)


def _groups(xp: Any, name: str, x: Any, levels: Any) -> tuple[Any, Any]:
    """Where the sequences start that are not empty, and whose each element is."""
    offsets = innermost(name, "X", levels, len(x))
    if x.size != len(x):
        raise ValueError(
            f"{name}: X must have one number a row, got shape {tuple(x.shape)}"
        )
    lengths = lengths_of(offsets)
    full = lengths > 0
    return xp.asarray(offsets[:-1][full]), xp.asarray(owners(lengths[full]))


@sequence_softmax.kernel
def _(xp: Any, x: Any, *, lod: Any) -> Any:
    """exp(x) over its sum, inside each sequence of the last level."""
    starts, owner = _groups(xp, "sequence_softmax", x, lod.get("X"))
    if not x.size:
        return x.copy()
    flat = x.reshape(-1)
    flat = xp.exp(flat - xp.maximum.reduceat(flat, starts).take(owner))
    flat /= xp.add.reduceat(flat, starts).take(owner)
    return flat.reshape(x.shape)


@sequence_softmax.grad_kernel
def _(xp: Any, x: Any, out: Any, d_out: Any, *, lod: Any) -> Any:
    starts, owner = _groups(xp, "sequence_softmax_grad", x, lod.get("X"))
    if not x.size:
        return d_out.copy()
    flat, slope = out.reshape(-1), d_out.reshape(-1)
    mean = xp.add.reduceat(flat * slope, starts).take(owner)
    return (flat * (slope - mean)).reshape(x.shape)


# --- pad and unpad ------------------------------------------------------------


def _infer_pad(op: InferContext) -> None:
    x, pad = op.input("X"), op.shape("PadValue")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (rows, ...)")
    op.check(
        pad in ((1,), x.shape[1:]),
        f"PadValue has shape {pad}, neither (1,) nor that of a row, {x.shape[1:]}",
    )
    length = op.attr("padded_length")
    # a length that the data tells is inferred as 1, as in the reference
    op.set("Out", (-1, 1 if length == -1 else length, *x.shape[1:]), x.dtype)
    op.set("Length", (-1,), VarType.INT64)


sequence_pad = op(
    "sequence_pad",
    ins=[In("X"), In("PadValue", no_grad=True)],
    outs=[Out("Out"), Out("Length")],
    attrs=[Attr("padded_length", int, -1)],
    infer=_infer_pad,
    grad=grad_op(needs=["X"], shape_only=["X"], of=["Out"]),
    lod=None,
)


def _cells(lengths: Any, width: int) -> Any:
    """Where the rows of sequences stand in a padded tensor (sequences * width)."""
    return ranges(np.arange(len(lengths)) * width, lengths)


@sequence_pad.kernel
def _(xp: Any, x: Any, pad: Any, *, padded_length: int, lod: Any) -> Any:
    """Out (sequences, length, ...), filled up with PadValue; Length of each."""
    lengths = lengths_of(sole_level("sequence_pad", "X", lod.get("X"), len(x)))
    longest = int(lengths.max(initial=0))
    width = longest if padded_length == -1 else padded_length
    if width < longest:
        raise ValueError(
            f"sequence_pad: padded_length is {width}, a sequence has {longest} rows"
        )
    out = xp.empty((len(lengths) * width, *x.shape[1:]), x.dtype)
    out[...] = pad
    out[xp.asarray(_cells(lengths, width))] = x
    shape = (len(lengths), width, *x.shape[1:])
    return out.reshape(shape), xp.asarray(lengths.astype("i8"))


@sequence_pad.grad_kernel
def _(xp: Any, x: Any, d_out: Any, *, lod: Any) -> Any:
    offsets = sole_level("sequence_pad_grad", "X", lod.get("X"), len(x))
    rows = _cells(lengths_of(offsets), d_out.shape[1])
    return d_out.reshape(-1, *x.shape[1:]).take(xp.asarray(rows), axis=0)


def _infer_unpad(op: InferContext) -> None:
    x, length = op.input("X"), op.shape("Length")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (sequences, length, ...)")
    op.check(
        len(length) == 1 and (x.shape[0] == length[0] or -1 in (x.shape[0], length[0])),
        f"Length has shape {length}, not ({x.shape[0]},)",
    )
    # the number of rows is not known: the reference infers that of X
    op.set("Out", (-1, *(x.shape[2:] or (1,))), x.dtype, 1)


sequence_unpad = op(
    "sequence_unpad",
    ins=[In("X"), In("Length", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_unpad,
    grad=grad_op(needs=["X"], shape_only=["X"]),
    makes_lod=True,
)


@sequence_unpad.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return {"Out": [joined(host(values["Length"]))]}


@sequence_unpad.kernel
def _(xp: Any, x: Any, length: Any) -> Any:
    """The first `Length` rows of each padded sequence, one after the other."""
    lengths, width = host(length), x.shape[1]
    if len(lengths) and not 0 <= lengths.min() <= lengths.max() <= width:
        raise ValueError(
            f"sequence_unpad: lengths {lengths.tolist()} are not all in [0, {width}]"
        )
    tail = x.shape[2:] or (1,)
    rows = xp.asarray(_cells(lengths, width))
    return x.reshape(-1, *tail).take(rows, axis=0)


@sequence_unpad.grad_kernel
def _(xp: Any, x: Any, d_out: Any, *, lod: Any) -> Any:
    name, slot = "sequence_unpad_grad", "Out" + GRAD
    lengths = lengths_of(sole_level(name, slot, lod.get(slot), len(d_out)))
    tail = x.shape[2:] or (1,)
    d_x = xp.zeros((x.shape[0] * x.shape[1], *tail), d_out.dtype)
    d_x[xp.asarray(_cells(lengths, x.shape[1]))] = d_out
    return d_x.reshape(x.shape)


# --- mask ---------------------------------------------------------------------


def _infer_mask(op: InferContext) -> None:
    width = op.attr("maxlen")
    width = width if width > 0 and not op.has("MaxLenTensor") else -1
    op.set("Y", (*op.shape("X"), width), VarType(op.attr("out_dtype")))


sequence_mask = op(
    "sequence_mask",
    ins=[In("X"), In("MaxLenTensor", dispensable=True)],
    outs=[Out("Y")],
    attrs=[Attr("maxlen", int, -1), Attr("out_dtype", int)],
    infer=_infer_mask,
    grad=None,
    lod=None,
)


@sequence_mask.kernel
def _(xp: Any, x: Any, given: Any, *, maxlen: int, out_dtype: int) -> Any:
    """Y (..., maxlen): 1 in the first `x` places, else 0."""
    if given is not None:
        maxlen = int(given.reshape(-1)[0])
        if maxlen <= 0:
            raise ValueError(f"sequence_mask: MaxLenTensor must be > 0, got {maxlen}")
    elif maxlen < 0:
        maxlen = int(x.max()) if x.size else 0
    inside = xp.arange(maxlen) < x.reshape(*x.shape, 1)
    return inside.astype(to_numpy(out_dtype))


# --- lod_reset ----------------------------------------------------------------


def _infer_reset(op: InferContext) -> None:
    x = op.input("X")
    if op.has("Y"):  # append does not count here, as in the reference
        level = max(1, op.input("Y").lod_level)
    else:
        op.check(len(op.attr("target_lod")) > 0, "needs Y or target_lod")
        level = 1 + (x.lod_level if op.attr("append") else 0)
    op.set("Out", x.shape, x.dtype, level)


lod_reset = op(
    "lod_reset",
    ins=[In("X"), In("Y", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("target_lod", AttrType.INTS, []),
        Attr("append", bool, False),
    ],
    infer=_infer_reset,
    grad=grad_op(needs=["X"], shape_only=["X"], view=True),
    view=True,
    makes_lod=True,
)


def _new_levels(lod: Any, y: Any, target: Any) -> Any:
    """The levels of Y; else the one that Y's elements, or the attribute, are."""
    if y is not None and lod.get("Y"):
        return lod["Y"]
    level = target if y is None else host(y).reshape(-1).tolist()
    if len(level) < 2 or level[0] != 0 or (np.diff(level) < 0).any():
        raise ValueError(
            f"lod_reset: offsets must ascend from 0 and be two at least, got {level}"
        )
    return [list(level)]


@lod_reset.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    levels = _new_levels(lod, values.get("Y"), attrs["target_lod"])
    if attrs["append"] and lod.get("X") and not lod.get("Y"):
        levels = [*lod["X"], *levels]
    return {"Out": levels}


@lod_reset.kernel
def _(xp: Any, x: Any, y: Any, *, target_lod: Any, lod: Any) -> Any:
    """X itself; its sequences are those of Y, or the ones that are told."""
    levels = _new_levels(lod, y, target_lod)
    innermost("lod_reset", "X", levels, len(x))
    return x


@lod_reset.grad_kernel
def _(xp: Any, d_out: Any, x: Any) -> Any:
    return d_out
