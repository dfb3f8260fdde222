"""Pooling window by window: adaptive and global, of images and volumes.

Windows are given by their (start, stop) along each of three axes, inside the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .vectors import JIT

__all__ = [
    "averages",
    "averages_back",
    "largest",
    "largest_back",
    "whole_averages",
    "whole_back",
]


@njit(**JIT)
def largest(images: Any, z: Any, y: Any, x: Any, least: Any, out: Any) -> None:
    """images (planes, depth, height, width); out (planes, windows...)."""
    width = images.shape[3]
    row = np.empty(width, np.float32)
    for p in range(len(images)):
        for k in range(len(z)):
            for j in range(len(y)):
                row[:] = least
                for a in range(z[k, 0], z[k, 1]):
                    for b in range(y[j, 0], y[j, 1]):
                        for c in range(width):
                            v = images[p, a, b, c]
                            row[c] = v if v > row[c] or v != v else row[c]
                for i in range(len(x)):
                    best = least
                    for c in range(x[i, 0], x[i, 1]):
                        v = row[c]
                        best = v if v > best or v != v else best
                    out[p, k, j, i] = best


@njit(**JIT)
def largest_back(
    images: Any, out: Any, given: Any, z: Any, y: Any, x: Any, into: Any
) -> None:
    """The gradient goes to the first value that equals the maximum, or is NaN too."""
    for p in range(len(images)):
        into[p] = 0
        for k in range(len(z)):
            for j in range(len(y)):
                for i in range(len(x)):
                    best = out[p, k, j, i]
                    missing = True
                    a = z[k, 0]
                    while missing and a < z[k, 1]:
                        b = y[j, 0]
                        while missing and b < y[j, 1]:
                            c = x[i, 0]
                            while missing and c < x[i, 1]:
                                v = images[p, a, b, c]
                                if v == best or (v != v and best != best):
                                    into[p, a, b, c] += given[p, k, j, i]
                                    missing = False
                                c += 1
                            b += 1
                        a += 1


@njit(**JIT)
def whole_back(images: Any, out: Any, given: Any, into: Any) -> None:
    """The same for one window that is the whole image: images (planes, size)."""
    size = images.shape[1]
    for p in range(len(images)):
        best, first = out[p], size
        if best == best:
            for t in range(size):
                first = min(first, t if images[p, t] == best else size)
        else:
            for t in range(size):
                first = min(first, t if images[p, t] != images[p, t] else size)
        into[p] = 0
        if first < size:
            into[p, first] = given[p]


@njit(**JIT)
def whole_averages(x: Any, out: Any) -> None:
    """x (planes, size) into out (planes)."""
    for p in range(len(x)):
        total = np.float32(0)
        for v in x[p]:
            total += v
        out[p] = total / np.float32(x.shape[1])


@njit(**JIT)
def averages(images: Any, z: Any, y: Any, x: Any, counts: Any, out: Any) -> None:
    """Sums of windows by counts[z, y, x]."""
    width = images.shape[3]
    row = np.empty(width, np.float32)
    for p in range(len(images)):
        for k in range(len(z)):
            for j in range(len(y)):
                row[:] = 0
                for a in range(z[k, 0], z[k, 1]):
                    for b in range(y[j, 0], y[j, 1]):
                        for c in range(width):
                            row[c] += images[p, a, b, c]
                for i in range(len(x)):
                    total = np.float32(0)
                    for c in range(x[i, 0], x[i, 1]):
                        total += row[c]
                    out[p, k, j, i] = total / counts[k, j, i]


@njit(**JIT)
def averages_back(given: Any, z: Any, y: Any, x: Any, counts: Any, into: Any) -> None:
    """Each window's gradient is shared out evenly."""
    width = into.shape[3]
    row = np.empty(width, np.float32)
    for p in range(len(given)):
        into[p] = 0
        for k in range(len(z)):
            for j in range(len(y)):
                row[:] = 0
                for i in range(len(x)):
                    d = given[p, k, j, i] / counts[k, j, i]
                    for c in range(x[i, 0], x[i, 1]):
                        row[c] += d
                for a in range(z[k, 0], z[k, 1]):
                    for b in range(y[j, 0], y[j, 1]):
                        for c in range(width):
                            into[p, a, b, c] += row[c]
