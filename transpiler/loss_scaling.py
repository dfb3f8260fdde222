"""The ops of mixed precision that stay on a trainer: they see its own gradients.

Gradients are scaled back, looked at and, where one is not finite, set to zero before
they are sent; what servers get is the gradient that one process would update with.
(The reference cannot transpile such programs for servers at all.)
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Operator, OpRole

from .marks import OPTIMIZE, is_update, names_in, names_out, role_of, role_pairs

__all__ = ["scaling_ops"]

_LOSS = int(OpRole.Loss)


def scaling_ops(ops: Sequence[Operator]) -> set[int]:
    """ids of the ops with role Optimize that come of ``mixed_precision.decorate``.

    Told by the variable that both multiplies the loss and divides gradients.
    """
    scales = {
        op.inputs["Y"][0]
        for op in ops
        if op.type == "elementwise_mul" and role_of(op) & _LOSS
    }
    found: set[int] = set()
    for scale in scales:
        found |= _of_scale(ops, scale)
    return found


def _of_scale(ops: Sequence[Operator], scale: str) -> set[int]:
    """From the division by this scale to the last op that asks whether all is finite;
    and the casts to float32 before it."""
    divided = [i for i, op in enumerate(ops) if _divides(op, scale)]
    if not divided:
        return set()
    scaled = {n for i in divided for n in ops[i].inputs["X"]}
    casts = {
        id(op)
        for op in ops[: divided[0]]
        if op.type == "cast"
        and role_of(op) & OPTIMIZE
        and scaled.intersection(names_out(op))
    }
    last = max(divided[-1], _last_asking(ops, divided))
    stretch = ops[divided[0] : last + 1]
    return casts | {
        id(op) for op in stretch if role_of(op) & OPTIMIZE and not is_update(op)
    }


def _divides(op: Operator, scale: str) -> bool:
    return (
        op.type == "elementwise_div"
        and op.inputs["Y"] == [scale]
        and bool(role_of(op) & OPTIMIZE)
        and any(grad in op.inputs["X"] for _, grad in role_pairs(op))
    )


def _last_asking(ops: Sequence[Operator], divided: Sequence[int]) -> int:
    """Where the last conditional block stands whose condition is that the sum of
    these gradients is finite, or its opposite; -1 if there is none."""
    sums = {n for i in divided for n in names_out(ops[i])}
    answers: set[str] = set()
    last = -1
    for at in range(divided[0], len(ops)):
        op = ops[at]
        if op.type in ("reduce_sum", "concat") and sums.intersection(names_in(op)):
            sums.update(names_out(op))
        elif op.type in ("isfinite", "logical_not"):
            if (sums | answers).intersection(names_in(op)):
                answers.update(names_out(op))
        elif op.type == "conditional_block" and answers.intersection(
            op.inputs.get("Cond", ())
        ):
            last = at
    return last
