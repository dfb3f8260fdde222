"""What the layer modules share: emitting an op, and checks of arguments.

The checks raise TypeError or ValueError that name the layer, the argument, what was
expected and what came. Whether shapes go together is for the ops' own inference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidx.ir import Variable
from fluidx.kernels import VarType, as_dtype
from fluidx.layer_helper import LayerHelper

__all__ = [
    "FLOATS",
    "INTEGERS",
    "check_dtype",
    "check_variable",
    "check_variables",
    "emit",
    "has_variable",
    "int_list",
    "is_integer",
    "is_number",
    "number_tensor",
    "one_of",
    "pair",
    "plain_or_variable",
    "shape_tensors",
]

FLOATS = (VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64)
INTEGERS = (VarType.INT32, VarType.INT64)

#: ops whose layers take floats only, as in the reference (exp, abs, square, gelu and
#: erf do take integers there)
_OF_FLOATS = frozenset(
    (
        *("acos", "asin", "atan", "brelu", "ceil", "clip", "clip_by_norm", "cos"),
        *("elu", "floor", "hard_shrink", "hard_sigmoid", "hard_swish", "leaky_relu"),
        *("log", "logsigmoid", "matmul", "mul", "norm", "reciprocal", "relu"),
        *("relu6", "round", "rsqrt", "selu", "sigmoid", "sign", "sin"),
        *("smooth_l1_loss", "soft_relu", "softplus", "softshrink", "softsign"),
        *("sqrt", "stanh", "swish", "tanh", "tanh_shrink", "thresholded_relu"),
    )
)


def emit(
    type: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    dtype: Any = None,
    layer: str | None = None,
    slot: str = "Out",
    out: Variable | None = None,
    extra: Mapping[str, Any] | None = None,
    stop_gradient: bool = False,
) -> Variable:
    """Append one op to the current block and return its output.

    layer: prefix of the output's name (default: the op's type). slot: where the
    output goes; out: an existing variable for it. dtype: of the output (default: the
    first input's). extra: slot -> dtype of further outputs.
    """
    helper = LayerHelper(layer or type, name=name)
    for arg, value in inputs.items():
        if isinstance(value, (list, tuple)):
            check_variables(value, arg, helper.layer_type)
        elif value is not None:
            check_variable(value, arg, helper.layer_type)
    if type in _OF_FLOATS:
        check_dtype(inputs["X"], "X", helper.layer_type, FLOATS)
    if dtype is None:
        dtype = _first(inputs).dtype
    if out is None:
        out = helper.create_variable_for_type_inference(dtype, stop_gradient)
    outputs: dict[str, Any] = {slot: out}
    for further, kind in (extra or {}).items():
        outputs[further] = helper.create_variable_for_type_inference(kind)
    given = {k: v for k, v in inputs.items() if v is not None}
    helper.append_op(type, given, outputs, attrs)
    return out


def _first(inputs: Mapping[str, Any]) -> Variable:
    value = next(iter(inputs.values()))
    return value[0] if isinstance(value, (list, tuple)) else value  # type: ignore[no-any-return]


def check_variable(value: Any, arg: str, layer: str) -> Variable:
    """TypeError unless it is a Variable."""
    if not isinstance(value, Variable):
        raise TypeError(
            f"{layer}: {arg} must be a Variable, got {value.__class__.__name__} "
            f"{value!r:.60}"
        )
    return value


def check_variables(value: Any, arg: str, layer: str) -> list[Variable]:
    """A Variable or a sequence of Variables, as a list that is not empty."""
    many = list(value) if isinstance(value, (list, tuple)) else [value]
    if not many:
        raise ValueError(f"{layer}: {arg} is an empty list")
    return [check_variable(v, arg, layer) for v in many]


def check_dtype(
    value: Any, arg: str, layer: str, allowed: Sequence[VarType]
) -> Variable:
    """TypeError unless it is a Variable of one of these dtypes."""
    var = check_variable(value, arg, layer)
    if var.dtype not in allowed:
        names = ", ".join(d.name for d in allowed)
        raise TypeError(
            f"{layer}: {arg} ({var.name}) must be of {names}, got {var.dtype.name}"
        )
    return var


def one_of(value: Any, arg: str, layer: str, allowed: Sequence[Any]) -> Any:
    """ValueError unless it is one of the allowed values."""
    if value not in allowed:
        raise ValueError(
            f"{layer}: {arg} must be one of {list(allowed)}, got {value!r}"
        )
    return value


def is_integer(value: Any) -> bool:
    """An int of Python or numpy, not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A number of Python or numpy; bools count, as in the reference."""
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_))


def int_list(value: Any, arg: str, layer: str) -> list[int]:
    """A list of ints, from an int or a sequence of ints."""
    many = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in many:
        if not is_integer(item):
            raise TypeError(f"{layer}: {arg} must be made of integers, got {value!r}")
    return [int(v) for v in many]


def pair(value: Any, arg: str, layer: str, count: int = 2) -> list[int]:
    """A list of `count` ints; a single int is repeated."""
    many = int_list(value, arg, layer)
    if len(many) == 1 and not isinstance(value, (list, tuple)):
        return many * count
    if len(many) != count:
        raise ValueError(
            f"{layer}: {arg} must be an integer or {count} integers, got {value!r}"
        )
    return many


def number_tensor(
    helper: LayerHelper, value: float, dtype: Any, force_cpu: bool = True
) -> Variable:
    """A fresh tensor of shape [1] that holds a number."""
    kind = as_dtype(dtype)
    made = helper.create_variable_for_type_inference(kind)
    # the reference fills it by a layer call, which uses up one of that layer's names
    LayerHelper("fill_constant")
    whole = kind in INTEGERS
    attrs = {
        "shape": [1],
        "dtype": int(kind),
        "value": float(value),
        "str_value": str(int(value)) if whole else str(float(value)),
        "force_cpu": force_cpu,
    }
    helper.append_op("fill_constant", None, {"Out": made}, attrs)
    made.stop_gradient = True
    return made


def shape_tensors(
    helper: LayerHelper, values: Sequence[Any], dtype: Any = "int32"
) -> list[Variable]:
    """The items as tensors of shape [1]: numbers are filled in, Variables kept."""
    made = []
    for item in values:
        if isinstance(item, Variable):
            item.stop_gradient = True
            made.append(item)
        else:
            made.append(number_tensor(helper, int(item), dtype))
    return made


def plain_or_variable(values: Sequence[Any], arg: str, layer: str) -> list[int]:
    """The integers of a list, -1 where it holds a Variable."""
    plain = []
    for item in values:
        if isinstance(item, Variable):
            plain.append(-1)
        elif is_integer(item):
            plain.append(int(item))
        else:
            raise TypeError(
                f"{layer}: {arg} must be made of integers and Variables, got {item!r}"
            )
    return plain


def has_variable(values: Sequence[Any]) -> bool:
    return any(isinstance(v, Variable) for v in values)
