"""Convolution and pooling of volumes."""

from __future__ import annotations

import math
from typing import Any

from fluidx.initializer import Normal
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.conv import (
    adaptive_pool,
    channels_of,
    checked_groups,
    padding_attrs,
)
from fluidx.layers.conv_transpose import filter_size_of
from fluidx.layers.emit import FLOATS, check_dtype, one_of, pair

__all__ = ["adaptive_pool3d", "conv3d", "conv3d_transpose", "pool3d"]


def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """Convolution of volumes: act(filter * input + b).

    input: [N, C, D, H, W], or [N, D, H, W, C] with data_format "NDHWC". The filter is
    [num_filters, C / groups, depth, height, width], drawn from a normal distribution
    of deviation sqrt(2 / (its volume * C)) by default. filter_size, stride, dilation:
    one integer or three. padding: as those, or six sides, pairs, "SAME" or "VALID".
    Mirrors ``fluid.layers.conv3d``.

    >>> import fluidx as fluid
    >>> video = fluid.data("conv3d_in", [None, 3, 8, 32, 32])
    >>> fluid.layers.conv3d(video, 4, 3, act="relu").shape
    (-1, 4, 6, 30, 30)
    """
    channels, last = channels_of(input, "conv3d", data_format, 3)
    groups_ = checked_groups("conv3d", channels, num_filters, groups)
    helper = _helper("conv3d", param_attr, bias_attr, use_cudnn, act, name)
    size = pair(filter_size, "filter_size", "conv3d", 3)
    spread = (2.0 / (math.prod(size) * channels)) ** 0.5
    weight = helper.create_parameter(
        helper.param_attr,
        [num_filters, channels // groups_, *size],
        input.dtype,
        default_initializer=Normal(0.0, spread, 0),
    )
    attrs = {
        "strides": pair(stride, "stride", "conv3d", 3),
        "dilations": pair(dilation, "dilation", "conv3d", 3),
        "groups": groups_,
        "use_cudnn": use_cudnn,
        "data_format": data_format,
        **padding_attrs(padding, "padding", "conv3d", last, 3),
    }
    return _finish(helper, "conv3d", input, weight, attrs, last)


def _helper(
    layer: str,
    param_attr: Any,
    bias_attr: Any,
    use_cudnn: bool,
    act: str | None,
    name: str | None,
) -> LayerHelper:
    if not isinstance(use_cudnn, bool):
        raise ValueError(f"{layer}: use_cudnn must be a bool, got {use_cudnn!r}")
    return LayerHelper(
        layer,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
        use_cudnn=use_cudnn,
    )


def _finish(
    helper: LayerHelper,
    layer: str,
    input: Variable,
    weight: Variable,
    attrs: dict[str, Any],
    last: bool,
) -> Variable:
    """The op itself, its bias and its activation."""
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(layer, {"Input": input, "Filter": weight}, {"Output": made}, attrs)
    made = (
        helper.append_bias_op(made, 4, 5) if last else helper.append_bias_op(made, 1, 2)
    )
    return helper.append_activation(made)


def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """The gradient of a convolution of volumes as a layer: it enlarges them.

    As `conv2d_transpose`, for [N, C, D, H, W], or [N, D, H, W, C] with data_format
    "NDHWC". Mirrors ``fluid.layers.conv3d_transpose``.

    >>> import fluidx as fluid
    >>> video = fluid.data("deconv3d_in", [None, 8, 4, 5, 5])
    >>> fluid.layers.conv3d_transpose(video, 4, filter_size=2, stride=2).shape
    (-1, 4, 8, 10, 10)
    """
    layer = "conv3d_transpose"
    channels, last = channels_of(input, layer, data_format, 3)
    groups_ = checked_groups(layer, channels, num_filters, groups)
    helper = _helper(layer, param_attr, bias_attr, use_cudnn, act, name)
    attrs = {
        "strides": pair(stride, "stride", layer, 3),
        "dilations": pair(dilation, "dilation", layer, 3),
        "groups": groups_,
        "use_cudnn": use_cudnn,
        # this op's own names for its formats
        "data_format": "NHWC" if last else "NCHW",
        **padding_attrs(padding, "padding", layer, last, 3),
    }
    if output_size is not None:
        attrs["output_size"] = pair(output_size, "output_size", layer, 3)
    if filter_size is None:
        size = filter_size_of(input, attrs, last, layer)
    else:
        size = pair(filter_size, "filter_size", layer, 3)
    weight = helper.create_parameter(
        helper.param_attr, [channels, num_filters // groups_, *size], input.dtype
    )
    return _finish(helper, layer, input, weight, attrs, last)


def pool3d(
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Variable:
    """The largest or the mean ("avg") of each window of a volume.

    As `pool2d`, for [N, C, D, H, W], or [N, D, H, W, C] with data_format "NDHWC".
    Mirrors ``fluid.layers.pool3d``.

    >>> import fluidx as fluid
    >>> video = fluid.data("pool3d_in", [None, 3, 8, 32, 32])
    >>> fluid.layers.pool3d(video, 2, "avg", 2).shape
    (-1, 3, 4, 16, 16)
    """
    check_dtype(input, "input", "pool3d", FLOATS)
    one_of(pool_type, "pool_type", "pool3d", ("max", "avg"))
    one_of(data_format, "data_format", "pool3d", ("NCDHW", "NDHWC"))
    size = pair(pool_size, "pool_size", "pool3d", 3)
    if not global_pooling and any(s < 1 for s in size):
        raise ValueError(
            "pool3d: pool_size must be positive without global_pooling, got "
            f"{pool_size!r}"
        )
    helper = LayerHelper("pool3d", name=name)
    made = helper.create_variable_for_type_inference(input.dtype)
    attrs = {
        "pooling_type": pool_type,
        "ksize": size,
        "global_pooling": global_pooling,
        "strides": pair(pool_stride, "pool_stride", "pool3d", 3),
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
        **padding_attrs(
            pool_padding, "pool_padding", "pool3d", data_format == "NDHWC", 3
        ),
    }
    helper.append_op("pool3d", {"X": input}, {"Out": made}, attrs)
    return made


def adaptive_pool3d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """Pooling of [N, C, D, H, W] to a given size: windows that cover it evenly.

    As `adaptive_pool2d`; positions count in the flattened [D, H, W]. Mirrors
    ``fluid.layers.adaptive_pool3d``.

    >>> import fluidx as fluid
    >>> video = fluid.data("adaptive3d_in", [None, 3, 8, 32, 32])
    >>> fluid.layers.adaptive_pool3d(video, [2, 7, 5]).shape
    (-1, 3, 2, 7, 5)
    """
    return adaptive_pool(input, pool_size, pool_type, require_index, name, 3)
