"""Transposed convolution."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.conv import channels_of, checked_groups, padding_attrs
from fluidx.layers.emit import pair

__all__ = ["conv2d_transpose"]


def conv2d_transpose(
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
    data_format: str = "NCHW",
) -> Variable:
    """The gradient of a convolution as a layer: it enlarges images.

    input: [N, C, H, W], or [N, H, W, C] with data_format "NHWC". The filter is
    [C, num_filters / groups, height, width]; without filter_size its size follows from
    output_size. output_size also settles which of the sizes that stride allows is
    meant. padding as in `conv2d`. Zeiler et al. (2010). Mirrors
    ``fluid.layers.conv2d_transpose``.

    >>> import fluidx as fluid
    >>> image = fluid.data("deconv_in", [None, 8, 5, 5])
    >>> fluid.layers.conv2d_transpose(image, 4, filter_size=2, stride=2).shape
    (-1, 4, 10, 10)
    """
    layer = "conv2d_transpose"
    channels, last = channels_of(input, layer, data_format)
    groups_ = checked_groups(layer, channels, num_filters, groups)
    depthwise = "depthwise_conv2d_transpose"
    narrow = groups_ == channels == num_filters and not use_cudnn and groups
    type = depthwise if narrow else layer
    helper = LayerHelper(
        type,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
        use_cudnn=use_cudnn,
    )
    attrs = {
        "strides": pair(stride, "stride", layer),
        "dilations": pair(dilation, "dilation", layer),
        "groups": groups_,
        "use_cudnn": use_cudnn,
        "data_format": data_format,
        **padding_attrs(padding, "padding", layer, last),
    }
    if output_size is not None:
        attrs["output_size"] = pair(output_size, "output_size", layer)
    if filter_size is None:
        size = filter_size_of(input, attrs, last, layer)
    else:
        size = pair(filter_size, "filter_size", layer)
    weight = helper.create_parameter(
        helper.param_attr, [channels, num_filters // groups_, *size], input.dtype
    )
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, {"Input": input, "Filter": weight}, {"Output": made}, attrs)
    made = (
        helper.append_bias_op(made, 3, 4) if last else helper.append_bias_op(made, 1, 2)
    )
    return helper.append_activation(made)


def filter_size_of(
    input: Variable, attrs: dict[str, Any], last: bool, layer: str
) -> list[int]:
    """The filter with which the image becomes `output_size`."""
    wanted = attrs.get("output_size")
    if wanted is None:
        raise ValueError(f"{layer}: give output_size or filter_size")
    sizes = input.shape[1:-1] if last else input.shape[2:]
    if any(s < 0 for s in sizes):
        raise ValueError(
            f"{layer}: without filter_size the image's size must be known, "
            f"{input.name} has shape {list(input.shape)}"
        )
    padding = attrs["paddings"]
    both = [2 * p for p in padding] if len(padding) == len(sizes) else _sums(padding)
    return [
        (out - (size - 1) * stride + pad - 1) // dilation + 1
        for out, size, stride, pad, dilation in zip(
            wanted, sizes, attrs["strides"], both, attrs["dilations"]
        )
    ]


def _sums(sides: list[int]) -> list[int]:
    return [a + b for a, b in zip(sides[::2], sides[1::2])]
