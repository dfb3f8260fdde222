"""Backward: gradient ops appended to a program (``fluid.backward``).

The block is walked once from the loss upward. Each op's gradient rule
(`OpDef.grad_specs`) gives the ops to add; a `Tape` collects them, adds a ``sum``
where a variable has several gradients (their names then end in
``@RENAME@block0@N``), fills zeros for gradients that nobody makes, and drops what
no gradient reaches. Only then are the ops built, so a failing rule leaves the
program as it was. Cost is linear in the ops.

Op order and names are the reference's. Where it computes wrong gradients we do not
follow: a variable that is overwritten keeps the gradients of its values apart, and
the gradient given for a target that is itself an intermediate result is added to
the one that arrives there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from fluidx.ir import Block, Operator, OpRole, Parameter, Program, Variable
from fluidx.ir.roles import ROLE, ROLE_VAR
from fluidx.kernels import OpSpec

from . import blocks as blocks
from .recompute import needed_again, segments
from .tape import Callback, Tape, block_rule, differentiable

__all__ = ["append_backward", "gradients", "calc_gradient", "block_rule"]

Names = Iterable["Variable | str"]


# gradient ops that run the gradient ops of a block
_OF_BLOCKS = frozenset({"while_grad", "conditional_block_grad", "recurrent_grad"})


def _path(
    ops: Sequence[Operator],
    targets: set[str],
    inputs: set[str],
    no_grad: frozenset[str],
) -> set[int]:
    """Ids of the ops through which a gradient may flow from targets (to inputs)."""
    if inputs:
        reached, kept = set(inputs), []
        for op in ops:
            if reached.isdisjoint(op.input_arg_names):
                continue
            if differentiable(op) or op.type.endswith("_grad"):
                reached.update(op.output_arg_names)
                kept.append(op)
        ops = kept
    needed, found = set(targets), set()
    for op in reversed(ops):
        if needed.isdisjoint(op.output_arg_names):
            continue
        if differentiable(op):
            needed.update(n for n in op.input_arg_names if n not in no_grad)
            found.add(id(op))
        elif op.type in _OF_BLOCKS:
            raise op.error(
                "there are no gradients of gradients through "
                f"{op.type.removesuffix('_grad')}, which runs a block of ops (the "
                "reference leaves them out without a word); build it without control "
                "flow, or set stop_gradient on what it gives"
            )
        elif op.type.endswith("_grad"):
            warnings.warn(
                f"no gradient flows through {op.type}: it has no gradient op itself",
                stacklevel=5,
            )
    return found


def _no_grad_names(program: Program, given: Names | None) -> frozenset[str]:
    """Variables that no gradient flows through."""
    if given is not None and not isinstance(given, (set, frozenset, list, tuple)):
        raise TypeError(
            "no_grad_set takes a set, list or tuple of Variables or names, got "
            f"{given.__class__.__name__}"
        )
    names = {v.name for v in program.list_vars() if v.stop_gradient}
    names.update(_name(v, "no_grad_set") for v in given or ())
    return frozenset(names)


def _name(item: Variable | str, where: str) -> str:
    name = item if isinstance(item, str) else getattr(item, "name", None)
    if not isinstance(name, str):
        raise TypeError(
            f"{where} holds Variables or names, got {item.__class__.__name__}"
        )
    return name


def append_backward(
    loss: Variable,
    parameter_list: Names | None = None,
    no_grad_set: Names | None = None,
    callbacks: Sequence[Callback] | None = None,
    checkpoints: Sequence[Variable | str] | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append the ops that compute the gradient of a loss of one element.

    parameter_list: the parameters to return (default: all trainable ones).
    no_grad_set: variables through which no gradient flows, besides those with
    ``stop_gradient``. callbacks: called as fn(block=, context=) behind every added
    op; context maps a gradient's name to its variable's. checkpoints: variables whose
    values are kept for the backward pass; what lies between them is computed again
    there, which saves memory (Chen et al., 2016). Returns (parameter, gradient) pairs,
    without the parameters that the loss does not depend on. Mirrors
    ``fluid.backward.append_backward``.
    """
    _check_loss(loss)
    block = loss.block
    no_grad = _no_grad_names(block.program, no_grad_set)
    tape = _new_tape(block, no_grad)
    ones = {"shape": [1], "dtype": int(loss.dtype), "value": 1.0, "force_cpu": False}
    seed = OpSpec("fill_constant", {}, {"Out": []}, ones)
    tape.seed(loss, [seed], int(OpRole.Backward | OpRole.Loss))
    held = [_name(v, "checkpoints") for v in checkpoints or ()]
    _walk(tape, {loss.name}, set(), held)
    maker = _last_writer(block, loss.name)
    if maker is not None:
        maker._set_attr(ROLE, maker.role | int(OpRole.Loss))
    for callback in callbacks or ():
        if not callable(callback):
            raise TypeError(
                f"append_backward: callbacks must be functions, got {callback!r:.60}"
            )
    writers = tape.build(list(callbacks or ()))
    params = _parameters(block.program, parameter_list)
    return list(_pairs(tape, params, writers))


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Variable):
        raise TypeError(
            f"append_backward: loss must be a Variable, got {loss.__class__.__name__}"
        )
    if any(d != 1 for d in loss.shape):
        raise ValueError(
            f"append_backward: loss {loss.name} must have one element, its shape is "
            f"{list(loss.shape)}; take layers.mean of it"
        )


def _pairs(
    tape: Tape, params: Iterable[Parameter], writers: Mapping[str, Operator]
) -> Iterator[tuple[Parameter, Variable]]:
    """Parameters with their gradients, noted on the op that finishes each."""
    for param in params:
        grad = tape.grad_of(param.name)
        if grad is not None:
            op = writers[grad]
            op._set_attr(ROLE_VAR, [param.name, grad, *op.role_var])
            yield param, tape.block._var_recursive(grad)


def _new_tape(block: Block, no_grad: frozenset[str]) -> Tape:
    block.program._appending_grad_times += 1
    return Tape(block, no_grad, block.program._appending_grad_times)


def _walk(
    tape: Tape, targets: set[str], inputs: set[str], checkpoints: Sequence[str] = ()
) -> None:
    ops = tape.block.ops
    makers = (not targets.isdisjoint(op.output_arg_names) for op in reversed(ops))
    behind = next((i for i, makes in enumerate(makers) if makes), len(ops))
    ops = ops[: len(ops) - behind]
    path = _path(ops, targets, inputs, tape.no_grad)
    for segment, again in segments(ops, checkpoints):
        at, read = len(tape.drafts), set()
        for op in reversed(segment):
            if id(op) in path:
                read |= tape.differentiate(op, again)
            tape.close(op)
        tape.replay(needed_again(segment, again, read), again, at)
    tape.finish()


def _last_writer(block: Block, name: str) -> Operator | None:
    return next((o for o in reversed(block.ops) if name in o.output_arg_names), None)


def _parameters(program: Program, given: Names | None) -> list[Parameter]:
    if given is None:
        return [p for p in program.global_block().all_parameters() if p.trainable]
    found = []
    for item in given:
        var = program.global_block().var(_name(item, "parameter_list"))
        found.append(cast(Parameter, var))
    return found


def calc_gradient(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Names | None = None,
) -> Any:
    """`gradients`, but for a single input the bare variable (or None)."""
    found = _gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Names | None = None,
) -> list[Variable | None]:
    """Append the ops that compute the gradients of `targets` with respect to `inputs`.

    targets, inputs: a Variable or a list of them; several targets count as their
    sum. target_gradients: the gradients to start from, of the targets' shapes; None,
    or None for one of them, stands for ones. Returns a gradient per input, None for
    one that the targets do not depend on; a single None comes back as an empty list.
    Mirrors ``fluid.gradients``.
    """
    found = calc_gradient(targets, inputs, target_gradients, no_grad_set)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _gradients(
    targets: Any, inputs: Any, target_gradients: Any, no_grad_set: Names | None
) -> list[Variable | None]:
    heads = _variables(targets, "targets")
    wanted = _variables(inputs, "inputs")
    given = _target_gradients(heads, target_gradients)
    block = heads[0].block
    for var in wanted:
        if var.block.program is not block.program:
            raise ValueError(f"gradients: {var.name} belongs to another program")
    tape = _new_tape(block, _no_grad_names(block.program, no_grad_set))
    for head, grad in zip(heads, given):
        if grad is not None:
            tape.seed_with(head.name, grad.name)
        else:
            tape.seed(head, _ones_like(head), int(OpRole.Backward))
    _walk(tape, {v.name for v in heads}, {v.name for v in wanted})
    writers = tape.build()
    made = [tape.grad_of(v.name) for v in wanted]
    return [block._var_recursive(g) if g in writers else None for g in made]


def _ones_like(head: Variable) -> list[OpSpec]:
    shape = [f"{head.name}_shape"]
    ones = {"shape": list(head.shape), "value": 1.0, "dtype": int(head.dtype)}
    return [
        OpSpec("shape", {"Input": [head.name]}, {"Out": shape}, {}),
        OpSpec("fill_constant", {"ShapeTensor": shape}, {"Out": []}, ones),
    ]


def _variables(given: Any, what: str) -> list[Variable]:
    many = list(given) if isinstance(given, (list, tuple)) else [given]
    for item in many:
        if not isinstance(item, Variable):
            raise TypeError(
                f"gradients: {what} must be Variables, got {item.__class__.__name__}"
            )
    if not many:
        raise ValueError(f"gradients: {what} is empty")
    return many


def _target_gradients(heads: list[Variable], given: Any) -> list[Variable | None]:
    if given is None:
        return [None] * len(heads)
    many = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(many) != len(heads):
        raise ValueError(
            f"gradients: {len(heads)} targets but {len(many)} target_gradients"
        )
    for head, grad in zip(heads, many):
        if grad is not None and tuple(grad.shape) != tuple(head.shape):
            raise ValueError(
                f"gradients: target {head.name} has shape {list(head.shape)}, its "
                f"gradient {grad.name} {list(grad.shape)}"
            )
    return many
