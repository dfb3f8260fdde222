"""Matrices by their diagonals: eye, diag, diag_embed, trace, tril_triu."""

from __future__ import annotations

from typing import Any

from .dtypes import VarType, to_numpy
from .grad import GRAD, grad_op
from .infer import InferContext, same_as
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []


def _two_axes(op: InferContext, rank: int) -> tuple[int, int]:
    """The attributes dim1 and dim2 as two different axes of a tensor."""
    found = []
    for key in ("dim1", "dim2"):
        dim = op.attr(key)
        op.check(-rank <= dim < rank, f"{key} {dim} is not one of {rank} axes")
        found.append(dim % rank)
    first, second = found
    op.check(first != second, f"dim1 and dim2 are the same axis {first}")
    return first, second


def _diagonal(xp: Any, count: int, offset: int) -> tuple[Any, Any]:
    """Row and column numbers of the first `count` places of a diagonal."""
    places = xp.arange(count)
    return places + max(-offset, 0), places + max(offset, 0)


def _infer_eye(op: InferContext) -> None:
    rows, columns = op.attr("num_rows"), op.attr("num_columns")
    op.check(rows >= 0, f"num_rows is {rows}, not at least 0")
    op.check(columns >= -1, f"num_columns is {columns}, not at least 0")
    shape = (rows, rows if columns == -1 else columns)
    op.set("Out", shape, VarType(op.attr("dtype")))


eye = op(
    "eye",
    outs=[Out("Out")],
    attrs=[
        Attr("dtype", int, 5),
        Attr("num_columns", AttrType.LONG, -1),
        Attr("num_rows", AttrType.LONG),
    ],
    infer=_infer_eye,
    grad=None,
    lod=None,
)


@eye.kernel
def _(xp: Any, *, num_rows: int, num_columns: int, dtype: int) -> Any:
    columns = num_rows if num_columns == -1 else num_columns
    return xp.eye(num_rows, columns, dtype=to_numpy(dtype))


def _infer_diag(op: InferContext) -> None:
    x = op.input("Diagonal")
    op.check(len(x.shape) == 1, f"Diagonal has shape {x.shape}, not (n,)")
    op.set("Out", x.shape * 2, x.dtype)


diag = op(
    "diag",
    ins=[In("Diagonal", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_diag,
    grad=None,
    lod=None,
)


@diag.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.diag(x)


def _infer_diag_embed(op: InferContext) -> None:
    x = op.input("Input")
    op.check(bool(x.shape), "Input has no dimension")
    first, second = _two_axes(op, len(x.shape) + 1)
    size = x.shape[-1]
    side = -1 if size < 0 else size + abs(op.attr("offset"))
    out = list(x.shape[:-1])
    for axis in sorted((first, second)):
        out.insert(axis, side)
    op.set("Out", out, x.dtype)


_DIMS = (
    Attr("dim1", int, -2),
    Attr("dim2", int, -1),
    Attr("offset", int, 0),
)
diag_embed = op(
    "diag_embed",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    attrs=_DIMS,
    infer=_infer_diag_embed,
    grad=None,
    lod=None,
)


@diag_embed.kernel
def _(xp: Any, x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """Zeros with the last axis of Input on a diagonal of axes dim1 and dim2."""
    side = x.shape[-1] + abs(offset)
    out = xp.zeros((*x.shape[:-1], side, side), x.dtype)
    rows, columns = _diagonal(xp, x.shape[-1], offset)
    out[..., rows, columns] = x
    return xp.moveaxis(out, (-2, -1), (dim1, dim2))


# --- trace -------------------------------------------------------------------------


def _infer_trace(op: InferContext) -> None:
    x = op.input("Input")
    op.check(len(x.shape) >= 2, f"Input has shape {x.shape}, not a matrix")
    gone = _two_axes(op, len(x.shape))
    rest = [d for i, d in enumerate(x.shape) if i not in gone]
    op.set("Out", rest or (1,), x.dtype)


trace = op(
    "trace",
    ins=[In("Input")],
    outs=[Out("Out")],
    attrs=_DIMS,
    infer=_infer_trace,
    grad=grad_op(needs=["Input"], shape_only=["Input"]),
    lod=None,
)


@trace.kernel
def _(xp: Any, x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    """Sums along a diagonal. Which of the two axes comes first does not matter, as in
    the reference: `offset` counts along the later one."""
    first, second = sorted((dim1 % x.ndim, dim2 % x.ndim))
    found = xp.trace(x, offset, first, second, dtype=x.dtype)
    return found if x.ndim > 2 else xp.asarray(found, x.dtype).reshape(1)


@trace.grad_kernel
def _(xp: Any, x: Any, d: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    d_x = xp.zeros(x.shape, d.dtype)
    planes = sorted((dim1 % x.ndim, dim2 % x.ndim))
    matrices = xp.moveaxis(d_x, planes, (-2, -1))
    height, width = matrices.shape[-2:]
    count = min(height - max(-offset, 0), width - max(offset, 0))
    rows, columns = _diagonal(xp, max(count, 0), offset)
    matrices[..., rows, columns] = d.reshape((*matrices.shape[:-2], 1))
    return d_x


# --- tril_triu ---------------------------------------------------------------------


def _infer_triangle(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not a matrix")
    op.set("Out", like=x)


tril_triu = op(
    "tril_triu",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("diagonal", int, 0), Attr("lower", bool)],
    infer=_infer_triangle,
    grad=grad_op(),
)
tril_triu.grad_def.infer = same_as("Out" + GRAD, "X" + GRAD)


def _triangle(xp: Any, x: Any, *, diagonal: int, lower: bool) -> Any:
    return xp.tril(x, diagonal) if lower else xp.triu(x, diagonal)


tril_triu.kernel(_triangle)
tril_triu.grad_kernel(_triangle)
