"""Cutting programs down to what a target needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .operator import Operator, flat
from .roles import OpRole

if TYPE_CHECKING:
    from .block import Block
    from .program import Program

__all__ = ["needed_ops", "prune_backward", "prune_to_ops", "pruned_blocks", "reads"]


def reads(op: Operator) -> set[str]:
    """Names an op reads, those of its sub-blocks that come from outside included."""
    names = set(flat(op.inputs))
    for block in op.sub_blocks:
        inner = {n for o in block.ops for n in reads(o)}
        names |= inner - set(block.vars)
    return names


def needed_ops(block: Block, feeds: set[str], targets: set[str]) -> list[Operator]:
    """The ops that `targets` depend on, in order.

    Of several ops that write a variable, all up to its use stay: the later ones may
    leave it as it was (conditional blocks), or change it in place. Ops that only act
    on the world (send, print) are not kept.
    """
    wanted = targets - feeds
    kept: list[Operator] = []
    for op in reversed(block.ops):
        fetches = op.type == "fetch" and bool(set(flat(op.inputs)) & targets)
        if fetches or not wanted.isdisjoint(flat(op.outputs)):
            kept.append(op)
            wanted |= reads(op) - feeds
    return kept[::-1]


def pruned_blocks(program: Program, feeds: set[str], targets: set[str]) -> None:
    """Drop, in place, all ops of block 0 that the targets do not need."""
    block = program.global_block()
    block.ops = needed_ops(block, feeds, targets)
    _drop_unused(program, keep=targets)


def prune_to_ops(program: Program, feeds: set[str], places: set[int]) -> None:
    """Drop, in place, all ops of block 0 but those at some places, and what they need.

    feeds: variables taken as given.
    """
    block = program.global_block()
    wanted: set[str] = set()
    kept: list[Operator] = []
    for place, op in reversed(list(enumerate(block.ops))):
        if place in places or not wanted.isdisjoint(flat(op.outputs)):
            kept.append(op)
            wanted |= reads(op) - feeds
    block.ops = kept[::-1]
    _drop_unused(program, keep=set())


def prune_backward(program: Program) -> None:
    """Drop, in place, backward and optimize ops, and what only they used."""
    training = OpRole.Backward | OpRole.Optimize | OpRole.LRSched
    removed = False
    for block in program.blocks:
        kept = [op for op in block.ops if not op.role & training]
        removed |= len(kept) != len(block.ops)
        block.ops = kept
    if removed:
        _drop_unused(program, keep=set())


def _drop_unused(program: Program, keep: set[str]) -> None:
    """Drop the blocks that no op leads to, and the variables that no op touches."""
    reached = {0}
    _reach(program.global_block(), reached)
    program.blocks = [b for b in program.blocks if b.idx in reached]
    _renumber(program)
    used = set(keep)
    for op in program.all_ops():
        used.update(flat(op.inputs))
        used.update(flat(op.outputs))
    for block in program.blocks:
        block.vars = {n: v for n, v in block.vars.items() if n in used}
    program._touch()


def _reach(block: Block, reached: set[int]) -> None:
    for op in block.ops:
        for inner in op.sub_blocks:
            if inner.idx not in reached:
                reached.add(inner.idx)
                _reach(inner, reached)


def _renumber(program: Program) -> None:
    new = {block.idx: i for i, block in enumerate(program.blocks)}
    for block in program.blocks:
        block.idx = new[block.idx]
        block.parent_idx = new.get(block.parent_idx, 0 if block.idx else -1)
        block.forward_block_idx = new.get(block.forward_block_idx, -1)
    program.current_block_idx = new.get(program.current_block_idx, 0)
