"""The learning-rate schedule as the first block of a server."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Block, Operator, Program, Variable
from fluidx.kernels import VarType

from .edits import declare, new_op
from .facts import Facts
from .plan import ShardPlan

__all__ = ["copy_schedule", "schedule_block"]


def schedule_block(made: Program, plan: ShardPlan, facts: Facts) -> Block | None:
    """A block with all ops of the schedule; copies of their sub-blocks follow it.

    None if the program has no schedule.
    """
    if not facts.schedule:
        return None
    block = made._create_block(0)
    copy_schedule(block, plan, facts)
    return block


def copy_schedule(block: Block, plan: ShardPlan, facts: Facts) -> None:
    """Append the ops of the schedule to a block of a server.

    Without barriers the step counter becomes the sum of what the trainers counted.
    """
    counted = not plan.setting.sync
    for op in facts.schedule:
        counts = op.type == "increment" and op.inputs["X"][0] in plan.counters
        if counted and counts:
            op = _sum_of_counts(block.program, plan, op)
        _copy(op, block, facts.main.global_block())


def _sum_of_counts(made: Program, plan: ShardPlan, op: Operator) -> Operator:
    counter = op.outputs["Out"][0]
    parts = [f"{counter}.trainer_{t}" for t in range(plan.setting.trainers)]
    main = made.global_block()
    for part in parts:
        declare(main, part, [1], VarType.INT64, persistable=True)
    return new_op(main, "sum", {"X": parts}, {"Out": [counter]}, {}, op.role, op)


def _copy(op: Operator, block: Block, source: Block) -> None:
    """Copy an op, what it touches and the blocks it runs."""
    made = op.copy_to(block)
    block.ops.append(made)
    main = block.program.global_block()
    for slots in (op.inputs, op.outputs):
        for args in slots.values():
            for name in args:
                _declare(name, block, main, source)
    for key, value in op.attrs.items():
        made.attrs[key] = _copied(value, block)


def _declare(name: str, block: Block, main: Block, source: Block) -> None:
    """A global variable is known to every block that uses it, as in the reference.

    Temporaries of a sub-block stay in its copy.
    """
    outer = source.program.global_block().vars.get(name)
    inner = source.vars.get(name)
    if outer is not None:
        homes = [main] if block.parent_idx == 0 else [main, block]
        for home in homes:
            if name not in home.vars:
                home.vars[name] = _plain(outer, home, True)
    elif inner is not None and name not in block.vars:
        block.vars[name] = _plain(inner, block, False)


def _plain(var: Variable, home: Block, keep: bool) -> Variable:
    facts = Variable.facts(var)
    facts.update(stop_gradient=False, is_data=False)
    facts["persistable"] = keep and var.type != VarType.STEP_SCOPES
    return Variable(home, **facts)


def _copied(value: Any, parent: Block) -> Any:
    if isinstance(value, Block):
        return _copy_block(value, parent)
    if isinstance(value, list):
        return [_copied(v, parent) for v in value]
    return value


def _copy_block(old: Block, parent: Block) -> Block:
    made = parent.program._create_block(parent.idx)
    for op in old.ops:
        _copy(op, made, old)
    return made
