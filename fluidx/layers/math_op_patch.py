"""Arithmetic on Variables: ``x + y``, ``2 * x``, ``x < y``, ``x[1:3]``, ``x.astype``.

Installed on `Variable` when `fluidx.layers` is imported. Results are called
``tmp_<n>``, as the reference calls them. The right operand takes the dtype of the left
one. With an operand that is neither a Variable nor a number these methods return
NotImplemented, so that Python raises its own TypeError, and ``x == None`` is False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidx.ir import Variable, default_main_program, unique_name
from fluidx.kernels import VarType, as_dtype, is_floating
from fluidx.layers.emit import is_number
from fluidx.layers.getitem import getitem

__all__ = ["install"]


def _temporary(dtype: VarType, stop_gradient: bool = False) -> Variable:
    block = default_main_program().current_block()
    return block.create_var(
        name=unique_name.generate("tmp"), dtype=dtype, stop_gradient=stop_gradient
    )


def _append(type: str, inputs: Any, out: Variable, attrs: Any) -> Variable:
    block = default_main_program().current_block()
    block.append_op(type, inputs, {"Out": out}, attrs)
    return out


def astype(self: Variable, dtype: Any) -> Variable:
    """This variable as another dtype (appends a cast).

    >>> import fluidx as fluid
    >>> str(fluid.data("astype_in", [None, 2]).astype("int64").dtype)
    'VarType.INT64'
    """
    kind = as_dtype(dtype)
    attrs = {"in_dtype": int(self.dtype), "out_dtype": int(kind)}
    return _append("cast", {"X": self}, _temporary(kind), attrs)


def _scaled(var: Variable, scale: float, bias: float) -> Variable:
    attrs = {"scale": scale, "bias": bias}
    return _append("scale", {"X": var}, _temporary(var.dtype), attrs)


def _constant(shape: list[int], value: float, dtype: VarType) -> Variable:
    """A tensor that holds the number, made by the next op."""
    attrs = {"shape": shape, "dtype": int(dtype), "value": value, "force_cpu": False}
    made = _temporary(dtype, stop_gradient=True)
    return _append("fill_constant", {}, made, attrs)


def _constant_like(var: Variable, value: float) -> Variable:
    """A tensor like `var`, full of the number."""
    if -1 not in var.shape:
        return _constant(list(var.shape), value, var.dtype)
    batch = var.shape.index(-1)
    sizes = [1 if s == -1 and i != batch else s for i, s in enumerate(var.shape)]
    attrs = {
        "shape": sizes,
        "value": value,
        "dtype": int(var.dtype),
        "input_dim_idx": batch,
        "output_dim_idx": batch,
    }
    made = _temporary(var.dtype, stop_gradient=True)
    return _append("fill_constant_batch_size_like", {"Input": var}, made, attrs)


def _as_number(other: Any) -> float | None:
    """A Python number, also from an array of one element; None for anything else."""
    if isinstance(other, np.ndarray):
        if other.size != 1:
            raise TypeError(
                f"an array of shape {list(other.shape)} cannot be an operand; "
                "make a tensor of it with layers.assign"
            )
        other = other.reshape(-1)[0]
    return float(other) if is_number(other) else None


def _whole(var: Variable, number: float) -> None:
    if not is_floating(var.dtype) and number != int(number):
        raise TypeError(
            f"{var.name} is {var.dtype.name}: {number} does not fit; cast it first"
        )


def _binary(
    type: str,
    reverse: bool = False,
    shortcut: Callable[[Variable, float], Variable] | None = None,
) -> Callable[[Variable, Any], Any]:
    """One operator method; `shortcut` deals with numbers by a scale op."""
    compares = not type.startswith("elementwise")

    def method(self: Variable, other: Any) -> Any:
        if not isinstance(other, Variable):
            number = _as_number(other)
            if number is None:
                return NotImplemented
            if shortcut is not None:
                _whole(self, number)
                return shortcut(self, number)
            if reverse:
                other = _constant_like(self, number)
            else:
                other = _constant([1], number, self.dtype)
        elif other.dtype != self.dtype:
            other = astype(other, self.dtype)
        x, y = (other, self) if reverse else (self, other)
        out = _temporary(VarType.BOOL if compares else x.dtype)
        axis = 0 if y.shape and y.shape[0] == -1 else -1
        return _append(type, {"X": x, "Y": y}, out, {"axis": axis})

    return method


def _neg(self: Variable) -> Variable:
    return _scaled(self, -1.0, 0.0)


def _times(var: Variable, number: float) -> Variable:
    return _scaled(var, number, 0.0)


def _plus(var: Variable, number: float) -> Variable:
    return _scaled(var, 1.0, number)


def _minus(var: Variable, number: float) -> Variable:
    return _scaled(var, 1.0, -number)


def _from(var: Variable, number: float) -> Variable:
    return _scaled(var, -1.0, number)


def _over(var: Variable, number: float) -> Variable:
    if number == 0:
        raise ZeroDivisionError(f"{var.name} / 0")
    return _scaled(var, 1.0 / number, 0.0)


def _divide(self: Variable, other: Any) -> Any:
    """Floats by a number: a scale op. Integers: by a constant, as the op divides."""
    return (_by_scale if is_floating(self.dtype) else _by_tensor)(self, other)


_by_scale = _binary("elementwise_div", shortcut=_over)
_by_tensor = _binary("elementwise_div")

_METHODS: dict[str, Callable[..., Any]] = {
    "__add__": _binary("elementwise_add", shortcut=_plus),
    "__sub__": _binary("elementwise_sub", shortcut=_minus),
    "__rsub__": _binary("elementwise_sub", True, _from),
    "__mul__": _binary("elementwise_mul", shortcut=_times),
    "__truediv__": _divide,
    "__rtruediv__": _binary("elementwise_div", True),
    "__pow__": _binary("elementwise_pow"),
    "__rpow__": _binary("elementwise_pow", True),
    "__floordiv__": _binary("elementwise_floordiv"),
    "__mod__": _binary("elementwise_mod"),
    "__eq__": _binary("equal"),
    "__ne__": _binary("not_equal"),
    "__lt__": _binary("less_than"),
    "__le__": _binary("less_equal"),
    "__gt__": _binary("greater_than"),
    "__ge__": _binary("greater_equal"),
    "__neg__": _neg,
    "__getitem__": getitem,
    "astype": astype,
}
# addition and multiplication do not care which side the number stands on
_METHODS["__radd__"] = _METHODS["__add__"]
_METHODS["__rmul__"] = _METHODS["__mul__"]


def install() -> None:
    """Give `Variable` its operators."""
    for name, method in _METHODS.items():
        if name != "astype":
            method.__name__ = name
        setattr(Variable, name, method)
