"""mean_iou: how well two segmentations overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dtypes import VarType
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__ = ["mean_iou"]


def _infer(op: InferContext) -> None:
    guess, truth = op.shape("Predictions"), op.shape("Labels")
    op.check(
        len(guess) == len(truth)
        and all(a == b or -1 in (a, b) for a, b in zip(guess, truth)),
        f"Predictions {guess} and Labels {truth} differ in shape",
    )
    classes = op.attr("num_classes")
    op.check(classes > 0, f"num_classes must be positive, got {classes}")
    op.set("OutMeanIou", (1,), VarType.FP32)
    op.set("OutWrong", (classes,), VarType.INT32)
    op.set("OutCorrect", (classes,), VarType.INT32)


mean_iou = op(
    "mean_iou",
    ins=[
        In("Predictions"),
        In("Labels"),
        In("InWrongs", duplicable=True, dispensable=True),
        In("InCorrects", duplicable=True, dispensable=True),
        In("InMeanIou", duplicable=True, dispensable=True),
    ],
    outs=[Out("OutMeanIou"), Out("OutWrong"), Out("OutCorrect")],
    attrs=[Attr("num_classes", int)],
    infer=_infer,
    grad=None,
    lod=None,
)


@mean_iou.kernel
def _(
    xp: Any,
    guess: Any,
    truth: Any,
    wrongs: Sequence[Any] | None,
    corrects: Sequence[Any] | None,
    means: Sequence[Any] | None,
    *,
    num_classes: int,
) -> Any:
    """Per class, right / (right + wrong), averaged over the classes that occur; an
    error counts as wrong for both classes. Earlier counts and means are added."""
    guess, truth = guess.reshape(-1), truth.reshape(-1)
    same = guess == truth
    right = xp.bincount(guess[same], minlength=num_classes)
    missed = ~same
    wrong = xp.bincount(guess[missed], minlength=num_classes)
    wrong += xp.bincount(truth[missed], minlength=num_classes)
    right, wrong = right.astype("int32"), wrong.astype("int32")
    for more in wrongs or ():
        wrong += more
    for more in corrects or ():
        right += more
    all_of = right + wrong
    ratio = right / xp.maximum(all_of, 1)
    seen = (all_of > 0).sum()
    mean = xp.where(seen > 0, ratio.sum() / xp.maximum(seen, 1), xp.nan)
    for more in means or ():
        mean = mean + more.reshape(())
    return mean.astype("float32").reshape(1), wrong, right
