"""What the tests of data loaders share."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidx as fluid

__all__ = ["CPU", "LOADER", "variables", "xs"]

CPU = fluid.CPUPlace()
LOADER = fluid.io.DataLoader


def variables() -> list[fluid.Variable]:
    return [fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")]


def xs(feeds: Any) -> list[list[Any]]:
    """The first column of x, per step and place."""
    return [[np.asarray(d["x"])[:, 0].tolist() for d in feed] for feed in feeds]
