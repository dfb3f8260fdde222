"""Gradients of ops with sub-blocks: loops, branches, recurrent networks.

Each gets one gradient op with a gradient block, which holds the gradient ops of the
whole forward block. Inside, the gradient of ``x`` is called ``x@GRAD``; those of the
op's outputs come in under these names, those of its inputs are taken from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Block, Operator
from fluidx.kernels import EMPTY, OpSpec, VarType, grad_name, is_floating

from .tape import Tape, block_rule, differentiable

__all__: list[str] = []


def _inside(tape: Tape, block: Block, expected: Sequence[str]) -> Tape:
    """The gradient ops of a block; the gradients of `expected` come from outside."""
    stopped = {v.name for v in block.vars.values() if v.stop_gradient}
    every = {v.name for v in tape.program.list_vars() if v.stop_gradient}
    inner = Tape(block, frozenset(stopped | (tape.no_grad - every)), nested=True)
    for name in expected:
        inner.expect(name)
    for op in reversed(block.ops):
        if differentiable(op):
            inner.differentiate(op)
        inner.close(op)
    inner.finish()
    return inner


def _flows(tape: Tape, block: Block, name: str) -> bool:
    """Whether a variable can have a gradient."""
    var = block._find_var_recursive(name)
    return (
        var is not None
        and not var.stop_gradient
        and name not in tape.no_grad
        and (is_floating(var.dtype) or var.type == VarType.SELECTED_ROWS)
    )


def _leaving(
    tape: Tape, inner: Tape, names: Sequence[str], own: Sequence[str]
) -> list[str]:
    """Gradients of the op's inputs `names`, called `own` inside."""
    return [
        grad_name(name) if inner.leaves(n) and name not in tape.no_grad else EMPTY
        for name, n in zip(names, own)
    ]


@block_rule("while")
def _while(tape: Tape, op: Operator) -> list[OpSpec]:
    block, outs, xs = op.sub_blocks[0], op.output("Out"), op.input("X")
    expected = [n for n in outs if _flows(tape, op.block, n)]
    inner = _inside(tape, block, expected)
    given = [
        grad_name(n)
        for n in expected
        if n in inner.used or (n in xs and inner.leaves(n))
    ]
    inputs = {
        "X": xs,
        "Out": outs,
        "Out@GRAD": list(given),
        "StepScopes": op.output("StepScopes"),
    }
    attrs = {**op.attrs, "sub_block": inner, "original_output_grad": given}
    outputs = {"X@GRAD": _leaving(tape, inner, xs, xs)}
    return [OpSpec("while_grad", inputs, outputs, attrs)]


@block_rule("conditional_block")
def _conditional_block(tape: Tape, op: Operator) -> list[OpSpec]:
    outs, taken = op.output("Out"), op.input("Input")
    expected = [n for n in outs if _flows(tape, op.block, n)]
    inner = _inside(tape, op.sub_blocks[0], expected)
    inputs = {
        "Cond": op.input("Cond"),
        "Input": taken,
        "Out": outs,
        "Out@GRAD": [grad_name(n) for n in outs],
        "Scope": op.output("Scope"),
    }
    outputs = {"Input@GRAD": _leaving(tape, inner, taken, taken)}
    attrs = {**op.attrs, "sub_block": inner}
    return [OpSpec("conditional_block_grad", inputs, outputs, attrs)]


@block_rule("recurrent")
def _recurrent(tape: Tape, op: Operator) -> list[OpSpec]:
    block, outs = op.sub_blocks[0], op.output("outputs")
    states = op.attr("states")
    expected = [n for n in [*outs, *states] if _flows(tape, block, n)]
    inner = _inside(tape, block, expected)
    slots = {s: op.input(s) for s in ("inputs", "initial_states", "parameters")}
    called = {**slots, "initial_states": op.attr("ex_states")}
    inputs = {
        **slots,
        "outputs": outs,
        "step_scopes": op.output("step_scopes"),
        "outputs@GRAD": [grad_name(n) for n in outs],
        "step_scopes@GRAD": op.output("step_scopes"),
    }
    outputs = {grad_name(s): _leaving(tape, inner, slots[s], called[s]) for s in slots}
    return [OpSpec("recurrent_grad", inputs, outputs, {**op.attrs, "sub_block": inner})]
