"""Fully connected layers, products, softmax, dropout, similarity."""

from __future__ import annotations

import math
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable, default_main_program
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    check_dtype,
    check_variable,
    check_variables,
    emit,
    is_integer,
    is_number,
    one_of,
)

__all__ = [
    "clip",
    "clip_by_norm",
    "cos_sim",
    "dropout",
    "fc",
    "l2_normalize",
    "label_smooth",
    "log_softmax",
    "matmul",
    "mul",
    "scale",
    "softmax",
    "topk",
]


def fc(
    input: Any,
    size: int,
    num_flatten_dims: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Fully connected: act(sum of input_i x W_i + b).

    input: a float Variable or several, seen as matrices: dimensions from
    `num_flatten_dims` on are columns. Each has a weight [columns, size] of its own.
    Returns shape input.shape[:num_flatten_dims] + [size]. bias_attr False: no bias.
    TypeError, ValueError for wrong arguments. Mirrors ``fluid.layers.fc``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3]], "float32"))
    >>> half = fluid.initializer.Constant(0.5)
    >>> one = fluid.initializer.Constant(1.0)
    >>> y = fluid.layers.fc(x, 2, param_attr=half, bias_attr=one)
    >>> fluid.default_main_program().all_parameters()[0].shape
    (3, 2)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[y])[0].tolist()  # (1 + 2 + 3) / 2 + 1
    [[4.0, 4.0]]
    """
    inputs = check_variables(input, "input", "fc")
    for var in inputs:
        check_dtype(var, "input", "fc", FLOATS)
    if not is_integer(size) or size < 1:
        raise ValueError(f"fc: size must be a positive integer, got {size!r}")
    helper = LayerHelper(
        "fc",
        input=input,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        name=name,
    )
    flat = num_flatten_dims
    products = []
    for var, attr in helper.iter_inputs_and_params():
        if num_flatten_dims == -1:
            flat = len(var.shape) - 1
        products.append(_product(helper, var, attr, flat, size))
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(total.dtype)
        helper.append_op("sum", {"X": products}, {"Out": total})
    return helper.append_activation(helper.append_bias_op(total, flat))


def _product(
    helper: LayerHelper, var: Variable, attr: Any, flat: int, size: int
) -> Variable:
    """One input, its dimensions from `flat` on as columns, times a new weight."""
    if not 0 < flat < max(len(var.shape), 2):
        raise ValueError(
            f"fc: num_flatten_dims {flat} does not go with input {var.name} of shape "
            f"{list(var.shape)}"
        )
    columns = var.shape[flat:]
    rows = -1 if any(s < 0 for s in columns) else math.prod(columns)
    weight = helper.create_parameter(attr, [rows, size], helper.input_dtype())
    made = helper.create_variable_for_type_inference(var.dtype)
    attrs = {"x_num_col_dims": flat, "y_num_col_dims": 1}
    helper.append_op("mul", {"X": var, "Y": weight}, {"Out": made}, attrs)
    return made


def mul(
    x: Variable,
    y: Variable,
    x_num_col_dims: int = 1,
    y_num_col_dims: int = 1,
    name: str | None = None,
) -> Variable:
    """Product of two tensors seen as matrices. Mirrors ``fluid.layers.mul``.

    Dimensions from `x_num_col_dims` (`y_num_col_dims`) on are columns; the result
    has the rows' dimensions of x and the columns' of y.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> w = fluid.layers.assign(np.array([[10, 0], [0, 100]], "float32"))
    >>> y = fluid.layers.mul(x, w)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[10.0, 200.0]]
    """
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return emit("mul", {"X": x, "Y": y}, attrs, name=name)


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """alpha times the matrix product over the last two dimensions.

    Leading dimensions are batches and broadcast; vectors count as a row (x) or a
    column (y). Mirrors ``fluid.layers.matmul``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.matmul(x, x)
    >>> z = fluid.layers.matmul(x, x, transpose_y=True, alpha=0.5)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y, z])
    >>> [v.tolist() for v in made]  # x x, and half of x x^T
    [[[7.0, 10.0], [15.0, 22.0]], [[2.5, 5.5], [5.5, 12.5]]]
    """
    attrs = {
        "transpose_X": transpose_x,
        "transpose_Y": transpose_y,
        "alpha": as_number(alpha, "alpha", "matmul"),
    }
    return emit("matmul", {"X": x, "Y": y}, attrs, name=name)


def softmax(
    input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1
) -> Variable:
    """exp(x) over its sum along `axis`. Mirrors ``fluid.layers.softmax``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[0, 0], [0, 9]], "float32"))
    >>> y = fluid.layers.softmax(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    check_dtype(input, "input", "softmax", FLOATS)
    attrs = {"axis": axis, "use_cudnn": use_cudnn}
    return emit("softmax", {"X": input}, attrs, name=name)


def log_softmax(
    input: Variable,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Variable:
    """Logarithm of the softmax along `axis` (-1).

    dtype: cast the input first. Mirrors ``fluid.layers.log_softmax``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[0, 0]], "float32"))
    >>> y = fluid.layers.log_softmax(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([[-0.6931, -0.6931]], dtype=float32)
    """
    check_variable(input, "input", "log_softmax")
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        kind = as_dtype(dtype)
        raised = helper.create_variable_for_type_inference(kind)
        attrs = {"in_dtype": int(input.dtype), "out_dtype": int(kind)}
        helper.append_op("cast", {"X": input}, {"Out": raised}, attrs)
        input = raised
    check_dtype(input, "input", "log_softmax", FLOATS)
    shares = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"axis": -1 if axis is None else axis}
    helper.append_op("softmax", {"X": input}, {"Out": shares}, attrs)
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("log", {"X": shares}, {"Out": made})
    return made


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Zeroes each element with probability `dropout_prob` while training.

    dropout_implementation: ``downgrade_in_infer`` multiplies by 1 - dropout_prob in
    inference; ``upscale_in_train`` divides by it in training. seed: draws the same
    mask each step; None: that of the program, if it has one. Mirrors
    ``fluid.layers.dropout``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[2] * 1000], "float32"))
    >>> way = "upscale_in_train"
    >>> kinds = [fluid.layers.dropout(x, 0.5, seed=1),  # then x * 0.5 in inference
    ...          fluid.layers.dropout(x, 0.5, is_test=True),
    ...          fluid.layers.dropout(x, 0.5, seed=1, dropout_implementation=way),
    ...          fluid.layers.dropout(x, 0.5, is_test=True, dropout_implementation=way)]
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=kinds)
    >>> [sorted(set(v[0].tolist())) for v in made]
    [[0.0, 2.0], [1.0], [0.0, 4.0], [2.0]]
    >>> 400 < int((made[0] == 0).sum()) < 600
    True
    """
    check_dtype(x, "x", "dropout", FLOATS)
    if not is_number(dropout_prob) or not 0 <= dropout_prob <= 1:
        raise ValueError(
            f"dropout: dropout_prob must be in [0, 1], got {dropout_prob!r}"
        )
    known = ("downgrade_in_infer", "upscale_in_train")
    one_of(dropout_implementation, "dropout_implementation", "dropout", known)
    if not seed and default_main_program().random_seed:
        seed = default_main_program().random_seed
    attrs = {
        "dropout_prob": as_number(dropout_prob, "dropout_prob", "dropout"),
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    helper = LayerHelper("dropout", name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    mask = helper.create_variable_for_type_inference(VarType.UINT8, stop_gradient=True)
    helper.append_op("dropout", {"X": x}, {"Out": made, "Mask": mask}, attrs)
    return made


def scale(
    x: Variable,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """scale * x + bias, or scale * (x + bias). Mirrors ``fluid.layers.scale``.

    scale: a number or a Variable of shape [1].

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.scale(x, scale=2.0, bias=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0, 5.0]
    """
    check_variable(x, "x", "scale")
    helper = LayerHelper("scale", act=act, name=name)
    inputs = {"X": x}
    attrs: dict[str, Any] = {
        "bias": as_number(bias, "bias", "scale"),
        "bias_after_scale": bias_after_scale,
    }
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = scale
    else:
        attrs["scale"] = as_number(scale, "scale", "scale")
    made = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("scale", inputs, {"Out": made}, attrs)
    return helper.append_activation(made)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """x cut to [min, max]. Mirrors ``fluid.layers.clip``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-3, 0.5, 3], "float32"))
    >>> y = fluid.layers.clip(x, min=-1.0, max=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-1.0, 0.5, 1.0]
    """
    low, high = as_number(min, "min", "clip"), as_number(max, "max", "clip")
    if low > high:
        raise ValueError(f"clip: min {min} is above max {max}")
    return emit("clip", {"X": x}, {"min": low, "max": high}, name=name)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """x, scaled down to Euclidean norm `max_norm` if it is longer.

    Mirrors ``fluid.layers.clip_by_norm``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> y = fluid.layers.clip_by_norm(x, max_norm=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0.6, 0.8], dtype=float32)
    """
    return emit(
        "clip_by_norm",
        {"X": x},
        {"max_norm": as_number(max_norm, "max_norm", "clip_by_norm")},
        name=name,
    )


def l2_normalize(
    x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None
) -> Variable:
    """x over its Euclidean length along `axis`. ``fluid.layers.l2_normalize``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> y = fluid.layers.l2_normalize(x, axis=1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0]
    array([[0.6, 0.8]], dtype=float32)
    """
    check_variable(x, "x", "l2_normalize")
    if len(x.shape) == 1:
        axis = 0
    attrs = {"axis": 1 if axis is None else axis, "epsilon": epsilon}
    return emit(
        "norm",
        {"X": x},
        attrs,
        layer="l2_normalize",
        name=name,
        extra={"Norm": x.dtype},
    )


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """Cosine of the angle between the rows of X and Y: [N, 1].

    Y may have a single row. Mirrors ``fluid.layers.cos_sim``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 0], [1, 1]], "float32"))
    >>> other = fluid.layers.assign(np.array([[2, 0], [1, -1]], "float32"))
    >>> y = fluid.layers.cos_sim(x, other)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([[1.],
           [0.]], dtype=float32)
    """
    check_dtype(X, "X", "cos_sim", FLOATS)
    check_dtype(Y, "Y", "cos_sim", FLOATS)
    extra = {"XNorm": X.dtype, "YNorm": X.dtype}
    return emit("cos_sim", {"X": X, "Y": Y}, extra=extra)


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior (uniform by default).

    label: one-hot or soft, [N, classes]; prior_dist: [1, classes]. Szegedy et al.
    (2015). Mirrors ``fluid.layers.label_smooth``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[0, 1]], "float32"))
    >>> y = fluid.layers.label_smooth(x, epsilon=0.1)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0]
    array([[0.05, 0.95]], dtype=float32)
    """
    check_variable(label, "label", "label_smooth")
    epsilon = as_number(epsilon, "epsilon", "label_smooth")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"label_smooth: epsilon must be in [0, 1], got {epsilon!r}")
    label.stop_gradient = True
    return emit(
        "label_smooth",
        {"X": label, "PriorDist": prior_dist},
        {"epsilon": as_number(epsilon, "epsilon", "label_smooth")},
        name=name,
        dtype=as_dtype(dtype),
    )


def topk(input: Variable, k: Any, name: str | None = None) -> tuple[Variable, Variable]:
    """The k largest along the last dimension, and where they were (int64).

    k: an integer or a Variable of shape [1]. Mirrors ``fluid.layers.topk``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[5, 9, 7]], "float32"))
    >>> best, places = fluid.layers.topk(x, k=2)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[best, places])
    >>> [v.tolist() for v in made]
    [[[9.0, 7.0]], [[1, 2]]]
    """
    check_variable(input, "input", "topk")
    helper = LayerHelper("top_k", name=name)
    inputs, attrs = {"X": input}, {}
    if isinstance(k, Variable):
        inputs["K"] = k
    elif is_integer(k) and k > 0:
        attrs["k"] = int(k)
    else:
        raise ValueError(f"topk: k must be a positive integer, got {k!r}")
    values = helper.create_variable_for_type_inference(input.dtype)
    indices = helper.create_variable_for_type_inference(VarType.INT64)
    helper.append_op("top_k", inputs, {"Out": values, "Indices": indices}, attrs)
    values.stop_gradient = indices.stop_gradient = True
    return values, indices
