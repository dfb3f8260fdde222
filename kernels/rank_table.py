"""Sequences cut into steps: rank tables, and what ``DynamicRNN`` does with them.

A rank table (``LOD_RANK_TABLE``) ranks the sequences of one level, the longest first.
Step t of a tensor holds element t of all sequences that have one, in that order; so
each step is a head of the one before. An element is a row or, where the ranked level
has others below it, a sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import GradContext, OpSpec, grad_op
from .infer import InferContext
from .lod import chosen_sequences, joined, lengths_of
from .packed import Packed
from .registry import op
from .schema import Attr, In, Out
from .tensor_array import TensorArray

__all__ = ["RankTable"]


class RankTable(tuple[tuple[int, int], ...]):
    """Pairs (number of a sequence, its length), the longest first.

    coarse: the levels above the one that is ranked.

    >>> RankTable.of([[0, 1, 4]])
    ((1, 3), (0, 1))
    """

    coarse: list[list[int]]

    def __new__(
        cls, items: Iterable[tuple[int, int]], coarse: Sequence[Any] = ()
    ) -> RankTable:
        made = super().__new__(cls, items)
        made.coarse = [list(level) for level in coarse]
        return made

    @classmethod
    def of(cls, levels: Sequence[Any], level: int = 0) -> RankTable:
        """The table of a LoD's sequences of this level."""
        lengths = lengths_of(np.asarray(levels[level]))
        order = np.argsort(-lengths, kind="stable")
        pairs = zip(order.tolist(), lengths[order].tolist())
        return cls(pairs, levels[:level])

    def lengths(self) -> Any:
        """The lengths of the sequences in their own order."""
        made = np.zeros(len(self), "i8")
        for number, length in self:
            made[number] = length
        return made

    def longer_than(self, step: int) -> int:
        """How many sequences have this step."""
        return sum(length > step for _, length in self)


_TABLE = In("RankTable", no_grad=True)


def _check_table(op: InferContext) -> None:
    table = op.input("RankTable")
    op.check(
        table.kind == VarType.LOD_RANK_TABLE,
        f"RankTable must be a rank table, it is {table.kind}",
    )


def _index(name: str, i: Any) -> int:
    if i.size != 1:
        raise ValueError(f"{name}: I must have one element, its shape is {i.shape}")
    return int(i.reshape(-1)[0])


# --- the table -----------------------------------------------------------------------


def _infer_table(op: InferContext) -> None:
    op.check(op.attr("level") >= 0, f"level is {op.attr('level')}")
    op.set("Out", kind=VarType.LOD_RANK_TABLE)


lod_rank_table = op(
    "lod_rank_table",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("level", int, 0)],
    infer=_infer_table,
    grad=None,
    lod=None,
)


@lod_rank_table.kernel
def _(xp: Any, x: Any, *, level: int, lod: Mapping[str, Any]) -> RankTable:
    """The `RankTable` of X's sequences of this level; without LoD its rows."""
    levels = lod.get("X")
    if not levels:
        return RankTable((i, 1) for i in range(len(x)))
    if level >= len(levels):
        raise ValueError(
            f"lod_rank_table: X has {len(levels)} levels of sequences, level is {level}"
        )
    return RankTable.of(levels, level)


def _infer_longest(op: InferContext) -> None:
    _check_table(op)
    op.set("Out", (1,), VarType.INT64)


max_sequence_len = op(
    "max_sequence_len",
    ins=[In("RankTable")],
    outs=[Out("Out")],
    infer=_infer_longest,
    grad=None,
    lod=None,
)


@max_sequence_len.kernel
def _(xp: Any, table: RankTable) -> Any:
    return xp.array([table[0][1] if table else 0], dtype="int64")


# --- sequences and steps -------------------------------------------------------------


def _infer_steps(op: InferContext) -> None:
    _check_table(op)
    x = op.input("X")
    kind, level = VarType.LOD_TENSOR_ARRAY, max(x.lod_level - 1, 0)
    op.set("Out", like=replace(x, kind=kind, lod_level=level))


def _infer_whole(op: InferContext) -> None:
    _check_table(op)
    x = op.input("X")
    kind, level = VarType.LOD_TENSOR, x.lod_level + 1
    op.set("Out", like=replace(x, kind=kind, lod_level=level))


def _back_by(type: str) -> Any:
    def rule(op: GradContext) -> Sequence[OpSpec]:
        inputs = {"X": op.output_grad("Out"), "RankTable": op.input("RankTable")}
        return [OpSpec(type, inputs, {"Out": op.input_grad("X")}, {})]

    return rule


lod_tensor_to_array = op(
    "lod_tensor_to_array",
    ins=[In("X"), _TABLE],
    outs=[Out("Out")],
    infer=_infer_steps,
    grad=_back_by("array_to_lod_tensor"),
    lod=None,
)


@lod_tensor_to_array.kernel
def _(xp: Any, x: Any, table: RankTable, *, lod: Mapping[str, Any]) -> TensorArray:
    """An array of X's steps."""
    levels = lod.get("X") or [list(range(len(x) + 1))]
    depth = len(table.coarse)
    offsets = np.asarray(levels[depth]) if depth < len(levels) else np.zeros(1, "i8")
    lengths = lengths_of(offsets)
    if not np.array_equal(lengths, table.lengths()):
        raise ValueError(
            f"lod_tensor_to_array: X has sequences of lengths {lengths.tolist()}, "
            f"RankTable ranks {table.lengths().tolist()}"
        )
    packed, below = Packed(offsets[:-1], lengths), levels[depth + 1 :]
    if not below:
        rows = x.take(xp.asarray(packed.order), axis=0)
        return TensorArray(rows[step] for step in packed.steps)
    made = TensorArray()
    for t, step in enumerate(packed.steps):
        found, chosen = chosen_sequences(below, packed.order[step])
        made.append(x.take(xp.asarray(chosen), axis=0))
        made.lods[t] = found
    return made


@lod_tensor_to_array.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """The elements' LoD goes with the array."""
    return {}


array_to_lod_tensor = op(
    "array_to_lod_tensor",
    ins=[In("X"), _TABLE],
    outs=[Out("Out")],
    infer=_infer_whole,
    grad=_back_by("lod_tensor_to_array"),
    lod=None,
    makes_lod=True,
)


def _whole(xp: Any, steps: Any, table: RankTable) -> tuple[Any, Any]:
    """Where the rows of the whole tensor are among those of all steps, and its LoD."""
    lengths = table.lengths()
    offsets = joined(lengths)
    packed = Packed(np.array(offsets[:-1]), lengths)
    place = np.empty(len(packed.order), "i8")
    place[packed.order] = np.arange(len(place))
    lods = (
        [steps.of(t) for t in range(len(packed.steps))]
        if steps.__class__ is (TensorArray)
        else []
    )
    levels = [*table.coarse, offsets]
    if not lods or any(not found for found in lods):
        return place, levels
    parts = zip(*lods)
    below = [joined(np.concatenate([np.diff(p) for p in level])) for level in parts]
    found, place = chosen_sequences(below, place)
    return place, [*levels, *found]


@array_to_lod_tensor.kernel
def _(xp: Any, steps: Any, table: RankTable) -> Any:
    """The sequences whose steps these are, in the order that they had."""
    longest = table[0][1] if table else 0
    found = list(steps or ())[:longest]
    if not found or len(found) < longest or any(x is None for x in found):
        raise ValueError(
            f"array_to_lod_tensor: X has {sum(x is not None for x in found)} elements, "
            f"the longest sequence of RankTable {longest} steps"
        )
    place, levels = _whole(xp, steps, table)
    rows = xp.concatenate(found, axis=0)
    if len(rows) != len(place):
        raise ValueError(
            f"array_to_lod_tensor: the elements of X have {len(rows)} rows, the "
            f"sequences of RankTable {len(place)}"
        )
    return rows.take(xp.asarray(place), axis=0)


@array_to_lod_tensor.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return {"Out": _whole(np, values["X"], values["RankTable"])[1]}


# --- the head of a state -------------------------------------------------------------


def _infer_head(op: InferContext) -> None:
    _check_table(op)
    op.set("Out", like=op.input("X"))


shrink_rnn_memory = op(
    "shrink_rnn_memory",
    ins=[In("X"), _TABLE, In("I", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_head,
    grad=grad_op(needs=["X"], shape_only=["X"], of=["Out"], to=["X"]),
    shares=True,
)


def _head(levels: Any, count: int) -> tuple[list[list[int]], int]:
    """The LoD of the first sequences, and how many rows they hold."""
    made = []
    for level in levels or ():
        made.append(list(level[: count + 1]))
        count = made[-1][-1]
    return made, count


@shrink_rnn_memory.kernel
def _(xp: Any, x: Any, table: RankTable, i: Any, *, lod: Mapping[str, Any]) -> Any:
    """The rows (or sequences) of X that belong to sequences with a step I.

    X is in the order of the table.
    """
    count = table.longer_than(_index("shrink_rnn_memory", i))
    return x[: _head(lod.get("X"), count)[1]]


@shrink_rnn_memory.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    if not lod.get("X"):
        return {}
    count = values["RankTable"].longer_than(_index("shrink_rnn_memory", values["I"]))
    return {"Out": _head(lod["X"], count)[0]}


@shrink_rnn_memory.grad_kernel
def _(xp: Any, x: Any, d_out: Any) -> Any:
    """Zeros behind the head."""
    made = xp.zeros_like(x)
    if d_out is not None:
        made[: len(d_out)] = d_out
    return made
