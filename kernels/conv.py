"""Convolutions: conv2d, depthwise_conv2d.

Filters are (filters, channels / groups, kh, kw) in both data formats. ``Bias`` is
added where it is given (the reference's plain CPU kernel leaves it out; its layers add
biases by elementwise_add). Attributes that steer cuDNN, MKLDNN or quantization mean
nothing.
"""

from __future__ import annotations

from typing import Any

from . import conv_gemm, depthwise
from .conv_gemm import Geometry
from .conv_window import CUDNN, FUSED, axes, infer_conv, window_attrs
from .grad import grad_op
from .registry import OpDef, op, takes
from .schema import Attr, AttrType, In, Out

__all__ = ["conv2d", "depthwise_conv2d"]

WINDOW = window_attrs(2, "NCHW")
_IGNORED = (
    *FUSED,
    *CUDNN,
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


@takes(WINDOW)
def _conv(xp: Any, x: Any, weight: Any, bias: Any, residual: Any, **window: Any) -> Any:
    last, groups = window["data_format"] == "NHWC", window["groups"]
    images = as_nchw(x, last)
    g = Geometry(groups, *axes(images.shape[2:], weight.shape[2:], **window))
    shape = (len(images), weight.shape[0], g.y.out, g.x.out)
    out = new_image(xp, shape, images.dtype, last)
    method(weight, groups).forward(xp, images, weight, g, out)
    return as_format(add_bias(xp, out, bias), last)


@takes(WINDOW)
def _conv_grad(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    **window: Any,
) -> Any:
    last, groups = window["data_format"] == "NHWC", window["groups"]
    images, d_images = as_nchw(x, last), as_nchw(d_out, last)
    g = Geometry(groups, *axes(images.shape[2:], weight.shape[2:], **window))
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
        attrs=WINDOW + _IGNORED,
        infer=infer_conv(2),
        grad=grad_op(needs=["Input", "Filter", "Bias"]),
    )
    made.kernel(_conv)
    made.grad_kernel(_conv_grad)
    return made


conv2d = _declare("conv2d")
depthwise_conv2d = _declare("depthwise_conv2d")
