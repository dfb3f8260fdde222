"""Ops around servers, beside those that send, receive and update.

``ref_by_trainer_id`` chooses the copy of a parameter that one trainer has, for the
delay compensation of DC-ASGD (Zheng et al., 2017). ``checkpoint_notify`` asks servers
to save their slices of a table. ``split_ids`` deals ids out to parts by remainder, and
``merge_ids`` puts the rows that came back in order again. Mirrors the operators of
these names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .infer import InferContext, no_outputs
from .registry import op
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows
from .sharding import to_host

__all__: list[str] = []


def _infer_reference(op: InferContext) -> None:
    x = op.inputs("X")[0]
    op.set("Out", x.shape, like=x)


ref_by_trainer_id = op(
    "ref_by_trainer_id",
    ins=[In("X", duplicable=True), In("TrainerId")],
    outs=[Out("Out")],
    infer=_infer_reference,
    grad=None,
    lod=None,
)


@ref_by_trainer_id.kernel
def _(xp: Any, x: list[Any], trainer_id: Any) -> Any:
    number = int(to_host(trainer_id).reshape(-1)[0])
    if not 0 <= number < len(x):
        raise ValueError(f"ref_by_trainer_id: no trainer {number} among {len(x)}")
    return x[number].copy()


checkpoint_notify = op(
    "checkpoint_notify",
    ins=[],
    outs=[],
    attrs=[
        Attr("dir", str),
        Attr("epmap", AttrType.STRINGS, ["127.0.0.1:6164"]),
        Attr("lookup_table", str),
        Attr("trainer_id", int, 0),
    ],
    infer=no_outputs,
    grad=None,
    effect=True,
    lod=None,
)


@checkpoint_notify.kernel
def _(
    xp: Any,
    *,
    ctx: Any,
    dir: str,
    epmap: list[str],
    lookup_table: str,
    trainer_id: int,
) -> None:
    ctx.rpc.checkpoint(epmap, dir, lookup_table, trainer_id)


split_ids = op(
    "split_ids",
    ins=[In("Ids", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    infer=no_outputs,
    grad=None,
    lod=None,
)


@split_ids.kernel
def _(xp: Any, ids: list[Any], *, counts: dict[str, int]) -> list[Any]:
    """Each id once, in ascending order, in the part that its remainder names."""
    parts = counts["Out"]
    if isinstance(ids[0], SelectedRows):
        if len(ids) != 1:
            raise ValueError("split_ids: only one SelectedRows can be split at a time")
        return [_dealt(ids[0], parts, part) for part in range(parts)]
    every = xp.unique(xp.concatenate([i.reshape(-1) for i in ids]))
    return [every[every % parts == part].reshape(-1, 1) for part in range(parts)]


def _dealt(x: SelectedRows, parts: int, part: int) -> SelectedRows:
    """The rows of this remainder; they keep their numbers."""
    inside = x.rows % parts == part
    return SelectedRows(x.rows[inside], x.value[inside], x.height)


merge_ids = op(
    "merge_ids",
    ins=[In(name, duplicable=True) for name in ("Ids", "Rows", "X")],
    outs=[Out("Out", duplicable=True)],
    infer=no_outputs,
    grad=None,
    lod=None,
)


@merge_ids.kernel
def _(xp: Any, ids: list[Any], rows: list[Any], x: list[Any]) -> list[Any]:
    """For each of Ids the value of X beside it in Rows; the last one counts."""
    numbers = np.concatenate([to_host(r).reshape(-1) for r in rows])
    values = xp.concatenate([v.reshape(v.shape[0], -1) for v in x])
    if len(values) != len(numbers):
        raise ValueError(f"merge_ids: {len(values)} values for {len(numbers)} rows")
    order = np.argsort(numbers, kind="stable")
    outs = []
    for each in ids:
        wanted = to_host(each).reshape(-1)
        place = np.searchsorted(numbers[order], wanted, "right") - 1
        missing = (place < 0) | (numbers[order[place]] != wanted)
        if missing.any():
            raise ValueError(f"merge_ids: no row for id {wanted[missing][0]}")
        outs.append(values[xp.asarray(order[place])])
    return outs
