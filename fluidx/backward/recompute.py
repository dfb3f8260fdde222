"""Recomputation: which forward ops run again in the backward pass.

The ops are cut behind the makers of the checkpoints. What a segment in front of the
last cut computes is not kept; its gradient ops read copies, ``<name>.subprog_<n>``,
that are computed anew from the checkpoint before. Random numbers, running statistics
and effects must not happen twice: what such ops make is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluidx.ir import Operator

__all__ = ["needed_again", "segments"]


def segments(
    ops: Sequence[Operator], checkpoints: Sequence[str]
) -> Iterator[tuple[Sequence[Operator], dict[str, str]]]:
    """Segments from the last to the first, each with its names for the second time.

    ValueError for a checkpoint that no op makes.
    """
    makers = {n: i for i, op in enumerate(ops) for n in op.output_arg_names}
    for name in checkpoints:
        if name not in makers:
            raise ValueError(f"checkpoint {name!r} is not made by any op of the loss")
    cuts = sorted({makers[n] + 1 for n in checkpoints}, reverse=True)
    end = len(ops)
    for number, cut in enumerate([*cuts, 0]):
        part = ops[cut:end]
        # the last segment was computed just now
        again = _copies(part, set(checkpoints), number - 1) if number else {}
        yield part, again
        end = cut


def _copies(part: Sequence[Operator], held: set[str], number: int) -> dict[str, str]:
    kept = set(held)
    for op in part:
        if not _repeatable(op):
            kept.update(op.output_arg_names)
    names = {n for op in part for n in op.output_arg_names} - kept
    return {n: f"{n}.subprog_{number}" for n in names}


def _repeatable(op: Operator) -> bool:
    if op.definition.random or op.definition.effect or op.sub_blocks:
        return False
    reads = set(op.input_arg_names)
    for name in op.output_arg_names:
        var = op.block._find_var_recursive(name)
        if name in reads or (var is not None and var.persistable):
            return False
    return True


def needed_again(
    part: Sequence[Operator], again: Mapping[str, str], read: set[str]
) -> list[Operator]:
    """The ops that make what is read under its second name, in order."""
    wanted = {n for n in read if n in again}
    found = []
    for op in reversed(part):
        if not wanted.isdisjoint(op.output_arg_names):
            found.append(op)
            wanted.update(n for n in op.input_arg_names if n in again)
    return found[::-1]
