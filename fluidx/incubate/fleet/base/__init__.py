"""Roles, and what all fleets have in common."""

import importlib
from types import ModuleType

_PARTS = ("fleet_base", "role_maker")


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:  # scripts reach for them without an import
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"fluid.incubate.fleet.base has no {name!r} in fluidx")
