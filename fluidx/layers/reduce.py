"""Sums, means, extremes over dimensions, and where extremes are."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable, emit, int_list

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "mean",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "sum",
    "sums",
]


def _reduce(
    type: str, input: Variable, dim: Any, keep_dim: bool, name: str | None
) -> Variable:
    check_variable(input, "input", type)
    everything = dim is None or dim == []
    attrs = {
        "dim": [0] if everything else int_list(dim, "dim", type),
        "keep_dim": keep_dim,
        "reduce_all": everything,
    }
    return emit(type, {"X": input}, attrs, name=name)


def reduce_sum(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Sum over dimensions `dim`: an integer, several, or None for all.

    keep_dim: they stay, with size 1; else they go, and the sum of everything has
    shape [1]. Mirrors ``fluid.layers.reduce_sum``.

    >>> import fluidx as fluid
    >>> x = fluid.data("reduce_in", [None, 3, 4])
    >>> fluid.layers.reduce_sum(x, dim=[1, 2], keep_dim=True).shape
    (-1, 1, 1)
    """
    return _reduce("reduce_sum", input, dim, keep_dim, name)


def reduce_mean(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Mean over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_mean``."""
    return _reduce("reduce_mean", input, dim, keep_dim, name)


def reduce_max(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Maximum over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_max``."""
    return _reduce("reduce_max", input, dim, keep_dim, name)


def reduce_min(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Minimum over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_min``."""
    return _reduce("reduce_min", input, dim, keep_dim, name)


def reduce_prod(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Product over dimensions, as in `reduce_sum`. ``fluid.layers.reduce_prod``."""
    return _reduce("reduce_prod", input, dim, keep_dim, name)


def reduce_all(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether all elements of a bool tensor are true. ``fluid.layers.reduce_all``."""
    check_dtype(input, "input", "reduce_all", (VarType.BOOL,))
    return _reduce("reduce_all", input, dim, keep_dim, name)


def reduce_any(
    input: Variable, dim: Any = None, keep_dim: bool = False, name: str | None = None
) -> Variable:
    """Whether any element of a bool tensor is true. ``fluid.layers.reduce_any``."""
    check_dtype(input, "input", "reduce_any", (VarType.BOOL,))
    return _reduce("reduce_any", input, dim, keep_dim, name)


def mean(x: Variable, name: str | None = None) -> Variable:
    """Mean of all elements, shape [1]. Mirrors ``fluid.layers.mean``.

    >>> import fluidx as fluid
    >>> fluid.layers.mean(fluid.data("mean_in", [None, 4])).shape
    (1,)
    """
    return emit("mean", {"X": x}, name=name)


def sum(x: Any) -> Variable:
    """Sum of several tensors of one shape. Mirrors ``fluid.layers.sum``."""
    return emit("sum", {"X": list(x) if isinstance(x, (list, tuple)) else [x]})


def sums(input: Any, out: Variable | None = None) -> Variable:
    """Sum of several tensors, into `out` if given. Mirrors ``fluid.layers.sums``."""
    many = list(input) if isinstance(input, (list, tuple)) else [input]
    return emit("sum", {"X": many}, out=out)


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the maximum is (int64). Mirrors ``fluid.layers.argmax``."""
    return emit("arg_max", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the minimum is (int64). Mirrors ``fluid.layers.argmin``."""
    return emit("arg_min", {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """Sorted along `axis`, and the int64 indices that sort.

    Mirrors ``fluid.layers.argsort``.
    """
    check_variable(input, "input", "argsort")
    helper = LayerHelper("argsort", name=name)
    out = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    ids = helper.create_variable_for_type_inference(VarType.INT64, stop_gradient=True)
    attrs = {"axis": axis, "descending": descending}
    helper.append_op("argsort", {"X": input}, {"Out": out, "Indices": ids}, attrs)
    return out, ids
