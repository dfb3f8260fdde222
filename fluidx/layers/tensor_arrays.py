"""Arrays of tensors: written and read by index, inside and outside of loops."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable

__all__ = ["array_length", "array_read", "array_write", "create_array"]


def _check_array(value: Any, layer: str) -> Variable:
    var = check_variable(value, "array", layer)
    if var.type != VarType.LOD_TENSOR_ARRAY:
        raise TypeError(
            f"{layer}: array must be an array of tensors, {var.name} is {var.type.name}"
        )
    return var


def _check_index(value: Any, layer: str) -> Variable:
    var = check_dtype(value, "i", layer, (VarType.INT64, VarType.INT32))
    if any(d not in (1, -1) for d in var.shape):
        raise ValueError(
            f"{layer}: i must have one element, its shape is {list(var.shape)}"
        )
    return var


def create_array(dtype: Any) -> Variable:
    """An array of tensors without elements. Mirrors ``fluid.layers.create_array``."""
    helper = LayerHelper("array")
    return helper.create_variable(
        name=f"{helper.name}.out",
        type=VarType.LOD_TENSOR_ARRAY,
        dtype=as_dtype(dtype),
    )


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Make x element number i of an array (default: of a new one); the array.

    x: any tensor. i: int64, shape [1]. The array grows as far as needed. Mirrors
    ``fluid.layers.array_write``.

    >>> import fluidx as fluid
    >>> i = fluid.layers.zeros([1], "int64")
    >>> array = fluid.layers.array_write(fluid.layers.ones([2, 3], "float32"), i)
    >>> fluid.layers.array_read(array, i).shape
    (2, 3)
    """
    check_variable(x, "x", "array_write")
    _check_index(i, "array_write")
    helper = LayerHelper("array_write")
    if array is None:
        array = helper.create_variable(
            name=f"{helper.name}.out", type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
        )
    _check_array(array, "array_write")
    helper.append_op("write_to_array", {"X": x, "I": i}, {"Out": array})
    return array


def array_read(array: Variable, i: Variable) -> Variable:
    """Element number i (int64, shape [1]). Mirrors ``fluid.layers.array_read``."""
    _check_array(array, "array_read")
    _check_index(i, "array_read")
    helper = LayerHelper("array_read")
    made = helper.create_variable_for_type_inference(array.dtype)
    helper.append_op("read_from_array", {"X": array, "I": i}, {"Out": made})
    return made


def array_length(array: Variable) -> Variable:
    """How many elements an array has: int64, shape [1]. ``layers.array_length``."""
    _check_array(array, "array_length")
    helper = LayerHelper("array_length")
    made = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("lod_array_length", {"X": array}, {"Out": made})
    return made
