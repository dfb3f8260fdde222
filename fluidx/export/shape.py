"""ONNX rules: shapes, parts, joints, and constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph, dtype_of
from .rules import rule

__all__: list[str] = []


def _refuse(g: Graph, op: Operator, *slots: str) -> None:
    """What ONNX, or this export, takes as an attribute only."""
    for slot in slots:
        if g.has(op, slot):
            raise Unsupported(f"{slot}: it must be an attribute to be exported")


def _sizes(g: Graph, op: Operator, tensor: str, parts: str) -> str | None:
    """Sizes that come as one tensor, or as a list of them."""
    if g.has(op, parts):
        each = [g.reshape(v, 1) for v in g.take_all(op, parts)]
        return g.node("Concat", [g.cast(v, np.int64) for v in each], axis=0)
    if g.has(op, tensor):
        return g.cast(g.take(op, tensor), np.int64)
    return None


@rule("reshape2", "reshape")
def _(g: Graph, op: Operator) -> None:
    sizes = _sizes(g, op, "Shape", "ShapeTensor") or g.ints(*op.attrs["shape"])
    g.give(op, "Out", g.node("Reshape", [g.take(op, "X"), sizes]))


@rule("transpose2", "transpose")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.transpose(g.take(op, "X"), op.attrs["axis"]))


@rule("flatten2", "flatten")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.node("Flatten", [g.take(op, "X")], axis=op.attrs["axis"]))


@rule("squeeze2", "squeeze")
def _(g: Graph, op: Operator) -> None:
    """Listed sizes other than 1 stay, as in the reference."""
    shape = g.shape(op, "X")
    listed = [a % len(shape) for a in op.attrs["axes"]] or range(len(shape))
    axes = [a for a in listed if shape[a] == 1]
    x = g.take(op, "X")
    out = g.node("Squeeze", [x, g.ints(*axes)]) if axes else g.node("Identity", [x])
    g.give(op, "Out", out)


@rule("unsqueeze2", "unsqueeze")
def _(g: Graph, op: Operator) -> None:
    """Axes are put in one after the other; ONNX takes them all at once."""
    _refuse(g, op, "AxesTensor", "AxesTensorList")
    marks = [False] * len(g.shape(op, "X"))
    for axis in op.attrs["axes"]:
        marks.insert(axis if axis >= 0 else axis + len(marks) + 1, True)
    axes = [i for i, new in enumerate(marks) if new]
    g.give(op, "Out", g.node("Unsqueeze", [g.take(op, "X"), g.ints(*axes)]))


@rule("concat")
def _(g: Graph, op: Operator) -> None:
    _refuse(g, op, "AxisTensor")
    parts = g.take_all(op, "X")
    g.give(op, "Out", g.node("Concat", parts, axis=op.attrs["axis"]))


@rule("stack")
def _(g: Graph, op: Operator) -> None:
    axis, rank = op.attrs["axis"], len(g.shape(op, "X"))
    axis = axis % (rank + 1)
    parts = [g.node("Unsqueeze", [v, g.ints(axis)]) for v in g.take_all(op, "X")]
    g.give(op, "Y", g.node("Concat", parts, axis=axis))


@rule("split")
def _(g: Graph, op: Operator) -> None:
    _refuse(g, op, "AxisTensor", "SectionsTensorList")
    axis, sections = op.attrs["axis"], list(op.attrs["sections"])
    inputs = [g.take(op, "X")]
    if sections:
        if -1 in sections:
            (whole,) = g.static(op, "X", [axis])
            sections[sections.index(-1)] = whole - sum(sections) - 1
        inputs.append(g.ints(*sections))
    _give_all(
        g, op, "Out", g.nodes_of("Split", inputs, len(op.output("Out")), axis=axis)
    )


def _give_all(g: Graph, op: Operator, slot: str, values: Sequence[str]) -> None:
    for index, value in enumerate(values):
        g.give(op, slot, value, index)


@rule("unstack", "unbind")
def _(g: Graph, op: Operator) -> None:
    slot = "Y" if op.type == "unstack" else "Out"
    axis = op.attrs["axis"]
    parts = g.nodes_of("Split", [g.take(op, "X")], len(op.output(slot)), axis=axis)
    for index, part in enumerate(parts):
        g.give(op, slot, g.node("Squeeze", [part, g.ints(axis)]), index)


@rule("slice", "strided_slice")
def _(g: Graph, op: Operator) -> None:
    lists = [f"{s}TensorList" for s in ("Starts", "Ends", "Strides")]
    _refuse(g, op, "StartsTensor", "EndsTensor", "StridesTensor", *lists)
    attrs = op.attrs
    axes = list(attrs["axes"])
    steps = list(attrs.get("strides") or [1] * len(axes))
    bounds = [g.ints(*attrs[key]) for key in ("starts", "ends")]
    inputs = [g.take(op, "Input"), *bounds, g.ints(*axes), g.ints(*steps)]
    out = g.node("Slice", inputs)
    dropped = list(attrs.get("decrease_axis") or ())
    if dropped and len(dropped) == len(g.shape(op, "Input")):
        out = g.reshape(out, 1)
    elif dropped:
        out = g.node("Squeeze", [out, g.ints(*dropped)])
    g.give(op, "Out", out)


@rule("reverse")
def _(g: Graph, op: Operator) -> None:
    axes = list(op.attrs["axis"])
    start, stop = [-1] * len(axes), [np.iinfo(np.int64).min + 1] * len(axes)
    bounds = [g.ints(*v) for v in (start, stop, axes, start)]
    g.give(op, "Out", g.node("Slice", [g.take(op, "X"), *bounds]))


@rule("expand")
def _(g: Graph, op: Operator) -> None:
    times = _sizes(g, op, "ExpandTimes", "expand_times_tensor")
    times = times or g.ints(*op.attrs["expand_times"])
    g.give(op, "Out", g.node("Tile", [g.take(op, "X"), times]))


@rule("expand_as")
def _(g: Graph, op: Operator) -> None:
    x = g.take(op, "X")
    wanted = g.sizes(g.take(op, "target_tensor"))
    times = g.node("Div", [wanted, g.sizes(x)])
    g.give(op, "Out", g.node("Tile", [x, times]))


@rule("gather")
def _(g: Graph, op: Operator) -> None:
    rows = g.reshape(g.take(op, "Index"), -1)
    g.give(op, "Out", g.node("Gather", [g.take(op, "X"), rows], axis=0))


@rule("gather_nd")
def _(g: Graph, op: Operator) -> None:
    index = g.cast(g.take(op, "Index"), np.int64)
    g.give(op, "Out", g.node("GatherND", [g.take(op, "X"), index]))


@rule("one_hot", "one_hot_v2")
def _(g: Graph, op: Operator) -> None:
    _refuse(g, op, "depth_tensor")
    ids, dtype = g.take(op, "X"), g.dtype(op, "Out")
    if op.type == "one_hot":
        ids = g.node("Squeeze", [ids, g.ints(-1)])
    values = [g.ints(op.attrs["depth"]), g.constant([0, 1], dtype)]
    g.give(op, "Out", g.node("OneHot", [ids, *values], axis=-1))


@rule("cast")
def _(g: Graph, op: Operator) -> None:
    dtype = dtype_of(op.attrs["out_dtype"])
    g.give(op, "Out", g.cast(g.take(op, "X"), dtype))


@rule("shape")
def _(g: Graph, op: Operator) -> None:
    g.give(op, "Out", g.cast(g.sizes(g.take(op, "Input")), np.int32))


# ---------------------------------------------------------------- constants


def _number(op: Operator) -> float:
    text = op.attrs.get("str_value")
    return float(text) if text else float(op.attrs["value"])


def _filled(g: Graph, value: float, dtype: np.dtype[np.generic], sizes: str) -> str:
    """A value of sizes that are found when the model runs."""
    return g.node("Expand", [g.constant(value, dtype), sizes])


@rule("fill_constant")
def _(g: Graph, op: Operator) -> None:
    dtype = dtype_of(op.attrs["dtype"])
    value = _number(op)
    sizes = _sizes(g, op, "ShapeTensor", "ShapeTensorList")
    if g.has(op, "ValueTensor"):
        sizes = sizes or g.ints(*op.attrs["shape"])
        scalar = g.reshape(g.take(op, "ValueTensor"), 1)
        g.give(op, "Out", g.node("Expand", [scalar, sizes]))
    elif sizes is None:
        g.give(op, "Out", g.constant(np.full(op.attrs["shape"], value), dtype))
    else:
        g.give(op, "Out", _filled(g, value, dtype, sizes))


@rule("fill_constant_batch_size_like")
def _(g: Graph, op: Operator) -> None:
    dtype, attrs = dtype_of(op.attrs["dtype"]), op.attrs
    shape, at = list(attrs["shape"]), attrs["output_dim_idx"]
    source = attrs["input_dim_idx"]
    batch = g.sizes(g.take(op, "Input"), source, source + 1)
    parts = [g.ints(*shape[:at])] * bool(at) + [batch]
    parts += [g.ints(*shape[at + 1 :])] * bool(shape[at + 1 :])
    sizes = g.node("Concat", parts, axis=0)
    g.give(op, "Out", _filled(g, _number(op), dtype, sizes))


@rule("fill_zeros_like")
def _(g: Graph, op: Operator) -> None:
    sizes = g.sizes(g.take(op, "X"))
    g.give(op, "Out", _filled(g, 0.0, g.dtype(op, "X"), sizes))


@rule("assign_value")
def _(g: Graph, op: Operator) -> None:
    dtype = dtype_of(op.attrs["dtype"])
    keys = {"f": "fp32_values", "b": "bool_values"}
    key = keys.get(dtype.kind, f"{dtype.name}_values")
    values = np.reshape(op.attrs[key], op.attrs["shape"])
    g.give(op, "Out", g.constant(values, dtype))


@rule("range")
def _(g: Graph, op: Operator) -> None:
    ends = [g.node("Squeeze", [g.take(op, s)]) for s in ("Start", "End", "Step")]
    g.give(op, "Out", g.node("Range", ends))
