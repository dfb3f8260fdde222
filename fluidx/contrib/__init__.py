"""Additions beside the core names (``fluid.contrib``)."""

from typing import Any

from . import memory_usage_calc, mixed_precision, model_stat, op_frequence, reader
from .memory_usage_calc import memory_usage
from .mixed_precision import *  # noqa: F403
from .mixed_precision import __all__ as _mixed
from .model_stat import summary
from .op_frequence import op_freq_statistic
from .reader import distributed_batch_reader

__all__ = [
    "distributed_batch_reader",
    "memory_usage",
    "memory_usage_calc",
    "mixed_precision",
    "model_stat",
    "op_freq_statistic",
    "op_frequence",
    "reader",
    "summary",
]
__all__ += _mixed


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"fluid.contrib has no {name!r} in fluidx")
