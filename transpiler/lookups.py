"""Lookups of tables that live on servers: only the rows asked for travel."""

from __future__ import annotations

from fluidx.ir import Block, Editor, Operator, Program

from .edits import new_op
from .facts import is_lookup, names_out
from .plan import ShardPlan

__all__ = ["remote_lookups"]


def remote_lookups(
    program: Program, plan: ShardPlan, trainer_id: int, main: Editor
) -> None:
    """All lookups of one remote table become one op, where the first of them stood.

    `main` is the global block's editor, committed by the caller; sub-blocks are
    edited at once. A lookup whose ids are made behind the first one stays apart.
    """
    for block in program.blocks:
        edit = main if block.idx == 0 else Editor(block)
        for ops in _groups(block, plan):
            edit.replace(ops[0], _remote(ops, plan, trainer_id))
            for op in ops[1:]:
                edit.remove(op)
        if block.idx:
            edit.commit()


def _groups(block: Block, plan: ShardPlan) -> list[list[Operator]]:
    """Lookups that can be made together: same table, same rule, ids at hand."""
    open_groups: dict[tuple[object, ...], list[Operator]] = {}
    born: dict[str, int] = {}
    since: dict[tuple[object, ...], int] = {}
    groups = []
    for at, op in enumerate(block.ops):
        if is_lookup(op) and op.inputs["W"][0] in plan.by_name:
            key = (op.inputs["W"][0], op.type, op.attrs.get("padding_idx"))
            late = born.get(op.inputs["Ids"][0], -1) > since.get(key, at)
            if key not in open_groups or late:
                open_groups[key] = []
                since[key] = at
                groups.append(open_groups[key])
            open_groups[key].append(op)
        for name in names_out(op):
            born[name] = at
    return groups


def _remote(ops: list[Operator], plan: ShardPlan, trainer_id: int) -> Operator:
    first = ops[0]
    table = plan.by_name[first.inputs["W"][0]]
    attrs = {
        "dtype": int(table.dtype),
        "endpoints": table.endpoints,
        "height_sections": table.sections,
        "lookup_table_version": first.type,
        "padding_idx": first.attrs.get("padding_idx", -1),
        "table_names": [s.name for s in table.slices],
        "trainer_id": trainer_id,
    }
    inputs = {"Ids": [op.inputs["Ids"][0] for op in ops], "W": [table.name]}
    outputs = {"Outputs": [op.outputs["Out"][0] for op in ops]}
    return new_op(
        first.block, "distributed_lookup_table", inputs, outputs, attrs, 0, first
    )
