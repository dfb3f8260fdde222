"""Transposed convolutions: conv2d_transpose, depthwise_conv2d_transpose.

Filters are (channels, filters / groups, kh, kw) in both data formats. Zeiler et al.,
"Deconvolutional Networks" (2010).
"""

from __future__ import annotations

from typing import Any

from .conv import WINDOW, add_bias, as_format, as_nchw, method, new_image
from .conv_gemm import Geometry
from .conv_window import CUDNN, FUSED, infer_transpose, transposed_axes
from .grad import grad_op
from .registry import OpDef, op, takes
from .schema import Attr, AttrType, In, Out

__all__ = ["conv2d_transpose", "depthwise_conv2d_transpose"]

TRANSPOSED = (*WINDOW, Attr("output_size", AttrType.INTS, []))


@takes(TRANSPOSED)
def _transposed(xp: Any, x: Any, weight: Any, bias: Any, **window: Any) -> Any:
    last, groups = window["data_format"] == "NHWC", window["groups"]
    images = as_nchw(x, last)
    g = Geometry(groups, *transposed_axes(images.shape[2:], weight.shape[2:], **window))
    shape = (len(images), weight.shape[1] * groups, g.y.size, g.x.size)
    out = new_image(xp, shape, images.dtype, last)
    method(weight, groups).grad_input(xp, images, weight, g, out)
    return as_format(add_bias(xp, out, bias), last)


@takes(TRANSPOSED)
def _transposed_grad(
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
    g = Geometry(groups, *transposed_axes(images.shape[2:], weight.shape[2:], **window))
    by = method(weight, groups)
    dx = dw = db = None
    if wants[0]:
        dx = new_image(xp, images.shape, images.dtype, last)
        dx = as_format(by.forward(xp, d_images, weight, g, dx), last)
    if wants[1]:
        dw = by.grad_filter(xp, d_images, images, g)
    if wants[2] and bias is not None:
        db = d_images.sum((0, 2, 3)).reshape(bias.shape)
    return dx, dw, db


def _declare(type: str) -> OpDef:
    made = op(
        type,
        ins=[In("Input"), In("Filter"), In("Bias", dispensable=True)],
        outs=[Out("Output")],
        attrs=(*TRANSPOSED, *FUSED, *CUDNN),
        infer=infer_transpose(2),
        grad=grad_op(needs=["Input", "Filter", "Bias"]),
    )
    made.kernel(_transposed)
    made.grad_kernel(_transposed_grad)
    return made


conv2d_transpose = _declare("conv2d_transpose")
depthwise_conv2d_transpose = _declare("depthwise_conv2d_transpose")
