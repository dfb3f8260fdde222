"""ONNX rules: matrix products, look-ups and reductions."""

from __future__ import annotations

import numpy as np

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph
from .rules import rule

__all__: list[str] = []


@rule("mul")
def _(g: Graph, op: Operator) -> None:
    x, y = g.take(op, "X"), g.take(op, "Y")
    x_cols, y_cols = op.attrs["x_num_col_dims"], op.attrs["y_num_col_dims"]
    x_rank, y_rank = len(g.shape(op, "X")), len(g.shape(op, "Y"))
    if x_rank == x_cols + 1 and y_rank == 2 and y_cols == 1:
        g.give(op, "Out", g.node("MatMul", [x, y]))
        return
    flat = [g.node("Flatten", [x], axis=x_cols), g.node("Flatten", [y], axis=y_cols)]
    product = g.node("MatMul", flat)
    if x_cols != 1 or y_rank - y_cols != 1:
        sizes = [g.sizes(x, 0, x_cols), g.sizes(y, y_cols)]
        product = g.node("Reshape", [product, g.node("Concat", sizes, axis=0)])
    g.give(op, "Out", product)


@rule("matmul")
def _(g: Graph, op: Operator) -> None:
    if op.attrs.get("head_number", 1) != 1:
        raise Unsupported("head_number must be 1")
    sides = []
    for slot in ("X", "Y"):
        value, rank = g.take(op, slot), len(g.shape(op, slot))
        if op.attrs[f"transpose_{slot}"]:
            if rank < 2:
                raise Unsupported("a vector cannot be transposed")
            value = g.transpose(value, [*range(rank - 2), rank - 1, rank - 2])
        sides.append(value)
    out = g.node("MatMul", sides)
    if len(g.shape(op, "X")) == len(g.shape(op, "Y")) == 1:
        out = g.reshape(out, 1)
    if op.attrs["alpha"] != 1:
        factor = g.constant(op.attrs["alpha"], g.dtype(op, "X"))
        out = g.node("Mul", [out, factor])
    g.give(op, "Out", out)


@rule("bmm")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("MatMul", [g.take(op, "X"), g.take(op, "Y")]))


@rule("dot")
def _(g: Graph, op: Operator) -> None:
    product = g.node("Mul", [g.take(op, "X"), g.take(op, "Y")])
    g.give(op, "Out", g.node("ReduceSum", [product, g.ints(-1)], keepdims=1))


@rule("lookup_table", "lookup_table_v2")
def _(g: Graph, op: Operator) -> None:
    if op.attrs.get("remote_prefetch") and op.attrs.get("epmap"):
        raise Unsupported("its table is on parameter servers")
    ids = g.take(op, "Ids")
    if op.type == "lookup_table":
        ids = g.node("Squeeze", [ids, g.ints(-1)])
    rows = g.node("Gather", [g.take(op, "W"), ids], axis=0)
    padding = op.attrs["padding_idx"]
    if padding != -1:
        none = g.constant(padding, g.dtype(op, "Ids"))
        there = g.node("Not", [g.node("Equal", [ids, none])])
        mask = g.cast(there, g.dtype(op, "W"))
        rows = g.node("Mul", [rows, g.node("Unsqueeze", [mask, g.ints(-1)])])
    g.give(op, "Out", rows)


# ---------------------------------------------------------------- reductions

_REDUCE = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_all": "ReduceMin",
    "reduce_any": "ReduceMax",
}


@rule(*_REDUCE)
def _(g: Graph, op: Operator) -> None:
    x, rank = g.take(op, "X"), len(g.shape(op, "X"))
    axes = sorted({d % rank for d in op.attrs["dim"]})
    if op.attrs["reduce_all"] or not axes:
        axes = list(range(rank))
    keep = op.attrs["keep_dim"]
    truth = op.type in ("reduce_all", "reduce_any")
    if truth:
        x = g.cast(x, np.int32)
    if op.type == "reduce_sum":  # the others take axes as inputs from opset 18 on
        out = g.node("ReduceSum", [x, g.ints(*axes)], keepdims=int(keep))
    else:
        out = g.node(_REDUCE[op.type], [x], axes=axes, keepdims=int(keep))
    if truth:
        out = g.cast(out, np.bool_)
    if len(axes) == rank and not keep:
        out = g.reshape(out, 1)
    g.give(op, "Out", out)


@rule("mean")
def _(g: Graph, op: Operator) -> None:
    out = g.node("ReduceMean", [g.take(op, "X")], keepdims=0)
    g.give(op, "Out", g.reshape(out, 1))


@rule("arg_max", "arg_min")
def _(g: Graph, op: Operator) -> None:
    type = "ArgMax" if op.type == "arg_max" else "ArgMin"
    keep = int(op.attrs.get("keepdims", False))
    out = g.node(type, [g.take(op, "X")], axis=op.attrs["axis"], keepdims=keep)
    if len(g.shape(op, "X")) == 1 and not keep:
        out = g.reshape(out, 1)
    if (dtype := g.dtype(op, "Out")) != np.int64:
        out = g.cast(out, dtype)
    g.give(op, "Out", out)


@rule("top_k")
def _(g: Graph, op: Operator) -> None:
    count = g.ints(op.attrs["k"])
    if g.has(op, "K"):
        count = g.cast(g.reshape(g.take(op, "K"), 1), np.int64)
    _give_sorted(g, op, g.nodes_of("TopK", [g.take(op, "X"), count], 2, axis=-1))


@rule("argsort")
def _(g: Graph, op: Operator) -> None:
    x, rank = g.take(op, "X"), len(g.shape(op, "X"))
    axis = op.attrs["axis"] % rank
    attrs = {"axis": axis, "largest": int(op.attrs["descending"])}
    every = g.sizes(x, axis, axis + 1)
    _give_sorted(g, op, g.nodes_of("TopK", [x, every], 2, **attrs))


def _give_sorted(g: Graph, op: Operator, found: list[str]) -> None:
    g.give(op, "Out", found[0])
    g.give(op, "Indices", found[1])


@rule("cumsum")
def _(g: Graph, op: Operator) -> None:
    flags = {key: int(op.attrs[key]) for key in ("exclusive", "reverse")}
    axis = g.constant(op.attrs["axis"], np.int64)
    g.give(op, "Out", g.node("CumSum", [g.take(op, "X"), axis], **flags))


@rule("norm")
def _(g: Graph, op: Operator) -> None:
    x, dtype = g.take(op, "X"), g.dtype(op, "X")
    axes = g.ints(op.attrs["axis"])
    total = g.node("ReduceSum", [g.node("Mul", [x, x]), axes], keepdims=1)
    total = g.node("Add", [total, g.constant(op.attrs["epsilon"], dtype)])
    length = g.node("Sqrt", [total])
    out = g.node("Div", [x, length])
    g.give(op, "Norm", length)
    g.give(op, "Out", out)


@rule("add_position_encoding")
def _(g: Graph, op: Operator) -> None:
    """Sines, then cosines, of position / 10000 ** step, for any length."""
    x, dtype = g.take(op, "X"), g.dtype(op, "X")
    if len(g.shape(op, "X")) != 3:
        raise Unsupported("rows with LoD are not exported")
    (width,) = g.static(op, "X", [2])
    half = width // 2
    step = np.arange(half) / (half - 1) if half > 1 else np.ones(1)
    length = g.node("Squeeze", [g.sizes(x, 1, 2)])
    ends = [g.constant(0, np.int64), length, g.constant(1, np.int64)]
    positions = g.reshape(g.cast(g.node("Range", ends), dtype), -1, 1)
    angles = g.node("Div", [positions, g.constant(10000.0**step, dtype)])
    waves = [g.node("Sin", [angles]), g.node("Cos", [angles])]
    encoding = g.node("Concat", waves, axis=1)
    scaled = [
        g.node("Mul", [value, g.constant(op.attrs[key], dtype)])
        for value, key in ((x, "alpha"), (encoding, "beta"))
    ]
    g.give(op, "Out", g.node("Add", scaled))
