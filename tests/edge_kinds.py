"""Which edges a case of an op touches, told from its inputs and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["AXES", "KINDS", "edge_kinds"]

#: attributes that count dimensions from the end where they are negative
AXES = (
    *("axis", "dim", "axes", "dim1", "dim2", "axis1", "axis2", "dims"),
    "begin_norm_axis",
)
KINDS = ("empty", "nonfinite", "big", "tiny", "integers", "negative axis")
BIG, TINY = 1e6, 1e-6


def _arrays(inputs: Mapping[str, Any]) -> Iterator[Any]:
    for value in inputs.values():
        for item in value if isinstance(value, list) else [value]:
            yield np.asarray(getattr(item, "value", item))


def edge_kinds(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> set[str]:
    """Names out of `KINDS`. integers: its first input holds whole numbers."""
    found = set()
    for position, array in enumerate(_arrays(inputs)):
        if array.size == 0:
            found.add("empty")
        if array.dtype.kind in "iu" and position == 0:
            found.add("integers")
        if array.dtype.kind != "f":
            continue
        finite = np.abs(array[np.isfinite(array)])
        if finite.size < array.size:
            found.add("nonfinite")
        some = finite[finite > 0]
        if some.size and some.max() >= BIG:
            found.add("big")
        if some.size and some.min() <= TINY:
            found.add("tiny")
    for name in AXES:
        value = attrs.get(name)
        if value is not None and np.any(np.asarray(value) < 0):
            found.add("negative axis")
    return found
