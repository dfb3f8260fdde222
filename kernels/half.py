"""Half precision on the host: kernels run in float32, their results are rounded.

CPUs add up float16 and bfloat16 slowly, and numpy does not know bfloat16 everywhere.
So an op on halves is given its inputs in float32, which holds each of them exactly,
and rounds what it returns once: sums are as exact as float32's, as on tensor cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .dtypes import VarType, to_numpy
from .registry import Kernel, OpDef
from .selected_rows import SelectedRows
from .tensor_array import TensorArray

__all__ = ["HALVES", "in_single", "runs_as_it_is"]

HALVES = frozenset([VarType.FP16, VarType.BF16])
#: ops that only move values, or convert them
_MOVES = frozenset([
    "assign", "assign_value", "cast", "concat", "expand", "fetch", "feed",
    "fill_constant", "fill_zeros_like", "flatten2", "gather", "isfinite", "isinf",
    "isnan", "lookup_table", "lookup_table_v2", "reshape2", "slice", "split", "stack",
    "squeeze2", "transpose2", "transpose2_grad", "unsqueeze2", "unstack",
])  # fmt: skip


def runs_as_it_is(op: OpDef) -> bool:
    """Whether an op needs no float32: it moves values, or acts."""
    return bool(op.type in _MOVES or op.view or op.effect or op.scoped)


def in_single(op: OpDef, declared: Sequence[Sequence[VarType | None]]) -> Kernel:
    """The kernel of an op for halves on the host.

    declared: for each output slot, the element types of its variables; what comes out
    is rounded to these.
    """
    run = op.run
    assert run is not None
    halves = [
        [to_numpy(kind) if kind in HALVES else None for kind in kinds]
        for kinds in declared
    ]
    many = tuple(slot.duplicable for slot in op.outs)

    def call(xp: Any, *args: Any, **keywords: Any) -> Any:
        if "out" in keywords:
            keywords["out"] = None  # a buffer of the wrong width
        made = run(xp, *map(_widened, args), **keywords)
        if len(many) == 1:
            return _narrowed(made, halves[0], many[0])
        return tuple(map(_narrowed, made, halves, many))

    return call


def _widened(value: Any) -> Any:
    """In float32 what is in half precision, all else as it is."""
    if isinstance(value, list):
        widened = [_widened(v) for v in value]
        if not isinstance(value, TensorArray):
            return widened
        made = TensorArray(widened)
        made.lods = value.lods
        return made
    if value.__class__ is SelectedRows:
        return replace(value, value=_widened(value.value))
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.itemsize != 2 or dtype.kind in "iu":
        return value
    return value.astype(np.float32)


def _narrowed(value: Any, kinds: Sequence[Any], many: bool) -> Any:
    """Rounded to the half precision that the variables are declared in."""
    if value is None or not kinds:
        return value
    if many:
        return [_rounded(v, kind) for v, kind in zip(value, kinds)]
    return _rounded(value, kinds[0])


def _rounded(value: Any, kind: Any) -> Any:
    if kind is None or value is None:
        return value
    if value.__class__ is SelectedRows:
        return replace(value, value=_rounded(value.value, kind))
    return value.astype(kind, copy=False)
