"""Bicubic interpolation as OpenCV's ``resize(..., INTER_CUBIC)`` computes it.

Pixel centres stand at halves; weights are those of Keys (1981) with a = -0.75, edges
are repeated. For uint8, weights are multiples of 1/2048: rows are summed in int32,
columns in float32, and the result is rounded to even, so that every bit is OpenCV's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["cubic"]

_STEPS = 2048


def _taps(to: int, of: int) -> tuple[Any, Any]:
    """Which four of `of` samples make each of `to`, and their weights, float32."""
    place = ((np.arange(to) + 0.5) * (of / to) - 0.5).astype("float32")
    first = np.floor(place)
    x = place - first
    near, a = np.float32(1) - x, np.float32(-0.75)
    far = x + np.float32(1)
    weights = np.empty((4, to), "float32")
    weights[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
    weights[1] = ((a + 2) * x - (a + 3)) * x * x + 1
    weights[2] = ((a + 2) * near - (a + 3)) * near * near + 1
    weights[3] = 1 - weights[0] - weights[1] - weights[2]
    index = first.astype("int64") + np.arange(-1, 3)[:, None]
    return np.clip(index, 0, of - 1), weights


def cubic(im: Any, height: int, width: int) -> Any:
    """[rows, columns] or [rows, columns, colours], uint8 or floating, at a new size.

    TypeError: another dtype.
    """
    if im.shape[:2] == (height, width):
        return im.copy()
    rest = (1,) * (im.ndim - 2)
    columns, across = _taps(width, im.shape[1])
    rows, down = _taps(height, im.shape[0])
    if im.dtype.kind == "f":
        return _sum(im, columns, across, rows, down, rest).astype(im.dtype)
    if im.dtype != np.uint8:
        raise TypeError(f"resizing takes uint8 or floating pictures, got {im.dtype}")
    across = np.rint(across * _STEPS).astype("int32")
    down = np.rint(down * _STEPS) * np.float32(1 / _STEPS**2)
    made = _sum(im.astype("int32"), columns, across, rows, down, rest)
    return np.clip(np.rint(made), 0, 255).astype("uint8")


def _sum(im: Any, columns: Any, across: Any, rows: Any, down: Any, rest: Any) -> Any:
    """Rows are summed from the left, columns from below: the order of rounding."""
    wide = sum(im[:, c] * w.reshape(1, -1, *rest) for c, w in zip(columns, across))
    if wide.dtype == np.int32:
        wide = wide.astype("float32")
    taps = zip(rows[::-1], down[::-1])
    return sum(wide[r] * w.reshape(-1, 1, *rest) for r, w in taps)
