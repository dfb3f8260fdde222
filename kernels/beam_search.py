"""Beam search: `beam_search` (one step), `beam_search_decode` and `gather_tree`.

LoD of ids and scores has two levels: for each source its prefixes, for each prefix
the candidates that it goes on with. These ops run on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .dtypes import VarType
from .infer import InferContext
from .lod import host, joined, lengths_of, owners
from .registry import op
from .schema import Attr, In, Out
from .tensor_array import TensorArray

__all__: list[str] = []

Levels = list[list[int]]


# --- one step ------------------------------------------------------------------------


def _infer_step(op: InferContext) -> None:
    ids, scores = op.input("pre_ids"), op.input("pre_scores")
    op.check(op.attr("beam_size") > 0, f"beam_size is {op.attr('beam_size')}")
    op.check(
        len(op.shape("scores")) == 2,
        f"scores must be (prefixes, candidates), got {op.shape('scores')}",
    )
    op.set("selected_ids", ids.shape, ids.dtype)
    op.set("selected_scores", ids.shape, scores.dtype)
    op.set("parent_idx", ids.shape[:1], VarType.INT32)


beam_search = op(
    "beam_search",
    ins=[
        In("pre_ids"),
        In("pre_scores"),
        In("ids", dispensable=True),
        In("scores"),
    ],
    outs=[
        Out("selected_ids"),
        Out("selected_scores"),
        Out("parent_idx", dispensable=True),
    ],
    attrs=[
        Attr("level", int),
        Attr("beam_size", int),
        Attr("end_id", int),
        Attr("is_accumulated", bool, True),
    ],
    infer=_infer_step,
    grad=None,
    lod=None,
)


def _sources(levels: Any, level: int, rows: int) -> list[int]:
    """The prefixes of each source, as offsets."""
    if not levels or level >= len(levels):
        raise ValueError(
            f"beam_search: scores needs a LoD with a level {level}, it has "
            f"{len(levels or ())} levels"
        )
    offsets = np.asarray(levels[level])
    for below in levels[level + 1 :]:
        offsets = np.asarray(below)[offsets]
    if offsets[-1] != rows:
        raise ValueError(
            f"beam_search: the LoD of scores ends at {offsets[-1]}, scores has {rows} "
            "rows"
        )
    return offsets.tolist()  # type: ignore[no-any-return]


def _best(scores: Any, rows: Any, size: int) -> Any:
    """The `size` best of a source's candidates, the best first.

    Of equal ones the later row's counts more. Where more of one row are equal than
    there is room for, the last one that comes takes the last place, as in the
    reference.
    """
    order = np.lexsort((-rows, -scores))
    if len(order) <= size:
        return order
    last, next = order[size - 1], order[size]
    if scores[last] == scores[next] and rows[last] == rows[next]:
        return _best_of_equals(scores, rows, size)
    return order[:size]


def _best_of_equals(scores: Any, rows: Any, size: int) -> Any:
    found: list[int] = []
    keys = list(zip(scores.tolist(), rows.tolist()))
    for i, key in enumerate(keys):
        if len(found) == size:
            if key < keys[found[-1]]:
                continue
            found.pop()
        place = len(found)
        while place and keys[found[place - 1]] < key:
            place -= 1
        found.insert(place, i)
    return np.array(found, "i8")


def _select(values: Mapping[str, Any], levels: Any, attrs: Mapping[str, Any]) -> Any:
    """Selected ids, scores and rows, and their LoD."""
    given = {s: host(values[s]) for s in ("pre_ids", "pre_scores", "scores")}
    pre_ids, before = given["pre_ids"].reshape(-1), given["pre_scores"].reshape(-1)
    scores, end = given["scores"], attrs["end_id"]
    ids = values.get("ids")
    count, width = scores.shape
    if len(pre_ids) != count or len(before) != count:
        raise ValueError(
            f"beam_search: scores has {count} rows, pre_ids {len(pre_ids)}, pre_scores "
            f"{len(before)}"
        )
    columns = np.broadcast_to(np.arange(width), scores.shape)
    ids = columns if ids is None else host(ids).reshape(count, width)
    if not attrs["is_accumulated"]:
        scores = before[:, None] + np.log(scores)
    ended = pre_ids == end
    # a prefix that has ended goes on with its end only, at its own score
    goes_on = ~ended[:, None] | (columns == 0)
    ids = np.where(ended[:, None], end, ids)
    scores = np.where(ended[:, None], before[:, None], scores)
    offsets = _sources(levels, attrs["level"], count)
    chosen = []
    for start, stop in zip(offsets, offsets[1:]):
        rows, cols = np.nonzero(goes_on[start:stop])
        rows += start
        best = _best(scores[rows, cols], rows, attrs["beam_size"])
        rows, cols = rows[best], cols[best]
        if np.all(ended[rows]):
            continue  # the source is done
        by_row = np.argsort(rows, kind="stable")
        chosen.append((rows[by_row], cols[by_row]))
    none = np.zeros(0, "i8")
    rows = np.concatenate([none, *(r for r, _ in chosen)])
    cols = np.concatenate([none, *(c for _, c in chosen)])
    lod = [offsets, joined(np.bincount(rows, minlength=count)[:count])]
    return ids[rows, cols], scores[rows, cols], rows, lod


@beam_search.kernel
def _(
    xp: Any,
    pre_ids: Any,
    pre_scores: Any,
    ids: Any,
    scores: Any,
    *,
    level: int,
    beam_size: int,
    end_id: int,
    is_accumulated: bool,
    lod: Mapping[str, Any],
) -> tuple[Any, Any, Any]:
    """The best `beam_size` candidates of each source, by prefix.

    A source of which only prefixes that have ended are left selects nothing more.
    """
    values = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids}
    values["scores"] = scores
    attrs = {
        "level": level,
        "beam_size": beam_size,
        "end_id": end_id,
        "is_accumulated": is_accumulated,
    }
    found, best, rows, _ = _select(values, lod.get("scores"), attrs)
    return (
        xp.asarray(found.astype(pre_ids.dtype).reshape(-1, 1)),
        xp.asarray(best.astype(pre_scores.dtype).reshape(-1, 1)),
        xp.asarray(rows.astype("i4")),
    )


@beam_search.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    levels = _select(values, lod.get("scores"), attrs)[3]
    return {"selected_ids": levels, "selected_scores": levels}


# --- all steps -----------------------------------------------------------------------


def _infer_decode(op: InferContext) -> None:
    ids, scores = op.input("Ids"), op.input("Scores")
    for slot, meta in (("Ids", ids), ("Scores", scores)):
        op.check(
            meta.kind == VarType.LOD_TENSOR_ARRAY,
            f"{slot} must be an array of tensors, it is {meta.kind}",
        )
    op.set("SentenceIds", (-1,), ids.dtype, 2)
    op.set("SentenceScores", (-1,), scores.dtype, 2)


beam_search_decode = op(
    "beam_search_decode",
    ins=[In("Ids"), In("Scores")],
    outs=[Out("SentenceIds"), Out("SentenceScores")],
    attrs=[Attr("beam_size", int), Attr("end_id", int)],
    infer=_infer_decode,
    grad=None,
    lod=None,
    makes_lod=True,
)


def _steps(values: Mapping[str, Any]) -> list[tuple[Any, Any, Levels]]:
    """Ids, scores and LoD of each step, the last one first."""
    ids, scores = values["Ids"] or (), values["Scores"] or ()
    if len(ids) != len(scores) or not len(ids):
        raise ValueError(
            f"beam_search_decode: {len(ids)} steps in Ids, {len(scores)} in Scores"
        )
    found = []
    for t, (a, b) in enumerate(zip(ids, scores)):
        levels = ids.of(t) if isinstance(ids, TensorArray) else None
        if a is None or b is None or not levels or len(levels) != 2:
            raise ValueError(
                f"beam_search_decode: step {t} of Ids must have two levels of LoD"
            )
        found.append((host(a).reshape(-1), host(b).reshape(-1), levels))
    return found[::-1]


def _backtrack(steps: list[tuple[Any, Any, Levels]]) -> tuple[Any, Any]:
    """The source of each hypothesis, and per step, the last one first, its item.

    -1: it has none, its source had ended before. A source's hypotheses are what it
    selected in the last step in which it selected anything.
    """
    sources = len(steps[0][2][0]) - 1
    source, item = np.zeros(0, "i8"), np.zeros(0, "i8")
    path: list[Any] = []
    for _, _, levels in steps:
        prefixes, items = (np.asarray(level) for level in levels)
        owner = owners(lengths_of(items))  # the prefix of each item
        of_prefix = owners(lengths_of(prefixes))
        missing = np.ones(sources, bool)
        missing[source] = False
        fresh = np.flatnonzero(missing[of_prefix[owner]])
        source = np.concatenate([source, of_prefix[owner[fresh]]])
        item = np.concatenate([item, fresh])
        path.append(item)
        item = owner[item]  # the item of the step before that it goes on from
    full = [np.concatenate([p, np.full(len(source) - len(p), -1)]) for p in path]
    return source, np.array(full, "i8").reshape(len(steps), len(source))


def _at(values: Any, places: Any) -> Any:
    """The values at these places; anything where there is none (-1)."""
    return values[places] if len(values) else np.zeros(len(places), values.dtype)


def _sentences(values: Mapping[str, Any], end: int) -> tuple[Any, Any, Levels]:
    """Ids and scores of all hypotheses, and their LoD: the best of a source first."""
    steps = _steps(values)
    source, path = _backtrack(steps)
    there = path >= 0
    ids, scores = (
        np.array([_at(s[k], p) for s, p in zip(steps, path)]) for k in (0, 1)
    )
    ids, scores = ids.reshape(path.shape), scores.reshape(path.shape)
    final = there & (np.cumsum(there, axis=0) == 1)
    kept = there & (final | (ids != end))
    order = np.lexsort((-scores.T[final.T], source))
    kept, ids, scores = (x[::-1, order].T for x in (kept, ids, scores))
    sources = len(steps[0][2][0]) - 1
    hypotheses = joined(np.bincount(source, minlength=sources))
    return ids[kept], scores[kept], [hypotheses, joined(kept.sum(axis=1))]


@beam_search_decode.kernel
def _(
    xp: Any, ids: Any, scores: Any, *, beam_size: int, end_id: int
) -> tuple[Any, Any]:
    """All hypotheses by source: what was selected last, and the way there.

    An end that follows an end is left out.
    """
    values = {"Ids": ids, "Scores": scores}
    made, best, levels = _sentences(values, end_id)
    most = max(np.diff(levels[0]), default=0)
    if most > beam_size:
        raise ValueError(
            f"beam_search_decode: a source has {most} hypotheses, beam_size is "
            f"{beam_size}"
        )
    return xp.asarray(made), xp.asarray(best)


@beam_search_decode.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    levels = _sentences(values, attrs["end_id"])[2]
    return {"SentenceIds": levels, "SentenceScores": levels}


# --- padded --------------------------------------------------------------------------


def _infer_tree(op: InferContext) -> None:
    ids, parents = op.shape("Ids"), op.shape("Parents")
    op.check(len(ids) == 3, f"Ids must be (time, batch, beam), got {ids}")
    op.check(
        len(parents) == 3 and all(a == b or -1 in (a, b) for a, b in zip(ids, parents)),
        f"Ids has shape {ids}, Parents {parents}",
    )
    op.set("Out", like=op.input("Ids"))


gather_tree = op(
    "gather_tree",
    ins=[In("Ids"), In("Parents")],
    outs=[Out("Out")],
    infer=_infer_tree,
    grad=None,
)


@gather_tree.kernel
def _(xp: Any, ids: Any, parents: Any) -> Any:
    """Whole beams: at each time the id that the last one of the beam came by.

    parents: for each beam its number in the step before.
    """
    if len(parents) and parents.size:
        low, high = int(parents.min()), int(parents.max())
        if low < 0 or high >= ids.shape[2]:
            raise ValueError(
                f"gather_tree: Parents holds {low} to {high}, there are "
                f"{ids.shape[2]} beams"
            )
    made = xp.empty_like(ids)
    batch = xp.arange(ids.shape[1]).reshape(-1, 1)
    beam = xp.arange(ids.shape[2]).reshape(1, -1)
    for t in reversed(range(len(ids))):
        made[t] = ids[t][batch, beam]
        beam = parents[t][batch, beam]
    return made
