"""Products of inputs, and helpers of attention and of click models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    check_dtype,
    emit,
    int_list,
    is_number,
    one_of,
)

__all__ = [
    "add_position_encoding",
    "bilinear_tensor_product",
    "continuous_value_model",
    "fsp_matrix",
    "similarity_focus",
]


def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Variable:
    """act(x @ w[k] @ y + b[k]) for each of `size` matrices: [N, size].

    x: [N, m]. y: [N, n]. The weight is [size, m, n], the bias [1, size]. Mirrors
    ``fluid.layers.bilinear_tensor_product``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("pair_x", [None, 5]), fluid.data("pair_y", [None, 4])
    >>> fluid.layers.bilinear_tensor_product(x, y, 7).shape
    (-1, 7)
    """
    layer = "bilinear_tensor_product"
    check_dtype(x, "x", layer, FLOATS)
    check_dtype(y, "y", layer, FLOATS)
    helper = LayerHelper(
        layer, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name
    )
    inputs: dict[str, Variable] = {"X": x, "Y": y}
    inputs["Weight"] = helper.create_parameter(
        helper.param_attr, [size, x.shape[1], y.shape[1]], x.dtype
    )
    made = helper.create_variable_for_type_inference(x.dtype)
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [1, size], x.dtype, is_bias=True
        )
    helper.append_op(layer, inputs, {"Out": made})
    return helper.append_activation(made)


def add_position_encoding(
    input: Variable, alpha: float, beta: float, name: str | None = None
) -> Variable:
    """alpha * input + beta * sines and cosines of each position.

    input: [N, length, width], or sequences of rows [rows, width] with LoD; width is
    even. Vaswani et al. (2017). Mirrors ``fluid.layers.add_position_encoding``.

    >>> import fluidx as fluid
    >>> text = fluid.data("position_in", [None, 20, 64])
    >>> fluid.layers.add_position_encoding(text, 1.0, 1.0).shape
    (-1, 20, 64)
    """
    layer = "add_position_encoding"
    check_dtype(input, "input", layer, FLOATS)
    for arg, value in (("alpha", alpha), ("beta", beta)):
        if not is_number(value):
            raise TypeError(f"{layer}: {arg} must be a number, got {value!r}")
    attrs = {
        "alpha": as_number(alpha, "alpha", "add_position_encoding"),
        "beta": as_number(beta, "beta", "add_position_encoding"),
    }
    return emit(layer, {"X": input}, attrs, name=name)


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """Products of all pairs of channels of two images, averaged over pixels.

    x: [N, a, H, W]. y: [N, b, H, W]. Returns [N, a, b]. Yim et al. (2017). Mirrors
    ``fluid.layers.fsp_matrix``.

    >>> import fluidx as fluid
    >>> x = fluid.data("fsp_x", [None, 3, 8, 8])
    >>> y = fluid.data("fsp_y", [None, 5, 8, 8])
    >>> fluid.layers.fsp_matrix(x, y).shape
    (-1, 3, 5)
    """
    check_dtype(x, "x", "fsp_matrix", FLOATS)
    check_dtype(y, "y", "fsp_matrix", FLOATS)
    return emit("fsp", {"X": x, "Y": y}, layer="fsp_matrix")


def similarity_focus(
    input: Variable, axis: int, indexes: Sequence[int], name: str | None = None
) -> Variable:
    """A mask of the strongest pairs: 1 or 0, like input.

    input: [N, a, b, c]. For each slice `indexes` of dimension `axis` (1 to 3) the
    largest value is chosen, then the largest of the rows and columns left, and so on;
    the mask is the same for all slices of `axis`. He and Lin (2016). Mirrors
    ``fluid.layers.similarity_focus``.

    >>> import fluidx as fluid
    >>> x = fluid.data("focus_in", [None, 3, 4, 4])
    >>> fluid.layers.similarity_focus(x, 1, [0]).shape
    (-1, 3, 4, 4)
    """
    layer = "similarity_focus"
    check_dtype(input, "input", layer, FLOATS)
    one_of(axis, "axis", layer, (1, 2, 3))
    chosen = int_list(indexes, "indexes", layer)
    if not chosen:
        raise ValueError(f"{layer}: indexes is an empty list")
    return emit(layer, {"X": input}, {"axis": axis, "indexes": chosen}, name=name)


def continuous_value_model(
    input: Variable, cvm: Variable, use_cvm: bool = True
) -> Variable:
    """Features of a click model: the logs of shows and click rate, then the rest.

    input: [N, 2 + width], whose first columns count shows and clicks. cvm: [N, 2], the
    same counts, which they get as their gradient. use_cvm False: [N, width] without
    them. Mirrors ``fluid.layers.continuous_value_model``.

    >>> import fluidx as fluid
    >>> x, seen = fluid.data("cvm_x", [None, 13]), fluid.data("cvm", [None, 2])
    >>> fluid.layers.continuous_value_model(x, seen, False).shape
    (-1, 11)
    """
    check_dtype(input, "input", "cvm", FLOATS)
    check_dtype(cvm, "cvm", "cvm", FLOATS)
    helper = LayerHelper("cvm")
    made = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        "cvm", {"X": input, "CVM": cvm}, {"Y": made}, {"use_cvm": bool(use_cvm)}
    )
    return made
