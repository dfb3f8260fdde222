"""Normalisation of single images: by instance, by groups of channels, locally."""

from __future__ import annotations

from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, is_integer, one_of

__all__ = ["group_norm", "instance_norm", "lrn"]


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """Normalises each channel of each sample, then scales and shifts it.

    input: [N, C, ...]. Ulyanov et al. (2016). Mirrors ``fluid.layers.instance_norm``.

    >>> import fluidx as fluid
    >>> x = fluid.data("instance_norm_x", [None, 4, 8, 8])
    >>> fluid.layers.instance_norm(x).shape
    (-1, 4, 8, 8)
    """
    check_dtype(input, "input", "instance_norm", FLOATS)
    for arg, attr in (("param_attr", param_attr), ("bias_attr", bias_attr)):
        if attr is False:
            raise ValueError(f"instance_norm: {arg} must not be False")
    helper = LayerHelper(
        "instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name
    )
    dtype, size = input.dtype, [input.shape[1]]
    scale = helper.create_parameter(
        helper.param_attr, size, dtype, default_initializer=Constant(1.0)
    )
    bias = helper.create_parameter(
        helper.bias_attr, size, dtype, True, default_initializer=Constant(0.0)
    )
    mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    variance = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    made = helper.create_variable_for_type_inference(dtype)
    helper.append_op(
        "instance_norm",
        {"X": input, "Scale": scale, "Bias": bias},
        {"Y": made, "SavedMean": mean, "SavedVariance": variance},
        {"epsilon": epsilon},
    )
    return made


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Normalises groups of channels of each sample, then scales and shifts channels.

    input: [N, C, H, W], or [N, H, W, C]; groups divides C. The scale exists only with a
    param_attr, the shift only with a bias_attr. Wu and He (2018).
    Mirrors ``fluid.layers.group_norm``.

    >>> import fluidx as fluid
    >>> x = fluid.data("group_norm_x", [None, 4, 8, 8])
    >>> fluid.layers.group_norm(x, groups=2).shape
    (-1, 4, 8, 8)
    """
    check_dtype(input, "input", "group_norm", FLOATS)
    one_of(data_layout, "data_layout", "group_norm", ("NCHW", "NHWC"))
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    if not is_integer(groups):
        raise TypeError(f"group_norm: groups must be an integer, got {groups!r}")
    if groups < 1 or channels % groups:
        raise ValueError(
            f"group_norm: groups {groups} does not divide {channels} channels"
        )
    helper = LayerHelper(
        "group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    inputs: dict[str, Variable] = {"X": input}
    if param_attr:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr,
            [channels],
            input.dtype,
            default_initializer=Constant(1.0),
        )
    if bias_attr:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [channels], input.dtype, is_bias=True
        )
    # the reference gives these no names of the layer's own
    mean = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    variance = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    made = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        "group_norm",
        inputs,
        {"Y": made, "Mean": mean, "Variance": variance},
        {"epsilon": epsilon, "groups": groups, "data_layout": data_layout},
    )
    return helper.append_activation(made)


def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 0.0001,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """x / (k + alpha * sum of squares over n neighbouring channels) ** beta.

    input: [N, C, H, W], or [N, H, W, C]. Krizhevsky et al. (2012). Mirrors
    ``fluid.layers.lrn``.

    >>> import fluidx as fluid
    >>> x = fluid.data("lrn_x", [None, 4, 8, 8])
    >>> fluid.layers.lrn(x).shape
    (-1, 4, 8, 8)
    """
    check_dtype(input, "input", "lrn", FLOATS)
    one_of(data_format, "data_format", "lrn", ("NCHW", "NHWC"))
    if len(input.shape) != 4:
        raise ValueError(
            f"lrn: input must have 4 dimensions, got shape {list(input.shape)}"
        )
    helper = LayerHelper("lrn", name=name)
    middle = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    made = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format}
    helper.append_op("lrn", {"X": input}, {"Out": made, "MidOut": middle}, attrs)
    return made
