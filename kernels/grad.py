"""Gradient rules: which op(s) `append_backward` adds for an op.

A rule is given the forward op as a `GradContext` and returns `OpSpec`s.
`grad_op` builds the common rule: one op `<type>_grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["GRAD", "EMPTY", "grad_name", "GradContext", "GradRule", "OpSpec", "grad_op"]

GRAD = "@GRAD"
EMPTY = "@EMPTY@"


def grad_name(name: str) -> str:
    """The name of a variable's gradient (``framework.grad_var_name``)."""
    return name + GRAD


@dataclass
class OpSpec:
    """An op to be appended: type, slots -> variable names, attributes."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]


@dataclass(frozen=True)
class GradContext:
    """A forward op as its gradient rule sees it: names only.

    no_grad: names of variables that want no gradient.
    """

    type: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    attrs: Mapping[str, Any]
    no_grad: frozenset[str] = frozenset()

    def input(self, slot: str) -> list[str]:
        return list(self.inputs.get(slot, ()))

    def output(self, slot: str) -> list[str]:
        return list(self.outputs.get(slot, ()))

    def output_grad(self, slot: str) -> list[str]:
        """Names of the gradients that arrive for an output slot."""
        return [grad_name(n) for n in self.output(slot)]

    def input_grad(self, slot: str) -> list[str]:
        """Names of the gradients to make for an input slot (@EMPTY@: unwanted)."""
        return [EMPTY if n in self.no_grad else grad_name(n) for n in self.input(slot)]


GradRule = Callable[[GradContext], Sequence[OpSpec]]


@dataclass(frozen=True)
class grad_op:
    """The rule "one op ``<type>_grad``", and that op's slots.

    needs: forward inputs and outputs that the gradient kernel takes, in order.
    shape_only: those of them of which only shape and dtype are read, so that
        their buffers may be overwritten before the gradient runs.
    of: outputs whose gradients arrive (default: all that are not intermediate).
    to: inputs that get gradients (default: all without `no_grad`).
    type: name of the gradient op.
    view: its outputs may share memory with the output gradient, which then comes
        first among its inputs.
    """

    needs: Sequence[str] = ()
    shape_only: Sequence[str] = ()
    of: Sequence[str] | None = None
    to: Sequence[str] | None = None
    type: str | None = None
    view: bool = False
