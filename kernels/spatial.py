"""Sampling of images on a grid: affine_grid, grid_sampler.

Jaderberg et al., "Spatial Transformer Networks" (2015). Coordinates run from -1 to 1
from the centre of the first pixel to that of the last; x comes before y.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__ = ["affine_grid", "grid_sampler"]

# --- affine_grid --------------------------------------------------------------


def _infer_affine_grid(op: InferContext) -> None:
    theta = op.input("Theta")
    op.check(
        len(theta.shape) == 3 and theta.shape[1:] == (2, 3),
        f"Theta needs shape (n, 2, 3), got {theta.shape}",
    )
    size = op.attr("output_shape")
    op.check(
        op.has("OutputShape") or len(size) == 4,
        f"output_shape needs 4 numbers, got {list(size)}",
    )
    op.set("Output", (theta.shape[0], -1, -1, 2), theta.dtype)


def _infer_affine_grid_grad(op: InferContext) -> None:
    d = op.input("Output@GRAD")
    op.set("Theta@GRAD", (d.shape[0], 2, 3), d.dtype)


affine_grid = op(
    "affine_grid",
    ins=[In("Theta"), In("OutputShape", dispensable=True, no_grad=True)],
    outs=[Out("Output")],
    attrs=[
        Attr("output_shape", AttrType.INTS, []),
        Attr("use_cudnn", bool, True),
    ],
    infer=_infer_affine_grid,
    grad=grad_op(needs=["OutputShape"]),
    lod=None,
)
affine_grid.grad_def.infer = _infer_affine_grid_grad


@lru_cache(maxsize=32)
def _base(xp: Any, height: int, width: int, dtype: Any) -> Any:
    """(height * width, 3): x, y, 1 of each pixel. Not to be written to.

    An axis of one pixel is at 0 (the reference divides by zero there).
    """
    made = np.ones((height, width, 3), dtype)
    made[..., 0] = np.linspace(-1, 1, width) if width > 1 else 0
    made[..., 1] = np.linspace(-1, 1, height)[:, None] if height > 1 else 0
    return xp.asarray(made.reshape(-1, 3))


@affine_grid.kernel
def _(xp: Any, theta: Any, given: Any, *, output_shape: Sequence[int]) -> Any:
    height, width = (int(n) for n in (output_shape if given is None else given)[2:4])
    base = _base(xp, height, width, theta.dtype)
    return (base @ theta.swapaxes(1, 2)).reshape(len(theta), height, width, 2)


@affine_grid.grad_kernel
def _(xp: Any, given: Any, d_out: Any) -> Any:
    n, height, width = d_out.shape[:3]
    base = _base(xp, height, width, d_out.dtype)
    return d_out.reshape(n, height * width, 2).swapaxes(1, 2) @ base


# --- grid_sampler -------------------------------------------------------------


def _infer_grid_sampler(op: InferContext) -> None:
    x, grid = op.input("X"), op.shape("Grid")
    op.check(len(x.shape) == 4, f"X needs 4 dimensions, got shape {x.shape}")
    op.check(
        len(grid) == 4 and grid[3] == 2, f"Grid needs shape (n, h, w, 2), got {grid}"
    )
    # mirrors GridSampleOp, which wants an output as large as the input
    wanted = (x.shape[0], *x.shape[2:])
    op.check(
        all(a == b or -1 in (a, b) for a, b in zip(wanted, grid[:3])),
        f"Grid {grid} does not have batch, height and width of X {x.shape}",
    )
    op.set("Output", like=x)


grid_sampler = op(
    "grid_sampler",
    ins=[In("X"), In("Grid")],
    outs=[Out("Output")],
    attrs=[Attr("use_cudnn", bool, True)],
    infer=_infer_grid_sampler,
    grad=grad_op(needs=["X", "Grid"]),
)


class _Corner(NamedTuple):
    """One of the four pixels around each point.

    place: (n, points) in the flattened image, inside. x, y: its shares (0 where it
    is outside); x_sign, y_sign: how they change with the point.
    """

    place: Any
    x: Any
    y: Any
    inside: Any
    x_sign: int
    y_sign: int


def _corners(xp: Any, grid: Any, height: int, width: int) -> list[_Corner]:
    flat = grid.reshape(len(grid), grid.shape[1] * grid.shape[2], 2)
    x = (flat[..., 0] + 1) * (0.5 * (width - 1))
    y = (flat[..., 1] + 1) * (0.5 * (height - 1))
    left, top = xp.floor(x), xp.floor(y)
    made = []
    for row, y_share, y_sign in ((top, 1 - (y - top), -1), (top + 1, y - top, 1)):
        for column, x_share, x_sign in (
            (left, 1 - (x - left), -1),
            (left + 1, x - left, 1),
        ):
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            place = xp.clip(row, 0, height - 1) * width
            place += xp.clip(column, 0, width - 1)
            whole = place.astype("int64")
            made.append(_Corner(whole, x_share, y_share, inside, x_sign, y_sign))
    return made


def _values(xp: Any, x: Any, corner: _Corner) -> Any:
    """(n, channels, points): the pixels, 0 outside of the image."""
    flat = x.reshape(*x.shape[:2], x.shape[2] * x.shape[3])
    found = xp.take_along_axis(flat, corner.place[:, None], 2)
    found *= corner.inside[:, None]
    return found


@grid_sampler.kernel
def _(xp: Any, x: Any, grid: Any) -> Any:
    height, width = x.shape[2:]
    total: Any = 0
    for corner in _corners(xp, grid, height, width):
        part = _values(xp, x, corner)
        part *= (corner.x * corner.y)[:, None]
        total = total + part
    return total.reshape(*x.shape[:2], *grid.shape[1:3])


@grid_sampler.grad_kernel
def _(xp: Any, x: Any, grid: Any, d_out: Any, *, wants: tuple[bool, ...]) -> Any:
    n, channels, height, width = x.shape
    d = d_out.reshape(n, channels, d_out.shape[2] * d_out.shape[3])
    dx = xp.zeros(x.size, x.dtype) if wants[0] else None
    d_grid = xp.zeros((n, d.shape[2], 2), grid.dtype) if wants[1] else None
    first = xp.arange(n * channels).reshape(n, channels, 1) * (height * width)
    for corner in _corners(xp, grid, height, width):
        if dx is not None:
            share = (corner.x * corner.y * corner.inside)[:, None]
            place = first + corner.place[:, None]
            xp.add.at(dx, place.reshape(-1), (d * share).reshape(-1))
        if d_grid is not None:
            slope = (_values(xp, x, corner) * d).sum(1)
            d_grid[..., 0] += slope * corner.y * corner.x_sign
            d_grid[..., 1] += slope * corner.x * corner.y_sign
    if dx is not None:
        dx = dx.reshape(x.shape)
    if d_grid is not None:
        d_grid[..., 0] *= 0.5 * (width - 1)
        d_grid[..., 1] *= 0.5 * (height - 1)
        d_grid = d_grid.reshape(grid.shape)
    return dx, d_grid
