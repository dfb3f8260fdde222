"""`detection_map`: mean average precision of detected boxes, over batches.

The measure of the PASCAL VOC challenge (Everingham et al., 2010): the detections of a
class, best score first, hit a labelled box of their image or miss; their precision is
averaged over recall, and that over the classes. A box is hit once: whatever else
overlaps it best is a miss.

Like the reference, the detections' boxes are cut to the image [0, 1] and the labels'
are not; in float32 a recall of 7 of 10 is below 0.7 and does not reach it; and
`background_label` leaves out the classes that have *so many* labelled boxes (0, its
default: those that have none), not the class of that number.

All of it runs on the host, as in the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType, is_floating
from .infer import InferContext
from .lod import host, innermost, joined, lengths_of, owners, ranges, sole_level
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

_STATES = ("PosCount", "TruePos", "FalsePos")
_LEVELS = np.arange(11) / 10


def _infer(op: InferContext) -> None:
    found, true = op.shape("DetectRes"), op.shape("Label")
    op.check(
        len(found) == 2 and found[1] == 6,
        f"DetectRes has shape {found}, expected (n, 6): class, score and box",
    )
    op.check(
        len(true) == 2 and true[1] in (5, 6),
        f"Label has shape {true}, expected (n, 6) or (n, 5): class, difficult or "
        "not, and box",
    )
    kind = op.input("DetectRes").dtype
    op.check(is_floating(kind), f"DetectRes must hold floats, got {kind}")
    same = op.input("Label").dtype
    op.check(same == kind, f"DetectRes is {kind}, but Label is {same}")
    missing = [s for s in _STATES if not op.has(s)]
    op.check(
        not op.has("PosCount") or not missing,
        f"PosCount needs {' and '.join(missing)} beside it",
    )
    op.check(
        op.attr("ap_type") in ("integral", "11point"),
        f"ap_type must be integral or 11point, got {op.attr('ap_type')!r}",
    )
    many = op.attr("class_num")
    op.check(many > 0, f"class_num must be positive, got {many}")
    op.set("AccumPosCount", (), VarType.INT32)
    for slot in ("AccumTruePos", "AccumFalsePos"):
        op.set(slot, (), kind)
    op.set("MAP", (1,), kind)


detection_map = op(
    "detection_map",
    ins=[
        In("DetectRes"),
        In("Label"),
        In("HasState", dispensable=True),
        *(In(s, dispensable=True) for s in _STATES),
    ],
    outs=[
        Out("AccumPosCount"),
        Out("AccumTruePos"),
        Out("AccumFalsePos"),
        Out("MAP"),
    ],
    attrs=[
        Attr("class_num", int),
        Attr("background_label", int, 0),
        Attr("overlap_threshold", float, 0.5),
        Attr("evaluate_difficult", bool, True),
        Attr("ap_type", str, "integral"),
    ],
    infer=_infer,
    grad=None,
    makes_lod=True,
    unset=_STATES,
)


def _classes(rows: Any) -> Any:
    """The class of each row; what is no number belongs to none."""
    with np.errstate(invalid="ignore"):
        return rows[:, 0].astype("i8")


def _difficult(true: Any) -> Any:
    if true.shape[1] == 5:
        return np.zeros(len(true), bool)
    return ~(np.abs(true[:, 1]) < 1e-6)


def _overlaps(found: Any, true: Any) -> Any:
    """Intersection over union of boxes (xmin, ymin, xmax, ymax), row by row."""
    sides = np.minimum(found[:, 2:], true[:, 2:]) - np.maximum(
        found[:, :2], true[:, :2]
    )
    apart = (true[:, :2] > found[:, 2:]) | (true[:, 2:] < found[:, :2])
    shared = sides[:, 0] * sides[:, 1]
    sizes = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (found, true)]
    made = shared / (sizes[0] + sizes[1] - shared)
    made[apart.any(1)] = 0
    return np.where(np.isnan(made), -1, made)


def _hit_by(found: Any, true: Any, images: Any, starts: Any, threshold: float) -> Any:
    """For each detection the row of the label that it overlaps best; -1: too little.

    images: of each detection. starts: of the images' labels.
    """
    many = lengths_of(starts)[images]
    left = np.repeat(np.arange(len(found)), many)
    right = ranges(starts[images], many)
    same = _classes(found)[left] == _classes(true)[right]
    left, right = left[same], right[same]
    made = np.full(len(found), -1)
    if not len(left):
        return made
    with np.errstate(all="ignore"):
        overlap = _overlaps(np.clip(found[left, 2:], 0, 1), true[right, -4:])
    first = np.flatnonzero(np.diff(left, prepend=-1))
    best = np.maximum.reduceat(overlap, first)
    top = np.flatnonzero(overlap == np.repeat(best, np.diff(first, append=len(left))))
    top = top[np.diff(left[top], prepend=-1) > 0]  # the first among equals
    top = top[overlap[top] > threshold]
    made[left[top]] = right[top]
    return made


def _judged(found: Any, true: Any, lod: Any, attrs: Any) -> tuple[Any, Any, Any]:
    """(classes, scores, hit or not) of the detections, image by image, best first.

    Those that hit a difficult label do not count unless evaluate_difficult.
    """
    name = "detection_map"
    ends = sole_level(name, "DetectRes", lod.get("DetectRes"), len(found))
    starts = sole_level(name, "Label", lod.get("Label"), len(true))
    if len(ends) != len(starts):
        raise ValueError(
            f"{name}: DetectRes has {len(ends) - 1} images, Label {len(starts) - 1}"
        )
    images = owners(lengths_of(ends))
    order = np.lexsort((-found[:, 1], images))
    found, images = found[order], images[order]
    label = _hit_by(found, true, images, starts, attrs["overlap_threshold"])
    which, first = np.unique(label, return_index=True)
    hit = np.zeros(len(found), bool)
    hit[first[which >= 0]] = True
    kinds, scores = _classes(found), found[:, 1]
    if not attrs["evaluate_difficult"] and len(true):
        counts = ~((label >= 0) & _difficult(true)[label])
        return kinds[counts], scores[counts], hit[counts]
    return kinds, scores, hit


def _goes_on(has_state: Any) -> bool:
    return has_state is not None and bool(host(has_state).any())


def _joined(slot: str, rows: Any, lod: Any, class_num: int, new: Any) -> Any:
    """(classes, rows (score, flag)) of the batches before and of this one."""
    if rows is None:
        raise ValueError(f"detection_map: HasState is set, but {slot} has no value")
    rows = host(rows).copy()
    rows[:, 1] = np.trunc(rows[:, 1])
    offsets = innermost("detection_map", slot, lod.get(slot), len(rows))
    kinds = owners(lengths_of(offsets))
    known = kinds < class_num
    return np.append(kinds[known], new[0]), np.append(rows[known], new[1], axis=0)


def _ranked(kinds: Any, rows: Any) -> tuple[Any, Any]:
    """Classes in order, and for each row how many flags its class has up to there."""
    order = np.lexsort((-rows[:, 0], kinds))
    kinds, flags = kinds[order], rows[order, 1]
    sums = np.cumsum(flags)
    first = np.flatnonzero(np.diff(kinds, prepend=-1))
    lengths = np.diff(first, append=len(kinds))
    return kinds, sums - np.repeat(sums[first] - flags[first], lengths)


def _precisions(positives: Any, hits: Any, misses: Any, ap_type: str) -> Any:
    """The average precision of each class.

    positives: how many labels each has. hits, misses: (classes, rows (score, flag)).
    """
    made = np.zeros(len(positives), "f8")
    kinds, right = _ranked(*hits)
    others, wrong = _ranked(*misses)
    if not np.array_equal(kinds, others):
        raise ValueError("detection_map: TruePos and FalsePos differ in their LoD")
    if not len(kinds):
        return made
    with np.errstate(all="ignore"):
        precision = np.nan_to_num(right / (right + wrong))
        recall = right / np.maximum(positives, 1).astype(right.dtype)[kinds]
    first = np.flatnonzero(np.diff(kinds, prepend=-1))
    if ap_type == "integral":
        steps = np.diff(right, prepend=0)
        steps[first] = right[first]
        areas = np.add.reduceat(precision * steps, first)
        made[kinds[first]] = areas / np.maximum(positives[kinds[first]], 1)
        return made
    reached = np.where(recall[:, None] >= _LEVELS, precision[:, None], 0)
    made[kinds[first]] = np.maximum.reduceat(reached, first, axis=0).sum(1) / 11
    return made


def _only(ids: Any, side: tuple[Any, Any]) -> tuple[Any, Any]:
    """Entries of the classes `ids` (in order), with places in it as classes."""
    kinds, rows = side
    places = np.searchsorted(ids, kinds)
    known = places < len(ids)
    known[known] = ids[places[known]] == kinds[known]
    return places[known], rows[known]


def _labels(labelled: Any, before: Any, class_num: int) -> tuple[Any, Any]:
    """Classes in order, and how many labels each has.

    labelled: the classes of this batch's labels. before: how many there were of each
    class; None: no batch was before this one, and only its own classes count.
    """
    every = np.arange(0 if before is None else class_num)
    ids, counts = np.unique(np.append(labelled, every), return_counts=True)
    if before is not None:
        places = np.searchsorted(ids, every)
        counts[places] -= 1
        counts[places[: len(before)]] += before
    return ids, counts


@detection_map.kernel
def _(
    xp: Any,
    found: Any,
    true: Any,
    has_state: Any,
    pos_count: Any,
    true_pos: Any,
    false_pos: Any,
    *,
    class_num: int,
    background_label: int,
    overlap_threshold: float,
    evaluate_difficult: bool,
    ap_type: str,
    lod: Any,
) -> Any:
    """AccumPosCount (class_num, 1) int32: labels of each class. AccumTruePos,
    AccumFalsePos (n, 2), a sequence for each class: score, and 1 for a hit (a miss).
    MAP (1,). PosCount, TruePos and FalsePos are these of the batches before; they
    count if HasState is not 0.
    """
    found, true = host(found), host(true)
    attrs = {
        "overlap_threshold": overlap_threshold,
        "evaluate_difficult": evaluate_difficult,
    }
    kinds, scores, hit = _judged(found, true, lod, attrs)
    hits, misses = (
        (kinds, np.stack([scores, flags.astype(found.dtype)], 1))
        for flags in (hit, ~hit)
    )
    labelled = _classes(true)
    if not evaluate_difficult:
        labelled = labelled[~_difficult(true)]
    goes_on = pos_count is not None and _goes_on(has_state)
    before = None
    if goes_on:
        before = host(pos_count).reshape(-1)[:class_num]
        hits = _joined("TruePos", true_pos, lod, class_num, hits)
        misses = _joined("FalsePos", false_pos, lod, class_num, misses)
    ids, positives = _labels(labelled, before, class_num)
    average = _precisions(positives, _only(ids, hits), _only(ids, misses), ap_type)
    average = average[positives != background_label]
    total = np.zeros((class_num, 1), "i4")
    known = (ids >= 0) & (ids < class_num)
    total[ids[known], 0] = positives[known]
    mean = np.array([average.mean() if len(average) else 0], found.dtype)
    states = (_by_class(*side, class_num) for side in (hits, misses))
    return tuple(map(xp.asarray, (total, *states, mean)))


def _by_class(kinds: Any, rows: Any, class_num: int) -> Any:
    order = np.argsort(kinds, kind="stable")
    kinds = kinds[order]
    return rows[order[(kinds >= 0) & (kinds < class_num)]]


@detection_map.lod_kernel
def _(lod: Any, values: Any, attrs: Any) -> dict[str, Any]:
    """AccumTruePos and AccumFalsePos: a sequence for each class."""
    found, true = host(values["DetectRes"]), host(values["Label"])
    many = attrs["class_num"]
    if attrs["evaluate_difficult"] or true.shape[1] == 5:
        kinds = _classes(found)
    else:
        kinds = _judged(found, true, lod, attrs)[0]
    lengths = np.bincount(kinds[(kinds >= 0) & (kinds < many)], minlength=many)
    # TruePos may have its new value by now, its LoD is still that of before
    before = lod.get("TruePos")
    if before and _goes_on(values.get("HasState")):
        past = lengths_of(np.asarray(before[-1]))[:many]
        lengths[: len(past)] += past
    levels = [joined(lengths)]
    return {"AccumTruePos": levels, "AccumFalsePos": levels}
