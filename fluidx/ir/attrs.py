"""Attributes of ops: their kinds, and values in the one form that a kind has.

A FLOAT attribute is a 32-bit number in the reference and in saved programs. Here it is
the Python float with the fewest digits that stands for the same 32-bit number: 0.02,
not 0.019999999552965164.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx import kernels
from fluidx.kernels import AttrType

from .roles import CALLSTACK, DEVICE, NAMESCOPE, ROLE, ROLE_VAR

__all__ = ["coerce", "is_block", "kind_of", "plain", "short_float"]

_COMMON = {
    ROLE: AttrType.INT,
    ROLE_VAR: AttrType.STRINGS,
    NAMESCOPE: AttrType.STRING,
    CALLSTACK: AttrType.STRINGS,
    DEVICE: AttrType.STRING,
}
_ELEMENT = {
    AttrType.INTS: AttrType.INT,
    AttrType.FLOATS: AttrType.FLOAT,
    AttrType.STRINGS: AttrType.STRING,
    AttrType.BOOLEANS: AttrType.BOOLEAN,
    AttrType.BLOCKS: AttrType.BLOCK,
    AttrType.LONGS: AttrType.LONG,
}
_LIST = {element: many for many, element in _ELEMENT.items()}


def short_float(value: float) -> float:
    """The shortest decimal of the nearest 32-bit float.

    >>> short_float(0.019999999552965164), short_float(1 / 3)
    (0.02, 0.33333334)
    """
    value = float(value)
    if value.is_integer() and abs(value) < 2**24:
        return value
    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def is_block(value: Any) -> bool:
    """Whether an attribute's value is a block."""
    return hasattr(value, "ops") and hasattr(value, "parent_idx")


def plain(value: Any) -> Any:
    """numpy scalars and arrays as Python numbers and lists; the rest as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def kind_of(op_type: str, name: str, value: Any) -> AttrType:
    """The kind of an attribute: as declared, else as the value looks.

    TypeError for a value that no attribute can have.
    """
    common = _COMMON.get(name)
    if common is not None:
        return common
    if kernels.has(op_type):
        declared = kernels.find(op_type).attrs.get(name)
        if declared is not None:
            return declared.kind  # type: ignore[no-any-return]
    return _guess(value)


def _guess(value: Any) -> AttrType:
    if isinstance(value, list):
        found = {_guess(v) for v in value} or {AttrType.INT}
        if found <= {AttrType.INT, AttrType.LONG, AttrType.FLOAT}:
            return _LIST[max(found, key=_NUMBERS.index)]
        if len(found) == 1 and found <= set(_LIST):
            return _LIST[found.pop()]
    elif isinstance(value, bool):
        return AttrType.BOOLEAN
    elif isinstance(value, int):
        return AttrType.INT if _fits(value, 32) else AttrType.LONG
    elif isinstance(value, float):
        return AttrType.FLOAT
    elif isinstance(value, (str, bytes)):
        return AttrType.STRING
    elif is_block(value):
        return AttrType.BLOCK
    raise TypeError(f"no attribute can hold {value!r:.60}")


_NUMBERS: Sequence[AttrType] = (AttrType.INT, AttrType.LONG, AttrType.FLOAT)


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def coerce(kind: AttrType, value: Any) -> Any:
    """The value in the form of its kind (an integer for a FLOAT becomes a float).

    TypeError says what was expected and what came.
    """
    element = _ELEMENT.get(kind)
    if element is None:
        return _one(kind, plain(value))
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise TypeError(f"expected {kind.name}, got {value!r:.60}")
    return [_one(element, v) for v in plain(value)]


def _one(kind: AttrType, value: Any) -> Any:
    if kind in (AttrType.INT, AttrType.LONG):
        bits = 32 if kind == AttrType.INT else 64
        if isinstance(value, int) and _fits(value, bits):
            return int(value)
    elif kind == AttrType.FLOAT:
        if isinstance(value, (int, float)):
            return short_float(value)
    elif kind == AttrType.BOOLEAN:
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
    elif kind == AttrType.STRING:
        if isinstance(value, bytes):
            return value.decode(errors="surrogateescape")
        if isinstance(value, str):
            return str(value)
    elif is_block(value):
        return value
    raise TypeError(f"expected {kind.name}, got {value!r:.60}")
