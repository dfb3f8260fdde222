"""Clipping asked for in the optimizer (``grad_clip=``), and where it can happen.

The clip must see the gradient that is applied. Where each trainer's gradient is
applied by itself, or there is one trainer, that is the trainer's own: the ops stay
there. Where servers merge the trainers' gradients first, ops on one parameter
move to its server, and a global norm takes a second exchange per step:

    trainer: send gradients, barrier, receive each slice's squared norm,
             add them up and make the factor, send it, barrier, receive parameters
    server:  merge and square; when the factor comes: schedule, scale, update

So the norm is one over all parameters of all servers, of merged gradients.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from fluidx.ir import Operator

from .marks import OPTIMIZE, SCHEDULE, is_clip, names_in, names_out, role_of

__all__ = ["ClipPlan", "OptimizerClip", "clip_plan", "optimizer_clip"]


@dataclass
class OptimizerClip:
    """Ops between the gradients of backward and the gradients of the update.

    ops: ids of all of them. across: those that look at more than one gradient, or at
    what such ops made. source: clipped gradient -> the one it was made of.
    """

    ops: set[int] = field(default_factory=set)
    across: list[Operator] = field(default_factory=list)
    source: dict[str, str] = field(default_factory=dict)


def optimizer_clip(
    ops: Sequence[Operator], besides: Set[int] = frozenset()
) -> OptimizerClip:
    """Find the ops with role Optimize that read nothing but gradients.

    Regularizers and updates read parameters; those of `set_gradient_clip` are told
    by their scope and not meant here. besides: ids of others that are not.
    """
    made: set[str] = set()  # by backward, or by clipping
    constants: dict[str, Operator] = {}
    found: list[Operator] = []
    for op in ops:
        role = role_of(op)
        if role & SCHEDULE:
            made.difference_update(names_out(op))
            continue
        if role & OPTIMIZE and not is_clip(op) and id(op) not in besides:
            inputs = list(names_in(op))
            if not inputs:
                constants.update((n, op) for n in names_out(op))
                continue
            if not all(n in made or n in constants for n in inputs):
                made.difference_update(names_out(op))
                continue
            found += [constants.pop(n) for n in inputs if n in constants]
            made.update(inputs)
            found.append(op)
        made.update(names_out(op))
    return _sorted_out(found)


def _sorted_out(found: Sequence[Operator]) -> OptimizerClip:
    """Which gradient each value depends on; several: it is across."""
    clip = OptimizerClip({id(op) for op in found})
    own = {n for op in found for n in names_out(op)}
    roots = {n for op in found for n in names_in(op)} - own
    if len(roots) == 1:  # nothing to look across at
        clip.source = dict.fromkeys(own, roots.pop())
        return clip
    shared: set[str] = set()
    for op in found:
        of = {clip.source.get(n, n) for n in names_in(op) if n not in shared}
        raw = {n for n in of if n not in own}
        if len(raw) == 1:
            clip.source.update((n, next(iter(raw))) for n in names_out(op))
        else:
            shared.update(names_out(op))
            clip.across.append(op)
    return clip


@dataclass(frozen=True)
class ClipPlan:
    """A global norm: what the trainers gather from servers, and what they send.

    gathered: (value, parameter it belongs to). factors: values that every server
    with slices needs.
    """

    gathered: tuple[tuple[str, str], ...]
    factors: tuple[str, ...]


def clip_plan(
    across: Sequence[Operator], updates: dict[str, list[Operator]]
) -> ClipPlan | None:
    """What crosses between servers and trainers; None without a global norm."""
    if not across:
        return None
    made = {n for op in across for n in names_out(op)}
    wanted = {n for op in across for n in names_in(op)} - made
    gathered: dict[str, str] = {}
    factors: dict[str, None] = {}
    for param, ops in updates.items():
        for op in ops:
            gathered.update((n, param) for n in names_out(op) if n in wanted)
            factors.update((n, None) for n in names_in(op) if n in made)
    return ClipPlan(tuple(gathered.items()), tuple(factors))
