"""Maxima over the taps of a window, on phase planes (see `planes`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .vectors import JIT

__all__ = ["NOWHERE", "find", "hand_back", "maxima"]

NOWHERE = np.int32(-(2**31))


@njit(**JIT)
def _max3(a: Any, b: Any, c: Any, out: Any) -> None:
    for t in range(len(out)):
        best = out[t]
        # a NaN stays, and takes the place of any number
        best = a[t] if a[t] > best or a[t] != a[t] else best
        best = b[t] if b[t] > best or b[t] != b[t] else best
        best = c[t] if c[t] > best or c[t] != c[t] else best
        out[t] = best


@njit(**JIT)
def _max1(a: Any, out: Any) -> None:
    for t in range(len(out)):
        best = out[t]
        out[t] = a[t] if a[t] > best or a[t] != a[t] else best


@njit(**JIT)
def maxima(planes: Any, shifts: Any, least: Any, out: Any) -> None:
    """out[t] = the maximum over taps of planes[shifts[tap] + t], at least `least`."""
    n, k = len(out), 0
    out[:] = least
    while k + 3 <= len(shifts):
        a, b, c = shifts[k], shifts[k + 1], shifts[k + 2]
        _max3(planes[a : a + n], planes[b : b + n], planes[c : c + n], out)
        k += 3
    while k < len(shifts):
        a = shifts[k]
        _max1(planes[a : a + n], out)
        k += 1


@njit(**JIT)
def _find3(
    a: Any, b: Any, c: Any, best: Any, p: Any, q: Any, r: Any, at: Any, new: Any
) -> None:
    if new:
        at[:] = NOWHERE
    for t in range(len(best)):
        place = at[t]
        place = r if c[t] == best[t] else place
        place = q if b[t] == best[t] else place
        at[t] = p if a[t] == best[t] else place


@njit(**JIT)
def _find1(a: Any, best: Any, p: Any, at: Any, new: Any) -> None:
    if new:
        at[:] = NOWHERE
    for t in range(len(best)):
        place = at[t]
        at[t] = p if a[t] == best[t] else place


@njit(**JIT)
def find(planes: Any, shifts: Any, best: Any, reach: Any, at: Any) -> None:
    """at[t] = reach of the first tap that equals best[t], or NOWHERE (both int32)."""
    n, k, new = len(best), len(shifts), True
    while k >= 3:
        k -= 3
        a, b, c = shifts[k], shifts[k + 1], shifts[k + 2]
        u, v, w = planes[a : a + n], planes[b : b + n], planes[c : c + n]
        _find3(u, v, w, best, reach[k], reach[k + 1], reach[k + 2], at, new)
        new = False
    while k > 0:
        k -= 1
        a = shifts[k]
        _find1(planes[a : a + n], best, reach[k], at, new)
        new = False


@njit(**JIT)
def hand_back(at: Any, given: Any, begin: Any, image: Any, y: Any, x: Any) -> None:
    """Add each window's gradient to a flat image, or volume, where `find` said.

    at: for wide windows, relative to what the first one's first tap would read if
    that were `begin`.
    """
    for r in range(y[6]):
        start = begin + r * y[2] * x[0]
        places = at[r * x[7] : r * x[7] + x[6]]
        row = given[r * x[6] : (r + 1) * x[6]]
        for t in range(x[6]):
            if places[t] != NOWHERE:
                # unsigned: no question whether it counts from the end
                image[np.uint64(start + t * x[2] + places[t])] += row[t]
