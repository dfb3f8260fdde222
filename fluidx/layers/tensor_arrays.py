"""Arrays of tensors: written and read by index, inside and outside of loops."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable

__all__ = [
    "array_length",
    "array_read",
    "array_write",
    "create_array",
    "tensor_array_to_tensor",
]


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
    """An array of tensors without elements. Mirrors ``fluid.layers.create_array``.

    >>> import fluidx as fluid
    >>> array = fluid.layers.create_array("float32")
    >>> zero = fluid.layers.zeros([1], "int64")
    >>> _ = fluid.layers.array_write(fluid.layers.ones([2], "float32"), zero, array)
    >>> y = fluid.layers.array_read(array, zero)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1.0, 1.0]
    """
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
    """Element number i (int64, shape [1]). Mirrors ``fluid.layers.array_read``.

    >>> import fluidx as fluid
    >>> zero = fluid.layers.zeros([1], "int64")
    >>> array = fluid.layers.array_write(fluid.layers.ones([2], "float32"), zero)
    >>> y = fluid.layers.array_read(array, zero)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1.0, 1.0]
    """
    _check_array(array, "array_read")
    _check_index(i, "array_read")
    helper = LayerHelper("array_read")
    made = helper.create_variable_for_type_inference(array.dtype)
    helper.append_op("read_from_array", {"X": array, "I": i}, {"Out": made})
    return made


def array_length(array: Variable) -> Variable:
    """How many elements an array has: int64, shape [1]. ``layers.array_length``.

    >>> import fluidx as fluid
    >>> four = fluid.layers.fill_constant([1], "int64", 4)
    >>> array = fluid.layers.array_write(fluid.layers.ones([2], "float32"), four)
    >>> y = fluid.layers.array_length(array)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [5]
    """
    _check_array(array, "array_length")
    helper = LayerHelper("array_length")
    made = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op("lod_array_length", {"X": array}, {"Out": made})
    return made


def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """The elements of an array laid end to end, or stacked, along `axis`.

    Returns that and the size of each element along the axis, int32 (elements,).
    Mirrors ``fluid.layers.tensor_array_to_tensor``.

    >>> import fluidx as fluid
    >>> array = fluid.layers.create_array("float32")
    >>> for k in range(2):
    ...     place = fluid.layers.fill_constant([1], "int64", k)
    ...     row = fluid.layers.fill_constant([1, k + 1], "float32", k)
    ...     _ = fluid.layers.array_write(row, place, array)
    >>> whole, sizes = fluid.layers.tensor_array_to_tensor(array, axis=1)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[whole, sizes])
    >>> [v.tolist() for v in made]
    [[[0.0, 1.0, 1.0]], [1, 2]]
    """
    _check_array(input, "tensor_array_to_tensor")
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    made = helper.create_variable_for_type_inference(input.dtype)
    sizes = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        "tensor_array_to_tensor",
        {"X": input},
        {"Out": made, "OutIndex": sizes},
        {"axis": axis, "use_stack": use_stack},
    )
    return made, sizes
