"""``paddle.fluid.data``: a module in the reference, then the function of that name."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from fluidx.input import data

__all__ = ["data"]

__signature__ = inspect.signature(data)


class _Both(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return data(*args, **kwargs)


sys.modules[__name__].__class__ = _Both
