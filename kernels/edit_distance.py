"""`edit_distance`: how many edits turn one sequence of ids into another.

Levenshtein (1966): insertions, deletions and substitutions, each of cost 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType
from .infer import InferContext
from .lod import host, lengths_of, ranges, sole_level
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer(op: InferContext) -> None:
    hyps, refs = op.input("Hyps"), op.input("Refs")
    op.check(
        op.has("HypsLength") == op.has("RefsLength"),
        "needs both lengths, or none where the LoD tells them",
    )
    for slot, meta in (("Hyps", hyps), ("Refs", refs)):
        if op.has("HypsLength"):
            op.check(len(meta.shape) == 2, f"{slot} has shape {meta.shape}, not (n, t)")
        else:
            op.check(
                len(meta.shape) == 2 and meta.shape[1] in (1, -1),
                f"{slot} has shape {meta.shape}, not (ids, 1) with LoD",
            )
    # float32 when running; the reference declares it as an id, with Hyps' shape
    op.set("Out", hyps.shape, hyps.dtype)
    op.set("SequenceNum", (1,), VarType.INT64)


edit_distance = op(
    "edit_distance",
    ins=[
        In("Hyps"),
        In("Refs"),
        In("HypsLength", dispensable=True),
        In("RefsLength", dispensable=True),
    ],
    outs=[Out("SequenceNum"), Out("Out")],
    attrs=[Attr("normalized", bool, False)],
    infer=_infer,
    grad=None,
    lod=None,
)


def _padded(
    xp: Any, slot: str, ids: Any, given: Any, levels: Any, filler: int
) -> tuple[Any, Any]:
    """Ids (sequences, longest), `filler` behind their ends, and their lengths."""
    if given is not None:
        lengths = host(given).reshape(-1).astype("i8")
        if len(lengths) != len(ids) or (
            len(lengths) and not 0 <= lengths.min() <= lengths.max() <= ids.shape[1]
        ):
            raise ValueError(
                f"edit_distance: {slot}Length is {lengths.tolist()}, {slot} has shape "
                f"{tuple(ids.shape)}"
            )
        beyond = xp.arange(ids.shape[1]) >= xp.asarray(lengths).reshape(-1, 1)
        return xp.where(beyond, filler, ids), lengths
    if len(ids) == 1 and levels and levels[-1][-1] == 0:
        ids = ids[:0]  # ctc_align's way to say that nothing is left
    offsets = sole_level("edit_distance", slot, levels, len(ids))
    lengths = lengths_of(offsets)
    width = int(lengths.max(initial=0))
    made = xp.full(len(lengths) * width, filler, ids.dtype)
    places = ranges(np.arange(len(lengths)) * width, lengths)
    made[xp.asarray(places)] = ids.reshape(-1)
    return made.reshape(len(lengths), width), lengths


def _distances(xp: Any, hyps: Any, refs: Any, m: Any, n: Any) -> Any:
    """The distance of each pair of rows, of lengths m and n.

    Diagonal k holds at i the distance of the first i ids of one to the first k - i of
    the other: it needs only the two diagonals before, for all pairs at once.
    """
    count, height = hyps.shape
    width = refs.shape[1]
    backwards = refs[:, ::-1]
    found = xp.zeros(count, "i8")
    before = last = xp.zeros((count, 1), "i8")  # from i = max(0, k - width) on
    first_last = first_before = 0
    for k in range(1, height + width + 1):
        first, end = max(0, k - width), min(k, height)
        low, high = max(first, 1), min(end, k - 1)  # without the borders i = 0, j = 0
        now = xp.full((count, end - first + 1), k, "i8")
        if low <= high:
            above = last[:, low - 1 - first_last : high - first_last]
            beside = last[:, low - first_last : high + 1 - first_last]
            corner = before[:, low - 1 - first_before : high - first_before]
            at = width - k + low
            same = hyps[:, low - 1 : high] == backwards[:, at : at + high - low + 1]
            best = xp.minimum(above, beside) + 1
            cheap = corner + 1 - same.astype("i8")
            now[:, low - first : high + 1 - first] = xp.minimum(best, cheap)
        done = np.flatnonzero(m + n == k)
        if len(done):
            rows = xp.asarray(done)
            found[rows] = now[rows, xp.asarray(m[done] - first)]
        before, first_before = last, first_last
        last, first_last = now, first
    return found


@edit_distance.kernel
def _(
    xp: Any,
    hyps: Any,
    refs: Any,
    hyps_length: Any,
    refs_length: Any,
    *,
    normalized: bool,
    lod: Any,
) -> Any:
    """SequenceNum (1,) int64; Out (sequences, 1) float32.

    normalized: divided by the length of the reference, which must not be empty.
    """
    hyps, m = _padded(xp, "Hyps", hyps, hyps_length, lod.get("Hyps"), -1)
    refs, n = _padded(xp, "Refs", refs, refs_length, lod.get("Refs"), -2)
    if len(m) != len(n):
        raise ValueError(f"edit_distance: {len(m)} sequences in Hyps, {len(n)} in Refs")
    out = _distances(xp, hyps, refs, m, n).astype("f4")
    if normalized:
        if len(n) and n.min() == 0:
            empty = int(np.flatnonzero(n == 0)[0])
            raise ValueError(
                f"edit_distance: sequence {empty} of Refs is empty, so its distance "
                "cannot be normalized"
            )
        out /= xp.asarray(n.astype("f4"))
    return xp.asarray(np.array([len(n)], "i8")), out.reshape(-1, 1)
