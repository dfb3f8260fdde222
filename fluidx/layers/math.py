"""Functions of tensors made of other layers, under their later names."""

from __future__ import annotations

from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable, device_guard
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.elementwise import elementwise_add, elementwise_mul
from fluidx.layers.emit import (
    FLOATS,
    check_dtype,
    check_variable,
    emit,
    is_number,
    one_of,
)
from fluidx.layers.ops import exp, log
from fluidx.layers.reduce import reduce_sum
from fluidx.layers.tensor import assign, fill_constant, range

__all__ = [
    "addcmul",
    "arange",
    "clamp",
    "elementwise_equal",
    "full",
    "full_like",
    "log1p",
    "logsumexp",
    "randn",
    "t",
]


def _into(made: Variable, out: Variable | None) -> Variable:
    return made if out is None else assign(made, out)


def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: Any = 1.0,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """input + value * tensor1 * tensor2. Mirrors ``fluid.layers.addcmul``.

    >>> import fluidx as fluid
    >>> x = fluid.data("addcmul_x", [None, 4])
    >>> y = fluid.data("addcmul_y", [None, 4])
    >>> fluid.layers.addcmul(x, y, y, value=2.0).shape
    (-1, 4)
    """
    for arg, var in (("input", input), ("tensor1", tensor1), ("tensor2", tensor2)):
        check_variable(var, arg, "addcmul")
    product: Any = elementwise_mul(tensor1, tensor2)
    return _into(elementwise_add(input, product * value), out)


def clamp(
    input: Variable,
    min: float | None = None,
    max: float | None = None,
    output: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """input cut to [min, max]; at least one of them. ``fluid.layers.clamp``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([-3, 0.5, 3], "float32"))
    >>> y = fluid.layers.clamp(x, min=-1.0, max=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [-1.0, 0.5, 1.0]
    """
    if min is None and max is None:
        raise ValueError("clamp: give min, max or both")
    if min is not None and max is not None and min > max:
        raise ValueError(f"clamp: min {min} is above max {max}")
    attrs = {
        "min": float("-inf") if min is None else as_number(min, "min", "clamp"),
        "max": float("inf") if max is None else as_number(max, "max", "clamp"),
    }
    return emit("clip", {"X": input}, attrs, layer="clamp", name=name, out=output)


def logsumexp(
    x: Variable,
    dim: Any = None,
    keepdim: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """log of the sum of exp(x) over `dim`. Mirrors ``fluid.layers.logsumexp``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([0, 0], "float32"))
    >>> y = fluid.layers.logsumexp(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0.6931], dtype=float32)
    """
    check_dtype(x, "x", "logsumexp", FLOATS)
    total = reduce_sum(exp(x, name), dim, keepdim)
    return _into(log(total, name), out)


def log1p(
    x: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """log(1 + x), exact for small x. Mirrors ``fluid.layers.log1p``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([0, 1], "float32"))
    >>> y = fluid.layers.log1p(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([0.    , 0.6931], dtype=float32)
    """
    check_dtype(x, "x", "log1p", FLOATS)
    return emit("log1p", {"X": x}, name=name, out=out)


def t(input: Variable, name: str | None = None) -> Variable:
    """The transpose of a matrix; a vector stays one. Mirrors ``fluid.layers.t``.

    >>> import fluidx as fluid
    >>> x = fluid.data("t_x", [3, 4])
    >>> fluid.layers.t(x).shape
    (4, 3)
    """
    check_variable(input, "input", "t")
    if len(input.shape) > 2:
        raise ValueError(
            f"t: input must have at most 2 dimensions, got {list(input.shape)}; use "
            "transpose"
        )
    if len(input.shape) == 1:
        return input
    return emit(
        "transpose2",
        {"X": input},
        {"axis": [1, 0]},
        layer="t",
        name=name,
        extra={"XShape": input.dtype},
    )


def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x == y, element by element. Mirrors ``fluid.layers.elementwise_equal``.

    >>> import fluidx as fluid
    >>> x = fluid.data("elementwise_equal_x", [None, 4])
    >>> y = fluid.data("elementwise_equal_y", [None, 4])
    >>> fluid.layers.elementwise_equal(x, y).dtype.name
    'BOOL'
    """
    return emit(
        "equal",
        {"X": x, "Y": y},
        layer="elementwise_equal",
        name=name,
        dtype="bool",
        stop_gradient=True,
    )


def arange(
    start: Any, end: Any, step: Any = 1, dtype: Any = None, name: str | None = None
) -> Variable:
    """start, start + step, ... below end (dtype: int64). ``fluid.layers.arange``.

    >>> import fluidx as fluid
    >>> fluid.layers.arange(0, 6, 2).dtype.name
    'INT64'
    """
    return range(start, end, step, "int64" if dtype is None else dtype)


def full(
    shape: Any,
    fill_value: float,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """A tensor with all elements `fill_value` (dtype: float32).

    device: "cpu" or "gpu", noted on the op. Mirrors ``fluid.layers.full``.

    >>> import fluidx as fluid
    >>> fluid.layers.full([2, 3], 1.5).shape
    (2, 3)
    """
    one_of(device, "device", "full", (None, "cpu", "gpu"))
    if not is_number(fill_value):
        raise TypeError(f"full: fill_value must be a number, got {fill_value!r}")
    kind = as_dtype("float32" if dtype is None else dtype)
    helper = LayerHelper("full", name=name)
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    out.stop_gradient = stop_gradient
    with device_guard(device):
        return fill_constant(shape, kind, fill_value, out=out)


def full_like(
    input: Variable,
    fill_value: float,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """The same with the shape of input (dtype: float32). ``fluid.layers.full_like``.

    >>> import fluidx as fluid
    >>> x = fluid.data("full_like_x", [2, 4])
    >>> fluid.layers.full_like(x, 2.0).shape
    (2, 4)
    """
    check_variable(input, "input", "full_like")
    kind = as_dtype("float32" if dtype is None else dtype)
    attrs = {
        "value": as_number(fill_value, "fill_value", "full_like"),
        "dtype": int(kind),
    }
    with device_guard(device):
        made = emit(
            "fill_any_like",
            {"X": input},
            attrs,
            layer="full_like",
            name=name,
            dtype=kind,
            out=out,
        )
    made.stop_gradient = stop_gradient
    return made


def randn(
    shape: Any,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Gaussian numbers of mean 0 and deviation 1 (dtype: float32).

    Drawn by the program's seed; the reference gives the op a random seed of its own.
    Mirrors ``fluid.layers.randn``.

    >>> import fluidx as fluid
    >>> fluid.layers.randn([2, 3]).shape
    (2, 3)
    """
    kind = as_dtype("float32" if dtype is None else dtype)
    one_of(kind, "dtype", "randn", (VarType.FP32, VarType.FP64))
    attrs = {"shape": list(shape), "mean": 0.0, "std": 1.0, "dtype": int(kind)}
    with device_guard(device):
        made = emit(
            "gaussian_random", {}, attrs, layer="randn", name=name, dtype=kind, out=out
        )
    made.stop_gradient = stop_gradient
    return made
