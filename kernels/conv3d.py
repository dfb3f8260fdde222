"""Convolutions of volumes: conv3d, conv3d_transpose.

Filters are (filters, channels / groups, kd, kh, kw), those of conv3d_transpose
(channels, filters / groups, kd, kh, kw), in both data formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .conv import raise_error
from .conv_planes import (
    Volume,
    channels_first,
    convolve,
    filter_grad,
    new_volume,
    spread,
)
from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out
from .window import Fail, channels_last, explicit_pads, plan_axis

__all__ = ["conv3d", "conv3d_transpose"]

_IGNORED = (
    Attr("use_cudnn", bool, False),
    Attr("use_mkldnn", bool, False),
    Attr("workspace_size_MB", int, 512),
)
_IGNORED_CONV = (
    *_IGNORED,
    Attr("is_test", bool, False),
    Attr("exhaustive_search", bool, False),
    Attr("force_fp32_output", bool, False),
    Attr("fuse_relu", bool, False),
    Attr("fuse_activation", str, ""),
    Attr("fuse_alpha", float, 0.0),
    Attr("fuse_beta", float, 0.0),
    Attr("fuse_residual_connection", bool, False),
)


def _window(data_format: str) -> tuple[Attr, ...]:
    return (
        Attr("strides", AttrType.INTS, [1, 1, 1]),
        Attr("paddings", AttrType.INTS, [0, 0, 0]),
        Attr("padding_algorithm", str, "EXPLICIT"),
        Attr("dilations", AttrType.INTS, [1, 1, 1]),
        Attr("groups", int, 1),
        Attr("data_format", str, data_format),
    )


def _geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    dilations: Sequence[int],
    groups: int,
    fail: Fail = raise_error,
) -> Volume:
    pads = explicit_pads(paddings, fail, 3)
    axes = (
        plan_axis(size[i], kernel[i], strides[i], dilations[i], pads[i], algorithm)
        for i in range(3)
    )
    return Volume(groups, *axes)


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
) -> Volume:
    """The convolution whose input gradient a transposed convolution is."""
    pads = explicit_pads(paddings, fail, 3)
    axes = []
    for i in range(3):
        dilation = 1 if algorithm == "SAME" else dilations[i]
        a = plan_axis(size[i], kernel[i], strides[i], dilation, pads[i], algorithm)
        natural = (size[i] - 1) * a.stride + dilation * (a.kernel - 1) + 1
        natural -= a.before + a.after
        whole = natural if size[i] >= 0 else -1
        if len(output_size) and whole >= 0:
            whole = int(output_size[i])
            if not natural <= whole < natural + a.stride:
                fail(
                    f"output_size {list(output_size)}: dimension {i} must be at least "
                    f"{natural} and less than {natural + a.stride}"
                )
        axes.append(a._replace(size=whole, dilation=dilation, out=size[i]))
    return Volume(groups, *axes)


def _checked(op: InferContext, dims_last: bool) -> tuple[Any, Any]:
    """Input as (n, channels, depth, height, width), and filter; ranks checked."""
    shape, weight = op.shape("Input"), op.shape("Filter")
    op.check(len(shape) == 5, f"Input needs 5 dimensions, got shape {shape}")
    op.check(len(weight) == 5, f"Filter needs 5 dimensions, got shape {weight}")
    for name in ("strides", "dilations"):
        value = op.attr(name)
        op.check(
            len(value) == 3 and min(value) > 0,
            f"{name} needs 3 positive numbers, got {list(value)}",
        )
    op.check(op.attr("groups") > 0, f"groups must be positive, got {op.attr('groups')}")
    if dims_last:
        shape = (shape[0], shape[4], *shape[1:4])
    return shape, weight


def _set_output(op: InferContext, last: bool, shape: tuple[int, ...]) -> None:
    n, c, *size = shape
    op.set("Output", (n, *size, c) if last else shape, like=op.input("Input"))


def _infer_conv(op: InferContext) -> None:
    last = channels_last(op.attr("data_format"), op.fail, 3)
    (n, channels, *size), weight = _checked(op, last)
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
    g = _geometry(
        size,
        weight[2:],
        op.attr("strides"),
        op.attr("paddings"),
        op.attr("padding_algorithm"),
        op.attr("dilations"),
        groups,
        op.fail,
    )
    for name, axis in (("depth", g.z), ("height", g.y), ("width", g.x)):
        op.check(
            axis.size < 0 or axis.out > 0,
            f"a kernel of {axis.kernel} (dilation {axis.dilation}) does not fit "
            f"{name} {axis.size} with padding {axis.before} and {axis.after}",
        )
    _set_output(op, last, (n, weight[0], g.z.out, g.y.out, g.x.out))


def _infer_transpose(op: InferContext) -> None:
    last = channels_last(op.attr("data_format"), op.fail)
    (n, channels, *size), weight = _checked(op, last)
    op.check(
        channels < 0 or channels == weight[0],
        f"Input has {channels} channels ({op.attr('data_format')}), but Filter "
        f"{weight} takes {weight[0]}",
    )
    wanted = op.attr("output_size")
    op.check(len(wanted) in (0, 3), f"output_size needs 3 numbers, got {wanted}")
    g = _transposed_geometry(
        size,
        weight[2:],
        op.attr("strides"),
        op.attr("paddings"),
        op.attr("padding_algorithm"),
        op.attr("dilations"),
        op.attr("groups"),
        wanted,
        op.fail,
    )
    filters = weight[1] * op.attr("groups")
    _set_output(op, last, (n, filters, g.z.size, g.y.size, g.x.size))


conv3d = op(
    "conv3d",
    ins=[In("Input"), In("Filter"), In("ResidualData", dispensable=True, no_grad=True)],
    outs=[Out("Output")],
    attrs=_window("NCDHW") + _IGNORED_CONV,
    infer=_infer_conv,
    grad=grad_op(needs=["Input", "Filter", "ResidualData"]),
)


@conv3d.kernel
def _(
    xp: Any,
    x: Any,
    weight: Any,
    residual: Any,
    *,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    groups: int,
    data_format: str,
) -> Any:
    last = data_format == "NDHWC"
    x = channels_first(x, last)
    g = _geometry(
        x.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
    shape = (len(x), len(weight), g.z.out, g.y.out, g.x.out)
    made, out = new_volume(xp, shape, x.dtype, last)
    convolve(xp, x, weight, g, out)
    return made


@conv3d.grad_kernel
def _(
    xp: Any,
    x: Any,
    weight: Any,
    residual: Any,
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
    last = data_format == "NDHWC"
    x, d_out = channels_first(x, last), channels_first(d_out, last)
    g = _geometry(
        x.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
    )
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
    attrs=(*_window("NCHW"), Attr("output_size", AttrType.INTS, []), *_IGNORED),
    infer=_infer_transpose,
    grad=grad_op(needs=["Input", "Filter"]),
)


@conv3d_transpose.kernel
def _(
    xp: Any,
    x: Any,
    weight: Any,
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
    x = channels_first(x, last)
    g = _transposed_geometry(
        x.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
        output_size,
    )
    shape = (len(x), weight.shape[1] * groups, g.z.size, g.y.size, g.x.size)
    made, out = new_volume(xp, shape, x.dtype, last)
    spread(xp, x, weight, g, out)
    return made


@conv3d_transpose.grad_kernel
def _(
    xp: Any,
    x: Any,
    weight: Any,
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
    x, d_out = channels_first(x, last), channels_first(d_out, last)
    g = _transposed_geometry(
        x.shape[2:],
        weight.shape[2:],
        strides,
        paddings,
        padding_algorithm,
        dilations,
        groups,
        output_size,
    )
    dx = dw = None
    if wants[0]:
        dx, into = new_volume(xp, x.shape, x.dtype, last)
        convolve(xp, d_out, weight, g, into)
    if wants[1]:
        dw = filter_grad(xp, d_out, x, weight, g)
    return dx, dw
