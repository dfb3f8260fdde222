"""Collective ops: every rank of a ring runs them together.

The work is done by ``ctx.collective(ring_id)``, a `Ring` of the executor's
communicator (NCCL, MPI or in-process).
"""

from __future__ import annotations

from typing import Any

from .grad import GradContext, OpSpec
from .infer import same_as
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

_RING = Attr("ring_id", int, 0)
_CALC_STREAM = Attr("use_calc_stream", bool, False)


def _ring(ctx: Any, type: str, ring_id: int) -> Any:
    ring = ctx.collective(ring_id) if ctx.collective is not None else None
    if ring is None:
        raise RuntimeError(
            f"{type}: ring {ring_id} has no communicator: startup program not run?"
        )
    return ring


def _grad_allreduce(op: GradContext) -> list[OpSpec]:
    return [
        OpSpec(
            "c_allreduce_sum",
            {"X": op.output_grad("Out")},
            {"Out": op.input_grad("X")},
            dict(op.attrs),
        )
    ]


c_allreduce_sum = op(
    "c_allreduce_sum",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[_RING, _CALC_STREAM],
    infer=same_as("X"),
    grad=_grad_allreduce,
    effect=True,
)


@c_allreduce_sum.kernel
def _(xp: Any, x: Any, *, ctx: Any, ring_id: int) -> Any:
    return _ring(ctx, "c_allreduce_sum", ring_id).allreduce(x, "sum")


c_broadcast = op(
    "c_broadcast",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[_RING, Attr("root", int, 0), _CALC_STREAM],
    infer=same_as("X"),
    grad=None,
    effect=True,
)


@c_broadcast.kernel
def _(xp: Any, x: Any, *, ctx: Any, ring_id: int, root: int) -> Any:
    return _ring(ctx, "c_broadcast", ring_id).broadcast(x, root)
