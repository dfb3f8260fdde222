"""``fluid.incubate``: the Fleet API and data generators."""

import importlib
from types import ModuleType

_PARTS = ("data_generator", "fleet")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:  # scripts reach for them without an import
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"fluid.incubate has no {name!r} in fluidx")
