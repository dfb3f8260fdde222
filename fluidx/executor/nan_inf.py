"""FLAGS_check_nan_inf: look at what each op made, and stop at the first NaN or Inf.

Plans are made with these looks in them while the flag is on, and without them
otherwise. As in the reference, PADDLE_INF_NAN_SKIP_OP (types), PADDLE_INF_NAN_SKIP_ROLE
(names of roles) and PADDLE_INF_NAN_SKIP_VAR (type:variable), each a list with commas,
say what is not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fluidx.ir import Operator, OpRole
from fluidx.ir.errors import RunError, describe
from fluidx.kernels import EMPTY, SelectedRows

__all__ = ["Checks"]

#: (op, slot, variable)
_Output = tuple[Operator, str, str]


def _listed(variable: str) -> list[str]:
    return [w.strip() for w in os.environ.get(variable, "").split(",") if w.strip()]


#: stands for the role "forward", which has no bit
_FORWARD = 1 << 30


def _skipped_roles() -> int:
    found = 0
    known = {name.lower(): int(r) for name, r in OpRole.__members__.items()}
    for name in _listed("PADDLE_INF_NAN_SKIP_ROLE"):
        if name.lower() not in known:
            raise ValueError(
                f"PADDLE_INF_NAN_SKIP_ROLE: no role {name!r}; roles are "
                f"{', '.join(known)}"
            )
        found |= known[name.lower()] or _FORWARD
    return found


def _bits(op: Operator) -> int:
    return op.role if op.role & ~int(OpRole.Loss) else op.role | _FORWARD


def _outputs(ops: Sequence[Operator]) -> Iterator[_Output]:
    """What is to be looked at after these ops; those with sub-blocks look inside."""
    types, variables = _listed("PADDLE_INF_NAN_SKIP_OP"), _skipped_variables()
    roles = _skipped_roles()
    for op in ops:
        if op.type in types or _bits(op) & roles or op.definition.scoped:
            continue
        for slot, names in op.outputs.items():
            for name in names:
                if name != EMPTY and (op.type, name) not in variables:
                    yield op, slot, name


def _skipped_variables() -> set[tuple[str, str]]:
    found = set()
    for item in _listed("PADDLE_INF_NAN_SKIP_VAR"):
        type, _, name = item.partition(":")
        found.add((type, name))
    return found


class Checks:
    """The looks of one plan: the lines that its source has for them, and `check`."""

    def __init__(self, xp: Any, namespace: dict[str, Any]) -> None:
        self._xp = xp
        self._places: list[list[_Output]] = []
        namespace["check"] = self._check

    def lines(self, ops: Sequence[Operator], local: Mapping[str, str]) -> list[str]:
        """What the source says after these ops: a line, or none."""
        made = [output for output in _outputs(ops) if output[2] in local]
        if not made:
            return []
        self._places.append(made)
        values = ", ".join(local[name] for _, _, name in made)
        return [f"check({len(self._places) - 1}, {values})"]

    def _check(self, number: int, *values: Any) -> None:
        for (op, slot, name), value in zip(self._places[number], values):
            for array in value if isinstance(value, list) else (value,):
                found = _found(self._xp, array)
                if found:
                    message = f"output {slot} {name} holds {found}"
                    raise RunError(describe(f"op {op.type}", message, op.where))


def _found(xp: Any, array: Any) -> str:
    """What of an array is not finite; "" if all is, or it holds no real numbers."""
    if isinstance(array, SelectedRows):
        array = array.value
    dtype = getattr(array, "dtype", None)
    if dtype is None or not (dtype.kind in "fc" or dtype.name == "bfloat16"):
        return ""
    finite = xp.isfinite(array)
    if finite.all():
        return ""
    nans, bad = int(xp.isnan(array).sum()), xp.nonzero(~finite)
    first = [int(axis[0]) for axis in bad]
    return (
        f"{nans} NaN and {len(bad[0]) - nans} Inf among {array.size} values, the "
        f"first at {first}"
    )
