"""ONNX rules: products, distances and costs, and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.ir import Operator

from .errors import Unsupported
from .graph import Graph
from .rules import rule

__all__: list[str] = []


@rule("addmm")
def _(g: Graph, op: Operator) -> None:
    attrs = {"alpha": float(op.attrs["Alpha"]), "beta": float(op.attrs["Beta"])}
    inputs = [g.take(op, s) for s in ("X", "Y", "Input")]
    g.give(op, "Out", g.node("Gemm", inputs, **attrs))


@rule("bilinear_tensor_product")
def _(g: Graph, op: Operator) -> None:
    """Out[n, k] = x[n] W[k] y[n] + b[k]."""
    inputs = [g.take(op, s) for s in ("X", "Weight", "Y")]
    out = g.node("Einsum", inputs, equation="ni,kij,nj->nk")
    if g.has(op, "Bias"):
        out = g.node("Add", [out, g.take(op, "Bias")])
    g.give(op, "Out", out)


@rule("squared_l2_norm")
def _(g: Graph, op: Operator) -> None:
    out = g.node("ReduceSumSquare", [g.take(op, "X")], keepdims=0)
    g.give(op, "Out", g.reshape(out, 1))


@rule("squared_l2_distance")
def _(g: Graph, op: Operator) -> None:
    """A single y counts for every row."""
    rest = len(g.shape(op, "X"))
    apart = g.node("Sub", [g.take(op, "X"), g.take(op, "Y")])
    flat = g.node("Flatten", [apart], axis=1) if rest != 2 else apart
    out = g.node("ReduceSumSquare", [flat], axes=[1], keepdims=1)
    g.give(op, "Out", out)
    g.give(op, "sub_result", flat)


def _length(g: Graph, value: str) -> str:
    return g.node("ReduceL2", [value], axes=[1], keepdims=1)


@rule("cos_sim")
def _(g: Graph, op: Operator) -> None:
    """The cosine of rows; a single y counts for every row of x."""
    if len(g.shape(op, "X")) != 2:
        raise Unsupported("inputs of other than two dimensions")
    x, y = g.take(op, "X"), g.take(op, "Y")
    lengths = [_length(g, v) for v in (x, y)]
    dot = g.node("ReduceSum", [g.node("Mul", [x, y]), g.ints(1)], keepdims=1)
    for slot, value in zip(("XNorm", "YNorm"), lengths):
        g.give(op, slot, value)
    g.give(op, "Out", g.node("Div", [dot, g.node("Mul", lengths)]))


@rule("clip_by_norm")
def _(g: Graph, op: Operator) -> None:
    x, dtype = g.take(op, "X"), g.dtype(op, "X")
    most = g.constant(op.attrs["max_norm"], dtype)
    norm = g.node("ReduceL2", [x], keepdims=0)
    over = g.node("Max", [norm, most])
    g.give(op, "Out", g.node("Mul", [x, g.node("Div", [most, over])]))


@rule("label_smooth")
def _(g: Graph, op: Operator) -> None:
    """(1 - epsilon) x + epsilon * prior, which is uniform unless given."""
    dtype, epsilon = g.dtype(op, "X"), op.attrs["epsilon"]
    (classes,) = g.static(op, "X", [-1])
    kept = g.node("Mul", [g.take(op, "X"), g.constant(1.0 - epsilon, dtype)])
    if g.has(op, "PriorDist"):
        factor = g.constant(epsilon, dtype)
        prior = g.node("Mul", [g.take(op, "PriorDist"), factor])
    else:
        prior = g.constant(epsilon / classes, dtype)
    g.give(op, "Out", g.node("Add", [kept, prior]))


@rule("log_loss")
def _(g: Graph, op: Operator) -> None:
    dtype, epsilon = g.dtype(op, "Predicted"), op.attrs["epsilon"]
    p, y = g.take(op, "Predicted"), g.take(op, "Labels")
    one, little = g.constant(1.0, dtype), g.constant(epsilon, dtype)
    parts = []
    for chance, share in ((p, y), (None, None)):
        chance = chance or g.node("Sub", [one, p])
        share = share or g.node("Sub", [one, y])
        log = g.node("Log", [g.node("Add", [chance, little])])
        parts.append(g.node("Mul", [share, log]))
    g.give(op, "Loss", g.node("Neg", [g.node("Add", parts)]))


def _picked(g: Graph, op: Operator, scores: str, axis: int, rank: int) -> str:
    """Each row's score of its label, kept as one column."""
    label = g.cast(g.take(op, "Label"), np.int64)
    if len(g.shape(op, "Label")) == rank - 1:
        label = g.node("Unsqueeze", [label, g.ints(axis)])
    return g.node("GatherElements", [scores, label], axis=axis)


def _cross(g: Graph, op: Operator, log: str, axis: int, rank: int) -> str:
    """-log p of the label, or against a distribution of labels."""
    if op.attrs["soft_label"]:
        each = g.node("Mul", [log, g.take(op, "Label")])
        total = g.node("ReduceSum", [each, g.ints(axis)], keepdims=1)
    else:
        if op.attrs["ignore_index"] >= 0:
            raise Unsupported("ignore_index is not exported")
        total = _picked(g, op, log, axis, rank)
    return g.node("Neg", [total])


@rule("softmax_with_cross_entropy")
def _(g: Graph, op: Operator) -> None:
    rank = len(g.shape(op, "Logits"))
    axis, x = op.attrs["axis"] % rank, g.take(op, "Logits")
    g.give(op, "Softmax", g.node("Softmax", [x], axis=axis))
    log = g.node("LogSoftmax", [x], axis=axis)
    g.give(op, "Loss", _cross(g, op, log, axis, rank))


@rule("cross_entropy2")
def _(g: Graph, op: Operator) -> None:
    """Of hard labels."""
    if op.attrs["ignore_index"] >= 0:
        raise Unsupported("ignore_index is not exported")
    rank = len(g.shape(op, "X"))
    match = _picked(g, op, g.take(op, "X"), rank - 1, rank)
    out = g.node("Neg", [g.node("Log", [match])])
    g.give(op, "Y", out)
    g.give(op, "MatchX", match)


@rule("cross_entropy")
def _(g: Graph, op: Operator) -> None:
    rank = len(g.shape(op, "X"))
    log = g.node("Log", [g.take(op, "X")])
    g.give(op, "Y", _cross(g, op, log, rank - 1, rank))


@rule("sigmoid_cross_entropy_with_logits")
def _(g: Graph, op: Operator) -> None:
    """max(x, 0) - x y + log(1 + exp(-|x|)), 0 where y is ignore_index."""
    if op.attrs["normalize"]:
        raise Unsupported("normalize is not exported")
    x, y, dtype = g.take(op, "X"), g.take(op, "Label"), g.dtype(op, "X")
    soft = g.node("Softplus", [g.node("Neg", [g.node("Abs", [x])])])
    plain = g.node("Sub", [g.node("Relu", [x]), g.node("Mul", [x, y])])
    out = g.node("Add", [plain, soft])
    ignored = g.node("Equal", [y, g.constant(op.attrs["ignore_index"], dtype)])
    zero = g.constant(0.0, dtype)
    g.give(op, "Out", g.node("Where", [ignored, zero, out]))


@rule("huber_loss")
def _(g: Graph, op: Operator) -> None:
    dtype, delta = g.dtype(op, "X"), op.attrs["delta"]
    apart = g.node("Sub", [g.take(op, "Y"), g.take(op, "X")])
    size = g.node("Abs", [apart])
    half, edge = g.constant(0.5, dtype), g.constant(delta, dtype)
    near = g.node("Mul", [half, g.node("Mul", [apart, apart])])
    past = g.node("Sub", [size, g.constant(0.5 * delta, dtype)])
    far = g.node("Mul", [edge, past])
    inside = g.node("LessOrEqual", [size, edge])
    g.give(op, "Residual", apart)
    g.give(op, "Out", g.node("Where", [inside, near, far]))


# ---------------------------------------------------------------- volumes


def _window(op: Operator) -> dict[str, Any]:
    if op.attrs.get("data_format") == "NDHWC":
        raise Unsupported("data_format NDHWC is not exported")
    strides = list(op.attrs["strides"])
    if op.attrs["padding_algorithm"] == "SAME":
        return {"strides": strides, "auto_pad": "SAME_UPPER"}
    pads = list(op.attrs["paddings"])
    if op.attrs["padding_algorithm"] == "VALID":
        pads = [0, 0, 0]
    pads = pads * 2 if len(pads) == 3 else [*pads[::2], *pads[1::2]]
    return {"strides": strides, "pads": pads}


@rule("conv3d", "conv3d_transpose")
def _(g: Graph, op: Operator) -> None:
    if op.attrs.get("output_size"):
        raise Unsupported("output_size is not exported")
    attrs = _window(op)
    transposed = op.type == "conv3d_transpose"
    if "auto_pad" in attrs and transposed:
        raise Unsupported("padding SAME is not exported")
    attrs["dilations"] = list(op.attrs["dilations"])
    if "auto_pad" in attrs:
        attrs["dilations"] = [1, 1, 1]
    inputs = [g.take(op, "Input"), g.take(op, "Filter")]
    type = "ConvTranspose" if transposed else "Conv"
    g.give(op, "Output", g.node(type, inputs, group=op.attrs["groups"], **attrs))


@rule("pool3d")
def _(g: Graph, op: Operator) -> None:
    kind = "MaxPool" if op.attrs["pooling_type"] == "max" else "AveragePool"
    x = g.take(op, "X")
    if op.attrs["global_pooling"]:
        g.give(op, "Out", g.node(f"Global{kind}", [x]))
        return
    if op.attrs["adaptive"] or op.attrs["ceil_mode"]:
        raise Unsupported("adaptive and ceil_mode are not exported for volumes")
    attrs = _window(op)
    if kind == "AveragePool":
        attrs["count_include_pad"] = int(not op.attrs["exclusive"])
    ksize = list(op.attrs["ksize"])
    g.give(op, "Out", g.node(kind, [x], kernel_shape=ksize, **attrs))
