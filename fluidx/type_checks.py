"""Checks of layers' arguments (``fluid.data_feeder.check_type``, ...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.ir import Variable
from fluidx.kernels import VarType, to_numpy

__all__ = ["check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]

_DTYPES = (
    *("bool", "float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8"),
)


def convert_dtype(dtype: Any) -> str:
    """The name of a dtype, given as a `VarType`, a numpy dtype or class, or a name.

    ValueError: one that no tensor of the reference can have.

    >>> convert_dtype(np.float32), convert_dtype(VarType.INT64)
    ('float32', 'int64')
    """
    try:
        found = to_numpy(dtype) if isinstance(dtype, VarType) else np.dtype(dtype)
        name: str = found.name
    except (TypeError, ValueError):
        name = ""
    if name not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}; got {dtype!r}")
    return name


def check_type(
    input: Any,
    input_name: str,
    expected_type: type | tuple[type, ...],
    op_name: str,
    extra_message: str = "",
) -> None:
    """TypeError unless the argument is of a type."""
    if not isinstance(input, expected_type):
        raise TypeError(
            f"The type of {input_name!r} in {op_name} must be {expected_type}, but "
            f"received {type(input)}. {extra_message}"
        )


def check_dtype(
    input_dtype: Any,
    input_name: str,
    expected_dtype: Sequence[str],
    op_name: str,
    extra_message: str = "",
) -> None:
    """TypeError unless a dtype is among those expected."""
    if convert_dtype(input_dtype) not in expected_dtype:
        raise TypeError(
            f"The data type of {input_name!r} in {op_name} must be {expected_dtype}, "
            f"but received {convert_dtype(input_dtype)}. {extra_message}"
        )


def check_variable_and_dtype(
    input: Any,
    input_name: str,
    expected_dtype: Sequence[str],
    op_name: str,
    extra_message: str = "",
) -> None:
    """TypeError unless the argument is a Variable of one of these dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)
