"""Layers made from an op's declaration (``layers.layer_function_generator``)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from fluidx import kernels
from fluidx.ir import Variable
from fluidx.kernels import OpDef
from fluidx.layer_helper import LayerHelper

__all__ = [
    "autodoc",
    "deprecated",
    "generate_activation_fn",
    "generate_layer_fn",
    "templatedoc",
]

F = TypeVar("F", bound=Callable[..., Any])


def _definition(op_type: str) -> OpDef:
    try:
        return kernels.find(op_type)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None


def generate_layer_fn(op_type: str) -> Callable[..., Variable]:
    """A layer that appends one op.

    Its arguments are the op's inputs, in order or by their names in lower case, the
    op's attributes by name, and `name` and `act`. It returns the op's output.
    ValueError: there is no such op, or it has several outputs to return.
    """
    definition = _definition(op_type)
    shown = [s for s in definition.outs if not s.intermediate]
    if len(shown) != 1:
        raise ValueError(
            f"generate_layer_fn: {op_type} has {len(shown)} outputs to return, not one"
        )

    def layer(*args: Any, **kwargs: Any) -> Variable:
        helper = LayerHelper(op_type, **kwargs)
        given = dict(zip((s.name for s in definition.ins), args))
        for slot in definition.ins:
            value = kwargs.pop(slot.name.lower(), None)
            if value is not None:
                given[slot.name] = value
        first = next(iter(given.values()))
        first = first[0] if isinstance(first, (list, tuple)) else first
        if not isinstance(first, Variable):
            raise TypeError(f"{op_type}: expected a Variable, got {first!r:.60}")
        outs = {
            s.name: [helper.create_variable_for_type_inference(first.dtype)]
            for s in definition.outs
        }
        attrs = {k: v for k, v in kwargs.items() if k in definition.attrs}
        unknown = sorted(set(kwargs) - set(attrs) - {"name", "act"})
        if unknown:
            raise TypeError(f"{op_type} takes no argument {', '.join(unknown)}")
        helper.append_op(op_type, inputs=given, outputs=outs, attrs=attrs)
        return helper.append_activation(outs[shown[0].name][0])

    layer.__name__ = op_type
    layer.__doc__ = f"Appends the op `{op_type}`; see `generate_layer_fn`."
    return layer


def generate_activation_fn(op_type: str) -> Callable[..., Variable]:
    """A layer of one Variable that appends one op."""
    _definition(op_type)

    def layer(x: Variable, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name)
        out = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(op_type, inputs={"X": x}, outputs={"Out": out})
        return out

    layer.__name__ = op_type
    layer.__doc__ = f"Appends the op `{op_type}`."
    return layer


def deprecated(func_or_class: F) -> Callable[..., Any]:
    """Decorator: a call warns."""

    @functools.wraps(func_or_class)
    def call(*args: Any, **kwargs: Any) -> Any:
        text = f"{func_or_class.__name__} is deprecated"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return func_or_class(*args, **kwargs)

    return call


def autodoc(comment: str = "") -> Callable[[F], F]:
    """Decorator: puts a comment in front of the docstring."""

    def decorate(function: F) -> F:
        function.__doc__ = f"{comment}{function.__doc__ or ''}"
        return function

    return decorate


def templatedoc(op_type: str | None = None) -> Callable[[F], F]:
    """Decorator for layers whose docstrings have ``${...}`` in them: these stay."""
    return lambda function: function
