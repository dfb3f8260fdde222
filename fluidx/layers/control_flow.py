"""Comparisons, logic and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable, emit

__all__ = [
    "autoincreased_step_counter",
    "equal",
    "greater_equal",
    "greater_than",
    "has_inf",
    "has_nan",
    "increment",
    "is_empty",
    "isfinite",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


def _compare(
    type: str, x: Variable, y: Variable, cond: Variable | None, attrs: Any = None
) -> Variable:
    if cond is not None:
        check_dtype(cond, "cond", type, (VarType.BOOL,))
    return emit(
        type, {"X": x, "Y": y}, attrs, dtype="bool", out=cond, stop_gradient=True
    )


def less_than(
    x: Variable,
    y: Variable,
    force_cpu: bool | None = None,
    cond: Variable | None = None,
) -> Variable:
    """x < y, element by element, as bool; into `cond` if given.

    Mirrors ``fluid.layers.less_than``.

    >>> import fluidx as fluid
    >>> x = fluid.data("less_in", [None, 4])
    >>> str(fluid.layers.less_than(x, x).dtype)
    'VarType.BOOL'
    """
    return _compare("less_than", x, y, cond, {"force_cpu": force_cpu})


def less_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x <= y, element by element. Mirrors ``fluid.layers.less_equal``."""
    return _compare("less_equal", x, y, cond)


def greater_than(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x > y, element by element. Mirrors ``fluid.layers.greater_than``."""
    return _compare("greater_than", x, y, cond)


def greater_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x >= y, element by element. Mirrors ``fluid.layers.greater_equal``."""
    return _compare("greater_equal", x, y, cond)


def equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x == y, element by element. Mirrors ``fluid.layers.equal``."""
    return _compare("equal", x, y, cond)


def not_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x != y, element by element. Mirrors ``fluid.layers.not_equal``."""
    return _compare("not_equal", x, y, cond)


def _logical(type: str, formula: str) -> Callable[..., Variable]:
    def layer(
        x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
    ) -> Variable:
        check_dtype(x, "x", type, (VarType.BOOL,))
        check_dtype(y, "y", type, (VarType.BOOL,))
        return emit(type, {"X": x, "Y": y}, dtype="bool", out=out, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = (
        f"{formula}, element by element, of bool tensors; into `out` if given.\n\n"
        f"    Mirrors ``fluid.layers.{type}``.\n    "
    )
    return layer


logical_and = _logical("logical_and", "x and y")
logical_or = _logical("logical_or", "x or y")
logical_xor = _logical("logical_xor", "Either x or y")


def logical_not(
    x: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Not x, element by element. Mirrors ``fluid.layers.logical_not``."""
    check_dtype(x, "x", "logical_not", (VarType.BOOL,))
    return emit("logical_not", {"X": x}, dtype="bool", out=out, name=name)


def isfinite(x: Variable) -> Variable:
    """Whether no element is infinite or NaN: shape [1], bool. ``layers.isfinite``."""
    return emit("isfinite", {"X": x}, dtype="bool")


def has_inf(x: Variable) -> Variable:
    """Whether any element is infinite: shape [1]. Mirrors ``fluid.layers.has_inf``."""
    return emit("isinf", {"X": x}, dtype="bool")


def has_nan(x: Variable) -> Variable:
    """Whether any element is NaN: shape [1]. Mirrors ``fluid.layers.has_nan``."""
    return emit("isnan", {"X": x}, dtype="bool")


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether x has no elements: shape [1], bool. Mirrors ``fluid.layers.is_empty``."""
    made = emit("is_empty", {"X": x}, dtype="bool", out=cond)
    made.stop_gradient = True
    return made


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value, of a tensor with one element; x itself if `in_place`.

    Mirrors ``fluid.layers.increment``.
    """
    check_variable(x, "x", "increment")
    attrs = {"step": float(value)}
    return emit("increment", {"X": x}, attrs, out=x if in_place else None)


def autoincreased_step_counter(
    counter_name: str | None = None, begin: int = 1, step: int = 1
) -> Variable:
    """An int64 counter of shape [1] that grows by `step` with every run.

    It starts as `begin` - 1 and is counted up before anything else runs. One name, one
    counter: the op that counts stands once at the head of the program. Mirrors
    ``fluid.layers.autoincreased_step_counter``.
    """
    name = "@STEP_COUNTER@" if counter_name is None else counter_name
    helper = LayerHelper("global_step_counter")
    counter, is_new = helper.create_or_get_global_variable(
        name, dtype=VarType.INT64, shape=[1], persistable=True
    )
    if is_new:
        helper.set_variable_initializer(counter, Constant(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            "increment",
            inputs={"X": counter},
            outputs={"Out": counter},
            attrs={"step": float(step)},
        )
        counter.stop_gradient = True
    return counter
