"""Convolutions: conv2d, depthwise_conv2d.

Filters are (filters, channels / groups, kh, kw) in both data formats. ``Bias`` is
added where it is given (the reference's plain CPU kernel leaves it out; its layers add
biases by elementwise_add). Attributes that steer cuDNN, MKLDNN or quantization mean
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import conv_gemm, depthwise
from .conv_gemm import Geometry
from .grad import grad_op
from .infer import InferContext
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out
from .window import Fail, channels_last, explicit_pads, plan_axis

__all__ = ["conv2d", "depthwise_conv2d"]

WINDOW = (
    Attr("strides", AttrType.INTS, [1, 1]),
    Attr("paddings", AttrType.INTS, [0, 0]),
    Attr("padding_algorithm", str, "EXPLICIT"),
    Attr("dilations", AttrType.INTS, [1, 1]),
    Attr("groups", int, 1),
    Attr("data_format", str, "NCHW"),
)
# of no meaning here
IGNORED = (
    Attr("is_test", bool, False),
    Attr("use_cudnn", bool, False),
    Attr("use_mkldnn", bool, False),
    Attr("workspace_size_MB", int, 512),
    Attr("fuse_relu", bool, False),
    Attr("fuse_activation", str, ""),
    Attr("fuse_alpha", float, 0.0),
    Attr("fuse_beta", float, 0.0),
)
_IGNORED_CONV = (
    *IGNORED,
    Attr("exhaustive_search", bool, False),
    Attr("force_fp32_output", bool, False),
    Attr("fuse_brelu", bool, False),
    Attr("fuse_brelu_threshold", float, 6.0),
    Attr("fuse_relu_before_depthwise_conv", bool, False),
    Attr("fuse_residual_connection", bool, False),
    Attr("use_quantizer", bool, False),
    Attr("Scale_in", float, 1.0),
    Attr("Scale_in_eltwise", float, 1.0),
    Attr("Scale_out", float, 1.0),
    Attr("Scale_weights", AttrType.FLOATS, [1.0]),
)


def raise_error(message: str) -> None:
    raise ValueError(message)


def _geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    dilations: Sequence[int],
    groups: int,
    fail: Fail = raise_error,
) -> Geometry:
    """Both axes of a convolution over an input of this (height, width)."""
    pads = explicit_pads(paddings, fail)
    y, x = (
        plan_axis(size[i], kernel[i], strides[i], dilations[i], pads[i], algorithm)
        for i in range(2)
    )
    return Geometry(groups, y, x)


def check_attrs(op: InferContext) -> None:
    for name in ("strides", "dilations"):
        value = op.attr(name)
        op.check(
            len(value) == 2 and min(value) > 0,
            f"{name} needs 2 positive numbers, got {list(value)}",
        )
    op.check(op.attr("groups") > 0, f"groups must be positive, got {op.attr('groups')}")


def image_shapes(op: InferContext) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """(channels last?, input as NCHW, filter), checked for rank."""
    shape, weight = op.shape("Input"), op.shape("Filter")
    op.check(len(shape) == 4, f"Input needs 4 dimensions, got shape {shape}")
    op.check(len(weight) == 4, f"Filter needs 4 dimensions, got shape {weight}")
    last = channels_last(op.attr("data_format"), op.fail)
    if last:
        shape = (shape[0], shape[3], shape[1], shape[2])
    return last, shape, weight


def set_output(op: InferContext, last: bool, shape: tuple[int, ...]) -> None:
    n, c, h, w = shape
    op.set("Output", (n, h, w, c) if last else shape, like=op.input("Input"))


def _infer_conv(op: InferContext) -> None:
    check_attrs(op)
    last, (n, channels, *size), weight = image_shapes(op)
    groups = op.attr("groups")
    op.check(
        channels < 0 or weight[1] < 0 or channels == weight[1] * groups,
        f"Input has {channels} channels ({op.attr('data_format')}), but Filter "
        f"{weight} in {groups} groups takes {weight[1] * groups}",
    )
    op.check(
        weight[0] % groups == 0,
        f"{weight[0]} filters do not divide into {groups} groups",
    )
    geometry = _geometry(
        size,
        weight[2:],
        op.attr("strides"),
        op.attr("paddings"),
        op.attr("padding_algorithm"),
        op.attr("dilations"),
        groups,
        op.fail,
    )
    for name, axis in (("height", geometry.y), ("width", geometry.x)):
        op.check(
            axis.size < 0 or axis.out > 0,
            f"a kernel of {axis.kernel} (dilation {axis.dilation}) does not fit "
            f"{name} {axis.size} with padding {axis.before} and {axis.after}",
        )
    set_output(op, last, (n, weight[0], geometry.y.out, geometry.x.out))


def as_nchw(array: Any, last: bool) -> Any:
    """An image array as a (n, channels, height, width) view."""
    return array.transpose(0, 3, 1, 2) if last else array


def new_image(xp: Any, shape: tuple[int, int, int, int], dtype: Any, last: bool) -> Any:
    """A (n, channels, height, width) view of a fresh array in its data format."""
    if not last:
        return xp.empty(shape, dtype)
    n, c, h, w = shape
    return xp.empty((n, h, w, c), dtype).transpose(0, 3, 1, 2)


def as_format(array: Any, last: bool) -> Any:
    """The inverse of `as_nchw`."""
    return array.transpose(0, 2, 3, 1) if last else array


def method(weight: Any, groups: int) -> Any:
    """How to convolve: by taps where each group has one channel, else by GEMM."""
    if groups > 1 and weight.shape[1] == 1:
        return depthwise
    return conv_gemm


def add_bias(xp: Any, out: Any, bias: Any) -> Any:
    if bias is not None:
        out += bias.reshape(1, -1, 1, 1)
    return out


def _conv(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any,
    *,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    groups: int,
    data_format: str,
) -> Any:
    last = data_format == "NHWC"
    images = as_nchw(x, last)
    g = _geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
    out = new_image(
        xp, (len(images), weight.shape[0], g.y.out, g.x.out), images.dtype, last
    )
    method(weight, groups).forward(xp, images, weight, g, out)
    return as_format(add_bias(xp, out, bias), last)


def _conv_grad(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    groups: int,
    data_format: str,
) -> Any:
    last = data_format == "NHWC"
    images, d_images = as_nchw(x, last), as_nchw(d_out, last)
    g = _geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
    by = method(weight, groups)
    dx = dw = db = None
    if wants[0]:
        dx = new_image(xp, images.shape, images.dtype, last)
        dx = as_format(by.grad_input(xp, d_images, weight, g, dx), last)
    if wants[1]:
        dw = by.grad_filter(xp, images, d_images, g)
    if wants[2] and bias is not None:
        db = d_images.sum((0, 2, 3)).reshape(bias.shape)
    return dx, dw, db


def _declare(type: str) -> OpDef:
    made = op(
        type,
        ins=[
            In("Input"),
            In("Filter"),
            In("Bias", dispensable=True),
            In("ResidualData", dispensable=True, no_grad=True),
        ],
        outs=[Out("Output")],
        attrs=WINDOW + _IGNORED_CONV,
        infer=_infer_conv,
        grad=grad_op(needs=["Input", "Filter", "Bias"]),
    )
    made.kernel(_conv)
    made.grad_kernel(_conv_grad)
    return made


conv2d = _declare("conv2d")
depthwise_conv2d = _declare("depthwise_conv2d")
