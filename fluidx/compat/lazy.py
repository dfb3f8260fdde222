"""Attributes of ``fluid`` that are imported when a script asks for them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from .inner_names import answer
from .names import absent, own_module

__all__ = ["attribute"]

#: where a name of ``fluid`` is defined
_HOMES = {
    "DataFeedDesc": "dataset_factory",
    "DataFeeder": "data_feeder",
    "DatasetFactory": "dataset_factory",
    "InMemoryDataset": "dataset_factory",
    "QueueDataset": "dataset_factory",
    "disable_dygraph": "framework",
    "disable_imperative": "framework",
}


def attribute(name: str) -> Any:
    """``__getattr__`` of `fluidx`: a submodule, or a name of one.

    AttributeError names what is missing, near misses, and why if that is known.
    """
    if name.startswith("__"):
        raise AttributeError(f"module 'fluidx' has no attribute {name!r}")
    module = own_module(name) or f"fluidx.{name}"
    if _exists(module):
        return answer(importlib.import_module(module))
    if name in _HOMES:
        return getattr(importlib.import_module(f"fluidx.{_HOMES[name]}"), name)
    raise AttributeError(f"fluidx (paddle.fluid) has no {name!r}{absent(name)}")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
