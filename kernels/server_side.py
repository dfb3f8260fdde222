"""Ops that only servers' programs have, beside those that update.

``ref_by_trainer_id`` chooses the copy of a parameter that one trainer has, for the
delay compensation of DC-ASGD (Zheng et al., 2017). Mirrors the operator of this name.
"""

from __future__ import annotations

from typing import Any

from .infer import InferContext
from .registry import op
from .schema import In, Out
from .sharding import to_host

__all__: list[str] = []


def _infer_reference(op: InferContext) -> None:
    x = op.inputs("X")[0]
    op.set("Out", x.shape, like=x)


ref_by_trainer_id = op(
    "ref_by_trainer_id",
    ins=[In("X", duplicable=True), In("TrainerId")],
    outs=[Out("Out")],
    infer=_infer_reference,
    grad=None,
    lod=None,
)


@ref_by_trainer_id.kernel
def _(xp: Any, x: list[Any], trainer_id: Any) -> Any:
    number = int(to_host(trainer_id).reshape(-1)[0])
    if not 0 <= number < len(x):
        raise ValueError(f"ref_by_trainer_id: no trainer {number} among {len(x)}")
    return x[number].copy()
