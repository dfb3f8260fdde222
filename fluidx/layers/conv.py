"""Convolution and pooling of images."""

from __future__ import annotations

from typing import Any

from fluidx.initializer import Normal
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, int_list, is_integer, one_of, pair

__all__ = [
    "adaptive_pool2d",
    "conv2d",
    "pool2d",
]


def padding_attrs(
    padding: Any, arg: str, layer: str, channel_last: bool, dims: int = 2
) -> dict[str, Any]:
    """Attributes paddings and padding_algorithm from what a user may write.

    "SAME", "VALID", one number, one per dimension, one per side, or pairs per
    dimension with batch and channel. The same on both sides becomes one number.
    """
    if isinstance(padding, str):
        kind = padding.upper()
        one_of(kind, arg, layer, ("SAME", "VALID"))
        return {"paddings": [0] * dims, "padding_algorithm": kind}
    many = isinstance(padding, (list, tuple))
    if many and all(isinstance(p, (list, tuple)) for p in padding):
        padding = _sides(padding, arg, layer, channel_last, dims)
    if many and len(padding) == 2 * dims:
        sides = int_list(padding, arg, layer)
        low, high = sides[::2], sides[1::2]
        given = low if low == high else sides
    else:
        given = pair(padding, arg, layer, dims)
    return {"paddings": given, "padding_algorithm": "EXPLICIT"}


def _sides(
    padding: Any, arg: str, layer: str, channel_last: bool, dims: int
) -> list[int]:
    """Both sides of the spatial dimensions, from pairs for all dimensions."""
    if len(padding) != dims + 2:
        raise ValueError(
            f"{layer}: {arg} has {len(padding)} pairs for {dims + 2} dimensions"
        )
    outer = [0, len(padding) - 1] if channel_last else [0, 1]
    for dim in outer:
        if list(padding[dim]) != [0, 0]:
            raise ValueError(
                f"{layer}: {arg} cannot pad batch and channel, got {padding!r}"
            )
    inner = [p for i, p in enumerate(padding) if i not in outer]
    return [side for both in inner for side in both]


def conv2d(
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
    data_format: str = "NCHW",
) -> Variable:
    """Convolution of images: act(filter * input + b).

    input: [N, C, H, W], or [N, H, W, C] with data_format "NHWC". The filter is
    [num_filters, C / groups, height, width], drawn from a normal distribution of
    deviation sqrt(2 / (height * width * C)) by default. filter_size, stride, dilation:
    one integer or two. padding: as those, or four sides, pairs, "SAME" or "VALID".
    With groups equal to C and use_cudnn False the op is depthwise_conv2d. Mirrors
    ``fluid.layers.conv2d``.

    >>> import fluidx as fluid, numpy as np
    >>> image = fluid.layers.assign(np.arange(9, dtype="float32").reshape(1, 1, 3, 3))
    >>> ones = fluid.initializer.Constant(1.0)
    >>> y = fluid.layers.conv2d(image, num_filters=1, filter_size=2, param_attr=ones)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].tolist()  # 0 + 1 + 3 + 4, ...
    [[[[8.0, 12.0], [20.0, 24.0]]]]
    >>> big = fluid.data("conv_in", [None, 3, 32, 32])
    >>> fluid.layers.conv2d(big, 16, 5, padding="SAME", act="relu").shape
    (-1, 16, 32, 32)
    """
    channels, last = channels_of(input, "conv2d", data_format)
    groups_ = checked_groups("conv2d", channels, num_filters, groups)
    if not isinstance(use_cudnn, bool):
        raise ValueError(f"conv2d: use_cudnn must be a bool, got {use_cudnn!r}")
    depthwise = (
        groups_ == channels and num_filters % channels == 0 and groups and not use_cudnn
    )
    type = "depthwise_conv2d" if depthwise else "conv2d"
    helper = LayerHelper(
        type,
        input=input,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
        use_cudnn=use_cudnn,
    )
    size = pair(filter_size, "filter_size", "conv2d")
    spread = (2.0 / (size[0] * size[1] * channels)) ** 0.5
    weight = helper.create_parameter(
        helper.param_attr,
        [num_filters, channels // groups_, *size],
        input.dtype,
        default_initializer=Normal(0.0, spread, 0),
    )
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type,
        {"Input": input, "Filter": weight},
        {"Output": made},
        {
            "strides": pair(stride, "stride", "conv2d"),
            "dilations": pair(dilation, "dilation", "conv2d"),
            "groups": groups_,
            "use_cudnn": use_cudnn,
            "data_format": data_format,
            **padding_attrs(padding, "padding", "conv2d", last),
        },
    )
    made = (
        helper.append_bias_op(made, 3, 4) if last else helper.append_bias_op(made, 1, 2)
    )
    return helper.append_activation(made)


def channels_of(
    input: Any, layer: str, data_format: str, dims: int = 2
) -> tuple[int, bool]:
    """How many channels the images have, and whether these come last."""
    check_dtype(input, "input", layer, FLOATS)
    formats = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    one_of(data_format, "data_format", layer, formats)
    if len(input.shape) != dims + 2:
        raise ValueError(
            f"{layer}: input must have {dims + 2} dimensions, {input.name} has shape "
            f"{list(input.shape)}"
        )
    last = data_format == formats[1]
    channels = input.shape[-1 if last else 1]
    if channels < 1:
        raise ValueError(
            f"{layer}: the number of channels must be known, {input.name} has shape "
            f"{list(input.shape)}"
        )
    return channels, last


def checked_groups(
    layer: str, channels: int, num_filters: int, groups: int | None
) -> int:
    if not is_integer(num_filters) or num_filters < 1:
        raise ValueError(
            f"{layer}: num_filters must be a positive integer, got {num_filters!r}"
        )
    if groups is None:
        return 1
    if not is_integer(groups) or groups < 1:
        raise ValueError(f"{layer}: groups must be a positive integer, got {groups!r}")
    if channels % groups or num_filters % groups:
        raise ValueError(
            f"{layer}: groups {groups} must divide {channels} channels and "
            f"{num_filters} filters"
        )
    return groups


def pool2d(
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
    data_format: str = "NCHW",
) -> Variable:
    """The largest or the mean ("avg") of each window of an image.

    global_pooling: one window over the whole image. exclusive: the mean does not
    count padding. ceil_mode: windows may stand over the edge. pool_padding as in
    `conv2d`. Mirrors ``fluid.layers.pool2d``.

    >>> import fluidx as fluid, numpy as np
    >>> image = fluid.layers.assign(np.arange(16, dtype="float32").reshape(1, 1, 4, 4))
    >>> top = fluid.layers.pool2d(image, pool_size=2, pool_type="max", pool_stride=2)
    >>> mean = fluid.layers.pool2d(image, pool_size=2, pool_type="avg", pool_stride=2)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[top, mean])
    >>> [v[0, 0].tolist() for v in made]
    [[[5.0, 7.0], [13.0, 15.0]], [[2.5, 4.5], [10.5, 12.5]]]
    """
    check_dtype(input, "input", "pool2d", FLOATS)
    one_of(pool_type, "pool_type", "pool2d", ("max", "avg"))
    one_of(data_format, "data_format", "pool2d", ("NCHW", "NHWC"))
    size = pair(pool_size, "pool_size", "pool2d")
    if not global_pooling and any(s < 1 for s in size):
        raise ValueError(
            "pool2d: pool_size must be positive without global_pooling, got "
            f"{pool_size!r}"
        )
    helper = LayerHelper("pool2d", name=name)
    made = helper.create_variable_for_type_inference(input.dtype)
    last = data_format == "NHWC"
    attrs = {
        "pooling_type": pool_type,
        "ksize": size,
        "global_pooling": global_pooling,
        "strides": pair(pool_stride, "pool_stride", "pool2d"),
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
        **padding_attrs(pool_padding, "pool_padding", "pool2d", last),
    }
    helper.append_op("pool2d", {"X": input}, {"Out": made}, attrs)
    return made


def adaptive_pool2d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """Pooling of [N, C, H, W] to a given size: windows that cover the image evenly.

    pool_size: one integer or two. pool_type: "max" or "avg". require_index: also
    return where each maximum was, as positions in the flattened [H, W] (int32).
    Mirrors ``fluid.layers.adaptive_pool2d``.

    >>> import fluidx as fluid
    >>> image = fluid.data("adaptive_in", [None, 3, 32, 32])
    >>> fluid.layers.adaptive_pool2d(image, [7, 5]).shape
    (-1, 3, 7, 5)
    """
    return adaptive_pool(input, pool_size, pool_type, require_index, name, 2)


def adaptive_pool(
    input: Variable,
    pool_size: Any,
    pool_type: str,
    require_index: bool,
    name: str | None,
    dims: int,
) -> Any:
    """`adaptive_pool2d` for any number of dimensions."""
    layer = f"adaptive_pool{dims}d"
    check_dtype(input, "input", layer, FLOATS)
    one_of(pool_type, "pool_type", layer, ("max", "avg"))
    if pool_type == "avg" and require_index:
        raise ValueError(f"{layer}: require_index goes with pool_type 'max'")
    size = pair(pool_size, "pool_size", layer, dims)
    type = f"max_pool{dims}d_with_index" if pool_type == "max" else f"pool{dims}d"
    helper = LayerHelper(type, name=name)
    made = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": made}
    attrs: dict[str, Any] = {"ksize": size, "adaptive": True}
    if pool_type == "max":
        mask = helper.create_variable_for_type_inference(input.dtype)
        outputs["Mask"] = mask
    else:
        attrs["pooling_type"] = "avg"
    helper.append_op(type, {"X": input}, outputs, attrs)
    return (made, mask) if require_index else made
