"""``fluid.annotations``: marks on functions."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["deprecated"]


def deprecated(
    since: str, instead: str, extra_message: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a call says on standard error what to use instead."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        text = (
            f"API {function.__name__} is deprecated since {since}. Please use "
            f"{instead} instead."
        )
        text += f"\n{extra_message}" if extra_message else ""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            print(text, file=sys.stderr)
            return function(*args, **kwargs)

        call.__doc__ = f"{function.__doc__ or ''}\n    {text}"
        return call

    return decorate
