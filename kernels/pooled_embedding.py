"""`fused_embedding_seq_pool`: the sum of an embedding's rows over each sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .lod import lengths_of, owners, sole_level
from .registry import op
from .rows import add_rows, check_ids
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []

_NAME = "fused_embedding_seq_pool"
_NO_PADDING = -1


def _infer(op: InferContext) -> None:
    table, ids = op.input("W"), op.input("Ids")
    combiner = op.attr("combiner")
    op.check(len(table.shape) == 2, f"W has shape {table.shape}, not (rows, width)")
    op.check(
        bool(ids.shape) and ids.shape[-1] in (1, -1),
        f"Ids has shape {ids.shape}, not (..., 1)",
    )
    op.check(combiner == "sum", f"combiner must be 'sum', got {combiner!r}")
    # how many sequences there are is not known here
    op.set("Out", (-1, table.shape[1]), table.dtype)


def _infer_grad(op: InferContext) -> None:
    table = op.input("W")
    sparse = op.attr("is_sparse")
    kind = VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR
    op.set("W@GRAD", table.shape, table.dtype, kind=kind)


pooled = op(
    _NAME,
    ins=[In("W"), In("Ids", no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("combiner", str, "sum"),
        Attr("is_sparse", bool, False),
        Attr("padding_idx", AttrType.LONG, _NO_PADDING),
        Attr("grad_inplace", bool, False),
        Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", bool, True),
    ],
    infer=_infer,
    grad=grad_op(needs=["W", "Ids"], shape_only=["W"]),
    lod=None,
)
pooled.grad_def.infer = _infer_grad


@pooled.kernel
def _(xp: Any, table: Any, ids: Any, *, padding_idx: int, lod: Any) -> Any:
    """Out (sequences, width); an empty sequence gives zeros, padding_idx counts not."""
    flat = ids.reshape(-1)
    check_ids(_NAME, "id", flat, table.shape[0])
    offsets = sole_level(_NAME, "Ids", lod.get("Ids"), len(flat))
    rows = table.take(flat, axis=0)
    if padding_idx != _NO_PADDING:
        rows[flat == padding_idx] = 0
    lengths = lengths_of(offsets)
    full = np.flatnonzero(lengths)
    out = xp.zeros((len(lengths), table.shape[1]), table.dtype)
    if len(full):
        starts = xp.asarray(offsets[:-1][full])
        out[xp.asarray(full)] = xp.add.reduceat(rows, starts, axis=0)
    return out


@pooled.grad_kernel
def _(
    xp: Any,
    table: Any,
    ids: Any,
    d_out: Any,
    *,
    is_sparse: bool,
    padding_idx: int,
    lod: Any,
) -> Any:
    flat = ids.reshape(-1)
    offsets = sole_level(f"{_NAME}_grad", "Ids", lod.get("Ids"), len(flat))
    values = d_out.take(xp.asarray(owners(lengths_of(offsets))), axis=0)
    height, width = table.shape
    if is_sparse:
        # as the reference: padding rows travel with their gradient
        return SelectedRows(flat, values, height)
    dense = xp.zeros((height, width), values.dtype)
    add_rows(xp, dense, flat, values)
    if padding_idx != _NO_PADDING:
        dense[padding_idx] = 0
    return dense
