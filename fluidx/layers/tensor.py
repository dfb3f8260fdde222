"""Making tensors: constants, copies, parameters, global variables, ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.arguments import as_number
from fluidx.initializer import Constant, value_attrs
from fluidx.ir import Parameter, Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    INTEGERS,
    check_variable,
    emit,
    int_list,
    is_number,
)
from fluidx.param_attr import ParamAttr

__all__ = [
    "assign",
    "cast",
    "create_global_var",
    "create_parameter",
    "create_tensor",
    "fill_constant",
    "fill_constant_batch_size_like",
    "linspace",
    "ones",
    "ones_like",
    "range",
    "rank",
    "size",
    "zeros",
    "zeros_like",
]


def create_tensor(
    dtype: Any, name: str | None = None, persistable: bool = False
) -> Variable:
    """An empty variable, for the output of a later op. ``layers.create_tensor``.

    >>> import fluidx as fluid
    >>> fluid.layers.create_tensor("float32").dtype.name
    'FP32'
    """
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(
        name=helper.name, dtype=as_dtype(dtype), persistable=persistable
    )


def create_parameter(
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter:
    """A parameter without a layer. Mirrors ``fluid.layers.create_parameter``.

    attr: a `ParamAttr` (or what layers take for one). is_bias: starts as zeros.

    >>> import fluidx as fluid
    >>> fluid.layers.create_parameter([3, 4], "float32").shape
    (3, 4)
    """
    sizes = int_list(shape, "shape", "create_parameter")
    helper = LayerHelper("create_parameter", name=name)
    if attr is None:
        attr = ParamAttr(name=name)
    return helper.create_parameter(
        attr, sizes, as_dtype(dtype), is_bias, default_initializer
    )


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """A variable of the global block that the startup program fills with `value`.

    Mirrors ``fluid.layers.create_global_var``.

    >>> import fluidx as fluid
    >>> fluid.layers.create_global_var([1], 0.0, "float32", persistable=True).shape
    (1,)
    """
    sizes = int_list(shape, "shape", "create_global_var")
    helper = LayerHelper("global_var")
    made = helper.create_global_variable(
        dtype=as_dtype(dtype),
        shape=sizes,
        persistable=persistable,
        name=name,
        stop_gradient=True,
    )
    helper.set_variable_initializer(
        made, Constant(as_number(value, "value", "create_global_var"), force_cpu)
    )
    return made


def cast(x: Variable, dtype: Any) -> Variable:
    """x as another dtype. Mirrors ``fluid.layers.cast``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1.9, -1.9], "float32"))
    >>> y = fluid.layers.cast(x, "int64")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1, -1]
    """
    check_variable(x, "x", "cast")
    kind = as_dtype(dtype)
    attrs = {"in_dtype": int(x.dtype), "out_dtype": int(kind)}
    return emit("cast", {"X": x}, attrs, dtype=kind)


def assign(input: Any, output: Variable | None = None) -> Variable:
    """A copy of a Variable, or a numpy array as a tensor, into `output` if given.

    Arrays: float32, int32, int64 or bool, at most 1024 * 1024 elements, which become
    part of the program. TypeError, ValueError otherwise. ``fluid.layers.assign``.

    >>> import fluidx as fluid, numpy as np
    >>> fluid.layers.assign(np.zeros((2, 3), "float32")).shape
    (2, 3)
    """
    if isinstance(input, Variable):
        return emit("assign", {"X": input}, out=output)
    if not isinstance(input, np.ndarray):
        raise TypeError(
            f"assign: input must be a Variable or a numpy array, got {input!r:.60}"
        )
    if input.size > 1024 * 1024:
        raise ValueError(
            f"assign: an array of {input.size} elements is too large to be part of a "
            "program (1048576 at most); feed it"
        )
    dtype = as_dtype(input.dtype)
    attrs = {
        "dtype": int(dtype),
        "shape": list(input.shape),
        **value_attrs(input, dtype, "assign"),
    }
    return emit("assign_value", {}, attrs, layer="assign", dtype=dtype, out=output)


def _value_attrs(value: float, dtype: VarType, force_cpu: bool) -> dict[str, Any]:
    if not is_number(value):
        raise TypeError(f"fill_constant: value must be a number, got {value!r}")
    text = str(int(value)) if dtype in INTEGERS else str(float(value))
    return {
        "dtype": int(dtype),
        "value": float(value),
        "str_value": text,
        "force_cpu": bool(force_cpu),
    }


def fill_constant(
    shape: Any, dtype: Any, value: Any, force_cpu: bool = False, out: Any = None
) -> Variable:
    """A tensor with all elements `value`. Mirrors ``fluid.layers.fill_constant``.

    shape: a list that may hold Variables, or an integer Variable.

    >>> import fluidx as fluid, numpy as np
    >>> y = fluid.layers.fill_constant([2, 2], "int64", 7)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[7, 7], [7, 7]]
    """
    kind = as_dtype(dtype)
    helper = LayerHelper("fill_constant")
    attrs = _value_attrs(value, kind, force_cpu)
    inputs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
    elif isinstance(shape, (list, tuple)):
        attrs["shape"] = [-1 if isinstance(s, Variable) else int(s) for s in shape]
        if any(isinstance(s, Variable) for s in shape):
            inputs["ShapeTensorList"] = [size_tensor(s) for s in shape]
    else:
        raise TypeError(
            f"fill_constant: shape must be a list or a Variable, got {shape!r}"
        )
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    helper.append_op("fill_constant", inputs, {"Out": out}, attrs)
    out.stop_gradient = True
    return out  # type: ignore[no-any-return]


def size_tensor(size: Any) -> Variable:
    """One size as an int32 tensor of shape [1]."""
    if not isinstance(size, Variable):
        return fill_constant([1], "int32", size, force_cpu=True)
    size.stop_gradient = True
    return size if size.dtype == VarType.INT32 else cast(size, "int32")


def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Variable:
    """The same, with dimension `output_dim_idx` as large as one of input.

    Mirrors ``fluid.layers.fill_constant_batch_size_like``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> y = fluid.layers.fill_constant_batch_size_like(x, [-1, 2], "int64", 7)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[7, 7], [7, 7], [7, 7]]
    """
    kind = as_dtype(dtype)
    attrs = {
        "shape": int_list(shape, "shape", "fill_constant_batch_size_like"),
        "input_dim_idx": input_dim_idx,
        "output_dim_idx": output_dim_idx,
        **_value_attrs(value, kind, force_cpu),
    }
    type = "fill_constant_batch_size_like"
    return emit(type, {"Input": input}, attrs, dtype=kind, stop_gradient=True)


def ones(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """A tensor of ones. Mirrors ``fluid.layers.ones``.

    >>> import fluidx as fluid
    >>> y = fluid.layers.ones([2, 2], "int64")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[1, 1], [1, 1]]
    """
    return fill_constant(shape, dtype, 1.0, force_cpu)


def zeros(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """A tensor of zeros. Mirrors ``fluid.layers.zeros``.

    >>> import fluidx as fluid
    >>> y = fluid.layers.zeros([2, 2], "int64")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[0, 0], [0, 0]]
    """
    return fill_constant(shape, dtype, 0.0, force_cpu)


def zeros_like(x: Variable, out: Variable | None = None) -> Variable:
    """Zeros of x's shape and dtype. Mirrors ``fluid.layers.zeros_like``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.zeros_like(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0.0, 0.0]
    """
    made = emit("fill_zeros_like", {"X": x}, layer="zeros_like", out=out)
    made.stop_gradient = True
    return made


def ones_like(x: Variable, out: Variable | None = None) -> Variable:
    """Ones of x's shape and dtype. Mirrors ``fluid.layers.ones_like``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.ones_like(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [1.0, 1.0]
    """
    return emit("fill_any_like", {"X": x}, {"value": 1.0}, layer="ones_like", out=out)


def range(start: Any, end: Any, step: Any, dtype: Any) -> Variable:
    """start, start + step, ... below end; numbers or Variables of shape [1].

    Mirrors ``fluid.layers.range``.

    >>> import fluidx as fluid
    >>> y = fluid.layers.range(0, 10, 3, "int64")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0, 3, 6, 9]
    """
    kind = as_dtype(dtype)
    helper = LayerHelper("range")
    inputs = {}
    for slot, value in (("Start", start), ("End", end), ("Step", step)):
        if not isinstance(value, Variable):
            value = fill_constant([1], kind, value)
        elif value.dtype != kind:
            value = cast(value, kind)
        inputs[slot] = value
    made = helper.create_variable_for_type_inference(kind)
    helper.append_op("range", inputs, {"Out": made})
    made.stop_gradient = True
    return made


def rank(input: Variable) -> Variable:
    """The number of dimensions, as an int32 tensor. ``fluid.layers.rank``.

    >>> import fluidx as fluid
    >>> x = fluid.data("rank_x", [None, 4])
    >>> fluid.layers.rank(x).shape
    ()
    """
    check_variable(input, "input", "rank")
    return assign(np.array(len(input.shape), "int32"))


def linspace(start: Any, stop: Any, num: Any, dtype: Any) -> Variable:
    """num values evenly from start to stop, both included.

    They are numbers or Variables of shape [1]. Mirrors ``fluid.layers.linspace``.

    >>> import fluidx as fluid
    >>> y = fluid.layers.linspace(0.0, 1.0, 5, "float32")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    kind = as_dtype(dtype)
    helper = LayerHelper("linspace")
    inputs = {}
    for slot, value in (("Start", start), ("Stop", stop), ("Num", num)):
        if not isinstance(value, Variable):
            value = fill_constant([1], "int32" if slot == "Num" else kind, value)
        inputs[slot] = value
    made = helper.create_variable_for_type_inference(inputs["Start"].dtype)
    helper.append_op("linspace", inputs, {"Out": made})
    return made


def size(input: Variable) -> Variable:
    """The number of elements, as an int64 tensor [1]. ``fluid.layers.size``.

    >>> import fluidx as fluid
    >>> fluid.layers.size(fluid.data("size_x", [None, 3])).dtype
    <VarType.INT64: 3>
    """
    return emit("size", {"Input": input}, dtype="int64")
