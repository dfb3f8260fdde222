"""Numbers that users give, and what is said when they are none."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["as_integer", "as_number", "not_zero"]


def as_number(value: Any, arg: str, who: str) -> float:
    """``float(value)``; the TypeError or ValueError names function and argument."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise error.__class__(
            f"{who}: {arg} must be a number, got {value!r:.60}"
        ) from None


def as_integer(value: Any, arg: str, who: str) -> int:
    """An integer of Python or numpy; TypeError names function and argument."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {arg} must be an integer, got {value!r:.60}") from None


def not_zero(value: Any, arg: str, who: str) -> None:
    """ZeroDivisionError, as the reference raises it, for what is divided by."""
    if isinstance(value, (int, float)) and value == 0:
        raise ZeroDivisionError(f"{who}: {arg} must not be 0")
