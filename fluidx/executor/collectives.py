"""A lowering for host places: reductions wait until somebody needs their result.

Transpilers put a ``c_allreduce_*`` behind each backward op, for devices that compute
and communicate at the same time. On a host they would only be many small messages.
`gather_reductions` moves each one down to just before the first op that reads or
writes its variable, acts on the world or holds a sub-block, so that neighbours become
one batch (group ``collective`` of `fluidx.kernels`). Collectives keep their order
among each other, and all ranks run the same program: the order stays the same on all.

The values of all variables at every other op are those of the program as written.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx import kernels
from fluidx.ir import Operator

__all__ = ["gather_reductions"]

_MOVES = frozenset(f"c_allreduce_{kind}" for kind in ("sum", "max", "min", "prod"))
_CALC, _COMM = "c_sync_calc_stream", "c_sync_comm_stream"


def gather_reductions(ops: Sequence[Operator]) -> list[Operator]:
    """The same ops with reductions side by side; stream ops, no-ops here, are gone."""
    if not any(op.type in _MOVES or op.type in (_CALC, _COMM) for op in ops):
        return list(ops)
    made: list[Operator] = []
    held: list[Operator] = []
    names: set[str] = set()
    for op in ops:
        touched = {*op.input_arg_names, *op.output_arg_names}
        if held and (_acts(op) or not names.isdisjoint(touched)):
            made += held
            held, names = [], set()
        if _moves(op):
            held.append(op)
            names |= touched
        elif not (op.type in (_CALC, _COMM) and _in_place(op)):
            made.append(op)
    return made + held


def _moves(op: Operator) -> bool:
    return op.type in _MOVES and not op.attrs.get("use_calc_stream")


def _acts(op: Operator) -> bool:
    """Whether reductions must have run before this op, whatever it reads."""
    if _moves(op) or op.type == _CALC:
        return False
    if op.sub_blocks or op.type == _COMM:
        return True
    return kernels.has(op.type) and kernels.find(op.type).effect


def _in_place(op: Operator) -> bool:
    return op.input("X") == op.output("Out")
