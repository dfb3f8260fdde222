"""What ops with sub-blocks share: variables by name, steps, names of gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .context import RunContext
from .grad import EMPTY, GRAD
from .infer import InferContext, InferRule
from .schema import Attr, AttrType
from .tensor_array import add_values, zeros_for

__all__ = [
    "SKIPPED",
    "SUB_BLOCK",
    "Names",
    "infer_like",
    "is_true",
    "kept_steps",
    "remaining",
    "results",
    "value_of",
    "wanted",
]

Names = Mapping[str, Sequence[str]]

SUB_BLOCK = Attr("sub_block", AttrType.BLOCK)
SKIPPED = Attr("skip_eager_deletion_vars", AttrType.STRINGS, [])


def wanted(names: Names, slot: str) -> list[str]:
    """Inside names of the gradients that the op is to make: EMPTY for unwanted ones."""
    variables = names.get(slot, ())
    made = names.get(slot + GRAD) or [EMPTY] * len(variables)
    return [EMPTY if m == EMPTY else v + GRAD for v, m in zip(variables, made)]


def infer_like(slot: str) -> InferRule:
    """Gradients look like their variables."""

    def rule(op: InferContext) -> None:
        if op.wants(slot + GRAD):
            op.set_each(slot + GRAD, op.inputs(slot))

    return rule


def value_of(ctx: RunContext, name: str) -> Any:
    found = ctx.scope.find_var(name)
    return None if found is None else found.value


def is_true(value: Any, op: str, name: str) -> bool:
    if value is None:
        raise ValueError(f"condition {name!r} has no value")
    if value.size != 1:
        raise ValueError(
            f"condition {name!r} must have one element, its shape is {value.shape}"
        )
    return bool(value.reshape(-1)[0])


def remaining(xp: Any, before: Any, value: Any) -> Any:
    """An array's new gradient, and what the step left untouched of the one before."""
    if isinstance(value, list) and value is not before:
        return add_values(xp, value, before)
    return value


def kept_steps(ctx: RunContext, name: str) -> list[Any]:
    steps = value_of(ctx, name)
    if steps is None:
        raise ValueError(f"the steps of the forward op ({name}) were not kept")
    return steps  # type: ignore[no-any-return]


def results(
    xp: Any,
    ctx: RunContext,
    variables: Sequence[str],
    wanted: Sequence[str],
    found: Mapping[str, Any],
) -> list[Any]:
    """Gradients in order; zeros where no run of the block made one."""
    results = []
    for variable, name in zip(variables, wanted):
        value = found.get(name)
        if value is None and name != EMPTY:
            value = zeros_for(xp, value_of(ctx, variable))
        results.append(value)
    return results
