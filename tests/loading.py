"""What the tests of data loaders share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fluidx as fluid

__all__ = ["CPU", "LOADER", "batches", "endless", "variables", "xs"]

CPU = fluid.CPUPlace()
LOADER = fluid.io.DataLoader


def variables() -> list[fluid.Variable]:
    return [fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")]


def xs(feeds: Any) -> list[list[Any]]:
    """The first column of x, per step and place."""
    return [[np.asarray(d["x"])[:, 0].tolist() for d in feed] for feed in feeds]


def batches(count: int = 3) -> Callable[[], Iterator[Any]]:
    """A reader of batches that are full of their numbers."""

    def read() -> Iterator[Any]:
        for i in range(count):
            yield np.full([2, 2], i, "float32"), np.full([2, 1], i, "int64")

    return read


def endless() -> Iterator[Any]:
    while True:
        yield np.zeros([2, 2], "float32"), np.zeros([2, 1], "int64")
