"""`reorder_lod_tensor_by_rank`: sequences in the order of a rank table.

A rank table (``LOD_RANK_TABLE``) is a sequence of pairs (number of a sequence, its
length), the longest first; only the numbers count here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import GradContext, OpSpec
from .infer import InferContext
from .lod import chosen_sequences
from .registry import op
from .schema import In, Out

__all__: list[str] = []

_NAME = "reorder_lod_tensor_by_rank"
_INS = [In("X"), In("RankTable", no_grad=True)]


def _infer(op: InferContext) -> None:
    table = op.input("RankTable")
    op.check(
        table.kind == VarType.LOD_RANK_TABLE,
        f"RankTable must be a rank table, it is {table.kind}",
    )
    op.set("Out", like=op.input("X"))


def _grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "RankTable": op.input("RankTable")}
    return [OpSpec(f"{_NAME}_grad", inputs, {"Out": op.input_grad("X")}, {})]


reorder = op(_NAME, ins=_INS, outs=[Out("Out")], infer=_infer, grad=_grad)
reorder_grad = op(f"{_NAME}_grad", ins=_INS, outs=[Out("Out")], infer=_infer, grad=None)


def _order(table: Any, back: bool, count: int, name: str) -> Any:
    order = np.array([number for number, *_ in table], "i8")
    if len(order) != count:
        raise ValueError(
            f"{name}: X has {count} sequences, RankTable ranks {len(order)}"
        )
    return np.argsort(order, kind="stable") if back else order


def _lod(back: bool, name: str) -> Any:
    def rule(lod: dict[str, Any], values: dict[str, Any], attrs: Any) -> Any:
        levels = lod.get("X")
        if not levels:
            return {}
        order = _order(values["RankTable"], back, len(levels[0]) - 1, name)
        return {"Out": chosen_sequences(levels, order)[0]}

    return rule


def _kernel(back: bool, name: str) -> Any:
    def run(xp: Any, x: Any, table: Any, *, lod: dict[str, Any]) -> Any:
        """The first sequences of X in the order of the table; without LoD its rows."""
        levels = lod.get("X")
        if not levels:
            return x.take(xp.asarray(_order(table, back, len(x), name)), axis=0)
        order = _order(table, back, len(levels[0]) - 1, name)
        rows = chosen_sequences(levels, order)[1]
        return x.take(xp.asarray(rows), axis=0)

    return run


for _op, _back in ((reorder, False), (reorder_grad, True)):
    _op.lod_kernel(_lod(_back, _op.type))
    _op.kernel(_kernel(_back, _op.type))
