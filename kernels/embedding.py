"""Embedding look-ups: `lookup_table` (ids (..., 1)) and `lookup_table_v2` (ids (...)).

With ``is_sparse`` the gradient is a `SelectedRows` of the looked-up rows, made
without a copy; else it is a dense tensor like the table.
"""

from __future__ import annotations

from typing import Any

from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .registry import OpDef, op
from .rows import add_rows, check_ids
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []

_NO_PADDING = -1
_ATTRS = (
    Attr("is_sparse", bool, False),
    Attr("is_distributed", bool, False),
    Attr("padding_idx", AttrType.LONG, _NO_PADDING),
    Attr("remote_prefetch", bool, False),
    Attr("trainer_id", int, 0),
    Attr("height_sections", AttrType.LONGS, []),
    Attr("epmap", AttrType.STRINGS, []),
    Attr("table_names", AttrType.STRINGS, []),
)


def _infer(op: InferContext) -> None:
    table, ids = op.input("W"), op.input("Ids")
    shape = ids.shape
    if op.op_type == "lookup_table":
        op.check(
            bool(shape) and shape[-1] in (1, -1),
            f"Ids has shape {shape}, not (..., 1)",
        )
        shape = shape[:-1]
    op.check(len(table.shape) == 2, f"W has shape {table.shape}, not (rows, width)")
    op.set("Out", (*shape, table.shape[1]), table.dtype, ids.lod_level)


def _infer_grad(op: InferContext) -> None:
    table = op.input("W")
    sparse = op.attr("is_sparse")
    kind = VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR
    op.set("W@GRAD", table.shape, table.dtype, kind=kind)


def _look_up(xp: Any, name: str, table: Any, ids: Any, shape: Any, padding: int) -> Any:
    flat = ids.reshape(-1)
    check_ids(name, "id", flat, table.shape[0])
    out = table.take(flat, axis=0)
    if padding != _NO_PADDING:
        out[flat == padding] = 0
    return out.reshape(*shape, table.shape[1])


def _grad(
    xp: Any, table: Any, ids: Any, d_out: Any, is_sparse: bool, padding: int
) -> Any:
    rows = ids.reshape(-1)
    height, width = table.shape
    values = d_out.reshape(-1, width)
    if is_sparse:
        # as the reference: padding rows travel with their gradient
        return SelectedRows(rows, values, height)
    dense = xp.zeros((height, width), values.dtype)
    add_rows(xp, dense, rows, values)
    if padding != _NO_PADDING:
        dense[padding] = 0
    return dense


def _declare(name: str, attrs: tuple[Attr, ...]) -> OpDef:
    made = op(
        name,
        ins=[In("W"), In("Ids", no_grad=True)],
        outs=[Out("Out")],
        attrs=attrs,
        infer=_infer,
        grad=grad_op(needs=["W", "Ids"], shape_only=["W"], view=True),
        lod="Ids",
    )
    cut = name == "lookup_table"

    @made.kernel
    def _(xp: Any, table: Any, ids: Any, *, padding_idx: int) -> Any:
        shape = ids.shape[:-1] if cut else ids.shape
        return _look_up(xp, name, table, ids, shape, padding_idx)

    @made.grad_kernel
    def _(
        xp: Any, d_out: Any, table: Any, ids: Any, *, is_sparse: bool, padding_idx: int
    ) -> Any:
        return _grad(xp, table, ids, d_out, is_sparse, padding_idx)

    made.grad_def.infer = _infer_grad
    return made


lookup_table = _declare("lookup_table", (*_ATTRS, Attr("grad_inplace", bool, False)))
lookup_table_v2 = _declare("lookup_table_v2", _ATTRS)
