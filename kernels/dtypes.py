"""Variable kinds and element types, with the reference's numbers.

Mirrors ``core.VarDesc.VarType``: one enumeration names both what a variable is
(``LOD_TENSOR``, ``SELECTED_ROWS``, ...) and what its elements are (``FP32``, ...).
"""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

import numpy as np

__all__ = ["VarType", "as_dtype", "to_numpy", "is_floating"]


class VarType(enum.IntEnum):
    """``core.VarDesc.VarType``: the numbers stand in saved models.

    >>> str(VarType.FP32), int(VarType.FP32)
    ('VarType.FP32', 5)
    """

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21
    BF16 = 22

    def __str__(self) -> str:
        return f"VarType.{self.name}"


_NUMPY_NAMES = {
    VarType.BOOL: "bool",
    VarType.INT8: "int8",
    VarType.UINT8: "uint8",
    VarType.INT16: "int16",
    VarType.INT32: "int32",
    VarType.INT64: "int64",
    VarType.FP16: "float16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
    VarType.SIZE_T: "uint64",
}
_FROM_NUMPY = {name: kind for kind, name in _NUMPY_NAMES.items()}
_FROM_NUMPY["bfloat16"] = VarType.BF16
_FLOATING = {VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64}


@cache
def to_numpy(kind: int) -> np.dtype[Any]:
    """The numpy dtype of an element type; TypeError for a variable kind.

    >>> to_numpy(5)
    dtype('float32')
    """
    kind = VarType(kind)
    if kind is VarType.BF16:
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    try:
        return np.dtype(_NUMPY_NAMES[kind])
    except KeyError:
        raise TypeError(f"{kind} is not an element type") from None


def as_dtype(value: Any) -> VarType:
    """Whatever a user may write for an element type, as `VarType`.

    Takes a `VarType` or its number, a numpy dtype or scalar type, or a name.
    TypeError says what was given and what is known.

    >>> as_dtype("float32") is as_dtype(np.float32) is VarType.FP32
    True
    """
    if isinstance(value, VarType):
        kind = value
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        kind = VarType(int(value))
    else:
        try:
            plain = isinstance(value, str) and value == "bfloat16"
            name = value if plain else np.dtype(value).name
        except TypeError:
            name = str(value)
        if name not in _FROM_NUMPY:
            known = ", ".join(sorted(_FROM_NUMPY))
            raise TypeError(f"{value!r} is not a dtype fluidx knows: {known}")
        return _FROM_NUMPY[name]
    if kind not in _NUMPY_NAMES and kind is not VarType.BF16:
        raise TypeError(f"{kind} is not an element type")
    return kind


def is_floating(kind: int) -> bool:
    """Whether gradients can flow through elements of this type."""
    return kind in _FLOATING
