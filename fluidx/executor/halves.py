"""Which kernel an op of a plan runs: compiled ones, and halves through float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.ir import Operator
from fluidx.kernels import VarType, batch_of
from fluidx.kernels.compiled import batch_lazily, lazily
from fluidx.kernels.half import HALVES, in_single, runs_as_it_is

__all__ = ["batch_kernel_of", "kernel_of"]


def kernel_of(op: Operator, xp: Any) -> Any:
    """The kernel of an op for arrays of `xp`."""
    definition = op.definition
    if xp is not np or runs_as_it_is(definition):
        return definition.run
    if HALVES.isdisjoint(_kinds(op, op.input_arg_names)):
        assert definition.run is not None
        return lazily(definition.run, op.type)
    declared = [_kinds(op, op.output(s.name)) for s in definition.outs]
    return in_single(definition, declared)


def batch_kernel_of(group: str, xp: Any) -> Any:
    """The kernel of a batch group for arrays of `xp`."""
    own = batch_of(group)
    return batch_lazily(own, group) if own is not None and xp is np else own


def _kinds(op: Operator, names: Sequence[str]) -> list[VarType | None]:
    """Element types that variables are declared in (None: not declared)."""
    found = (op.block._find_var_recursive(n) for n in names)
    return [None if v is None else v.dtype for v in found]
