"""Metrics computed inside a program: accuracy, auc."""

from __future__ import annotations

from typing import Any

from .dtypes import VarType
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

# --- accuracy -----------------------------------------------------------------


def _infer_accuracy(op: InferContext) -> None:
    indices, label = op.shape("Indices"), op.shape("Label")
    op.check(
        len(indices) == 2 and len(label) == 2,
        f"Indices {indices} and Label {label} are not (n, k) and (n, 1)",
    )
    op.check(
        -1 in (indices[0], label[0]) or indices[0] == label[0],
        f"Indices has {indices[0]} rows, Label {label[0]}",
    )
    op.set("Accuracy", (1,), VarType.FP32)
    op.set("Correct", (1,), VarType.INT32)
    op.set("Total", (1,), VarType.INT32)


accuracy = op(
    "accuracy",
    ins=[In("Out"), In("Indices"), In("Label")],
    outs=[Out("Accuracy"), Out("Correct"), Out("Total")],
    infer=_infer_accuracy,
    grad=None,
    lod=None,
)


@accuracy.kernel
def _(xp: Any, out: Any, indices: Any, label: Any) -> Any:
    """The share of rows whose label is among their indices, as float32 (1,)."""
    hits = indices == label
    if indices.shape[1] > 1:
        hits = hits.any(axis=1)
    total = len(label)
    correct = hits.sum(dtype="i4").reshape(1)
    share = correct / max(total, 1)
    return share.astype("f4"), correct, xp.full(1, total, "i4")


# --- auc ----------------------------------------------------------------------


def _infer_auc(op: InferContext) -> None:
    predict, label = op.shape("Predict"), op.shape("Label")
    op.check(
        len(predict) == 2 and predict[1] in (1, 2, -1),
        f"Predict has shape {predict}, not (n, 2): auc is for two classes",
    )
    op.check(
        -1 in (predict[0], label[0]) or predict[0] == label[0],
        f"Predict has {predict[0]} rows, Label {label[0]}",
    )
    bins, steps = op.attr("num_thresholds") + 1, op.attr("slide_steps")
    shape = ((1 + steps) * bins + 1,) if steps else (1, bins)
    op.set("AUC", (1,), VarType.FP64)
    op.set("StatPosOut", shape, VarType.INT64)
    op.set("StatNegOut", shape, VarType.INT64)


auc = op(
    "auc",
    ins=[In("Predict"), In("Label"), In("StatPos"), In("StatNeg")],
    outs=[Out("AUC"), Out("StatPosOut"), Out("StatNegOut")],
    attrs=[
        Attr("curve", str, "ROC"),
        Attr("num_thresholds", int, (1 << 12) * 2 - 1),
        Attr("slide_steps", int, 1),
    ],
    infer=_infer_auc,
    grad=None,
    lod=None,
    inplace={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"},
)


def _slide(state: Any, batch: Any, steps: int, turn: int) -> Any:
    """Put a batch's counts into the window; the counts of the whole window.

    state: `steps` slots of counts, then their sum, then the number of batches.
    """
    bins = batch.size
    slot = state[turn * bins : (turn + 1) * bins]
    total = state[steps * bins : (steps + 1) * bins]
    total += batch
    total -= slot
    slot[...] = batch
    state[-1] += 1
    return total


@auc.kernel
def _(
    xp: Any,
    predict: Any,
    label: Any,
    pos: Any,
    neg: Any,
    *,
    num_thresholds: int,
    slide_steps: int,
) -> Any:
    """Area under the curve over the last `slide_steps` batches (0: over all).

    ``curve`` makes no difference, as in the reference.
    """
    chance = predict[:, -1]
    if chance.size and not (chance.min() >= 0 and chance.max() <= 1):
        raise ValueError(
            f"auc: Predict must lie in [0, 1], came {float(chance.min())} to "
            f"{float(chance.max())}"
        )
    place = (chance * num_thresholds).astype("i8")
    positive = label.reshape(-1) != 0
    bins = num_thresholds + 1
    hits = xp.bincount(place[positive], minlength=bins)
    misses = xp.bincount(place[~positive], minlength=bins)
    flat_pos, flat_neg = pos.reshape(-1), neg.reshape(-1)
    if slide_steps:
        turn = int(flat_pos[-1]) % slide_steps
        all_pos = _slide(flat_pos, hits, slide_steps, turn)
        all_neg = _slide(flat_neg, misses, slide_steps, turn)
    else:  # the layer's counts of one batch have an element more
        all_pos, all_neg = flat_pos[:bins], flat_neg[:bins]
        all_pos += hits
        all_neg += misses
    return _area(xp, all_pos, all_neg), pos, neg


def _area(xp: Any, pos: Any, neg: Any) -> Any:
    """The trapezoids under the curve, from the highest threshold down."""
    above = xp.cumsum(pos[::-1]).astype("f8")
    width = neg[::-1].astype("f8")
    height = above - pos[::-1] * 0.5
    scale = above[-1] * width.sum()
    area = (width * height).sum().reshape(1)
    return area / scale if scale > 0 else xp.zeros(1)
