"""ONNX rules: picking and moving elements, masks, and what tells of values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph, dtype_of
from .rules import rule

__all__: list[str] = []

_MIN = np.iinfo(np.int64).min + 1


@rule("flip")
def _(g: Graph, op: Operator) -> None:
    axes = list(op.attrs["dims"])
    start, stop = [-1] * len(axes), [_MIN] * len(axes)
    bounds = [g.ints(*v) for v in (start, stop, axes, start)]
    g.give(op, "Out", g.node("Slice", [g.take(op, "X"), *bounds]))


@rule("roll")
def _(g: Graph, op: Operator) -> None:
    """What goes out at the end comes in at the front."""
    shifts, dims = op.attrs["shifts"], list(op.attrs["dims"])
    sizes, moved = g.static(op, "X", dims), g.take(op, "X")
    for shift, axis, size in zip(shifts, dims, sizes):
        cut = g.ints(-shift % size)
        bounds = ((cut, g.ints(size)), (g.ints(0), cut))
        parts = [g.node("Slice", [moved, *b, g.ints(axis)]) for b in bounds]
        moved = g.node("Concat", parts, axis=axis)
    g.give(op, "Out", moved)


@rule("index_select")
def _(g: Graph, op: Operator) -> None:
    index = g.take(op, "Index")
    g.give(op, "Out", g.node("Gather", [g.take(op, "X"), index], axis=op.attrs["dim"]))


@rule("index_sample")
def _(g: Graph, op: Operator) -> None:
    inputs = [g.take(op, "X"), g.take(op, "Index")]
    g.give(op, "Out", g.node("GatherElements", inputs, axis=1))


@rule("scatter")
def _(g: Graph, op: Operator) -> None:
    if not op.attrs["overwrite"]:
        raise Unsupported("overwrite=False first zeroes the rows that it adds to")
    ids = g.cast(g.reshape(g.take(op, "Ids"), -1, 1), np.int64)
    inputs = [g.take(op, "X"), ids, g.take(op, "Updates")]
    g.give(op, "Out", g.node("ScatterND", inputs))


@rule("scatter_nd_add")
def _(g: Graph, op: Operator) -> None:
    index = g.cast(g.take(op, "Index"), np.int64)
    inputs = [g.take(op, "X"), index, g.take(op, "Updates")]
    g.give(op, "Out", g.node("ScatterND", inputs, reduction="add"))


@rule("multiplex")
def _(g: Graph, op: Operator) -> None:
    """Row i of the candidate that Ids[i] names."""
    parts = [g.node("Unsqueeze", [v, g.ints(1)]) for v in g.take_all(op, "X")]
    ids = g.cast(g.reshape(g.take(op, "Ids"), -1, 1), np.int64)
    inputs = [g.node("Concat", parts, axis=1), ids]
    g.give(op, "Out", g.node("GatherND", inputs, batch_dims=1))


@rule("where_index")
def _(g: Graph, op: Operator) -> None:
    found = g.node("NonZero", [g.take(op, "Condition")])
    g.give(op, "Out", g.transpose(found, [1, 0]))


@rule("crop_tensor", "crop")
def _(g: Graph, op: Operator) -> None:
    for slot in ("Y", "Shape", "Offsets", "ShapeTensor", "OffsetsTensor"):
        if g.has(op, slot):
            raise Unsupported(f"{slot}: it must be an attribute to be exported")
    sizes, rank = list(op.attrs["shape"]), len(g.shape(op, "X"))
    offsets = list(op.attrs["offsets"]) or [0] * rank
    most = np.iinfo(np.int64).max
    ends = [most if n < 0 else o + n for n, o in zip(sizes, offsets)]
    bounds = [g.ints(*offsets), g.ints(*ends)]
    g.give(op, "Out", g.node("Slice", [g.take(op, "X"), *bounds]))


@rule("pad_constant_like")
def _(g: Graph, op: Operator) -> None:
    """Y, filled up at its ends to the shape of X."""
    y = g.take(op, "Y")
    more = g.node("Sub", [g.sizes(g.take(op, "X")), g.sizes(y)])
    none = g.ints(*[0] * len(g.shape(op, "Y")))
    pads = g.node("Concat", [none, more], axis=0)
    value = g.constant(op.attrs["pad_value"], g.dtype(op, "Y"))
    g.give(op, "Out", g.node("Pad", [y, pads, value]))


@rule("tril_triu")
def _(g: Graph, op: Operator) -> None:
    inputs = [g.take(op, "X"), g.constant(op.attrs["diagonal"], np.int64)]
    upper = int(not op.attrs["lower"])
    g.give(op, "Out", g.node("Trilu", inputs, upper=upper))


@rule("meshgrid")
def _(g: Graph, op: Operator) -> None:
    values = g.take_all(op, "X")
    sizes = g.node("Concat", [g.sizes(v) for v in values], axis=0)
    for i, value in enumerate(values):
        shape = [-1 if j == i else 1 for j in range(len(values))]
        laid = g.reshape(value, *shape)
        g.give(op, "Out", g.node("Expand", [laid, sizes]), i)


@rule("isnan", "isinf", "isfinite")
def _(g: Graph, op: Operator) -> None:
    """Of all elements: one truth value."""
    x = g.take(op, "X")
    nan, inf = g.node("IsNaN", [x]), g.node("IsInf", [x])
    found = {"isnan": nan, "isinf": inf}.get(op.type) or g.node("Or", [nan, inf])
    any_ = g.node("ReduceMax", [g.cast(found, np.int32)], keepdims=0)
    some = g.cast(g.reshape(any_, 1), np.bool_)
    if op.type == "isfinite":
        some = g.node("Not", [some])
    dtype = g.dtype(op, "Out")
    g.give(op, "Out", some if dtype == np.bool_ else g.cast(some, dtype))


@rule("size")
def _(g: Graph, op: Operator) -> None:
    count = g.node("Size", [g.take(op, "Input")])
    g.give(op, "Out", g.reshape(count, 1))


@rule("is_empty")
def _(g: Graph, op: Operator) -> None:
    count = g.reshape(g.node("Size", [g.take(op, "X")]), 1)
    g.give(op, "Out", g.node("Equal", [count, g.ints(0)]))


@rule("fill_any_like", "fill_zeros_like2")
def _(g: Graph, op: Operator) -> None:
    asked = op.attrs.get("dtype", -1)
    dtype = g.dtype(op, "X") if asked == -1 else dtype_of(asked)
    value = op.attrs.get("value", 0.0) if op.type == "fill_any_like" else 0.0
    sizes = g.sizes(g.take(op, "X"))
    g.give(op, "Out", g.node("Expand", [g.constant(value, dtype), sizes]))


@rule("eye")
def _(g: Graph, op: Operator) -> None:
    rows, columns = op.attrs["num_rows"], op.attrs["num_columns"]
    made = np.eye(rows, rows if columns == -1 else columns)
    g.give(op, "Out", g.constant(made, dtype_of(op.attrs["dtype"])))


@rule("diag")
def _(g: Graph, op: Operator) -> None:
    (size,) = g.static(op, "Diagonal", [0])
    dtype = g.dtype(op, "Diagonal")
    column = g.reshape(g.take(op, "Diagonal"), -1, 1)
    g.give(op, "Out", g.node("Mul", [column, g.constant(np.eye(size), dtype)]))


@rule("space_to_depth")
def _(g: Graph, op: Operator) -> None:
    """Darknet's reorg, as the reference has it: see the op's kernel."""
    b = op.attrs["blocksize"]
    c, h, w = g.static(op, "X", [1, 2, 3])
    x = g.reshape(g.take(op, "X"), -1, b, b, c // (b * b), h, w)
    x = g.transpose(x, [0, 3, 4, 1, 5, 2])
    g.give(op, "Out", g.reshape(x, -1, c * b * b, h // b, w // b))


@rule("shuffle_channel")
def _(g: Graph, op: Operator) -> None:
    c, h, w = g.static(op, "X", [1, 2, 3])
    group = op.attrs["group"]
    x = g.reshape(g.take(op, "X"), -1, group, c // group, h, w)
    x = g.transpose(x, [0, 2, 1, 3, 4])
    g.give(op, "Out", g.reshape(x, -1, c, h, w))


@rule("maxout")
def _(g: Graph, op: Operator) -> None:
    """The largest of each `groups` neighbouring channels."""
    rank, groups = len(g.shape(op, "X")), op.attrs["groups"]
    axis = op.attrs["axis"] % rank
    (channels,) = g.static(op, "X", [axis])
    rest = g.static(op, "X", range(axis + 1, rank))
    first = [0] * axis  # 0: as it is
    x = g.reshape(g.take(op, "X"), *first, channels // groups, groups, *rest)
    out = g.node("ReduceMax", [x], axes=[axis + 1], keepdims=0)
    g.give(op, "Out", out)


@rule("temporal_shift")
def _(g: Graph, op: Operator) -> None:
    """Some channels come from the frame before, some from the one behind."""
    c, h, w = g.static(op, "X", [1, 2, 3])
    ratio, frames = op.attrs["shift_ratio"], op.attrs["seg_num"]
    cuts = [0, int(c * ratio), int(c * 2 * ratio), c]
    x = g.reshape(g.take(op, "X"), -1, frames, c, h, w)
    parts = []
    for (low, high), shift in zip(pairwise(cuts), (-1, 1, 0)):
        part = g.node("Slice", [x, g.ints(low), g.ints(high), g.ints(2)])
        if shift:
            pads = [0] * 10
            pads[1 if shift < 0 else 6] = 1
            part = g.node("Pad", [part, g.ints(*pads)])
            bounds = (0, frames) if shift < 0 else (1, frames + 1)
            part = g.node("Slice", [part, *(g.ints(b) for b in bounds), g.ints(1)])
        parts.append(part)
    out = g.node("Concat", parts, axis=2)
    g.give(op, "Out", g.reshape(out, -1, c, h, w))


@rule("grid_sampler")
def _(g: Graph, op: Operator) -> None:
    inputs = [g.take(op, "X"), g.take(op, "Grid")]
    out = g.node("GridSample", inputs, align_corners=1, padding_mode="zeros")
    g.give(op, "Output", out)
