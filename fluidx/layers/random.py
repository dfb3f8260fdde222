"""Random tensors. Seed 0: a new draw each run, or the program's ``random_seed``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable, device_guard, unique_name
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    INTEGERS,
    check_variable,
    emit,
    has_variable,
    int_list,
    is_integer,
    one_of,
    plain_or_variable,
    shape_tensors,
)
from fluidx.layers.tensor import size_tensor

__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "randint",
    "random_crop",
    "randperm",
    "sampling_id",
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
    attrs = {
        "min": as_number(min, "min", "uniform_random"),
        "max": as_number(max, "max", "uniform_random"),
        "seed": seed,
    }
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

    >>> import fluidx as fluid
    >>> fluid.layers.gaussian_random([2, 3], std=0.1).shape
    (2, 3)
    """
    attrs = {
        "mean": as_number(mean, "mean", "gaussian_random"),
        "std": as_number(std, "std", "gaussian_random"),
        "seed": seed,
    }
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

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> y = fluid.layers.uniform_random_batch_size_like(x, [-1, 2], min=0.0, max=1.0)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0]
    >>> made.shape, bool(((made >= 0) & (made <= 1)).all())
    ((3, 2), True)
    """
    attrs = {
        "min": as_number(min, "min", "uniform_random_batch_size_like"),
        "max": as_number(max, "max", "uniform_random_batch_size_like"),
        "seed": seed,
    }
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

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> y = fluid.layers.gaussian_random_batch_size_like(x, [-1, 2])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].shape
    (3, 2)
    """
    attrs = {
        "mean": as_number(mean, "mean", "gaussian_random_batch_size_like"),
        "std": as_number(std, "std", "gaussian_random_batch_size_like"),
        "seed": seed,
    }
    dims = (input_dim_idx, output_dim_idx)
    type = "gaussian_random_batch_size_like"
    return _like(type, input, shape, dims, dtype, attrs)


def randint(
    low: int,
    high: int | None = None,
    shape: Any = None,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Integers in [low, high), or in [0, low), each as likely (dtype: int64).

    shape: a list ([1]) that may hold Variables, or an integer Variable. device: "cpu"
    or "gpu", noted on the op. Mirrors ``fluid.layers.randint``.

    >>> import fluidx as fluid
    >>> fluid.layers.randint(10, shape=[2, 3]).shape
    (2, 3)
    """
    kind = one_of(
        as_dtype("int64" if dtype is None else dtype), "dtype", "randint", INTEGERS
    )
    one_of(device, "device", "randint", (None, "cpu", "gpu"))
    low, high = (0, low) if high is None else (low, high)
    if not is_integer(low) or not is_integer(high) or low >= high:
        raise ValueError(f"randint: low {low!r} is not below high {high!r}")
    attrs: dict[str, Any] = {"low": low, "high": high, "seed": seed, "dtype": int(kind)}
    inputs: dict[str, Any] = {}
    helper = LayerHelper("randint", name=name)
    shape = [1] if shape is None else shape
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
    elif isinstance(shape, (list, tuple)) and shape:
        sizes = plain_or_variable(shape, "shape", "randint")
        if has_variable(shape):
            inputs["ShapeTensorList"] = shape_tensors(helper, shape, "int64")
        else:
            attrs["shape"] = sizes
    else:
        raise TypeError(f"randint: shape must be a list or a Variable, got {shape!r}")
    if out is None and name is None:
        out = helper.create_variable_for_type_inference(kind)
    elif out is None:
        out = helper.create_variable(name=name, dtype=kind)
    out.stop_gradient = stop_gradient
    with device_guard(device):
        helper.append_op("randint", inputs, {"Out": out}, attrs)
    return out


def randperm(
    n: int,
    out: Variable | None = None,
    dtype: Any = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """0, ..., n - 1 in random order. Mirrors ``fluid.layers.randperm``.

    >>> import fluidx as fluid
    >>> fluid.layers.randperm(6).shape
    (6,)
    """
    kind = one_of(as_dtype(dtype), "dtype", "randperm", INTEGERS)
    one_of(device, "device", "randperm", (None, "cpu", "gpu"))
    if not is_integer(n) or n < 1:
        raise ValueError(f"randperm: n must be a positive integer, got {n!r}")
    attrs = {"n": n, "seed": seed, "dtype": int(kind)}
    with device_guard(device):
        made = emit("randperm", {}, attrs, dtype=kind, out=out)
    made.stop_gradient = stop_gradient
    return made


def sampling_id(
    x: Variable,
    min: float = 0.0,
    max: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """For each row of probabilities [n, classes] a class, int64 [n].

    min, max: the range of the draws that choose. dtype is not looked at: the ids are
    int64, as the reference computes (but does not declare) them. Mirrors
    ``fluid.layers.sampling_id``.

    >>> import fluidx as fluid
    >>> fluid.layers.sampling_id(fluid.data("sampling_x", [None, 5])).shape
    (-1,)
    """
    attrs = {"min": min, "max": max, "seed": seed}
    as_dtype(dtype)
    return emit("sampling_id", {"X": x}, attrs, dtype="int64")


def random_crop(x: Variable, shape: Sequence[int], seed: Any = None) -> Variable:
    """A window of `shape` from the last dimensions, at a place of its own per instance.

    seed: an integer; an int64 Variable that holds one and gets that of the next run;
    or None: drawn from the program's generator (the reference: from numpy's, when the
    program is built). Mirrors ``fluid.layers.random_crop``.

    >>> import fluidx as fluid
    >>> x = fluid.data("random_crop_x", [None, 3, 32, 32])
    >>> fluid.layers.random_crop(x, [3, 28, 28]).shape
    (-1, 3, 28, 28)
    """
    check_variable(x, "x", "random_crop")
    helper = LayerHelper("random_crop")
    made = helper.create_variable_for_type_inference(x.dtype)
    attrs: dict[str, Any] = {"shape": int_list(shape, "shape", "random_crop")}
    if not isinstance(seed, Variable):
        if seed is not None and not is_integer(seed):
            raise TypeError(
                f"random_crop: seed must be an integer or a Variable, got {seed!r}"
            )
        attrs["startup_seed"] = 0 if seed is None else int(seed)
        seed = helper.create_variable(
            name=unique_name.generate("random_crop_seed"),
            dtype=VarType.INT64,
            persistable=True,
        )
    helper.append_op(
        "random_crop", {"X": x, "Seed": seed}, {"Out": made, "SeedOut": seed}, attrs
    )
    return made
