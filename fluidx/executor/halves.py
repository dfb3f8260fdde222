"""Which kernel an op of a plan runs: on the host, halves go through float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.ir import Operator
from fluidx.kernels import VarType
from fluidx.kernels.half import HALVES, in_single, runs_as_it_is

__all__ = ["kernel_of"]


def kernel_of(op: Operator, xp: Any) -> Any:
    """The kernel of an op for arrays of `xp`."""
    definition = op.definition
    if xp is not np or runs_as_it_is(definition):
        return definition.run
    if HALVES.isdisjoint(_kinds(op, op.input_arg_names)):
        return definition.run
    declared = [_kinds(op, op.output(s.name)) for s in definition.outs]
    return in_single(definition, declared)


def _kinds(op: Operator, names: Sequence[str]) -> list[VarType | None]:
    """Element types that variables are declared in (None: not declared)."""
    found = (op.block._find_var_recursive(n) for n in names)
    return [None if v is None else v.dtype for v in found]
