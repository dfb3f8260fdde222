"""Ids: the distinct ones of a list (unique), and those of one shard (shard_index)."""

from __future__ import annotations

from typing import Any

from .dtypes import VarType, to_numpy
from .infer import InferContext
from .registry import OpDef, op
from .rows import check_ids
from .schema import Attr, In, Out

__all__: list[str] = []


def _unique(name: str, *more: str) -> OpDef:
    """The distinct elements in the order in which they first appear.

    The sizes of the outputs depend on the data.
    """

    def infer(op: InferContext) -> None:
        x, kind = op.input("X"), VarType(op.attr("dtype"))
        op.check(len(x.shape) == 1, f"X has shape {x.shape}, not (n,)")
        op.set("Out", (-1,), x.dtype)
        op.set("Index", x.shape, kind)
        for slot in more:
            op.set(slot, (-1,), kind)

    made = op(
        name,
        ins=[In("X", no_grad=True)],
        outs=[Out("Out"), Out("Index"), *(Out(slot) for slot in more)],
        attrs=[Attr("dtype", int)],
        infer=infer,
        grad=None,
        lod=None,
    )

    @made.kernel
    def _(xp: Any, x: Any, *, dtype: int) -> Any:
        kind = to_numpy(dtype)
        found, first, inverse, counts = xp.unique(x, True, True, True, equal_nan=False)
        order = xp.argsort(first)
        rank = xp.empty(order.shape, kind)
        rank[order] = xp.arange(len(order), dtype=kind)
        index = rank[inverse.reshape(-1)]
        if not more:
            return found[order], index
        return found[order], index, counts[order].astype(kind)

    return made


unique = _unique("unique")
unique_with_counts = _unique("unique_with_counts", "Count")


def _infer_shard_index(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (..., 1)")
    op.check(x.shape[-1] in (1, -1), f"X has shape {x.shape}, not (..., 1)")
    total, shards, mine = (op.attr(k) for k in ("index_num", "nshards", "shard_id"))
    op.check(total > 0, f"index_num is {total}, not positive")
    op.check(shards > 0, f"nshards is {shards}, not positive")
    op.check(0 <= mine < shards, f"shard_id {mine} is not in [0, {shards})")
    op.set("Out", like=x)


shard_index = op(
    "shard_index",
    ins=[In("X", no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("ignore_value", int, -1),
        Attr("index_num", int),
        Attr("nshards", int),
        Attr("shard_id", int),
    ],
    infer=_infer_shard_index,
    grad=None,
)


@shard_index.kernel
def _(
    xp: Any, x: Any, *, index_num: int, nshards: int, shard_id: int, ignore_value: int
) -> Any:
    """Places within one of nshards equal ranges of ids; others are ignore_value."""
    check_ids("shard_index", "index", x, index_num)
    size = -(-index_num // nshards)
    return xp.where(x // size == shard_id, x % size, x.dtype.type(ignore_value))
