"""chunk_eval: precision, recall and F1 of the chunks that a tagger found.

A label is ``type * tags + tag``; the one after the last type means "outside". The rules
of where a chunk begins and ends are those of the CoNLL-2000 shared task's evaluation
(Tjong Kim Sang and Buchholz, 2000), over the tags B, I, E and S.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType
from .infer import InferContext
from .lod import joined, sole_level
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__ = ["chunk_eval"]

# the tags of each scheme, in the order of their numbers; None: no tag at all
_SCHEMES = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": " "}


def _infer(op: InferContext) -> None:
    found, true = op.shape("Inference"), op.shape("Label")
    op.check(
        len(found) == len(true)
        and all(a == b or -1 in (a, b) for a, b in zip(found, true)),
        f"Inference {found} and Label {true} differ in shape",
    )
    for slot in ("Inference", "Label"):
        kind = op.input(slot).dtype
        op.check(kind is VarType.INT64, f"{slot} must be int64, got {kind}")
    for slot in ("Precision", "Recall", "F1-Score"):
        op.set(slot, (1,), VarType.FP32)
    for slot in ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"):
        op.set(slot, (1,), VarType.INT64)


chunk_eval = op(
    "chunk_eval",
    ins=[In("Inference"), In("Label"), In("SeqLength", dispensable=True)],
    outs=[
        Out("Precision"),
        Out("Recall"),
        Out("F1-Score"),
        Out("NumInferChunks"),
        Out("NumLabelChunks"),
        Out("NumCorrectChunks"),
    ],
    attrs=[
        Attr("num_chunk_types", int),
        Attr("chunk_scheme", str, "IOB"),
        Attr("excluded_chunk_types", AttrType.INTS, []),
    ],
    infer=_infer,
    grad=None,
    lod=None,
)


def _chunks(
    xp: Any, labels: Any, fresh: Any, tags: str, types: int, excluded: list[int]
) -> tuple[Any, Any, Any]:
    """(starts, ends, types) of all chunks in order; ends are exclusive.

    labels: of all sequences, with one "outside" at the end. fresh: where a sequence
    starts. A chunk ends where the next begins, or a sequence, type or stretch ends.
    """
    kind, tag = labels // len(tags), labels % len(tags)
    before = xp.empty_like(labels)
    before[0], before[1:] = types * len(tags), labels[:-1]
    before[fresh] = types * len(tags)
    kind_before, tag_before = before // len(tags), before % len(tags)
    number = {t: tags.find(t) for t in "BIES"}
    anew = (tag == number["B"]) | (tag == number["S"])
    over = (tag_before == number["E"]) | (tag_before == number["S"])
    cut = fresh | (kind != kind_before) | anew | over
    outside = types
    starts = xp.flatnonzero(cut & (kind != outside))
    # what runs up to a cut is a chunk if it is not outside; `before` of a first
    # row says nothing of the row above it
    above = xp.empty_like(kind)
    above[0], above[1:] = outside, kind[:-1]
    ends = xp.flatnonzero(cut & (above != outside))
    kinds = kind[starts]
    if excluded:
        kept = ~xp.isin(kinds, xp.asarray(excluded))
        starts, ends, kinds = starts[kept], ends[kept], kinds[kept]
    return starts, ends, kinds


def _check_labels(labels: Any, slot: str, outside: int) -> None:
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) <= outside:
        raise ValueError(
            f"chunk_eval: {slot} must hold labels from 0 to {outside}, got "
            f"{int(labels.min())} to {int(labels.max())}"
        )


def _ragged(xp: Any, values: Any, lengths: Any) -> Any:
    """The first `lengths` labels of each row of a padded batch, one after another."""
    padded = values.reshape(len(lengths), -1)
    if len(lengths) and int(lengths.max()) > padded.shape[1]:
        raise ValueError(
            f"chunk_eval: SeqLength {int(lengths.max())} is more than the "
            f"{padded.shape[1]} steps of the batch"
        )
    return padded[xp.arange(padded.shape[1]) < lengths.reshape(-1, 1)]


@chunk_eval.kernel
def _(
    xp: Any,
    found: Any,
    true: Any,
    length: Any,
    *,
    num_chunk_types: int,
    chunk_scheme: str,
    excluded_chunk_types: list[int],
    lod: Any,
) -> Any:
    """Counts the chunks of both, and those that agree in type, start and end."""
    tags = _SCHEMES.get(chunk_scheme)
    if tags is None:
        raise ValueError(
            f"chunk_eval: chunk_scheme must be one of {', '.join(_SCHEMES)}, got "
            f"{chunk_scheme!r}"
        )
    if length is None:
        starts = sole_level("chunk_eval", "Label", lod.get("Label"), len(true))
        found, true = found.reshape(-1), true.reshape(-1)
        if len(found) != len(true):
            raise ValueError(
                f"chunk_eval: {len(found)} labels in Inference, {len(true)} in Label"
            )
    else:
        sizes = length.reshape(-1)
        found, true = _ragged(xp, found, sizes), _ragged(xp, true, sizes)
        starts = np.asarray(joined(sizes.tolist()))
    outside = num_chunk_types * len(tags)
    fresh = xp.zeros(len(true) + 1, bool)
    fresh[xp.asarray(starts)] = True
    made = []
    for slot, labels in (("Inference", found), ("Label", true)):
        _check_labels(labels, slot, outside)
        ended = xp.append(labels, xp.full(1, outside, labels.dtype))
        made.append(
            _chunks(xp, ended, fresh, tags, num_chunk_types, excluded_chunk_types)
        )
    return _scores(xp, *made)


def _scores(xp: Any, found: Any, true: Any) -> Any:
    many, wanted = len(found[0]), len(true[0])
    size = int(max([s[1][-1] for s in (found, true) if len(s[1])] or [0])) + 1
    # each start stands once, so a table of ends and types settles what agrees
    ends, kinds = xp.zeros(size, "i8"), xp.zeros(size, "i8")
    ends[true[0]], kinds[true[0]] = true[1], true[2]
    same = (ends[found[0]] == found[1]) & (kinds[found[0]] == found[2])
    right = int(same.sum())
    precision = right / many if many else 0.0
    recall = right / wanted if wanted else 0.0
    both = 2 * precision * recall / (precision + recall) if right else 0.0
    scores = (xp.full(1, s, "f4") for s in (precision, recall, both))
    return (*scores, *(xp.full(1, c, "i8") for c in (many, wanted, right)))
