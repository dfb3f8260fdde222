"""Convolutions: conv2d, depthwise_conv2d, conv2d_transpose.

Filters are (filters, channels / groups, kh, kw) in both data formats, those of
conv2d_transpose (channels, filters / groups, kh, kw). ``Bias`` is added where it is
given (the reference's plain CPU kernel leaves it out; its layers add biases by
elementwise_add). Attributes that steer cuDNN, MKLDNN or quantization mean nothing.
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

__all__ = ["conv2d", "conv2d_transpose", "depthwise_conv2d"]

_WINDOW = (
    Attr("strides", AttrType.INTS, [1, 1]),
    Attr("paddings", AttrType.INTS, [0, 0]),
    Attr("padding_algorithm", str, "EXPLICIT"),
    Attr("dilations", AttrType.INTS, [1, 1]),
    Attr("groups", int, 1),
    Attr("data_format", str, "NCHW"),
)
# of no meaning here
_IGNORED = (
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
    *_IGNORED,
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


def _raise(message: str) -> None:
    raise ValueError(message)


def _geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    dilations: Sequence[int],
    groups: int,
    fail: Fail = _raise,
) -> Geometry:
    """Both axes of a convolution over an input of this (height, width)."""
    top, bottom, left, right = explicit_pads(paddings, fail)
    return Geometry(
        groups,
        plan_axis(
            size[0], kernel[0], strides[0], dilations[0], (top, bottom), algorithm
        ),
        plan_axis(
            size[1], kernel[1], strides[1], dilations[1], (left, right), algorithm
        ),
    )


def _check_attrs(op: InferContext) -> None:
    for name in ("strides", "dilations"):
        value = op.attr(name)
        op.check(
            len(value) == 2 and min(value) > 0,
            f"{name} needs 2 positive numbers, got {list(value)}",
        )
    op.check(op.attr("groups") > 0, f"groups must be positive, got {op.attr('groups')}")


def _image_shapes(op: InferContext) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """(channels last?, input as NCHW, filter), checked for rank."""
    shape, weight = op.shape("Input"), op.shape("Filter")
    op.check(len(shape) == 4, f"Input needs 4 dimensions, got shape {shape}")
    op.check(len(weight) == 4, f"Filter needs 4 dimensions, got shape {weight}")
    last = channels_last(op.attr("data_format"), op.fail)
    if last:
        shape = (shape[0], shape[3], shape[1], shape[2])
    return last, shape, weight


def _set_output(op: InferContext, last: bool, shape: tuple[int, ...]) -> None:
    n, c, h, w = shape
    op.set("Output", (n, h, w, c) if last else shape, like=op.input("Input"))


def _infer_conv(op: InferContext) -> None:
    _check_attrs(op)
    last, (n, channels, *size), weight = _image_shapes(op)
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
    _set_output(op, last, (n, weight[0], geometry.y.out, geometry.x.out))


def _nchw(array: Any, last: bool) -> Any:
    """An image array as a (n, channels, height, width) view."""
    return array.transpose(0, 3, 1, 2) if last else array


def _new(xp: Any, shape: tuple[int, int, int, int], dtype: Any, last: bool) -> Any:
    """A (n, channels, height, width) view of a fresh array in its data format."""
    if not last:
        return xp.empty(shape, dtype)
    n, c, h, w = shape
    return xp.empty((n, h, w, c), dtype).transpose(0, 3, 1, 2)


def _plain(array: Any, last: bool) -> Any:
    """The inverse of `_nchw`."""
    return array.transpose(0, 2, 3, 1) if last else array


def _methods(weight: Any, groups: int) -> Any:
    """How to convolve: by taps where each group has one channel, else by GEMM."""
    if groups > 1 and weight.shape[1] == 1:
        return depthwise
    return conv_gemm


def _bias(xp: Any, out: Any, bias: Any) -> Any:
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
    images = _nchw(x, last)
    g = _geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
    out = _new(xp, (len(images), weight.shape[0], g.y.out, g.x.out), images.dtype, last)
    _methods(weight, groups).forward(xp, images, weight, g, out)
    return _plain(_bias(xp, out, bias), last)


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
    images, d_images = _nchw(x, last), _nchw(d_out, last)
    g = _geometry(
        images.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
    by = _methods(weight, groups)
    dx = dw = db = None
    if wants[0]:
        dx = _new(xp, images.shape, images.dtype, last)
        dx = _plain(by.grad_input(xp, d_images, weight, g, dx), last)
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
        attrs=_WINDOW + _IGNORED_CONV,
        infer=_infer_conv,
        grad=grad_op(needs=["Input", "Filter", "Bias"]),
    )
    made.kernel(_conv)
    made.grad_kernel(_conv_grad)
    return made


conv2d = _declare("conv2d")
depthwise_conv2d = _declare("depthwise_conv2d")


def _transposed_geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    dilations: Sequence[int],
    groups: int,
    output_size: Sequence[int],
    fail: Fail = _raise,
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
            size[i], kernel[i], strides[i], dilation, pads[2 * i : 2 * i + 2], algorithm
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
    _check_attrs(op)
    last, (n, channels, *size), weight = _image_shapes(op)
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
    _set_output(op, last, (n, filters, geometry.y.size, geometry.x.size))


conv2d_transpose = op(
    "conv2d_transpose",
    ins=[In("Input"), In("Filter"), In("Bias", dispensable=True)],
    outs=[Out("Output")],
    attrs=(*_WINDOW, Attr("output_size", AttrType.INTS, []), *_IGNORED),
    infer=_infer_transpose,
    grad=grad_op(needs=["Input", "Filter", "Bias"]),
)


@conv2d_transpose.kernel
def _(
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
    images = _nchw(x, last)
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
    out = _new(xp, shape, images.dtype, last)
    _methods(weight, groups).grad_input(xp, images, weight, g, out)
    return _plain(_bias(xp, out, bias), last)


@conv2d_transpose.grad_kernel
def _(
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
    images, d_images = _nchw(x, last), _nchw(d_out, last)
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
    by = _methods(weight, groups)
    dx = dw = db = None
    if wants[0]:
        dx = _new(xp, images.shape, images.dtype, last)
        dx = _plain(by.forward(xp, d_images, weight, g, dx), last)
    if wants[1]:
        dw = by.grad_filter(xp, d_images, images, g)
    if wants[2] and bias is not None:
        db = d_images.sum((0, 2, 3)).reshape(bias.shape)
    return dx, dw, db
