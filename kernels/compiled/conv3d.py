"""Compiled conv3d. Its gradient measured no faster than NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.kernels.conv3d import WINDOW
from fluidx.kernels.conv_planes import Volume
from fluidx.kernels.conv_window import axes
from fluidx.kernels.registry import declared, takes

from . import direct, lowered
from .conv import fits
from .planes import layout

__all__ = ["conv3d"]


@takes(WINDOW)
def conv3d(xp: Any, x: Any, weight: Any, residual: Any, **window: Any) -> Any:
    """conv3d."""
    if fits(window, x, weight):
        g = Volume(window["groups"], *axes(x.shape[2:], weight.shape[2:], **window))
        plan = layout(g.y, g.x) if min(g.z.before, g.z.after) >= 0 else None
        filters = len(weight)
        shape = len(x), filters, g.z.out, g.y.out, g.x.out
        if plan is not None and direct.pays(x.shape[1], *g):
            out = np.empty(shape, np.float32)
            direct.convolve(x, weight, g.z, g.y, g.x, out)
            return out
        if plan is not None:
            out = np.empty(shape, np.float32)
            matrix = weight.reshape(g.groups, filters // g.groups, -1)
            into = out.reshape(*out.shape[:3], -1)
            lowered.convolve(x, matrix, g.z, plan, into)
            return out
    run: Any = declared("conv3d").run
    return run(xp, x, weight, residual, **window)
