"""Compile-time inference: shape, dtype, LoD level and kind of an op's outputs.

Unknown sizes are -1. An inference rule is a function of one `InferContext`; the
helpers at the end build the common ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .dtypes import VarType

__all__ = [
    "Meta",
    "InferContext",
    "InferError",
    "InferRule",
    "same_as",
    "broadcast_shape",
    "known_product",
    "no_outputs",
]

Shape = tuple[int, ...]


class InferError(ValueError):
    """An op's inputs or attributes cannot go together."""


@dataclass(frozen=True)
class Meta:
    """What is known of a variable before anything runs.

    shape: sizes, -1 where unknown. dtype: element type. lod_level: nested
    sequence levels. kind: LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY, ...
    """

    shape: Shape = ()
    dtype: VarType = VarType.FP32
    lod_level: int = 0
    kind: VarType = VarType.LOD_TENSOR


@dataclass
class InferContext:
    """One op as its inference rule sees it: metas in, metas out."""

    op_type: str
    ins: Mapping[str, Sequence[Meta]]
    attrs: Mapping[str, Any]
    out_counts: Mapping[str, int]
    outs: dict[str, list[Meta]] = field(default_factory=dict)

    def has(self, slot: str) -> bool:
        """Whether an input slot holds a variable."""
        return bool(self.ins.get(slot))

    def input(self, slot: str) -> Meta:
        """The first variable of a slot."""
        metas = self.ins.get(slot)
        if not metas:
            self.fail(f"needs input {slot}")
        return metas[0]  # type: ignore[index]

    def inputs(self, slot: str) -> Sequence[Meta]:
        """All variables of a slot."""
        return self.ins.get(slot, ())

    def shape(self, slot: str) -> Shape:
        return self.input(slot).shape

    def attr(self, name: str) -> Any:
        return self.attrs[name]

    def wants(self, slot: str) -> bool:
        """Whether the op has a variable for this output."""
        return bool(self.out_counts.get(slot))

    def set(
        self,
        slot: str,
        shape: Sequence[int] | None = None,
        dtype: VarType | None = None,
        lod_level: int = 0,
        kind: VarType = VarType.LOD_TENSOR,
        like: Meta | None = None,
    ) -> None:
        """Give every variable of an output slot these facts (`like` fills gaps)."""
        base = like or Meta((), VarType.FP32, lod_level, kind)
        meta = replace(
            base,
            shape=base.shape if shape is None else tuple(int(d) for d in shape),
            dtype=base.dtype if dtype is None else VarType(dtype),
        )
        self.outs[slot] = [meta] * self.out_counts.get(slot, 0)

    def set_each(self, slot: str, metas: Sequence[Meta]) -> None:
        """Give each variable of a duplicable output slot its own facts."""
        self.outs[slot] = list(metas)

    def check(self, condition: bool, message: str) -> None:
        """Fail with a message that says what was expected and what came."""
        if not condition:
            self.fail(message)

    def fail(self, message: str) -> None:
        raise InferError(f"{self.op_type}: {message}")


InferRule = Callable[[InferContext], None]


def same_as(slot: str, *outs: str, dtype: VarType | None = None) -> InferRule:
    """Outputs (default: "Out") look like input `slot`, LoD included."""
    names = outs or ("Out",)

    def rule(op: InferContext) -> None:
        for name in names:
            op.set(name, like=op.input(slot), dtype=dtype)

    return rule


def no_outputs(op: InferContext) -> None:
    """For ops without outputs, or whose outputs need no facts."""


def broadcast_shape(op: InferContext, x: Shape, y: Shape, axis: int) -> Shape:
    """Shape of an elementwise op under the reference's axis rule.

    The shorter operand is laid over the longer one from dimension `axis` on
    (-1: aligned at the end); trailing ones of the shorter operand do not count.
    """
    swap = len(x) < len(y)
    long, short = (y, x) if swap else (x, y)
    if axis < 0:
        axis = len(long) - len(short)
    padded = (1,) * axis + short
    padded += (1,) * (len(long) - len(padded))
    trimmed = padded[: len(long)]
    surplus = padded[len(long) :]
    op.check(all(d == 1 for d in surplus), f"axis {axis} lays {short} over {long}")
    out = []
    for p, q in zip(long, trimmed):
        op.check(
            p == q or 1 in (p, q) or -1 in (p, q),
            f"shapes {x} and {y} do not go together at axis {axis}",
        )
        if -1 in (p, q):
            out.append(max(p, q) if max(p, q) > 1 else -1)
        else:
            out.append(q if p == 1 else p)
    return tuple(out)


def known_product(shape: Sequence[int]) -> int:
    """The number of elements; -1 where a size is unknown."""
    total = 1
    for size in shape:
        if size < 0:
            return -1
        total *= size
    return total
