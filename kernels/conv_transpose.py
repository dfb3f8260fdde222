"""Transposed convolutions: conv2d_transpose, depthwise_conv2d_transpose.

Filters are (channels, filters / groups, kh, kw) in both data formats. Zeiler et al.,
"Deconvolutional Networks" (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .conv import (
    IGNORED,
    WINDOW,
    add_bias,
    as_format,
    as_nchw,
    check_attrs,
    image_shapes,
    method,
    new_image,
    raise_error,
    set_output,
)
from .conv_gemm import Geometry
from .grad import grad_op
from .infer import InferContext
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out
from .window import Fail, explicit_pads, plan_axis

__all__ = ["conv2d_transpose", "depthwise_conv2d_transpose"]


def _transposed_geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    dilations: Sequence[int],
    groups: int,
    output_size: Sequence[int],
    fail: Fail = raise_error,
) -> Geometry:
    """The convolution whose input gradient a transposed convolution is.

    size: of the transposed convolution's input, so `out` of the geometry. An
    ``output_size`` may exceed the natural one by less than a stride.
    """
    pads = explicit_pads(paddings, fail)
    axes = []
    for i in range(2):
        dilation = 1 if algorithm == "SAME" else dilations[i]
        reach = dilation * (kernel[i] - 1) + 1
        planned = plan_axis(
            size[i], kernel[i], strides[i], dilation, pads[i], algorithm
        )
        before, after = planned.before, planned.after
        natural = (size[i] - 1) * strides[i] + reach - before - after
        whole = natural if size[i] >= 0 else -1
        if len(output_size) and whole >= 0:
            whole = int(output_size[i])
            if not natural <= whole < natural + strides[i]:
                fail(
                    f"output_size {list(output_size)}: dimension {i} must be at least "
                    f"{natural} and less than {natural + strides[i]}"
                )
        axes.append(planned._replace(size=whole, dilation=dilation, out=size[i]))
    return Geometry(groups, *axes)


def _infer_transpose(op: InferContext) -> None:
    check_attrs(op)
    last, (n, channels, *size), weight = image_shapes(op)
    op.check(
        channels < 0 or channels == weight[0],
        f"Input has {channels} channels ({op.attr('data_format')}), but Filter "
        f"{weight} takes {weight[0]}",
    )
    output_size = op.attr("output_size")
    op.check(
        len(output_size) in (0, 2), f"output_size needs 2 numbers, got {output_size}"
    )
    geometry = _transposed_geometry(
        size,
        weight[2:],
        op.attr("strides"),
        op.attr("paddings"),
        op.attr("padding_algorithm"),
        op.attr("dilations"),
        op.attr("groups"),
        output_size,
        op.fail,
    )
    filters = weight[1] * op.attr("groups")
    set_output(op, last, (n, filters, geometry.y.size, geometry.x.size))


def _transposed(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    *,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    groups: int,
    data_format: str,
    output_size: Sequence[int],
) -> Any:
    last = data_format == "NHWC"
    images = as_nchw(x, last)
    g = _transposed_geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
        output_size,
    )
    shape = (len(images), weight.shape[1] * groups, g.y.size, g.x.size)
    out = new_image(xp, shape, images.dtype, last)
    method(weight, groups).grad_input(xp, images, weight, g, out)
    return as_format(add_bias(xp, out, bias), last)


def _transposed_grad(
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
    output_size: Sequence[int],
) -> Any:
    last = data_format == "NHWC"
    images, d_images = as_nchw(x, last), as_nchw(d_out, last)
    g = _transposed_geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
        output_size,
    )
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
        attrs=(*WINDOW, Attr("output_size", AttrType.INTS, []), *IGNORED),
        infer=_infer_transpose,
        grad=grad_op(needs=["Input", "Filter", "Bias"]),
    )
    made.kernel(_transposed)
    made.grad_kernel(_transposed_grad)
    return made


conv2d_transpose = _declare("conv2d_transpose")
depthwise_conv2d_transpose = _declare("depthwise_conv2d_transpose")
