"""Elements by several indices or by condition: index_select, gather_nd, where, ...

Where elements are added up by index (gradients, scatter_nd_add) repeated indices add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dtypes import VarType
from .grad import GRAD, grad_op
from .infer import InferContext, Shape
from .registry import op
from .rows import add_rows, check_ids
from .schema import Attr, In, Out

__all__: list[str] = []

_INDEX = In("Index", no_grad=True)


# --- index_select, index_sample ----------------------------------------------------


def _infer_index_select(op: InferContext) -> None:
    x, index = op.input("X"), op.shape("Index")
    dim, rank = op.attr("dim"), len(x.shape)
    op.check(-rank <= dim < rank, f"dim {dim} is not one of {rank} axes")
    op.check(
        len(index) == 1 or (len(index) == 2 and index[1] in (1, -1)),
        f"Index has shape {index}, not (n,) or (n, 1)",
    )
    out = list(x.shape)
    out[dim] = index[0]
    op.set("Out", out, x.dtype, x.lod_level if dim % rank else 0)


index_select = op(
    "index_select",
    ins=[In("X"), _INDEX],
    outs=[Out("Out")],
    attrs=[Attr("dim", int, 0)],
    infer=_infer_index_select,
    grad=grad_op(needs=["X", "Index"], shape_only=["X"]),
)


@index_select.kernel
def _(xp: Any, x: Any, index: Any, *, dim: int) -> Any:
    check_ids("index_select", "index", index, x.shape[dim])
    return x.take(index.reshape(-1), axis=dim)


@index_select.grad_kernel
def _(xp: Any, x: Any, index: Any, d: Any, *, dim: int) -> Any:
    rows = xp.moveaxis(d, dim, 0)
    total = xp.zeros((x.shape[dim], *rows.shape[1:]), d.dtype)
    add_rows(xp, total, index.reshape(-1), rows)
    return xp.moveaxis(total, 0, dim)


@index_select.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    # rows of other places are other sequences
    keeps = "X" in lod and attrs["dim"] % values["X"].ndim
    return {"Out": lod["X"]} if keeps else {}


def _infer_index_sample(op: InferContext) -> None:
    x, index = op.input("X"), op.shape("Index")
    op.check(
        len(x.shape) == len(index) == 2,
        f"takes matrices, got X {x.shape} and Index {index}",
    )
    op.check(
        x.shape[0] == index[0] or -1 in (x.shape[0], index[0]),
        f"X has {x.shape[0]} rows, Index {index[0]}",
    )
    op.set("Out", index, x.dtype)


index_sample = op(
    "index_sample",
    ins=[In("X"), _INDEX],
    outs=[Out("Out")],
    infer=_infer_index_sample,
    grad=grad_op(needs=["X", "Index"], shape_only=["X"]),
    lod=None,
)


def _places(xp: Any, x: Any, index: Any) -> Any:
    """Flat places in x of the columns `index` of each row."""
    return index + xp.arange(0, x.size, x.shape[1] or 1)[: len(x)].reshape(-1, 1)


@index_sample.kernel
def _(xp: Any, x: Any, index: Any) -> Any:
    """Row by row, the elements of X in the columns that Index names."""
    check_ids("index_sample", "index", index, x.shape[1])
    return x.reshape(-1).take(_places(xp, x, index))


@index_sample.grad_kernel
def _(xp: Any, x: Any, index: Any, d: Any) -> Any:
    d_x = xp.zeros(x.shape, d.dtype)
    places = _places(xp, x, index).reshape(-1)
    add_rows(xp, d_x.reshape(-1), places, d.reshape(-1))
    return d_x


# --- gather_nd, scatter_nd_add -----------------------------------------------------


def _infer_picked(op: InferContext, x: Shape, index: Shape) -> Shape:
    """Shape of what `index` picks from a tensor of shape `x`."""
    op.check(len(index) >= 2, f"Index has shape {index}, not two dimensions at least")
    depth = index[-1]
    op.check(depth >= 0, f"the last size of Index {index} must be known")
    op.check(depth <= len(x), f"Index {index} has {depth} numbers per place of {x}")
    return (*index[:-1], *x[depth:])


def _flat(xp: Any, name: str, shape: Shape, index: Any) -> tuple[Any, int, list[int]]:
    """Row numbers that `index` means in a tensor seen as rows of a matrix.

    Also the number of rows, and the shape of one.
    """
    depth = index.shape[-1]
    columns = index.reshape(-1, depth) if depth else index
    rows, count = None, 1
    for axis in range(depth):
        size = shape[axis]
        column = columns[:, axis]
        check_ids(name, f"index {axis}", xp.ascontiguousarray(column), size)
        rows = column.astype("i8") if rows is None else rows * size + column
        count *= size
    if rows is None:
        places = 1
        for size in index.shape[:-1]:
            places *= size
        rows = xp.zeros(places, "i8")
    return rows, count, list(shape[depth:])


def _as_rows(x: Any, count: int, row: Sequence[int]) -> Any:
    return x.reshape([count, *row])


def _infer_gather_nd(op: InferContext) -> None:
    x = op.input("X")
    shape = _infer_picked(op, x.shape, op.shape("Index"))
    op.set("Out", shape, x.dtype, x.lod_level)


gather_nd = op(
    "gather_nd",
    ins=[In("X"), _INDEX],
    outs=[Out("Out")],
    infer=_infer_gather_nd,
    grad=grad_op(needs=["X", "Index"], shape_only=["X"]),
)


@gather_nd.kernel
def _(xp: Any, x: Any, index: Any) -> Any:
    """The parts of X at the places that the last axis of Index names."""
    rows, count, row = _flat(xp, "gather_nd", x.shape, index)
    found = _as_rows(x, count, row).take(rows, axis=0)
    return found.reshape([*index.shape[:-1], *row])


@gather_nd.grad_kernel
def _(xp: Any, x: Any, index: Any, d: Any) -> Any:
    rows, count, row = _flat(xp, "gather_nd", x.shape, index)
    d_x = xp.zeros([count, *row], d.dtype)
    add_rows(xp, d_x, rows, d.reshape([len(rows), *row]))
    return d_x.reshape(x.shape)


def _infer_scatter_nd(op: InferContext) -> None:
    x, updates = op.input("X"), op.shape("Updates")
    wanted = _infer_picked(op, x.shape, op.shape("Index"))
    op.check(
        len(wanted) == len(updates)
        and all(p == q or -1 in (p, q) for p, q in zip(wanted, updates)),
        f"Updates has shape {updates}, expected {wanted}",
    )
    op.set("Out", like=x)


scatter_nd_add = op(
    "scatter_nd_add",
    ins=[In("X"), _INDEX, In("Updates")],
    outs=[Out("Out")],
    infer=_infer_scatter_nd,
    grad=grad_op(needs=["Index", "Updates"], shape_only=["Updates"]),
)


@scatter_nd_add.kernel
def _(xp: Any, x: Any, index: Any, updates: Any) -> Any:
    """X with Updates added at the places that the last axis of Index names."""
    rows, count, row = _flat(xp, "scatter_nd_add", x.shape, index)
    out = x.copy()
    values = updates.reshape([len(rows), *row])
    add_rows(xp, _as_rows(out, count, row), rows, values)
    return out


@scatter_nd_add.grad_kernel
def _(xp: Any, index: Any, updates: Any, d: Any, *, wants: Any) -> Any:
    d_x = d.copy() if wants[0] else None
    if not wants[1]:
        return d_x, None
    rows, count, row = _flat(xp, "scatter_nd_add", d.shape, index)
    return d_x, _as_rows(d, count, row).take(rows, axis=0).reshape(updates.shape)


def _infer_scatter_nd_grad(op: InferContext) -> None:
    op.set("X" + GRAD, like=op.input("Out" + GRAD))
    op.set("Updates" + GRAD, like=op.input("Updates"))


scatter_nd_add.grad_def.infer = _infer_scatter_nd_grad

# --- multiplex, where --------------------------------------------------------------


def _infer_multiplex(op: InferContext) -> None:
    ids, metas = op.shape("Ids"), op.inputs("X")
    op.check(len(metas) >= 2, f"chooses among two X at least, got {len(metas)}")
    op.check(len(ids) == 2, f"Ids has shape {ids}, not (n, 1)")
    first = metas[0]
    for meta in metas:
        op.check(
            len(meta.shape) >= 2
            and len(meta.shape) == len(first.shape)
            and all(p == q or -1 in (p, q) for p, q in zip(meta.shape, first.shape)),
            f"shapes of X differ or have no rows: {first.shape} and {meta.shape}",
        )
    op.set("Out", first.shape, first.dtype)


def _infer_multiplex_grad(op: InferContext) -> None:
    d = op.input("Out" + GRAD)
    op.set("X" + GRAD, d.shape, d.dtype)


multiplex = op(
    "multiplex",
    ins=[In("Ids", no_grad=True), In("X", duplicable=True)],
    outs=[Out("Out")],
    infer=_infer_multiplex,
    grad=grad_op(needs=["Ids"]),
    lod=None,
)
multiplex.grad_def.infer = _infer_multiplex_grad


@multiplex.kernel
def _(xp: Any, ids: Any, xs: list[Any]) -> Any:
    """Row i is row i of the X that Ids[i] names."""
    ids = ids.reshape(-1)
    check_ids("multiplex", "id", ids, len(xs))
    out = xp.empty(xs[0].shape, xs[0].dtype)
    for i, x in enumerate(xs):
        rows = xp.flatnonzero(ids == i)
        out[rows] = x[rows]
    return out


@multiplex.grad_kernel
def _(xp: Any, ids: Any, d: Any, *, counts: dict[str, int]) -> Any:
    column = ids.reshape([-1] + [1] * (d.ndim - 1))
    return [d * (column == i) for i in range(counts["X" + GRAD])]


def _infer_where(op: InferContext) -> None:
    shapes = [op.shape(slot) for slot in ("Condition", "X", "Y")]
    first = shapes[0]
    for other in shapes[1:]:
        op.check(
            len(first) == len(other)
            and all(p == q or -1 in (p, q) for p, q in zip(first, other)),
            f"Condition, X and Y must have one shape, got {shapes}",
        )
    op.set("Out", like=op.input("X"))


where = op(
    "where",
    ins=[In("Condition", no_grad=True), In("X"), In("Y")],
    outs=[Out("Out")],
    infer=_infer_where,
    grad=grad_op(needs=["Condition", "X", "Y"], shape_only=["X", "Y"]),
    lod="X",
)


@where.kernel
def _(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    return xp.where(condition, x, y)


@where.grad_kernel
def _(xp: Any, condition: Any, x: Any, y: Any, d: Any, *, wants: Any) -> Any:
    zero = d.dtype.type(0)
    d_x = xp.where(condition, d, zero) if wants[0] else None
    return d_x, xp.where(condition, zero, d) if wants[1] else None


def _infer_where_index(op: InferContext) -> None:
    op.set("Out", (-1, len(op.shape("Condition"))), VarType.INT64)


where_index = op(
    "where_index",
    ins=[In("Condition", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_where_index,
    grad=None,
    lod=None,
)


@where_index.kernel
def _(xp: Any, condition: Any) -> Any:
    """The places that are not 0 or False, one a row, in order."""
    return xp.argwhere(condition).astype("i8", copy=False)
