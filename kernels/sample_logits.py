"""`sample_logits`: the logits of the true classes and of a few drawn ones.

Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation"
(2015): logits are corrected by the log of the chance that their class is drawn, so
that a softmax over few classes estimates the one over all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import GRAD, grad_op
from .infer import InferContext
from .registry import op
from .rows import add_rows, check_ids
from .schema import Attr, In, Out

__all__: list[str] = []

# what the logit of a drawn class loses that is a true one, as in the reference
_HIT = 1e20


def _infer(op: InferContext) -> None:
    logits, labels = op.input("Logits"), op.input("Labels")
    for slot, meta in (("Logits", logits), ("Labels", labels)):
        op.check(len(meta.shape) == 2, f"{slot} has shape {meta.shape}, not (n, k)")
    true, count = labels.shape[1], op.attr("num_samples")
    op.check(count > 0, f"num_samples must be positive, got {count}")
    if op.attr("use_customized_samples"):
        op.check(
            op.has("CustomizedSamples") and op.has("CustomizedProbabilities"),
            "use_customized_samples needs CustomizedSamples and "
            "CustomizedProbabilities",
        )
    else:
        classes = logits.shape[1]
        op.check(
            classes < 0 or count <= classes,
            f"num_samples is {count}, there are {classes} classes to draw from",
        )
    shape = (logits.shape[0], true + count)
    op.set("Samples", shape, VarType.INT64)
    op.set("Probabilities", shape, logits.dtype)
    op.set("SampledLogits", shape, logits.dtype)
    op.set("SampledLabels", (logits.shape[0], true), VarType.INT64)
    op.set("LogitsDim", (*logits.shape, 0), logits.dtype)
    op.set("LabelsDim", (*labels.shape, 0), labels.dtype)


def _infer_grad(op: InferContext) -> None:
    like = op.input("LogitsDim")
    op.set("Logits" + GRAD, like.shape[:-1], like.dtype)


sample_logits = op(
    "sample_logits",
    ins=[
        In("Logits"),
        In("Labels", no_grad=True),
        In("CustomizedSamples", dispensable=True, no_grad=True),
        In("CustomizedProbabilities", dispensable=True, no_grad=True),
    ],
    outs=[
        Out("Samples", intermediate=True),
        Out("Probabilities", intermediate=True),
        Out("LogitsDim", intermediate=True),
        Out("LabelsDim", intermediate=True),
        Out("SampledLogits", intermediate=True),
        Out("SampledLabels"),
    ],
    attrs=[
        Attr("use_customized_samples", bool, False),
        Attr("uniq", bool, True),
        Attr("remove_accidental_hits", bool, True),
        Attr("num_samples", int),
        Attr("seed", int, 0),
    ],
    infer=_infer,
    grad=grad_op(
        needs=["LogitsDim", "LabelsDim", "Samples"],
        shape_only=["LogitsDim", "LabelsDim"],
        of=["SampledLogits"],
    ),
    lod=None,
    random=True,
    shares=True,
)
sample_logits.grad_def.infer = _infer_grad


def _draw(generator: Any, count: int, classes: int) -> tuple[Any, int]:
    """Distinct classes in the order they came, and after how many draws.

    Class c comes with chance log((c + 2) / (c + 1)) / log(classes + 1); a class that
    was drawn before is drawn again. On the host: there are few of them.
    """
    seen: dict[int, None] = {}
    tries = 0
    while len(seen) < count:
        u = generator.random(count)
        drawn = np.exp(u * math.log(classes + 1)).astype("i8") - 1
        for c in np.minimum(drawn, classes - 1).tolist():
            tries += 1
            seen.setdefault(c)
            if len(seen) == count:
                break
    return np.fromiter(seen, "i8", count), tries


def _chances(xp: Any, samples: Any, classes: int, tries: int, dtype: Any) -> Any:
    """The chance that a class is among those of `tries` draws."""
    c = samples.astype("f8")
    once = xp.log((c + 2) / (c + 1)) / math.log(classes + 1)
    return (-xp.expm1(xp.log1p(-once) * tries)).astype(dtype)


def _drawn(xp: Any, ctx: Any, logits: Any, labels: Any, count: int, seed: int) -> Any:
    """Samples (n, true + count), the drawn ones the same in each row; their chances."""
    n, classes = logits.shape
    if count > classes:
        raise ValueError(
            f"sample_logits: num_samples is {count}, there are {classes} classes to "
            "draw from"
        )
    drawn, tries = _draw(ctx.host_generator(seed), count, classes)
    few = xp.zeros((n, count), "i8") + xp.asarray(drawn)
    samples = xp.concatenate([labels.astype("i8"), few], axis=1)
    return samples, _chances(xp, samples, classes, tries, logits.dtype)


@sample_logits.kernel
def _(
    xp: Any,
    logits: Any,
    labels: Any,
    samples: Any,
    chances: Any,
    *,
    ctx: Any,
    use_customized_samples: bool,
    remove_accidental_hits: bool,
    num_samples: int,
    seed: int,
) -> Any:
    """SampledLogits (n, true + num_samples): logit - log(chance), the true ones first.

    A drawn class that is a true one of its row loses 1e20 (remove_accidental_hits).
    SampledLabels: 0, 1, ... in each row. LogitsDim, LabelsDim: shapes without data.
    """
    true = labels.shape[1]
    if not use_customized_samples:
        samples, chances = _drawn(xp, ctx, logits, labels, num_samples, seed)
    wanted = (len(logits), true + num_samples)
    if samples.shape != wanted or chances.shape != wanted:
        raise ValueError(
            f"sample_logits: samples and probabilities must have shape {wanted}, came "
            f"{tuple(samples.shape)} and {tuple(chances.shape)}"
        )
    check_ids("sample_logits", "sample", samples.reshape(-1), logits.shape[1])
    picked = xp.take_along_axis(logits, samples, axis=1)
    if remove_accidental_hits:
        hit = (samples[:, true:, None] == samples[:, None, :true]).any(axis=2)
        picked[:, true:] -= (hit * _HIT).astype(picked.dtype)
    picked -= xp.log(chances)
    places = xp.zeros((len(logits), true), "i8") + xp.arange(true)
    shapes = [xp.zeros((*v.shape, 0), v.dtype) for v in (logits, labels)]
    return samples, chances, *shapes, picked, places


@sample_logits.grad_kernel
def _(xp: Any, like: Any, labels_like: Any, samples: Any, d: Any) -> Any:
    """Every sample's gradient added to its class."""
    n, classes = like.shape[:2]
    d_logits = xp.zeros(n * classes, d.dtype)
    places = samples + xp.arange(n).reshape(-1, 1) * classes
    add_rows(xp, d_logits, places.reshape(-1), d.reshape(-1))
    return d_logits.reshape(n, classes)
