"""ONNX rules: convolution, pooling, normalisation and resizing of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph
from .rules import rule

__all__: list[str] = []


def _is_last(op: Operator, key: str = "data_format") -> bool:
    return op.attrs.get(key) == "NHWC"


def _image(g: Graph, op: Operator, slot: str, last: bool) -> str:
    """The input with its channels in front."""
    value = g.take(op, slot)
    return g.channels_first(value, len(g.shape(op, slot))) if last else value


def _give_image(g: Graph, op: Operator, slot: str, value: str, last: bool) -> None:
    if last:
        value = g.channels_last(value, len(g.shape(op, slot)))
    g.give(op, slot, value)


def _window(op: Operator) -> dict[str, Any]:
    """Strides and padding; paddings are (top, bottom, left, right) or (y, x)."""
    strides = list(op.attrs["strides"])
    algorithm = op.attrs.get("padding_algorithm")
    if algorithm == "SAME":
        return {"strides": strides, "auto_pad": "SAME_UPPER"}
    pads = list(op.attrs["paddings"])
    if algorithm == "VALID":
        pads = [0, 0]
    if len(pads) == 4:
        pads = [pads[0], pads[2], pads[1], pads[3]]
    return {"strides": strides, "pads": pads if len(pads) == 4 else pads * 2}


@rule("conv2d", "depthwise_conv2d")
def _(g: Graph, op: Operator) -> None:
    if g.has(op, "ResidualData"):
        raise Unsupported("ResidualData is not exported")
    if op.attrs.get("fuse_activation") not in (None, "", "relu"):
        raise Unsupported(f"fuse_activation {op.attrs['fuse_activation']!r}")
    last = _is_last(op)
    inputs = [_image(g, op, "Input", last), g.take(op, "Filter")]
    if g.has(op, "Bias"):
        inputs.append(g.take(op, "Bias"))
    attrs = _window(op)
    same = "auto_pad" in attrs
    attrs["dilations"] = [1, 1] if same else list(op.attrs["dilations"])
    out = g.node("Conv", inputs, group=op.attrs["groups"], **attrs)
    if op.attrs.get("fuse_relu") or op.attrs.get("fuse_activation") == "relu":
        out = g.node("Relu", [out])
    _give_image(g, op, "Output", out, last)


@rule("conv2d_transpose", "depthwise_conv2d_transpose")
def _(g: Graph, op: Operator) -> None:
    attrs = _window(op)
    if "auto_pad" in attrs:
        raise Unsupported("padding SAME is not exported")
    last = _is_last(op)
    inputs = [_image(g, op, "Input", last), g.take(op, "Filter")]
    attrs["dilations"] = list(op.attrs["dilations"])
    if op.attrs["output_size"]:
        attrs["output_padding"] = _beyond(g, op, attrs, last)
    out = g.node("ConvTranspose", inputs, group=op.attrs["groups"], **attrs)
    _give_image(g, op, "Output", out, last)


def _beyond(g: Graph, op: Operator, window: dict[str, Any], last: bool) -> list[int]:
    """By how much output_size exceeds the smallest output."""
    sizes = g.static(op, "Input", (1, 2) if last else (2, 3))
    kernel, pads = g.static(op, "Filter", (2, 3)), window["pads"]
    more = []
    for i, (size, wanted) in enumerate(zip(sizes, op.attrs["output_size"])):
        reach = window["dilations"][i] * (kernel[i] - 1) + 1
        least = (size - 1) * window["strides"][i] - pads[i] - pads[i + 2] + reach
        more.append(wanted - least)
    return more


# ---------------------------------------------------------------- pooling


@rule("pool2d", "max_pool2d_with_index")
def _(g: Graph, op: Operator) -> None:
    """Of max_pool2d_with_index the maxima only; ONNX counts positions differently."""
    last = _is_last(op)
    x, kind = _image(g, op, "X", last), op.attrs.get("pooling_type", "max")
    ksize = list(op.attrs["ksize"])
    name = "MaxPool" if kind == "max" else "AveragePool"
    if op.attrs["global_pooling"] or (op.attrs["adaptive"] and ksize == [1, 1]):
        out = g.node(f"Global{name}", [x])
    elif op.attrs["adaptive"]:
        window = _adaptive(g, op, ksize, last)
        out = g.node(name, [x], kernel_shape=window, strides=window)
    else:
        attrs = _window(op) | {"ceil_mode": int(op.attrs.get("ceil_mode", 0))}
        if kind == "avg":
            if attrs["ceil_mode"] and not op.attrs["exclusive"]:
                raise Unsupported("ceil_mode with exclusive=False differs in ONNX")
            attrs["count_include_pad"] = int(not op.attrs["exclusive"])
        out = g.node(name, [x], kernel_shape=ksize, **attrs)
    _give_image(g, op, "Out", out, last)


def _adaptive(g: Graph, op: Operator, out: list[int], last: bool) -> list[int]:
    """The window of an adaptive pooling whose windows are all alike."""
    sizes = g.static(op, "X", (1, 2) if last else (2, 3))
    if any(size % count for size, count in zip(sizes, out)):
        raise Unsupported(f"adaptive pooling of {sizes} to {out}: not evenly divided")
    return [size // count for size, count in zip(sizes, out)]


# ---------------------------------------------------------------- normalisation


@rule("batch_norm")
def _(g: Graph, op: Operator) -> None:
    if not (op.attrs["is_test"] or op.attrs["use_global_stats"]):
        raise Unsupported("it trains: export program.clone(for_test=True)")
    last = _is_last(op, "data_layout") and len(g.shape(op, "X")) > 2
    x = _image(g, op, "X", last)
    inputs = [x, *(g.take(op, s) for s in ("Scale", "Bias", "Mean", "Variance"))]
    out = g.node("BatchNormalization", inputs, epsilon=op.attrs["epsilon"])
    if op.attrs.get("fuse_with_relu"):
        out = g.node("Relu", [out])
    _give_image(g, op, "Y", out, last)


@rule("layer_norm")
def _(g: Graph, op: Operator) -> None:
    axis, rank = op.attrs["begin_norm_axis"], len(g.shape(op, "X"))
    sizes = g.static(op, "X", range(axis, rank))
    if g.has(op, "Scale"):
        scale = g.take(op, "Scale")
        scale = scale if len(sizes) == 1 else g.reshape(scale, *sizes)
    else:
        scale = g.constant(np.ones(sizes), g.dtype(op, "X"))
    inputs = [g.take(op, "X"), scale]
    if g.has(op, "Bias"):
        bias = g.take(op, "Bias")
        inputs.append(bias if len(sizes) == 1 else g.reshape(bias, *sizes))
    epsilon = op.attrs["epsilon"]
    out = g.node("LayerNormalization", inputs, axis=axis, epsilon=epsilon)
    g.give(op, "Y", out)


@rule("instance_norm")
def _(g: Graph, op: Operator) -> None:
    dtype, channels = g.dtype(op, "X"), g.static(op, "X", [1])
    scale, bias = (
        g.take(op, slot) if g.has(op, slot) else g.constant(fill(channels), dtype)
        for slot, fill in (("Scale", np.ones), ("Bias", np.zeros))
    )
    inputs = [g.take(op, "X"), scale, bias]
    out = g.node("InstanceNormalization", inputs, epsilon=op.attrs["epsilon"])
    g.give(op, "Y", out)


@rule("group_norm")
def _(g: Graph, op: Operator) -> None:
    last = _is_last(op, "data_layout")
    x, groups, dtype = _image(g, op, "X", last), op.attrs["groups"], g.dtype(op, "X")
    ones, zeros = (g.constant(f(groups), dtype) for f in (np.ones, np.zeros))
    inputs = [g.reshape(x, 0, groups, -1), ones, zeros]
    even = g.node("InstanceNormalization", inputs, epsilon=op.attrs["epsilon"])
    out = g.node("Reshape", [even, g.sizes(x)])
    wide = [-1, *[1] * (len(g.shape(op, "X")) - 2)]
    for slot, type in (("Scale", "Mul"), ("Bias", "Add")):
        if g.has(op, slot):
            out = g.node(type, [out, g.reshape(g.take(op, slot), *wide)])
    _give_image(g, op, "Y", out, last)


@rule("data_norm")
def _(g: Graph, op: Operator) -> None:
    if op.attrs.get("slot_dim", -1) > 0:
        raise Unsupported("slot_dim is not exported")
    size, total, squares = (
        g.take(op, slot) for slot in ("BatchSize", "BatchSum", "BatchSquareSum")
    )
    even = g.node("Sub", [g.take(op, "X"), g.node("Div", [total, size])])
    scales = g.node("Sqrt", [g.node("Div", [size, squares])])
    out = g.node("Mul", [even, scales])
    if op.attrs.get("enable_scale_and_shift"):
        out = g.node("Mul", [out, g.take(op, "scale_w")])
        out = g.node("Add", [out, g.take(op, "bias")])
    g.give(op, "Y", out)


@rule("lrn")
def _(g: Graph, op: Operator) -> None:
    """ONNX divides alpha by the window's size."""
    attrs, last = op.attrs, _is_last(op)
    scaled = {"alpha": attrs["alpha"] * attrs["n"], "beta": attrs["beta"]}
    x = _image(g, op, "X", last)
    out = g.node("LRN", [x], size=attrs["n"], bias=attrs["k"], **scaled)
    _give_image(g, op, "Out", out, last)


@rule("affine_channel")
def _(g: Graph, op: Operator) -> None:
    last, rank = _is_last(op, "data_layout"), len(g.shape(op, "X"))
    wide = [-1] if last else [-1, *[1] * (rank - 2)]
    out = g.node("Mul", [g.take(op, "X"), g.reshape(g.take(op, "Scale"), *wide)])
    out = g.node("Add", [out, g.reshape(g.take(op, "Bias"), *wide)])
    g.give(op, "Out", out)


# ---------------------------------------------------------------- sizes of images


@rule("nearest_interp", "bilinear_interp")
def _(g: Graph, op: Operator) -> None:
    if any(g.has(op, slot) for slot in ("OutSize", "SizeTensor", "Scale")):
        raise Unsupported("the output size must be an attribute")
    last, attrs = _is_last(op, "data_layout"), op.attrs
    x = _image(g, op, "X", last)
    if attrs["scale"] > 0:
        sizes = g.static(op, "X", (1, 2) if last else (2, 3))
        wanted = [int(size * attrs["scale"]) for size in sizes]
    else:
        wanted = [attrs["out_h"], attrs["out_w"]]
    target = g.node("Concat", [g.sizes(x, 0, 2), g.ints(*wanted)], axis=0)
    if attrs["align_corners"]:
        how = "align_corners"
    elif op.type == "bilinear_interp" and attrs["align_mode"] == 0:
        how = "half_pixel"
    else:
        how = "asymmetric"
    mode = {"mode": "linear"}
    if op.type == "nearest_interp":
        up = "round_prefer_ceil" if attrs["align_corners"] else "floor"
        mode = {"mode": "nearest", "nearest_mode": up}
    mode["coordinate_transformation_mode"] = how
    out = g.node("Resize", [x, "", "", target], **mode)
    _give_image(g, op, "Out", out, last)


@rule("pixel_shuffle")
def _(g: Graph, op: Operator) -> None:
    size = op.attrs["upscale_factor"]
    x = g.take(op, "X")
    g.give(op, "Out", g.node("DepthToSpace", [x], blocksize=size, mode="CRD"))


@rule("pad2d")
def _(g: Graph, op: Operator) -> None:
    if g.has(op, "Paddings"):
        raise Unsupported("the paddings must be an attribute")
    top, bottom, left, right = op.attrs["paddings"]
    last = _is_last(op)
    begin, end = [0, 0, top, left], [0, 0, bottom, right]
    if last:
        begin, end = [0, top, left, 0], [0, bottom, right, 0]
    inputs = [g.take(op, "X"), g.ints(*begin, *end)]
    if op.attrs["mode"] == "constant":
        inputs.append(g.constant(op.attrs["pad_value"], g.dtype(op, "X")))
    g.give(op, "Out", g.node("Pad", inputs, mode=op.attrs["mode"]))


@rule("pad")
def _(g: Graph, op: Operator) -> None:
    pads = op.attrs["paddings"]
    value = g.constant(op.attrs["pad_value"], g.dtype(op, "X"))
    inputs = [g.take(op, "X"), g.ints(*pads[::2], *pads[1::2]), value]
    g.give(op, "Out", g.node("Pad", inputs))
