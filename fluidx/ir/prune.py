"""Cutting programs down to what a target needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluidx.kernels import GRAD

from .operator import Operator, flat
from .roles import OpRole

if TYPE_CHECKING:
    from .block import Block
    from .program import Program

__all__ = ["pruned_blocks", "prune_backward", "needed_ops"]


def _reads(op: Operator) -> set[str]:
    """Names an op reads, those of its sub-blocks that come from outside included."""
    names = set(flat(op.inputs))
    for block in op.sub_blocks:
        made: set[str] = set()
        for inner in block.ops:
            names |= _reads(inner) - made
            made |= set(flat(inner.outputs))
        names -= {n for n in names if n in block.vars}
    return names


def needed_ops(block: Block, feeds: set[str], targets: set[str]) -> list[Operator]:
    """The ops that `targets` depend on, in order; ops with effects count as targets."""
    wanted = set(targets)
    kept: list[Operator] = []
    for op in reversed(block.ops):
        written = set(flat(op.outputs))
        if not written & wanted - feeds and not _has_effect(op, targets):
            continue
        kept.append(op)
        wanted -= written - _reads(op)
        wanted |= _reads(op)
    return kept[::-1]


def _has_effect(op: Operator, targets: set[str]) -> bool:
    """feed and fetch ops of the targets stay; other effects are not asked for."""
    if op.type == "fetch":
        return bool(set(flat(op.inputs)) & targets)
    return False


def pruned_blocks(program: Program, feeds: set[str], targets: set[str]) -> None:
    """Drop, in place, all ops of block 0 that the targets do not need."""
    block = program.global_block()
    block.ops = needed_ops(block, feeds, targets)
    _drop_unused_variables(program, keep=targets | feeds)


def prune_backward(program: Program) -> None:
    """Drop, in place, backward and optimize ops, and what only they used."""
    training = OpRole.Backward | OpRole.Optimize | OpRole.LRSched
    removed = False
    for block in program.blocks:
        kept = [op for op in block.ops if not op.role & training]
        removed |= len(kept) != len(block.ops)
        block.ops = kept
    if removed:
        _drop_unused_variables(program, keep=set())


def _drop_unused_variables(program: Program, keep: set[str]) -> None:
    used = set(keep)
    for op in program.all_ops():
        used.update(flat(op.inputs))
        used.update(flat(op.outputs))
    for block in program.blocks:
        block.vars = {
            n: v
            for n, v in block.vars.items()
            if n in used or (v.persistable and GRAD not in n) or v.is_data
        }
    program._touch()

