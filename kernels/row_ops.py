"""Ops on sparse gradients: merge_selected_rows, get_tensor_from_selected_rows."""

from __future__ import annotations

from typing import Any

from .dtypes import VarType
from .infer import InferContext, same_as
from .registry import op
from .schema import In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []


def _checked(name: str, x: Any) -> SelectedRows:
    if not isinstance(x, SelectedRows):
        raise TypeError(f"{name}: X must be SelectedRows, got a dense tensor")
    return x


merge_selected_rows = op(
    "merge_selected_rows",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=same_as("X"),
    grad=None,
    lod=None,
)


@merge_selected_rows.kernel
def _(xp: Any, x: Any) -> SelectedRows:
    """Each row once, in ascending order; the values of repeated rows add up."""
    return _checked("merge_selected_rows", x).merged(xp)


def _infer_values(op: InferContext) -> None:
    x = op.input("X")
    op.set("Out", (-1, *x.shape[1:]), x.dtype, kind=VarType.LOD_TENSOR)


get_tensor_from_selected_rows = op(
    "get_tensor_from_selected_rows",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_values,
    grad=None,
    lod=None,
    view=True,
)


@get_tensor_from_selected_rows.kernel
def _(xp: Any, x: Any) -> Any:
    """The values as they stand, one line per row that is named."""
    return _checked("get_tensor_from_selected_rows", x).value
