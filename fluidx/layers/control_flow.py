"""Comparisons, logic and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fluidx.arguments import as_integer, as_number
from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable, emit

# scripts reach them as ``fluid.layers.control_flow.lod_rank_table``
from fluidx.layers.rank_tables import (  # noqa: F401
    array_to_lod_tensor,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    shrink_memory,
)

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

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.less_than(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [True, False, False]
    """
    return _compare("less_than", x, y, cond, {"force_cpu": force_cpu})


def less_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x <= y, element by element. Mirrors ``fluid.layers.less_equal``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.less_equal(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [True, True, False]
    """
    return _compare("less_equal", x, y, cond)


def greater_than(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x > y, element by element. Mirrors ``fluid.layers.greater_than``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.greater_than(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False, False, True]
    """
    return _compare("greater_than", x, y, cond)


def greater_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x >= y, element by element. Mirrors ``fluid.layers.greater_equal``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.greater_equal(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False, True, True]
    """
    return _compare("greater_equal", x, y, cond)


def equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x == y, element by element. Mirrors ``fluid.layers.equal``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.equal(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False, True, False]
    """
    return _compare("equal", x, y, cond)


def not_equal(x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """x != y, element by element. Mirrors ``fluid.layers.not_equal``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> two = fluid.layers.assign(np.array([2, 2, 2], "float32"))
    >>> y = fluid.layers.not_equal(x, two)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [True, False, True]
    """
    return _compare("not_equal", x, y, cond)


_LOGICAL_DOC = """{formula}, element by element, of bool tensors; into `out` if given.

    TypeError if one is not bool. Mirrors ``fluid.layers.{type}``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([True, True, False]))
    >>> y = fluid.layers.assign(np.array([True, False, False]))
    >>> z = fluid.layers.{type}(x, y)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[z])[0].tolist()
    {values}
    """


def _logical(type: str, formula: str, values: str) -> Callable[..., Variable]:
    """values: what the example in its documentation gives."""

    def layer(
        x: Variable, y: Variable, out: Variable | None = None, name: str | None = None
    ) -> Variable:
        check_dtype(x, "x", type, (VarType.BOOL,))
        check_dtype(y, "y", type, (VarType.BOOL,))
        return emit(type, {"X": x, "Y": y}, dtype="bool", out=out, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = _LOGICAL_DOC.format(type=type, formula=formula, values=values)
    return layer


logical_and = _logical("logical_and", "x and y", "[True, False, False]")
logical_or = _logical("logical_or", "x or y", "[True, True, False]")
logical_xor = _logical("logical_xor", "Either x or y", "[False, True, False]")


def logical_not(
    x: Variable, out: Variable | None = None, name: str | None = None
) -> Variable:
    """Not x, element by element. Mirrors ``fluid.layers.logical_not``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([True, False]))
    >>> y = fluid.layers.logical_not(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False, True]
    """
    check_dtype(x, "x", "logical_not", (VarType.BOOL,))
    return emit("logical_not", {"X": x}, dtype="bool", out=out, name=name)


def isfinite(x: Variable) -> Variable:
    """Whether no element is infinite or NaN: shape [1], bool. ``layers.isfinite``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, np.inf], "float32"))
    >>> y = fluid.layers.isfinite(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False]
    """
    return emit("isfinite", {"X": x}, dtype="bool")


def has_inf(x: Variable) -> Variable:
    """Whether any element is infinite: shape [1]. Mirrors ``fluid.layers.has_inf``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, np.inf], "float32"))
    >>> y = fluid.layers.has_inf(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [True]
    """
    return emit("isinf", {"X": x}, dtype="bool")


def has_nan(x: Variable) -> Variable:
    """Whether any element is NaN: shape [1]. Mirrors ``fluid.layers.has_nan``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, np.inf], "float32"))
    >>> y = fluid.layers.has_nan(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [False]
    """
    return emit("isnan", {"X": x}, dtype="bool")


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether x has no elements: shape [1], bool. Mirrors ``fluid.layers.is_empty``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.zeros([0, 4], "float32")
    >>> y = fluid.layers.is_empty(x)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [True]
    """
    made = emit("is_empty", {"X": x}, dtype="bool", out=cond)
    made.stop_gradient = True
    return made


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value, of a tensor with one element; x itself if `in_place`.

    Mirrors ``fluid.layers.increment``.

    >>> import fluidx as fluid
    >>> x = fluid.layers.fill_constant([1], "float32", 1.0)
    >>> y = fluid.layers.increment(x, value=2.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0]
    """
    check_variable(x, "x", "increment")
    attrs = {"step": as_number(value, "value", "increment")}
    return emit("increment", {"X": x}, attrs, out=x if in_place else None)


def autoincreased_step_counter(
    counter_name: str | None = None, begin: int = 1, step: int = 1
) -> Variable:
    """An int64 counter of shape [1] that grows by `step` with every run.

    It starts as `begin` - 1 and is counted up before anything else runs. One name, one
    counter: the op that counts stands once at the head of the program. Mirrors
    ``fluid.layers.autoincreased_step_counter``.

    >>> import fluidx as fluid
    >>> fluid.layers.autoincreased_step_counter().dtype.name
    'INT64'
    """
    begin = as_integer(begin, "begin", "autoincreased_step_counter")
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
