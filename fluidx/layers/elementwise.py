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

    >>> import fluidx as fluid
    >>> x = fluid.data("x_of_{name}", [None, 3, 4])
    >>> y = fluid.data("y_of_{name}", [3])
    >>> fluid.layers.elementwise_{name}(x, y, axis=1).shape
    (-1, 3, 4)
    """


def _binary(name: str, formula: str) -> Callable[..., Variable]:
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
    layer.__doc__ = _DOC.format(name=name, formula=formula)
    return layer


elementwise_add = _binary("add", "x + y")
elementwise_sub = _binary("sub", "x - y")
elementwise_mul = _binary("mul", "x * y")
elementwise_div = _binary("div", "x / y (of integers: cut towards zero)")
elementwise_max = _binary("max", "The larger of x and y")
elementwise_min = _binary("min", "The smaller of x and y")
elementwise_pow = _binary("pow", "x to the power of y")
elementwise_mod = _binary("mod", "Remainder of x / y, with the sign of y")
elementwise_floordiv = _binary("floordiv", "x // y")
