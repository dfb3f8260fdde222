"""``fluid.default_scope_funcs``: scopes one inside the other, for this thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fluidx.tensor import Scope, ScopeVar

__all__ = [
    "enter_local_scope",
    "find_var",
    "get_cur_scope",
    "leave_local_scope",
    "scoped_function",
    "var",
]

_here = threading.local()


def _stack() -> list[Scope]:
    if not hasattr(_here, "scopes"):
        _here.scopes = [Scope()]
    return _here.scopes  # type: ignore[no-any-return]


def get_cur_scope() -> Scope:
    """The innermost scope."""
    return _stack()[-1]


def enter_local_scope() -> None:
    """Open a scope inside the innermost one."""
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Close the innermost scope. RuntimeError: only the outermost is left."""
    if len(_stack()) == 1:
        raise RuntimeError("leave_local_scope: no local scope was entered")
    _stack().pop()
    get_cur_scope().drop_kids()


def var(name: str) -> ScopeVar:
    """The variable of this name in the innermost scope, made if it is not there."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVar | None:
    """The variable of this name in the innermost scope that has it."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Call a function in a scope of its own."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
