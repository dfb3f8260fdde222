"""What one op says about itself: its role, its pairs, the names it touches.

Read off op roles, ``op_role_var``, slots and attributes, never off names.
"""

from __future__ import annotations

from collections.abc import Iterator

from fluidx.ir import Operator, OpRole

__all__ = [
    "BACKWARD",
    "LOOKUPS",
    "OPTIMIZE",
    "SCHEDULE",
    "is_clip",
    "is_lookup",
    "is_update",
    "names_in",
    "names_out",
    "role_of",
    "role_pairs",
]

_CLIP_SCOPE = "@CLIP"
LOOKUPS = ("lookup_table", "lookup_table_v2")
# plain numbers: flag arithmetic is slow, and every op is asked
OPTIMIZE, SCHEDULE, BACKWARD = map(
    int, (OpRole.Optimize, OpRole.LRSched, OpRole.Backward)
)


def role_of(op: Operator) -> int:
    """An op's role as a plain number."""
    return op.attrs.get("op_role", 0)  # type: ignore[no-any-return]


def names_in(op: Operator) -> Iterator[str]:
    """All names that an op reads."""
    for args in op.inputs.values():
        yield from args


def names_out(op: Operator) -> Iterator[str]:
    """All names that an op writes."""
    for args in op.outputs.values():
        yield from args


def is_clip(op: Operator) -> bool:
    """Whether `fluid.clip.set_gradient_clip` made this op.

    Such ops see one trainer's gradient and stay there (the reference tells them by
    their name scope, too).
    """
    if not role_of(op) & OPTIMIZE:
        return False
    return _CLIP_SCOPE in op.attrs.get("op_namescope", "")


def role_pairs(op: Operator) -> Iterator[tuple[str, str]]:
    """The (parameter, gradient) pairs of an op."""
    given = op.attrs.get("op_role_var") or ()
    yield from zip(given[::2], given[1::2])


def is_lookup(op: Operator) -> bool:
    """A forward table lookup whose table may live on servers alone."""
    if op.type not in LOOKUPS or role_of(op) & BACKWARD:
        return False
    # the reference fails on a distributed `lookup_table`; its v2 it keeps local
    distributed = op.type == "lookup_table" and op.attrs.get("is_distributed")
    return bool(op.attrs.get("remote_prefetch") or distributed)


def is_update(op: Operator) -> bool:
    """An op that changes a parameter; not every one has a learning rate."""
    return bool(op.inputs.get("Param")) and bool(role_of(op) & OPTIMIZE)
