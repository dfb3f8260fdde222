"""`recurrent`: a sub-block run along sequences of fixed length (``StaticRNN``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .context import RunContext
from .grad import GRAD, grad_op
from .infer import InferContext, no_outputs, same_as
from .registry import op
from .schema import Attr, AttrType, In, Out
from .sub_blocks import (
    SKIPPED,
    SUB_BLOCK,
    Names,
    infer_like,
    kept_steps,
    results,
    value_of,
    wanted,
)
from .tensor_array import add_values

__all__: list[str] = []


_RECURRENT = [
    SUB_BLOCK,
    Attr("states", AttrType.STRINGS),
    Attr("ex_states", AttrType.STRINGS),
    Attr("has_states", bool, False),
    Attr("reverse", bool, False),
    Attr("is_train", bool, True),
    SKIPPED,
]

recurrent = op(
    "recurrent",
    ins=[
        In("inputs", duplicable=True),
        In("initial_states", duplicable=True),
        In("parameters", duplicable=True),
    ],
    outs=[Out("outputs", duplicable=True), Out("step_scopes")],
    attrs=_RECURRENT,
    infer=no_outputs,
    grad=None,
    lod=None,
    scoped=True,
)


@recurrent.kernel
def _(
    xp: Any,
    inputs: Any,
    initial: Any,
    parameters: Any,
    *,
    ctx: RunContext,
    names: Names,
    sub_block: int,
    states: Sequence[str],
    ex_states: Sequence[str],
    reverse: bool,
) -> None:
    """Runs the block for each slice of the inputs along their first dimension.

    Inside, the slices are called like the inputs, ex_states are the values of
    `states` one step before, and outputs are stacked under their names.
    """
    sequences = [value_of(ctx, n) for n in names["inputs"]]
    length = _length(names["inputs"], sequences)
    before: Sequence[Any] = [value_of(ctx, n) for n in names.get("initial_states", ())]
    outputs = list(names.get("outputs", ()))
    fetch = (*states, *outputs)
    rows: list[Any] = [None] * length
    keeps, steps = ctx.keeps(sub_block), []
    for t in reversed(range(length)) if reverse else range(length):
        feed = {n: s[t] for n, s in zip(names["inputs"], sequences)}
        feed.update(zip(ex_states, before))
        step = ctx.step_scope()
        values = ctx.run_block(sub_block, step, feed, fetch)
        before, rows[t] = values[: len(states)], values[len(states) :]
        if keeps:
            steps.append(step)
    for name, column in zip(outputs, zip(*rows)):
        ctx.scope.find_var(name).value = xp.stack(column)
    ctx.scope.find_var(names["step_scopes"][0]).value = steps


def _length(names: Sequence[str], sequences: Sequence[Any]) -> int:
    if not sequences:
        raise ValueError("recurrent: has no inputs to walk along")
    lengths = {}
    for name, sequence in zip(names, sequences):
        if sequence is None:
            raise ValueError(f"recurrent: input {name!r} has no value")
        lengths[name] = sequence.shape[0]
    if len(set(lengths.values())) > 1:
        raise ValueError(f"recurrent: inputs of different lengths {lengths}")
    length = next(iter(lengths.values()))
    if length == 0:
        raise ValueError("recurrent: its inputs hold no step")
    return length  # type: ignore[no-any-return]


_SLOTS = ("inputs", "initial_states", "parameters")


def _infer_recurrent_grad(op: InferContext) -> None:
    for slot in _SLOTS:
        infer_like(slot)(op)


recurrent_grad = op(
    "recurrent_grad",
    ins=[
        *(In(s, duplicable=True, dispensable=True) for s in _SLOTS),
        In("outputs", duplicable=True),
        In("step_scopes"),
        In("outputs@GRAD", duplicable=True),
        In("step_scopes@GRAD", dispensable=True),
    ],
    outs=[Out(s + GRAD, duplicable=True, dispensable=True) for s in _SLOTS],
    attrs=_RECURRENT,
    infer=_infer_recurrent_grad,
    grad=None,
    lod=None,
    scoped=True,
)


@recurrent_grad.kernel
def _(
    xp: Any,
    inputs: Any,
    initial: Any,
    parameters: Any,
    outputs: Any,
    scopes: Any,
    d_outputs: list[Any],
    d_scopes: Any,
    *,
    ctx: RunContext,
    names: Names,
    sub_block: int,
    states: Sequence[str],
    ex_states: Sequence[str],
    reverse: bool,
) -> tuple[list[Any], ...]:
    """Runs the gradient block for each step, the last one first."""
    steps = kept_steps(ctx, names["step_scopes"][0])
    sliced, shared = wanted(names, "inputs"), wanted(names, "parameters")
    earlier = [n + GRAD for n in ex_states]
    fetch = (*earlier, *sliced, *shared)
    carried: Sequence[Any] = [None] * len(states)
    total: list[Any] = [None] * len(shared)
    rows: list[Any] = [None] * len(steps)
    for k in reversed(range(len(steps))):
        t = len(steps) - 1 - k if reverse else k
        feed = {n + GRAD: d[t] for n, d in zip(names["outputs"], d_outputs)}
        feed.update((n + GRAD, d) for n, d in zip(states, carried))
        values = ctx.run_block(sub_block, ctx.step_scope(steps[k]), feed, fetch)
        carried = values[: len(earlier)]
        rows[t] = values[len(earlier) : len(earlier) + len(sliced)]
        for i, value in enumerate(values[len(earlier) + len(sliced) :]):
            total[i] = add_values(xp, total[i], value)
    columns = [_stacked(xp, column) for column in zip(*rows)]
    found = {
        "inputs": dict(zip(sliced, columns)),
        "initial_states": dict(zip(wanted(names, "initial_states"), carried)),
        "parameters": dict(zip(shared, total)),
    }
    return tuple(
        results(xp, ctx, names.get(s, ()), wanted(names, s), found[s]) for s in _SLOTS
    )


def _stacked(xp: Any, column: Sequence[Any]) -> Any:
    return None if any(v is None for v in column) else xp.stack(column)


rnn_memory_helper = op(
    "rnn_memory_helper",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("dtype", int, 5)],
    infer=same_as("X"),
    grad=grad_op(needs=["X", "Out"], shape_only=["X", "Out"]),
    shares=True,
)


@rnn_memory_helper.kernel
def _(xp: Any, x: Any) -> Any:
    return x


@rnn_memory_helper.grad_kernel
def _(xp: Any, x: Any, out: Any, d: Any) -> Any:
    """Zeros where no gradient arrives: behind the last step."""
    return xp.zeros_like(x) if d is None else d.copy()
