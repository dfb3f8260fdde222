"""``paddle.compat``: text, bytes and numbers of Python 2 and 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "floor_division",
    "get_exception_message",
    "int_type",
    "long_type",
    "round",
    "to_bytes",
    "to_text",
]

int_type = int
long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """bytes as str, also inside lists, sets and dicts; other things as they are.

    inplace: change the container itself.

    >>> to_text([b"a", "b"]), to_text(3)
    (['a', 'b'], 3)
    """
    return _each(
        obj, lambda v: v.decode(encoding) if isinstance(v, bytes) else v, inplace
    )


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> Any:
    """str as bytes, also inside lists, sets and dicts; other things as they are."""
    return _each(
        obj, lambda v: v.encode(encoding) if isinstance(v, str) else v, inplace
    )


def _each(obj: Any, act: Callable[[Any], Any], inplace: bool) -> Any:
    if isinstance(obj, list):
        made_list = [_each(v, act, False) for v in obj]
        if inplace:
            obj[:] = made_list
            return obj
        return made_list
    if isinstance(obj, set):
        made_set = {_each(v, act, False) for v in obj}
        if inplace:
            obj.clear()
            obj.update(made_set)
            return obj
        return made_set
    if isinstance(obj, dict):
        made_dict = {_each(k, act, False): _each(v, act, False) for k, v in obj.items()}
        if inplace:
            obj.clear()
            obj.update(made_dict)
            return obj
        return made_dict
    return act(obj)


def round(x: float, d: int = 0) -> float:
    """Half away from zero, as Python 2 did.

    >>> round(2.5), round(-0.55, 1)
    (3.0, -0.6)
    """
    scale = 10.0**d
    if x > 0.0:
        return float(math.floor((x * scale) + 0.5)) / scale
    if x < 0.0:
        return float(math.ceil((x * scale) - 0.5)) / scale
    return math.copysign(0.0, x)


def floor_division(x: Any, y: Any) -> Any:
    return x // y


def get_exception_message(exc: BaseException) -> str:
    return str(exc)
