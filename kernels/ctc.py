"""Connectionist temporal classification: `warpctc` (the loss) and `ctc_align`.

Graves, Fernandez, Gomez and Schmidhuber, 2006. A label with a blank before, between and
behind its ids has 2 L + 1 states; the probability of the label is the sum over all ways
through them. The forward and the backward recursion run as one: the backward one is the
forward one of the reversed sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .dtypes import VarType, is_floating
from .grad import grad_op
from .infer import InferContext
from .lod import host, joined, lengths_of, owners, ranges, sole_level
from .registry import op
from .rows import check_ids
from .schema import Attr, In, Out

__all__: list[str] = []

#: log of a probability of zero; sums of it stay finite
_NEVER = -1e290


def _infer(op: InferContext) -> None:
    logits, label = op.input("Logits"), op.input("Label")
    padded = op.has("LogitsLength")
    op.check(
        padded == op.has("LabelLength"), "needs both lengths, or LoD for both of them"
    )
    op.check(is_floating(logits.dtype), f"Logits must be floats, got {logits.dtype}")
    rank = 3 if padded else 2
    shape = "(time, batch, classes)" if padded else "(rows, classes) with LoD"
    op.check(len(logits.shape) == rank, f"Logits must be {shape}, got {logits.shape}")
    op.check(len(label.shape) == 2, f"Label must be a matrix, got {label.shape}")
    classes, blank = logits.shape[-1], op.attr("blank")
    op.check(
        blank >= 0 and (classes < 0 or blank < classes),
        f"blank is {blank}, there are {classes} classes",
    )
    op.set("WarpCTCGrad", (), logits.dtype)
    op.set("Loss", (-1, 1), logits.dtype)


warpctc = op(
    "warpctc",
    ins=[
        In("Logits"),
        In("Label", no_grad=True),
        In("LogitsLength", dispensable=True, no_grad=True),
        In("LabelLength", dispensable=True, no_grad=True),
    ],
    outs=[Out("WarpCTCGrad", intermediate=True), Out("Loss")],
    attrs=[Attr("blank", int, 0), Attr("norm_by_times", bool, False)],
    infer=_infer,
    grad=grad_op(
        needs=["Logits", "LogitsLength", "WarpCTCGrad"], shape_only=["Logits"]
    ),
    lod=None,
)


def _lengths(slot: str, given: Any, most: int) -> Any:
    lengths = host(given).reshape(-1).astype("i8")
    if len(lengths) and not 0 <= lengths.min() <= lengths.max() <= most:
        raise ValueError(
            f"warpctc: {slot} is {lengths.tolist()}, not all within [0, {most}]"
        )
    return lengths


def _places(offsets: Any) -> tuple[Any, Any]:
    """Rows of sequences as (longest, sequences), the first one behind their ends."""
    lengths = lengths_of(offsets)
    steps = np.arange(int(lengths.max(initial=0))).reshape(-1, 1)
    return np.where(steps < lengths, offsets[:-1] + steps, 0), lengths


def _padded(
    xp: Any, slot: str, x: Any, given: Any, lod: Mapping[str, Any]
) -> tuple[Any, Any]:
    """x as (time, sequences, ...), and the lengths."""
    if given is not None:
        return x, _lengths(f"{slot}Length", given, len(x))
    offsets = sole_level("warpctc", slot, lod.get(slot), len(x))
    places, lengths = _places(offsets)
    if not len(x):
        return xp.zeros((*places.shape, *x.shape[1:]), x.dtype), lengths
    return x.take(xp.asarray(places), axis=0), lengths


def _states(label: Any, lengths: Any, blank: int) -> tuple[Any, Any, Any]:
    """The ids of the states (batch, states), which exist, and which may be entered
    from the one before the last: those of an id unlike the one before it."""
    longest = int(lengths.max(initial=0))
    ids = np.full((len(lengths), 2 * longest + 1), blank, "i8")
    ids[:, 1::2] = label.T[:, :longest]
    there = np.arange(ids.shape[1]) < 2 * lengths[:, None] + 1
    ids[~there] = blank
    skips = np.zeros_like(there)
    skips[:, 2:] = (ids[:, 2:] != blank) & (ids[:, 2:] != ids[:, :-2])
    return ids, there, skips


def _forward(xp: Any, rated: Any, skips: Any) -> Any:
    """log of the probability to be in a state at a time, by any way.

    rated: log probabilities of the states' ids (time, sequences, states).
    """
    made = xp.empty_like(rated)
    closed = xp.where(skips, 0.0, _NEVER)
    now = xp.full(rated.shape[1:], _NEVER)
    now[:, :2] = rated[0][:, :2]
    made[0] = now
    for t in range(1, len(rated)):
        best = now.copy()
        best[:, 1:] = xp.logaddexp(now[:, 1:], now[:, :-1])
        best[:, 2:] = xp.logaddexp(best[:, 2:], now[:, :-2] + closed[:, 2:])
        now = best + rated[t]
        made[t] = now
    return made


def _mirror(lengths: Any, longest: int) -> Any:
    """(sequences, longest): each place counted from the end, 0 behind it."""
    return np.maximum(lengths[:, None] - 1 - np.arange(longest), 0)


def _ways(xp: Any, rated: Any, skips: Any, times: Any, states: Any) -> Any:
    """log p of each label (sequences,), and log of what each state at each time has
    of it (time, sequences, states)."""
    longest, count, width = rated.shape
    each = xp.arange(count)
    t, s = xp.asarray(_mirror(times, longest).T), xp.asarray(_mirror(states, width))
    ahead = rated[t[:, :, None], each[:, None], s]
    ahead = xp.where(xp.asarray(np.arange(width) < states[:, None]), ahead, _NEVER)
    mirrored = xp.zeros_like(skips)
    # a way may skip from a state on if it may skip to it from the other side
    mirrored[:, 2:] = skips[each[:, None], xp.minimum(s[:, :-2], width - 1)]
    both = _forward(
        xp,
        xp.concatenate([rated, ahead], axis=1),
        xp.concatenate([skips, mirrored]),
    )
    past, rest = both[:, :count], both[:, count:]
    rest = rest[t[:, :, None], each[:, None], s]
    last, end = xp.asarray(np.maximum(times - 1, 0)), xp.asarray(states - 1)
    total = past[last, each, end]
    inner = past[last, each, xp.maximum(end - 1, 0)]
    total = xp.where(end > 0, xp.logaddexp(total, inner), total)
    shares = past + rest - rated - total[:, None]
    never = xp.minimum(past, rest) < _NEVER / 2
    return total, xp.where(never, 0.0, xp.exp(xp.minimum(shares, 0.0)))


@warpctc.kernel
def _(
    xp: Any,
    logits: Any,
    label: Any,
    logits_length: Any,
    label_length: Any,
    *,
    blank: int,
    lod: Mapping[str, Any],
) -> tuple[Any, Any]:
    """Loss: -log p of each label; 0 where it does not fit into the sequence.

    WarpCTCGrad: the loss's gradient, padded.
    """
    x, times = _padded(xp, "Logits", logits, logits_length, lod)
    if label_length is not None:
        label = label.T
    check_ids("warpctc", "id of Label", label, logits.shape[-1])
    ids, ids_count = _padded(xp, "Label", host(label), label_length, lod)
    if len(times) != len(ids_count) or x.shape[1] != len(times):
        raise ValueError(
            f"warpctc: {x.shape[1]} sequences in Logits, {len(ids_count)} labels"
        )
    ids = ids[:, :, 0] if ids.ndim == 3 else ids
    if not x.size:
        return xp.zeros_like(x), xp.zeros((len(times), 1), x.dtype)
    shown, there, skips = _states(ids, ids_count, blank)
    x = x - x.max(axis=2, keepdims=True)
    shares = xp.exp(x)
    norm = shares.sum(axis=2, keepdims=True)
    shares /= norm
    x -= xp.log(norm)
    each, shown = xp.arange(len(times)), xp.asarray(shown)
    rated = x[:, each[:, None], shown].astype("f8")
    rated = xp.where(xp.asarray(there), xp.maximum(rated, _NEVER), _NEVER)
    states = 2 * ids_count + 1
    total, ways = _ways(xp, rated, xp.asarray(skips), times, states)
    fits = ~(total < _NEVER / 2) & xp.asarray(times > 0)  # NaN fits: it is to be seen
    inside = xp.asarray(np.arange(len(x))[:, None] < times) & fits
    places = xp.arange(len(x) * len(times)).reshape(len(x), -1, 1) * x.shape[2]
    expected = xp.bincount(
        (places + shown).reshape(-1), ways.reshape(-1), minlength=x.size
    )
    shares -= expected.reshape(x.shape).astype(x.dtype)
    shares = xp.where(inside[:, :, None], shares, x.dtype.type(0))
    loss = xp.where(fits, -total, 0.0).astype(x.dtype)
    return shares, loss.reshape(-1, 1)


@warpctc.grad_kernel
def _(
    xp: Any,
    logits: Any,
    logits_length: Any,
    slope: Any,
    d_loss: Any,
    *,
    norm_by_times: bool,
    lod: Mapping[str, Any],
) -> Any:
    """norm_by_times: divided by the sequence's length (the loss itself is not)."""
    d_loss = d_loss.reshape(-1, 1)
    if logits_length is not None:
        offsets, times = None, host(logits_length).reshape(-1)
    else:
        offsets = sole_level("warpctc", "Logits", lod.get("Logits"), len(logits))
        times = lengths_of(offsets)
    if norm_by_times:
        d_loss = d_loss / xp.asarray(np.maximum(times, 1).astype(d_loss.dtype))[:, None]
    made = slope * d_loss
    if offsets is None:
        return made
    steps = ranges(np.zeros(len(times), "i8"), times)
    return made[xp.asarray(steps), xp.asarray(owners(times))]


# --- the label of a path -------------------------------------------------------------


def _infer_align(op: InferContext) -> None:
    x = op.input("Input")
    op.check(
        x.dtype in (VarType.INT32, VarType.INT64),
        f"Input must hold ids, got {x.dtype.name}",
    )
    op.check(len(x.shape) == 2, f"Input must be a matrix, got shape {x.shape}")
    op.set("Output", x.shape, x.dtype)
    op.set("OutputLength", (x.shape[0], 1), x.dtype)


ctc_align = op(
    "ctc_align",
    ins=[In("Input"), In("InputLength", dispensable=True)],
    outs=[Out("Output"), Out("OutputLength", dispensable=True)],
    attrs=[
        Attr("blank", int, 0),
        Attr("merge_repeated", bool, True),
        Attr("padding_value", int, 0),
    ],
    infer=_infer_align,
    grad=None,
)


def _kept(x: Any, first: Any, attrs: Mapping[str, Any]) -> Any:
    """Which ids stay: no blanks, and none that repeats the one before.

    first: where a path begins.
    """
    kept = x != attrs["blank"]
    if attrs["merge_repeated"]:
        kept[..., 1:] &= (x[..., 1:] != x[..., :-1]) | first[..., 1:]
    return kept


def _kept_rows(x: Any, levels: Any, attrs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Which rows stay, and the LoD of what is left."""
    offsets = sole_level("ctc_align", "Input", levels, len(x))
    first = np.zeros(len(x) + 1, bool)
    first[offsets] = True
    kept = _kept(host(x).reshape(-1), first[:-1], attrs)
    counts = np.bincount(owners(lengths_of(offsets))[kept], minlength=len(offsets) - 1)
    return kept, [joined(counts)]


@ctc_align.kernel
def _(
    xp: Any,
    x: Any,
    length: Any,
    *,
    blank: int,
    merge_repeated: bool,
    padding_value: int,
    lod: Mapping[str, Any],
) -> tuple[Any, Any]:
    """The ids of each path without blanks, repeated ones merged.

    With LoD, a single -1 if nothing is left of any. Padded: the ids of a row come
    first, padding_value behind them.
    """
    attrs = {"blank": blank, "merge_repeated": merge_repeated}
    if length is None:
        kept, _ = _kept_rows(x, lod.get("Input"), attrs)
        left = x[xp.asarray(kept)]
        return (left if len(left) else xp.full((1, 1), -1, x.dtype)), None
    kept = _kept(x, xp.zeros(x.shape, bool), attrs)
    kept &= xp.arange(x.shape[1]) < length.reshape(-1, 1)
    order = xp.argsort(~kept, axis=1, kind="stable")
    counts = kept.sum(axis=1).reshape(-1, 1)
    moved = xp.take_along_axis(x, order, axis=1)
    padded = xp.where(xp.arange(x.shape[1]) < counts, moved, padding_value)
    return padded.astype(x.dtype), counts.astype(x.dtype)


@ctc_align.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    if "InputLength" in values or not lod.get("Input"):
        return {}
    return {"Output": _kept_rows(values["Input"], lod["Input"], attrs)[1]}
