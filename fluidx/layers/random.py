"""Random tensors. Seed 0: a new draw each run, or the program's ``random_seed``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import emit, int_list, one_of, shape_tensors

__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "uniform_random",
    "uniform_random_batch_size_like",
]

_KINDS = (VarType.FP32, VarType.FP64)


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
    kind = one_of(as_dtype(dtype), "dtype", "uniform_random", _KINDS)
    helper = LayerHelper("uniform_random")
    attrs: dict[str, Any] = {
        "min": float(min),
        "max": float(max),
        "seed": seed,
        "dtype": int(kind),
    }
    inputs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["ShapeTensor"] = shape
    elif isinstance(shape, (list, tuple)) and shape:
        attrs["shape"] = [-1 if isinstance(s, Variable) else int(s) for s in shape]
        if any(isinstance(s, Variable) for s in shape):
            inputs["ShapeTensorList"] = shape_tensors(helper, shape, "int64")
    else:
        raise TypeError(
            f"uniform_random: shape must be a list or a Variable, got {shape!r}"
        )
    made = helper.create_variable_for_type_inference(kind)
    helper.append_op("uniform_random", inputs, {"Out": made}, attrs)
    return made


def gaussian_random(
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """Gaussian numbers. Mirrors ``fluid.layers.gaussian_random``."""
    kind = one_of(as_dtype(dtype), "dtype", "gaussian_random", _KINDS)
    attrs = {
        "shape": int_list(shape, "shape", "gaussian_random"),
        "mean": float(mean),
        "std": float(std),
        "seed": seed,
        "dtype": int(kind),
    }
    return emit("gaussian_random", {}, attrs, dtype=kind)


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
