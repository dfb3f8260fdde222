"""Ops that pick elements by index: gather, scatter, one_hot, top_k, argsort, ...

Where equal values compete (top_k, arg_max, argsort) the lower index comes first.
"""

from __future__ import annotations

from typing import Any

from .dtypes import VarType, to_numpy
from .grad import grad_op
from .infer import InferContext
from .registry import OpDef, op
from .rows import add_rows, check_ids
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []


# --- gather, scatter ----------------------------------------------------------


def _check_indices(op: InferContext, slot: str) -> None:
    meta = op.input(slot)
    op.check(
        meta.dtype in (VarType.INT32, VarType.INT64),
        f"{slot} must hold int32 or int64, got {meta.dtype.name}",
    )
    op.check(
        len(meta.shape) == 1 or (len(meta.shape) == 2 and meta.shape[1] in (1, -1)),
        f"{slot} has shape {meta.shape}, not (n,) or (n, 1)",
    )


def _infer_gather(op: InferContext) -> None:
    x, index = op.input("X"), op.shape("Index")
    _check_indices(op, "Index")
    op.set("Out", (index[0], *x.shape[1:]), x.dtype)


gather = op(
    "gather",
    ins=[In("X"), In("Index", no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("overwrite", bool, True)],
    infer=_infer_gather,
    grad=grad_op(needs=["X", "Index"], shape_only=["X"]),
    lod=None,
)


@gather.kernel
def _(xp: Any, x: Any, index: Any) -> Any:
    check_ids("gather", "index", index, x.shape[0])
    return x.take(index.reshape(-1), axis=0)


@gather.grad_kernel
def _(xp: Any, x: Any, index: Any, d_out: Any, *, overwrite: bool) -> Any:
    d_x = xp.zeros(x.shape, d_out.dtype)
    index = index.reshape(-1)
    if overwrite:
        # as the reference: of several gradients for one row the last one stays
        d_x[index] = d_out
    else:
        add_rows(xp, d_x, index, d_out)
    return d_x


def _infer_scatter(op: InferContext) -> None:
    x, ids, updates = op.input("X"), op.shape("Ids"), op.shape("Updates")
    _check_indices(op, "Ids")
    op.check(
        len(updates) == len(x.shape)
        and all(p == q or -1 in (p, q) for p, q in zip(updates[1:], x.shape[1:])),
        f"Updates {updates} are no rows of {x.shape}",
    )
    op.check(
        -1 in (ids[0], updates[0]) or ids[0] == updates[0],
        f"{ids[0]} Ids for {updates[0]} rows of Updates",
    )
    op.set("Out", x.shape, x.dtype)


scatter = op(
    "scatter",
    ins=[In("X"), In("Ids", no_grad=True), In("Updates")],
    outs=[Out("Out")],
    attrs=[Attr("overwrite", bool, True)],
    infer=_infer_scatter,
    grad=grad_op(needs=["Ids", "Updates"], shape_only=["Updates"]),
    lod=None,
)


@scatter.kernel
def _(xp: Any, x: Any, ids: Any, updates: Any, *, overwrite: bool) -> Any:
    check_ids("scatter", "id", ids, x.shape[0])
    out, ids = x.copy(), ids.reshape(-1)
    if overwrite:
        out[ids] = updates
    else:
        out[ids] = 0
        add_rows(xp, out, ids, updates)
    return out


@scatter.grad_kernel
def _(xp: Any, ids: Any, updates: Any, d_out: Any, *, wants: Any) -> Any:
    # as the reference: X gets the whole gradient, overwritten rows included
    d_x = d_out.copy() if wants[0] else None
    return d_x, d_out.take(ids.reshape(-1), axis=0) if wants[1] else None


def _infer_scatter_grad(op: InferContext) -> None:
    out = op.input("Out@GRAD")
    op.set("X@GRAD", out.shape, out.dtype)
    op.set("Updates@GRAD", like=op.input("Updates"))


scatter.grad_def.infer = _infer_scatter_grad

# --- one_hot ------------------------------------------------------------------

_ONE_HOT_ATTRS = (
    Attr("depth", int, -1),
    Attr("dtype", int, int(VarType.FP32)),
    Attr("allow_out_of_range", bool, False),
)


def _infer_one_hot(op: InferContext) -> None:
    x = op.input("X")
    shape = x.shape
    if op.op_type == "one_hot":
        op.check(
            bool(shape) and shape[-1] in (1, -1), f"X has shape {shape}, not (..., 1)"
        )
        shape = shape[:-1]
    depth = -1 if op.has("depth_tensor") else op.attr("depth")
    op.set("Out", (*shape, depth), VarType(op.attr("dtype")), x.lod_level)


def _one_hot(xp: Any, op_name: str, ids: Any, shape: Any, kind: int, free: Any) -> Any:
    depth = shape[-1]
    ids = ids.reshape(-1)
    out = xp.zeros((ids.size, depth), to_numpy(kind))
    if free:
        rows = xp.flatnonzero((ids >= 0) & (ids < depth))
        out[rows, ids[rows]] = 1
    else:
        check_ids(op_name, "id", ids, depth)
        out[xp.arange(ids.size), ids] = 1
    return out.reshape(shape)


one_hot, one_hot_v2 = (
    op(
        name,
        ins=[In("X", no_grad=True), In("depth_tensor", False, True, True)],
        outs=[Out("Out")],
        attrs=_ONE_HOT_ATTRS,
        infer=_infer_one_hot,
        grad=None,
    )
    for name in ("one_hot", "one_hot_v2")
)


@one_hot.kernel
def _(
    xp: Any, x: Any, given: Any, *, depth: int, dtype: int, allow_out_of_range: bool
) -> Any:
    depth = depth if given is None else int(given.reshape(-1)[0])
    shape = (*x.shape[:-1], depth)
    return _one_hot(xp, "one_hot", x, shape, dtype, allow_out_of_range)


@one_hot_v2.kernel
def _(
    xp: Any, x: Any, given: Any, *, depth: int, dtype: int, allow_out_of_range: bool
) -> Any:
    depth = depth if given is None else int(given.reshape(-1)[0])
    shape = (*x.shape, depth)
    return _one_hot(xp, "one_hot_v2", x, shape, dtype, allow_out_of_range)


# --- top_k, argsort -----------------------------------------------------------


def _infer_top_k(op: InferContext) -> None:
    x = op.input("X")
    k = op.attr("k")
    if not op.has("K"):
        op.check(k >= 1, f"k is {k}, not at least 1")
        size = x.shape[-1] if x.shape else 0
        op.check(size < 0 or size >= k, f"k is {k} for a last axis of {size}")
    op.set("Out", (*x.shape[:-1], k), like=x)
    op.set("Indices", (*x.shape[:-1], k), VarType.INT64, x.lod_level)


def _put_back(xp: Any, shape: Any, index: Any, values: Any) -> Any:
    """Zeros of this shape, with `values` at `index` of the last axis."""
    out = xp.zeros(shape, values.dtype)
    width, k = shape[-1], index.shape[-1]
    base = xp.arange(0, out.size, width).reshape(-1, 1)
    out.reshape(-1)[base + index.reshape(-1, k)] = values.reshape(-1, k)
    return out


def _top_few(xp: Any, x: Any, k: int) -> Any:
    """Places of the k largest of each row, one after the other; None: sort instead."""
    if k == 1:
        return x.argmax(axis=1).reshape(-1, 1)
    if k > 8 or x.dtype.kind != "f":
        return None
    left = x.copy()
    base = xp.arange(0, x.size, x.shape[1])
    found = []
    for _ in range(k):
        place = left.argmax(axis=1)
        found.append(place)
        place = place + base
        last = left.take(place)
        left.reshape(-1)[place] = -xp.inf
    # -inf is what marks the places taken, so it must not be among the results
    return None if (last == -xp.inf).any() else xp.stack(found, 1)


top_k = op(
    "top_k",
    ins=[In("X"), In("K", False, True, True)],
    outs=[Out("Out"), Out("Indices")],
    attrs=[Attr("k", int, 1)],
    infer=_infer_top_k,
    grad=grad_op(needs=["X", "Indices"], shape_only=["X"], of=["Out"]),
)


@top_k.kernel
def _(xp: Any, x: Any, given: Any, *, k: int) -> Any:
    if given is not None:
        k = int(given.reshape(-1)[0])
    width = x.shape[-1]
    if not 1 <= k <= width:
        raise ValueError(f"top_k: k is {k} for a last axis of {width}")
    flat = x.reshape(-1, width)
    index = _top_few(xp, flat, k) if k == 1 or 8 * k <= width else None
    if index is None:
        # stable on the negated values: equal ones keep their order
        index = xp.argsort(-flat, axis=1, kind="stable")[:, :k]
    base = xp.arange(0, flat.size, width).reshape(-1, 1)
    shape = (*x.shape[:-1], k)
    return flat.take(base + index).reshape(shape), index.reshape(shape)


@top_k.grad_kernel
def _(xp: Any, x: Any, index: Any, d_out: Any) -> Any:
    return _put_back(xp, x.shape, index, d_out)


def _infer_argsort(op: InferContext) -> None:
    x = op.input("X")
    axis, rank = op.attr("axis"), len(x.shape)
    op.check(-rank <= axis < rank, f"axis {axis} is not one of {rank} axes")
    op.set("Out", like=x)
    op.set("Indices", x.shape, VarType.INT64, x.lod_level)


argsort = op(
    "argsort",
    ins=[In("X")],
    outs=[Out("Out"), Out("Indices")],
    attrs=[Attr("axis", int, -1), Attr("descending", bool, False)],
    infer=_infer_argsort,
    grad=grad_op(needs=["X", "Indices"], shape_only=["X"], of=["Out"]),
)


@argsort.kernel
def _(xp: Any, x: Any, *, axis: int, descending: bool) -> Any:
    index = xp.argsort(-x if descending else x, axis=axis, kind="stable")
    return xp.take_along_axis(x, index, axis), index


@argsort.grad_kernel
def _(xp: Any, x: Any, index: Any, d_out: Any, *, axis: int) -> Any:
    if axis in (-1, x.ndim - 1):
        return _put_back(xp, x.shape, index, d_out)
    index, d_out = xp.moveaxis(index, axis, -1), xp.moveaxis(d_out, axis, -1)
    return xp.moveaxis(_put_back(xp, d_out.shape, index, d_out), -1, axis)


# --- arg_max, arg_min ---------------------------------------------------------


def _infer_arg(op: InferContext) -> None:
    x = op.input("X")
    axis, rank = op.attr("axis"), len(x.shape)
    op.check(-rank <= axis < rank, f"axis {axis} is not one of {rank} axes")
    out = list(x.shape)
    out[axis : axis + 1 or None] = [1] if op.attr("keepdims") else []
    kind = op.attr("dtype")
    op.set("Out", out, VarType.INT64 if kind < 0 else VarType(kind))


def _arg(name: str) -> OpDef:
    made = op(
        name,
        ins=[In("X", no_grad=True)],
        outs=[Out("Out")],
        attrs=[
            Attr("axis", AttrType.LONG),
            Attr("dtype", int, -1),
            Attr("keepdims", bool, False),
        ],
        infer=_infer_arg,
        grad=None,
        lod=None,
    )
    method = name.replace("_", "")

    @made.kernel
    def _(xp: Any, x: Any, *, axis: int, dtype: int, keepdims: bool) -> Any:
        kind = to_numpy(VarType.INT64 if dtype < 0 else dtype)
        found = xp.asarray(getattr(x, method)(axis=axis), kind)
        return xp.expand_dims(found, axis) if keepdims else found

    return made


arg_max = _arg("arg_max")
arg_min = _arg("arg_min")
