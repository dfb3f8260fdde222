"""``fluid.wrapped_decorator``: decorators that keep a function's signature."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager as signature_safe_contextmanager
from typing import Any

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(
    decorator_func: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same decorator; what it makes keeps the name and signature it was given."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(decorator_func(function))

    return decorate
