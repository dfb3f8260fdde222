"""``paddle.batch``: a module in the reference, then the function of that name."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from fluidx.reader import batch

__all__ = ["batch"]

__signature__ = inspect.signature(batch)


class _Both(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return batch(*args, **kwargs)


sys.modules[__name__].__class__ = _Both
