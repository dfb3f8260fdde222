"""Layers beside `fluid.layers` (``fluid.contrib.layers``)."""

from typing import Any

from . import metric_op
from .metric_op import ctr_metric_bundle

__all__ = ["ctr_metric_bundle", "metric_op"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"fluid.contrib.layers has no {name!r} in fluidx")
