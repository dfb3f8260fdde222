"""Sequences of different lengths, step by step: what recurrent ops share.

The rows of all sequences are put into the order in which steps need them: first step
of all sequences, second step of those that have one, and so on, longest sequence
first. Then a step is a slice, and the state before it is the head of the slice before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .grad import GRAD
from .infer import InferContext
from .lod import lengths_of, ranges, sole_level

__all__ = [
    "ACTIVATIONS",
    "Packed",
    "activate",
    "check_activations",
    "infer_grad",
    "slope",
]

ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")


class Packed:
    """The order of steps over sequences that start at these rows.

    order: for each packed row, the row of the tensor. steps: the slices of the steps.
    sequences: the sequences, longest first. earlier: for packed rows from the second
    step on, the packed row of the step before. reverse: each sequence from its end.
    """

    def __init__(self, starts: Any, lengths: Any, reverse: bool = False) -> None:
        self.sequences = np.argsort(-lengths, kind="stable")
        lengths = lengths[self.sequences]
        longest = int(lengths[0]) if len(lengths) else 0
        # how many sequences have a step t
        counts = np.searchsorted(-lengths, -np.arange(longest), side="left")
        ends = np.concatenate([[0], np.cumsum(counts)])
        which = ranges(np.zeros(longest, "i8"), counts)
        step = np.repeat(np.arange(longest), counts)
        first = np.asarray(starts)[self.sequences][which]
        last = first + lengths[which] - 1
        #: for each packed row, the number of its sequence
        self.owners = self.sequences[which]
        self.order = last - step if reverse else first + step
        self.steps = [slice(int(a), int(b)) for a, b in zip(ends, ends[1:])]
        self.earlier = ranges(ends[:-2], counts[1:]) if longest > 1 else which[:0]

    @classmethod
    def of(
        cls, op_name: str, slot: str, lod: Any, rows: int, reverse: bool = False
    ) -> Packed:
        """The sequences of a slot. ValueError unless it has one level of LoD."""
        offsets = sole_level(op_name, slot, lod.get(slot), rows)
        return cls(offsets[:-1], lengths_of(offsets), reverse)

    @property
    def first(self) -> int:
        """How many sequences have a first step."""
        return self.steps[0].stop if self.steps else 0

    def unpacked(self, xp: Any, packed: Any) -> Any:
        """Rows in the tensor's own order."""
        made = xp.empty_like(packed)
        made[xp.asarray(self.order)] = packed
        return made

    def started(self, xp: Any, initial: Any) -> Any:
        """The state before the first step of the sequences that have one."""
        return initial.take(xp.asarray(self.sequences[: self.first]), axis=0)

    def before(self, xp: Any, states: Any, initial: Any) -> Any:
        """For each packed row, the state of the step before; zero without `initial`."""
        made = xp.empty_like(states)
        made[: self.first] = 0 if initial is None else self.started(xp, initial)
        made[self.first :] = states.take(xp.asarray(self.earlier), axis=0)
        return made

    def initial_gradient(self, xp: Any, initial: Any, first: Any) -> Any:
        """The gradient of H0 or C0 from that of the state before the first step."""
        made = xp.zeros_like(initial)
        if first is not None:
            made[xp.asarray(self.sequences[: len(first)])] = first
        return made


def infer_grad(op: InferContext) -> None:
    """Gradients look like their variables; that of Input has no LoD, like the gates."""
    for grad in op.out_counts:
        slot = "BatchGate" if grad == "Input" + GRAD else grad[: -len(GRAD)]
        if op.has(slot):
            op.set(grad, like=op.input(slot))


def check_activations(op: InferContext, *attrs: str) -> None:
    """InferError unless these attributes name activations of recurrent ops."""
    for attr in attrs:
        name = op.attr(attr)
        op.check(
            name in ACTIVATIONS, f"{attr} must be one of {ACTIVATIONS}, got {name!r}"
        )


def activate(xp: Any, name: str, x: Any) -> None:
    """Apply an activation in place."""
    if name == "sigmoid":
        # sigmoid(x) = (tanh(x / 2) + 1) / 2 overflows nowhere
        x *= 0.5
        xp.tanh(x, out=x)
        x += 1.0
        x *= 0.5
    elif name == "tanh":
        xp.tanh(x, out=x)
    elif name == "relu":
        xp.maximum(x, 0, out=x)


def slope(name: str, y: Any) -> Any:
    """An activation's derivative, from its value."""
    if name == "sigmoid":
        return y * (1 - y)
    if name == "tanh":
        return 1 - y * y
    return (y > 0).astype(y.dtype) if name == "relu" else 1
