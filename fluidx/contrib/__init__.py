"""Additions beside the core names (``fluid.contrib``)."""

from . import mixed_precision

__all__ = ["mixed_precision"]
