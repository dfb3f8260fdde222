"""Control flow: ops that run sub-blocks of the program, and ops that choose.

An op here with a sub-block is `scoped`: it takes its variables from ``ctx.scope`` by
name (``names``) and leaves its results there, since what it reads and writes is what
its block does. Each run of a block has a scope of its own, a step, with the variables
that the block declares. Where a gradient block will look at them (`RunContext.keeps`),
the steps are kept in the op's ``STEP_SCOPES`` variable: one per iteration, one or none
for a conditional block. Gradients are passed and returned like those of any op.

Inside a gradient block the gradient of a variable ``x`` is always called ``x@GRAD``,
whatever it is called outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .context import RunContext
from .grad import EMPTY, GRAD, GradContext, OpSpec
from .infer import InferContext, no_outputs
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out
from .sub_blocks import (
    SKIPPED,
    SUB_BLOCK,
    Names,
    infer_like,
    is_true,
    kept_steps,
    remaining,
    results,
    value_of,
    wanted,
)
from .tensor_array import add_values, zeros_for

__all__: list[str] = []


# --- while ---------------------------------------------------------------------------

_WHILE = [SUB_BLOCK, Attr("is_test", bool, False), SKIPPED]

while_ = op(
    "while",
    ins=[In("X", duplicable=True), In("Condition", duplicable=True)],
    outs=[Out("Out", duplicable=True), Out("StepScopes")],
    attrs=_WHILE,
    infer=no_outputs,
    grad=None,
    lod=None,
    scoped=True,
)


@while_.kernel
def _(
    xp: Any,
    xs: Any,
    condition: Any,
    *,
    ctx: RunContext,
    names: Names,
    sub_block: int,
    is_test: bool,
) -> None:
    """Runs the block as long as the condition, which the block sets anew, is true."""
    name = names["Condition"][0]
    scopes = ctx.scope.find_var(names["StepScopes"][0])
    keeps = ctx.keeps(sub_block) and not is_test
    steps: list[Any] = []
    step = None
    while is_true(value_of(ctx, name), "while", name):
        if step is None or keeps:
            step = ctx.step_scope()
            steps.append(step)
        else:
            step.reset()
        ctx.run_block(sub_block, step)
    scopes.value = steps if keeps else None


while_grad = op(
    "while_grad",
    ins=[
        In("X", duplicable=True),
        In("Out", duplicable=True),
        In("Out@GRAD", duplicable=True),
        In("StepScopes"),
    ],
    outs=[Out("X@GRAD", duplicable=True, dispensable=True)],
    attrs=[*_WHILE, Attr("original_output_grad", AttrType.STRINGS, [])],
    infer=infer_like("X"),
    grad=None,
    lod=None,
    scoped=True,
    unset=["Out@GRAD"],
)


@while_grad.kernel
def _(
    xp: Any,
    xs: Any,
    outs: Any,
    d_outs: list[Any],
    steps: Any,
    *,
    ctx: RunContext,
    names: Names,
    sub_block: int,
    original_output_grad: Sequence[str],
) -> list[Any]:
    """Runs the gradient block once per step, the last step first.

    The gradient of a variable that the loop writes goes from step to step; those of
    all others add up.
    """
    carried = {}
    for name, d in zip(original_output_grad, d_outs):
        if d is None:  # nobody looked at it behind the loop
            d = zeros_for(xp, value_of(ctx, name[: -len(GRAD)]))
        carried[name] = d
    inside = wanted(names, "X")
    fetch = tuple(n for n in inside if n != EMPTY)
    written = {n + GRAD for n in names["Out"]}
    total: dict[str, Any] = {}
    for step in reversed(kept_steps(ctx, names["StepScopes"][0])):
        values = ctx.run_block(sub_block, ctx.step_scope(step), carried, fetch)
        for name, value in zip(fetch, values):
            if name in carried:
                if value is not None:
                    carried[name] = remaining(xp, carried[name], value)
            elif name in written:
                total[name] = value
            else:
                total[name] = add_values(xp, total.get(name), value)
        for name in carried:
            # its value before the step was not looked at; what was written to an array
            # has been taken out of its gradient, the rest is for earlier steps
            if name not in fetch and not isinstance(carried[name], list):
                carried[name] = zeros_for(xp, carried[name])
    return results(xp, ctx, names["X"], inside, {**total, **carried})


# --- conditional blocks --------------------------------------------------------------

_CONDITIONAL = [SUB_BLOCK, Attr("is_scalar_condition", bool, False), SKIPPED]


def _conditional(type: str) -> OpDef:
    made = op(
        type,
        ins=[In("Cond", duplicable=True), In("Input", duplicable=True)],
        outs=[Out("Out", duplicable=True), Out("Scope")],
        attrs=_CONDITIONAL,
        infer=no_outputs,
        grad=None,
        lod=None,
        scoped=True,
    )

    @made.kernel
    def _(
        xp: Any,
        conds: Any,
        inputs: Any,
        *,
        ctx: RunContext,
        names: Names,
        sub_block: int,
        is_scalar_condition: bool,
    ) -> None:
        """Runs the block if the condition holds.

        That is one true element (is_scalar_condition), or inputs of which none is
        empty.
        """
        steps = []
        if _holds(ctx, names, is_scalar_condition):
            step = ctx.step_scope()
            ctx.run_block(sub_block, step)
            steps.append(step)
        scopes = names.get("Scope")
        if scopes:
            kept = ctx.keeps(sub_block)
            ctx.scope.find_var(scopes[0]).value = steps if kept else None

    return made


def _holds(ctx: RunContext, names: Names, is_scalar: bool) -> bool:
    if is_scalar:
        name = names["Cond"][0]
        return is_true(value_of(ctx, name), "conditional_block", name)
    values = [value_of(ctx, n) for n in names.get("Input", ())]
    return all(v is None or isinstance(v, list) or v.shape[0] > 0 for v in values)


conditional_block = _conditional("conditional_block")
conditional_block_infer = _conditional("conditional_block_infer")

conditional_block_grad = op(
    "conditional_block_grad",
    ins=[
        In("Cond", duplicable=True),
        In("Input", duplicable=True),
        In("Out", duplicable=True),
        In("Out@GRAD", duplicable=True),
        In("Scope"),
    ],
    outs=[
        Out("Cond@GRAD", duplicable=True, dispensable=True),
        Out("Input@GRAD", duplicable=True, dispensable=True),
    ],
    attrs=_CONDITIONAL,
    infer=infer_like("Input"),
    grad=None,
    lod=None,
    scoped=True,
)


@conditional_block_grad.kernel
def _(
    xp: Any,
    conds: Any,
    inputs: Any,
    outs: Any,
    d_outs: list[Any],
    scope: Any,
    *,
    ctx: RunContext,
    names: Names,
    sub_block: int,
) -> tuple[Any, list[Any]]:
    """Zeros if the block did not run, but for variables that it would have changed."""
    given = {n + GRAD: d for n, d in zip(names["Out"], d_outs)}
    inside = wanted(names, "Input")
    found = {n: given[n] for n in inside if n in given}
    for step in kept_steps(ctx, names["Scope"][0]):
        fetch = tuple(n for n in inside if n != EMPTY)
        values = ctx.run_block(sub_block, ctx.step_scope(step), given, fetch)
        for name, value in zip(fetch, values):
            if value is not None:
                found[name] = remaining(xp, given.get(name), value)
    return None, results(xp, ctx, names["Input"], inside, found)


# --- choosing ------------------------------------------------------------------------


def _infer_select_input(op: InferContext) -> None:
    op.set("Out", like=op.input("X"))


def _select_input_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "Mask": op.input("Mask")}
    return [OpSpec("select_output", inputs, {"Out": op.input_grad("X")}, {})]


select_input = op(
    "select_input",
    ins=[In("X", duplicable=True), In("Mask", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_select_input,
    grad=_select_input_grad,
    lod="X",
    shares=True,
)


@select_input.kernel
def _(xp: Any, xs: list[Any], mask: Any) -> Any:
    """X[Mask]; the others may have no value."""
    value = xs[_branch(mask, len(xs), "select_input")]
    if value is None:
        raise ValueError("select_input: the chosen input has no value")
    return value


@select_input.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    levels = lod["X"]
    return {"Out": levels[_branch(values["Mask"], len(levels), "select_input")]}


def _branch(mask: Any, count: int, op: str) -> int:
    if mask.size != 1:
        raise ValueError(f"{op}: Mask must have one element, its shape is {mask.shape}")
    branch = int(mask.reshape(-1)[0])
    if not 0 <= branch < count:
        raise ValueError(f"{op}: Mask is {branch}, there are {count} branches")
    return branch


def _infer_select_output(op: InferContext) -> None:
    like = op.input("X")
    op.set_each("Out", [replace(like)] * op.out_counts.get("Out", 0))


def _select_output_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "Mask": op.input("Mask")}
    return [OpSpec("select_input", inputs, {"Out": op.input_grad("X")}, {})]


select_output = op(
    "select_output",
    ins=[In("X"), In("Mask", no_grad=True)],
    outs=[Out("Out", duplicable=True)],
    infer=_infer_select_output,
    grad=_select_output_grad,
    shares=True,
)


@select_output.kernel
def _(xp: Any, x: Any, mask: Any, *, counts: Mapping[str, int]) -> list[Any]:
    """X as output number Mask; the others get no value."""
    count = counts["Out"]
    chosen = _branch(mask, count, "select_output")
    return [x if i == chosen else None for i in range(count)]
