"""Unique names (``fluid.unique_name``) and name scopes (``fluid.name_scope``)."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

__all__ = ["UniqueNameGenerator", "generate", "switch", "guard", "name_scope"]


class UniqueNameGenerator:
    """Counts per key: ``fc`` gives ``fc_0``, ``fc_1``, ..."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.ids: dict[str, int] = defaultdict(int)

    def __call__(self, key: str) -> str:
        number = self.ids[key]
        self.ids[key] += 1
        return f"{self.prefix}{key}_{number}"


_generator = UniqueNameGenerator()
_scopes: list[str] = []
_used: list[dict[str, int]] = [defaultdict(int)]


def generate(key: str) -> str:
    """A name not generated before: ``key_N``.

    >>> with guard():
    ...     generate("fc"), generate("fc"), generate("conv2d")
    ('fc_0', 'fc_1', 'conv2d_0')
    """
    return _generator(key)


def switch(
    new_generator: UniqueNameGenerator | None = None, new_para_name_checker: Any = None
) -> UniqueNameGenerator:
    """Put another generator in place (default: a fresh one); returns the old.

    new_para_name_checker: of dygraph; not looked at.
    """
    global _generator
    old = _generator
    _generator = new_generator or UniqueNameGenerator()
    return old


@contextlib.contextmanager
def guard(new_generator: UniqueNameGenerator | str | None = None) -> Iterator[None]:
    """Count anew inside; a string becomes the prefix of all names."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Ops built inside carry this scope in ``op_namescope``; names do not change.

    A prefix used twice in the same scope becomes ``prefix_1``, ``prefix_2``, ...
    """
    if not prefix:
        raise ValueError("name_scope needs a prefix that is not empty")
    seen = _used[-1][prefix]
    _used[-1][prefix] += 1
    _scopes.append(f"{prefix}_{seen}" if seen else prefix)
    _used.append(defaultdict(int))
    try:
        yield
    finally:
        _used.pop()
        _scopes.pop()


def current_scope() -> str:
    """The scope for ``op_namescope``: ``/`` or ``/outer/inner/``."""
    return "/" + "".join(f"{s}/" for s in _scopes)
