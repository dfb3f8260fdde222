"""``paddle.batch``: a module in the reference, then the function of that name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["batch"]


def batch(
    reader: Callable[[], Any], batch_size: int, drop_last: bool = False
) -> Callable[[], Iterator[list[Any]]]:
    """A reader of lists of `batch_size` items.

    drop_last: leave out a last list that is shorter. ValueError if batch_size is not
    positive. Mirrors ``paddle.batch``.

    >>> list(batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    batch_size = int(batch_size)
    if batch_size <= 0:
        raise ValueError(f"batch_size should be a positive integer, got {batch_size}")

    def batches() -> Iterator[list[Any]]:
        held: list[Any] = []
        for item in reader():
            held.append(item)
            if len(held) == batch_size:
                yield held
                held = []
        if held and not drop_last:
            yield held

    return batches


class _Both(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return batch(*args, **kwargs)


sys.modules[__name__].__class__ = _Both
