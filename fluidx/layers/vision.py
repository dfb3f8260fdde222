"""Layers on images that are neither convolution nor pooling."""

from __future__ import annotations

from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    INTEGERS,
    check_dtype,
    check_variable,
    emit,
    int_list,
    one_of,
)

__all__ = ["affine_channel", "affine_grid", "grid_sampler", "prelu"]


def affine_grid(theta: Variable, out_shape: Any, name: str | None = None) -> Variable:
    """Where each pixel of an image comes from under an affine map: [N, H, W, 2].

    theta: [N, 2, 3]; a point (x, y) goes to theta @ (x, y, 1). Coordinates run from -1
    to 1. out_shape: [N, C, H, W] as a list or an int32 Variable. Jaderberg et al.
    (2015). Mirrors ``fluid.layers.affine_grid``, but an axis of one pixel is at 0
    (NaN in the reference).

    >>> import fluidx as fluid
    >>> theta = fluid.data("theta", [None, 2, 3])
    >>> fluid.layers.affine_grid(theta, [4, 3, 8, 8]).shape
    (-1, -1, -1, 2)
    """
    check_dtype(theta, "theta", "affine_grid", FLOATS)
    inputs, attrs = {"Theta": theta}, {}
    if isinstance(out_shape, Variable):
        inputs["OutputShape"] = check_dtype(
            out_shape, "out_shape", "affine_grid", INTEGERS
        )
    elif isinstance(out_shape, (list, tuple)):
        attrs["output_shape"] = int_list(out_shape, "out_shape", "affine_grid")
    else:
        raise TypeError(
            "affine_grid: out_shape must be a list, a tuple or a Variable, got "
            f"{out_shape!r}"
        )
    # the reference does not use the name
    return emit("affine_grid", inputs, attrs, slot="Output")


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """The image as seen at the points of a grid, interpolated linearly.

    x: [N, C, H, W]. grid: [N, H, W, 2], coordinates (x, y) from -1 (the centre of the
    first pixel) to 1 (of the last); outside of the image all is 0. Jaderberg et al.
    (2015). Mirrors ``fluid.layers.grid_sampler``.

    >>> import fluidx as fluid
    >>> image = fluid.data("sampled", [None, 3, 8, 8])
    >>> grid = fluid.data("points", [None, 8, 8, 2])
    >>> fluid.layers.grid_sampler(image, grid).shape
    (-1, 3, 8, 8)
    """
    check_dtype(x, "x", "grid_sampler", FLOATS)
    check_dtype(grid, "grid", "grid_sampler", FLOATS)
    inputs = {"X": x, "Grid": grid}
    return emit("grid_sampler", inputs, name=name, slot="Output")


def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """act(x * scale + bias), with a scale and a bias for each channel.

    x: [N, C, ...], or [N, ..., C] with data_layout "NHWC". scale, bias: [C]; both are
    needed. Mirrors ``fluid.layers.affine_channel``.

    >>> import fluidx as fluid
    >>> image = fluid.data("affine_in", [None, 3, 8, 8])
    >>> scale = fluid.layers.create_parameter([3], "float32")
    >>> bias = fluid.layers.create_parameter([3], "float32")
    >>> fluid.layers.affine_channel(image, scale, bias).shape
    (-1, 3, 8, 8)
    """
    check_dtype(x, "x", "affine_channel", FLOATS)
    check_variable(scale, "scale", "affine_channel")
    check_variable(bias, "bias", "affine_channel")
    one_of(data_layout, "data_layout", "affine_channel", ("NCHW", "NHWC"))
    helper = LayerHelper("affine_channel", act=act, name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(
        "affine_channel",
        {"X": x, "Scale": scale, "Bias": bias},
        {"Out": made},
        {"data_layout": data_layout},
    )
    return helper.append_activation(made)


def prelu(
    x: Variable, mode: str, param_attr: Any = None, name: str | None = None
) -> Variable:
    """max(x, 0) + alpha * min(x, 0), with learnt slopes alpha (initially 0.25).

    mode: one slope for "all", for each "channel" of [N, C, ...], or for each "element"
    of a sample (whose sizes must be known). He et al. (2015). Mirrors
    ``fluid.layers.prelu``.

    >>> import fluidx as fluid
    >>> fluid.layers.prelu(fluid.data("prelu_in", [None, 3, 8, 8]), "channel").shape
    (-1, 3, 8, 8)
    """
    check_dtype(x, "x", "prelu", FLOATS)
    one_of(mode, "mode", "prelu", ("all", "channel", "element"))
    if mode == "channel":
        if len(x.shape) < 2:
            raise ValueError(
                f"prelu: x must have channels, {x.name} has shape {list(x.shape)}"
            )
        shape = [1, x.shape[1], 1, 1]
    else:
        shape = [1] if mode == "all" else [1, *x.shape[1:]]
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    alpha = helper.create_parameter(
        helper.param_attr, shape, "float32", default_initializer=Constant(0.25)
    )
    made = helper.create_variable_for_type_inference(x.dtype)
    attrs = {"mode": mode}
    helper.append_op("prelu", {"X": x, "Alpha": alpha}, {"Out": made}, attrs)
    return made
