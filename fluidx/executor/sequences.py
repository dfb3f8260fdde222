"""Which variables of a block may hold sequences (LoD) that their declaration hides.

What a sub-block leaves in the scope has the LoD that it had there, whatever level it
was declared with: gradient blocks, and the ops behind a branch or a loop, go by that.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Block, Operator, Program
from fluidx.kernels import GRAD

from .analysis import BlockFacts
from .steps import inner_writes, reads_lod

__all__ = ["are_in", "carriers", "of_gradients", "remembered"]


def are_in(program: Program) -> bool:
    """Whether a program declares a sequence anywhere."""
    return any(v.lod_level > 0 for b in program.blocks for v in b.vars.values())


def carriers(block: Block, ops: Sequence[Operator], facts: BlockFacts) -> set[str]:
    """Names of the scope whose LoD a plan of this block must carry along."""
    if block.parent_idx >= 0:
        names = facts.bound
    else:
        scoped = [op for op in ops if op.definition.scoped]
        names = {n for op in scoped for n in (*inner_writes(op), *op.output_arg_names)}
        names &= facts.bound | facts.stored
    found = {n: block._find_var_recursive(n) for n in names}
    return {n for n, var in found.items() if var is None or not var.persistable}


def remembered(ops: Sequence[Operator], facts: BlockFacts) -> set[str]:
    """Variables whose LoD outlives a run: states that an op makes with a LoD."""
    made = {n for op in ops if op.definition.makes_lod for n in op.output_arg_names}
    return made & facts.bound


def of_gradients(block: Block, ops: Sequence[Operator]) -> list[str]:
    """Variables of the scope whose LoD gradients in a sub-block have.

    Only the LoD is read there: where a gradient op takes the value too, it is an
    input like others.
    """
    if block.parent_idx < 0:
        return []
    made = {n for op in ops for n in op.output_arg_names}
    found = {
        n[: n.index(GRAD)]
        for op in ops
        if reads_lod(op)
        for n in op.input_arg_names
        if GRAD in n
    }
    return sorted(found - made)
