"""Convolutions of volumes: conv3d, conv3d_transpose.

Filters are (filters, channels / groups, kd, kh, kw), those of conv3d_transpose
(channels, filters / groups, kd, kh, kw), in both data formats.
"""

from __future__ import annotations

from typing import Any

from .conv_planes import (
    Volume,
    channels_first,
    convolve,
    filter_grad,
    new_volume,
    spread,
)
from .conv_window import (
    CUDNN,
    FUSED,
    axes,
    infer_conv,
    infer_transpose,
    transposed_axes,
    window_attrs,
)
from .grad import grad_op
from .registry import op, takes
from .schema import Attr, AttrType, In, Out

__all__ = ["conv3d", "conv3d_transpose"]

WINDOW = window_attrs(3, "NCDHW")
TRANSPOSED = (*window_attrs(3, "NCHW"), Attr("output_size", AttrType.INTS, []))
_IGNORED = (
    *CUDNN,
    *FUSED,
    Attr("exhaustive_search", bool, False),
    Attr("force_fp32_output", bool, False),
    Attr("fuse_residual_connection", bool, False),
)

conv3d = op(
    "conv3d",
    ins=[In("Input"), In("Filter"), In("ResidualData", dispensable=True, no_grad=True)],
    outs=[Out("Output")],
    attrs=WINDOW + _IGNORED,
    infer=infer_conv(3),
    grad=grad_op(needs=["Input", "Filter", "ResidualData"]),
)


@conv3d.kernel
@takes(WINDOW)
def _(xp: Any, x: Any, weight: Any, residual: Any, **window: Any) -> Any:
    last = window["data_format"] == "NDHWC"
    x = channels_first(x, last)
    g = Volume(window["groups"], *axes(x.shape[2:], weight.shape[2:], **window))
    shape = (len(x), len(weight), g.z.out, g.y.out, g.x.out)
    made, out = new_volume(xp, shape, x.dtype, last)
    convolve(xp, x, weight, g, out)
    return made


@conv3d.grad_kernel
@takes(WINDOW)
def _(
    xp: Any,
    x: Any,
    weight: Any,
    residual: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    **window: Any,
) -> Any:
    last = window["data_format"] == "NDHWC"
    x, d_out = channels_first(x, last), channels_first(d_out, last)
    g = Volume(window["groups"], *axes(x.shape[2:], weight.shape[2:], **window))
    dx = dw = None
    if wants[0]:
        dx, into = new_volume(xp, x.shape, x.dtype, last)
        spread(xp, d_out, weight, g, into)
    if wants[1]:
        dw = filter_grad(xp, x, d_out, weight, g)
    return dx, dw


conv3d_transpose = op(
    "conv3d_transpose",
    ins=[In("Input"), In("Filter")],
    outs=[Out("Output")],
    attrs=TRANSPOSED + CUDNN,
    infer=infer_transpose(3),
    grad=grad_op(needs=["Input", "Filter"]),
)


def _transposed(x: Any, weight: Any, window: dict[str, Any]) -> Volume:
    made = transposed_axes(x.shape[2:], weight.shape[2:], **window)
    return Volume(window["groups"], *made)


@conv3d_transpose.kernel
@takes(TRANSPOSED)
def _(xp: Any, x: Any, weight: Any, **window: Any) -> Any:
    last = window["data_format"] == "NHWC"
    x = channels_first(x, last)
    g = _transposed(x, weight, window)
    shape = (len(x), weight.shape[1] * g.groups, g.z.size, g.y.size, g.x.size)
    made, out = new_volume(xp, shape, x.dtype, last)
    spread(xp, x, weight, g, out)
    return made


@conv3d_transpose.grad_kernel
@takes(TRANSPOSED)
def _(
    xp: Any,
    x: Any,
    weight: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    **window: Any,
) -> Any:
    last = window["data_format"] == "NHWC"
    x, d_out = channels_first(x, last), channels_first(d_out, last)
    g = _transposed(x, weight, window)
    dx = dw = None
    if wants[0]:
        dx, into = new_volume(xp, x.shape, x.dtype, last)
        convolve(xp, d_out, weight, g, into)
    if wants[1]:
        dw = filter_grad(xp, d_out, x, weight, g)
    return dx, dw
