"""Random tensors. Seed 0: a new draw each run, or the program's ``random_seed``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    emit,
    has_variable,
    int_list,
    one_of,
    plain_or_variable,
    shape_tensors,
)
from fluidx.layers.tensor import size_tensor

__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "uniform_random",
    "uniform_random_batch_size_like",
]

_KINDS = (VarType.FP32, VarType.FP64)


def _drawn(
    type: str,
    shape: Any,
    dtype: Any,
    attrs: dict[str, Any],
    sizes: Callable[[LayerHelper, Any], list[Variable]],
) -> Variable:
    """A random op whose shape is a list that may hold Variables, or a Variable.

    sizes: makes tensors of such a list; the reference has two ways to.
    """
    kind = one_of(as_dtype(dtype), "dtype", type, _KINDS)
    helper = LayerHelper(type)
    attrs = {**attrs, "dtype": int(kind)}
    inputs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
    elif isinstance(shape, (list, tuple)) and shape:
        attrs["shape"] = plain_or_variable(shape, "shape", type)
        if has_variable(shape):
            inputs["ShapeTensorList"] = sizes(helper, shape)
    else:
        raise TypeError(
            f"{type}: shape must be a list that is not empty or a Variable, got "
            f"{shape!r}"
        )
    made = helper.create_variable_for_type_inference(kind)
    helper.append_op(type, inputs, {"Out": made}, attrs)
    return made


def _long_sizes(helper: LayerHelper, shape: Any) -> list[Variable]:
    return shape_tensors(helper, shape, "int64")


def _filled_sizes(helper: LayerHelper, shape: Any) -> list[Variable]:
    return [size_tensor(size) for size in shape]


def uniform_random(
    shape: Any,
    dtype: Any = "float32",
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """Even spread over [min, max). Mirrors ``fluid.layers.uniform_random``.

    shape: a list that may hold Variables, or an integer Variable.

    >>> import fluidx as fluid
    >>> fluid.layers.uniform_random([2, 3]).shape
    (2, 3)
    """
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    return _drawn("uniform_random", shape, dtype, attrs, _long_sizes)


def gaussian_random(
    shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """Gaussian numbers. Mirrors ``fluid.layers.gaussian_random``.

    shape: a list that may hold Variables, or an integer Variable.
    """
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    return _drawn("gaussian_random", shape, dtype, attrs, _filled_sizes)


def _like(
    type: str, input: Variable, shape: Any, dims: Any, dtype: Any, attrs: Any
) -> Variable:
    kind = one_of(as_dtype(dtype), "dtype", type, _KINDS)
    attrs = {
        **attrs,
        "shape": int_list(shape, "shape", type),
        "input_dim_idx": dims[0],
        "output_dim_idx": dims[1],
        "dtype": int(kind),
    }
    return emit(type, {"Input": input}, attrs, dtype=kind)


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """`uniform_random` with one size taken from input.

    Mirrors ``fluid.layers.uniform_random_batch_size_like``.
    """
    attrs = {"min": float(min), "max": float(max), "seed": seed}
    dims = (input_dim_idx, output_dim_idx)
    type = "uniform_random_batch_size_like"
    return _like(type, input, shape, dims, dtype, attrs)


def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """`gaussian_random` with one size taken from input.

    Mirrors ``fluid.layers.gaussian_random_batch_size_like``.
    """
    attrs = {"mean": float(mean), "std": float(std), "seed": seed}
    dims = (input_dim_idx, output_dim_idx)
    type = "gaussian_random_batch_size_like"
    return _like(type, input, shape, dims, dtype, attrs)
