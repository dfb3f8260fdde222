"""Modules below ``fluid.layers``: each layer under every path that scripts use.

The reference keeps its layers in ``layers.nn``, ``layers.tensor``, ``layers.ops``, ...
and scripts reach into them. Layers live in other files here; so these modules answer
with whatever `fluidx.layers` has under a name that they do not define themselves.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

__all__ = ["layers_module", "open_layers"]

_LAYERS = "fluidx.layers"
_MODULES = (
    *("collective", "control_flow", "detection", "device", "distributions", "io"),
    "layer_function_generator",
    *("learning_rate_scheduler", "loss", "metric_op", "nn", "ops", "rnn"),
    *("sequence_lod", "tensor", "utils"),
)


def _answer_from_layers(module: ModuleType) -> None:
    shown = module.__name__.replace(_LAYERS, "fluid.layers")

    def __getattr__(name: str) -> Any:
        layers = importlib.import_module(_LAYERS)
        if not name.startswith("_") and name in layers.__all__:
            return getattr(layers, name)
        raise AttributeError(f"{shown} has no {name!r} in fluidx")

    if "__getattr__" not in module.__dict__:
        module.__dict__["__getattr__"] = __getattr__


def layers_module(name: str) -> ModuleType | None:
    """``fluidx.layers.X`` for an X that the reference has; None for other names."""
    package, _, last = name.rpartition(".")
    if package != _LAYERS or last not in _MODULES:
        return None
    if importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
    else:
        layers = importlib.import_module(_LAYERS)
        known = layers.__dict__.get(last)
        if isinstance(known, ModuleType):
            module = known
        else:
            module = ModuleType(name, f"`{_LAYERS}` under another name of its own.")
            setattr(layers, last, module)
    _answer_from_layers(module)
    return module


def open_layers() -> None:
    """Let all these modules be there as attributes: ``fluid.layers.tensor.concat``."""
    for name in _MODULES:
        layers_module(f"{_LAYERS}.{name}")
