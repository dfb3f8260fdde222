"""Normalisation over batches and over features."""

from __future__ import annotations

import math
from typing import Any

from fluidx.arguments import as_number
from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, is_integer, one_of
from fluidx.param_attr import ParamAttr

__all__ = ["batch_norm", "layer_norm"]


def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """Normalises each channel over the batch, then scales and shifts it.

    input: [N, C, ...], or [N, ..., C] with data_layout "NHWC". Four parameters of
    shape [C]: scale, bias, and the moving mean and variance, which training updates
    (``moving = moving * momentum + batch * (1 - momentum)``) but no optimizer does.
    is_test or use_global_stats: normalise by the moving ones. momentum: a number or a
    Variable of shape [1]. Ioffe and Szegedy (2015). Mirrors
    ``fluid.layers.batch_norm``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 10], [3, 30]], "float32"))
    >>> y = fluid.layers.batch_norm(x, moving_mean_name="bn_mean")
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> made = exe.run(fetch_list=[y, "bn_mean"])
    >>> made[0].round(3).tolist()  # means 2 and 20, deviations 1 and 10
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> made[1].round(3)  # 0.9 * 0 + 0.1 * mean
    array([0.2, 2. ], dtype=float32)
    """
    check_dtype(input, "input", "batch_norm", FLOATS)
    one_of(data_layout, "data_layout", "batch_norm", ("NCHW", "NHWC"))
    for arg, attr in (("param_attr", param_attr), ("bias_attr", bias_attr)):
        if attr is False:
            raise ValueError(f"batch_norm: {arg} must not be False")
    if len(input.shape) < 2:
        raise ValueError(
            f"batch_norm: input needs 2 to 5 dimensions, {input.name} has shape "
            f"{list(input.shape)}"
        )
    helper = LayerHelper(
        "batch_norm", act=act, param_attr=param_attr, bias_attr=bias_attr, name=name
    )
    half = input.dtype in (VarType.FP16, VarType.BF16)
    dtype = VarType.FP32 if half else input.dtype
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    scale = helper.create_parameter(
        helper.param_attr, [channels], dtype, default_initializer=Constant(1.0)
    )
    bias = helper.create_parameter(helper.bias_attr, [channels], dtype, is_bias=True)
    average = do_model_average_for_mean_and_var
    mean = _moving(helper, moving_mean_name, 0.0, channels, dtype, average)
    variance = _moving(helper, moving_variance_name, 1.0, channels, dtype, average)
    saved_mean = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    saved_variance = helper.create_variable_for_type_inference(
        dtype, stop_gradient=True
    )
    made = input if in_place else helper.create_variable_for_type_inference(input.dtype)
    inputs = {"X": input, "Scale": scale, "Bias": bias}
    inputs.update(Mean=mean, Variance=variance)
    attrs = {
        "epsilon": epsilon,
        "is_test": is_test,
        "data_layout": data_layout,
        "use_global_stats": use_global_stats,
    }
    if isinstance(momentum, Variable):
        inputs["MomentumTensor"] = momentum
    else:
        attrs["momentum"] = as_number(momentum, "momentum", "batch_norm")
    outputs = {
        "Y": made,
        "MeanOut": mean,
        "VarianceOut": variance,
        "SavedMean": saved_mean,
        "SavedVariance": saved_variance,
    }
    helper.append_op("batch_norm", inputs, outputs, attrs)
    return helper.append_activation(made)


def _moving(
    helper: LayerHelper,
    name: str | None,
    value: float,
    channels: int,
    dtype: VarType,
    average: bool,
) -> Variable:
    """A moving statistic: a parameter that neither gradient nor optimizer touches."""
    attr = ParamAttr(
        name=name,
        initializer=Constant(value),
        trainable=False,
        do_model_average=average,
    )
    made = helper.create_parameter(attr, [channels], dtype)
    made.stop_gradient = True
    return made


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Normalises each sample over the dimensions from `begin_norm_axis` on.

    scale, shift: multiply by a parameter (initially 1), add one (0), each of the size
    of what is normalised. Ba, Kiros and Hinton (2016). ``fluid.layers.layer_norm``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 3], [10, 30]], "float32"))
    >>> y = fluid.layers.layer_norm(x)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].round(3).tolist()  # each row by itself
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    check_dtype(input, "input", "layer_norm", FLOATS)
    if not is_integer(begin_norm_axis):
        raise TypeError(
            f"layer_norm: begin_norm_axis must be an integer, got {begin_norm_axis!r}"
        )
    if not 0 < begin_norm_axis < len(input.shape):
        raise ValueError(
            f"layer_norm: begin_norm_axis {begin_norm_axis} does not go with input "
            f"{input.name} of shape {list(input.shape)}"
        )
    helper = LayerHelper(
        "layer_norm", act=act, param_attr=param_attr, bias_attr=bias_attr, name=name
    )
    size = [math.prod(input.shape[begin_norm_axis:])]
    inputs: dict[str, Variable] = {"X": input}
    if scale:
        if param_attr is False:
            raise ValueError("layer_norm: param_attr must not be False with scale")
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, size, input.dtype, default_initializer=Constant(1.0)
        )
    if shift:
        if bias_attr is False:
            raise ValueError("layer_norm: bias_attr must not be False with shift")
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, size, input.dtype, is_bias=True
        )
    mean = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    variance = helper.create_variable_for_type_inference(
        input.dtype, stop_gradient=True
    )
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "layer_norm",
        inputs,
        {"Y": made, "Mean": mean, "Variance": variance},
        {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis},
    )
    return helper.append_activation(made)
