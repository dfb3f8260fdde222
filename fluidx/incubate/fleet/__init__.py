"""The Fleet API (``fluid.incubate.fleet``)."""

import importlib
from types import ModuleType

_PARTS = ("base", "collective", "parameter_server", "utils")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:  # scripts reach for them without an import
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"fluid.incubate.fleet has no {name!r} in fluidx")
