"""Normalisation of weights, and of data by statistics that are parameters."""

from __future__ import annotations

import math
from typing import Any

from fluidx.initializer import Constant, Normal
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, is_integer, one_of
from fluidx.param_attr import ParamAttr

__all__ = ["data_norm", "spectral_norm"]


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """(input - mean) * scale, from sums over all data seen so far.

    input: [N, C]. Three parameters [C], ``<name>.batch_size``, ``.batch_sum`` and
    ``.batch_square_sum``, give the mean sum / size and the scale sqrt(size / squares);
    their gradients are this batch's share, which an optimizer of its own adds up.
    param_attr: a dict of their initial values (batch_size 1e4, batch_sum 0,
    batch_square 1e4), with enable_scale_and_shift also of scale_w (1) and bias (0).
    slot_dim: columns come in slots of this width, and a slot whose first column is 0
    stays 0. Without a name the parameters are called dn: two such layers share them,
    as in the reference.
    Mirrors ``fluid.layers.data_norm``.

    >>> import fluidx as fluid
    >>> fluid.layers.data_norm(fluid.data("dn_in", [None, 16]), name="dn_doc").shape
    (-1, 16)
    """
    check_dtype(input, "input", "data_norm", FLOATS)
    one_of(data_layout, "data_layout", "data_norm", ("NCHW", "NHWC"))
    if len(input.shape) != 2 or input.shape[1] < 1:
        raise ValueError(
            f"data_norm: input must be [N, C], {input.name} has shape "
            f"{list(input.shape)}"
        )
    helper = LayerHelper("data_norm", act=act, name=name)
    width = [int(input.shape[1])]
    start = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4}
    start |= {"scale_w": 1.0, "bias": 0.0}
    if param_attr:
        if not isinstance(param_attr, dict):
            raise TypeError(
                f"data_norm: param_attr must be a dict of numbers, got {param_attr!r}"
            )
        start |= param_attr

    def parameter(suffix: str, key: str) -> Variable:
        attr = ParamAttr(
            name=f"{name or 'dn'}.{suffix}", initializer=Constant(float(start[key]))
        )
        return helper.create_parameter(attr, width, input.dtype)

    inputs: dict[str, Variable] = {"X": input}
    if enable_scale_and_shift:
        inputs["scale_w"] = parameter("scale_w", "scale_w")
        inputs["bias"] = parameter("bias", "bias")
    inputs["BatchSize"] = parameter("batch_size", "batch_size")
    inputs["BatchSum"] = parameter("batch_sum", "batch_sum")
    inputs["BatchSquareSum"] = parameter("batch_square_sum", "batch_square")
    means = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    scales = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    made = input if in_place else helper.create_variable(dtype=input.dtype)
    attrs = {
        "epsilon": epsilon,
        "sync_stats": sync_stats,
        "summary_decay_rate": summary_decay_rate,
        "slot_dim": slot_dim,
        "enable_scale_and_shift": enable_scale_and_shift,
    }
    outputs = {"Y": made, "Means": means, "Scales": scales}
    helper.append_op("data_norm", inputs, outputs, attrs)
    return helper.append_activation(made)


def spectral_norm(
    weight: Variable,
    dim: int = 0,
    power_iters: int = 1,
    eps: float = 1e-12,
    name: str | None = None,
) -> Variable:
    """weight divided by its largest singular value.

    weight: 2 to 5 dimensions; seen as a matrix whose rows are dimension `dim` (0, or 1
    for transposed convolutions). The value is found by power_iters rounds of power
    iteration from two fixed random vectors. Miyato et al. (2018). Mirrors
    ``fluid.layers.spectral_norm``; the gradient is that of weight / (u' weight v)
    with u and v held fixed, where the reference's formula is not.

    >>> import fluidx as fluid
    >>> weight = fluid.layers.create_parameter([4, 3, 2], "float32")
    >>> fluid.layers.spectral_norm(weight, dim=1, power_iters=2).shape
    (4, 3, 2)
    """
    check_dtype(weight, "weight", "spectral_norm", FLOATS)
    one_of(dim, "dim", "spectral_norm", (0, 1))
    if not is_integer(power_iters) or power_iters < 0:
        raise ValueError(
            f"spectral_norm: power_iters must be at least 0, got {power_iters!r}"
        )
    helper = LayerHelper("spectral_norm", name=name)
    shape = weight.shape
    inputs = {"Weight": weight}
    for slot, size in (("U", shape[dim]), ("V", math.prod(shape) // shape[dim])):
        vector = helper.create_parameter(
            ParamAttr(), [size], weight.dtype, default_initializer=Normal(0.0, 1.0)
        )
        vector.stop_gradient = True
        inputs[slot] = vector
    made = helper.create_variable(dtype=weight.dtype)
    attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}
    helper.append_op("spectral_norm", inputs, {"Out": made}, attrs)
    return made
