"""Arithmetic of two tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable

__all__ = [
    "elementwise_add",
    "elementwise_div",
    "elementwise_floordiv",
    "elementwise_max",
    "elementwise_min",
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
]

_DOC = """{formula}, element by element; then `act`, if given.

    x, y: tensors of one dtype. The shorter shape is laid over the longer one from
    dimension `axis` on (-1: aligned at the end), sizes of 1 are repeated. BuildError
    if the shapes do not go together. Mirrors ``fluid.layers.elementwise_{name}``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[7, 9], [8, 5]], "{dtype}"))
    >>> y = fluid.layers.assign(np.array([2, 4], "{dtype}"))
    >>> made = fluid.layers.elementwise_{name}(x, y, axis=0)  # 2 and 4 go with rows
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[made])[0].tolist()
    {values}
    """


def _binary(
    name: str, formula: str, values: str, dtype: str = "float32"
) -> Callable[..., Variable]:
    """values: what the example in its documentation gives."""
    type = f"elementwise_{name}"

    def layer(
        x: Variable,
        y: Variable,
        axis: int = -1,
        act: str | None = None,
        name: str | None = None,
    ) -> Variable:
        check_variable(x, "x", type)
        check_variable(y, "y", type)
        if x.dtype != y.dtype:
            raise TypeError(
                f"{type}: x ({x.name}) is {x.dtype.name}, y ({y.name}) is "
                f"{y.dtype.name}; cast one of them"
            )
        helper = LayerHelper(type, act=act, name=name)
        made = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(type, {"X": x, "Y": y}, {"Out": made}, {"axis": axis})
        return helper.append_activation(made)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = _DOC.format(name=name, formula=formula, values=values, dtype=dtype)
    return layer


elementwise_add = _binary("add", "x + y", "[[9.0, 11.0], [12.0, 9.0]]")
elementwise_sub = _binary("sub", "x - y", "[[5.0, 7.0], [4.0, 1.0]]")
elementwise_mul = _binary("mul", "x * y", "[[14.0, 18.0], [32.0, 20.0]]")
elementwise_div = _binary(
    "div", "x / y (of integers: cut towards zero)", "[[3.5, 4.5], [2.0, 1.25]]"
)
elementwise_max = _binary("max", "The larger of x and y", "[[7.0, 9.0], [8.0, 5.0]]")
elementwise_min = _binary("min", "The smaller of x and y", "[[2.0, 2.0], [4.0, 4.0]]")
elementwise_pow = _binary(
    "pow", "x to the power of y", "[[49.0, 81.0], [4096.0, 625.0]]"
)
elementwise_mod = _binary(
    "mod", "Remainder of x / y, with the sign of y", "[[1.0, 1.0], [0.0, 1.0]]"
)
elementwise_floordiv = _binary("floordiv", "x // y", "[[3, 4], [2, 1]]", "int64")
