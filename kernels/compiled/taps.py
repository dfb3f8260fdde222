"""Sums over the taps of a window, on phase planes (see `planes`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .vectors import JIT

__all__ = ["correlate", "products", "spread"]


@njit(**JIT)
def _add3(a: Any, b: Any, c: Any, p: Any, q: Any, r: Any, out: Any, new: Any) -> None:
    if new:
        for t in range(len(out)):
            out[t] = p * a[t] + q * b[t] + r * c[t]
    else:
        for t in range(len(out)):
            out[t] += p * a[t] + q * b[t] + r * c[t]


@njit(**JIT)
def _add1(a: Any, p: Any, out: Any, new: Any) -> None:
    if new:
        for t in range(len(out)):
            out[t] = p * a[t]
    else:
        for t in range(len(out)):
            out[t] += p * a[t]


@njit(**JIT)
def correlate(planes: Any, shifts: Any, kernel: Any, out: Any) -> None:
    """out[t] = sum over taps of kernel[tap] * planes[shifts[tap] + t]."""
    n, k = len(out), 0
    while k + 3 <= len(shifts):
        a, b, c = shifts[k], shifts[k + 1], shifts[k + 2]
        _add3(
            planes[a : a + n],
            planes[b : b + n],
            planes[c : c + n],
            kernel[k],
            kernel[k + 1],
            kernel[k + 2],
            out,
            k == 0,
        )
        k += 3
    while k < len(shifts):
        a = shifts[k]
        _add1(planes[a : a + n], kernel[k], out, k == 0)
        k += 1


@njit(**JIT)
def spread(
    wide: Any, lead: Any, order: Any, places: Any, first: Any, kernel: Any, planes: Any
) -> None:
    """The transpose: each phase is a sum of shifted windows, `lead` places in."""
    size = len(planes) // (len(first) - 1)
    for phase in range(len(first) - 1):
        out = planes[phase * size : (phase + 1) * size]
        k, stop = first[phase], first[phase + 1]
        if k == stop:
            out[:] = 0
        new = True
        while k + 3 <= stop:
            a, b, c = lead - places[k], lead - places[k + 1], lead - places[k + 2]
            _add3(
                wide[a : a + size],
                wide[b : b + size],
                wide[c : c + size],
                kernel[order[k]],
                kernel[order[k + 1]],
                kernel[order[k + 2]],
                out,
                new,
            )
            new = False
            k += 3
        while k < stop:
            a = lead - places[k]
            _add1(wide[a : a + size], kernel[order[k]], out, new)
            new = False
            k += 1


@njit(**JIT)
def products(planes: Any, shifts: Any, given: Any, out: Any) -> None:
    """out[tap] += sum over t of given[t] * planes[shifts[tap] + t]."""
    n, k = len(given), 0
    while k + 3 <= len(shifts):
        a, b, c = shifts[k], shifts[k + 1], shifts[k + 2]
        p, q, r = planes[a : a + n], planes[b : b + n], planes[c : c + n]
        sp = sq = sr = np.float32(0)
        for t in range(n):
            d = given[t]
            sp += d * p[t]
            sq += d * q[t]
            sr += d * r[t]
        out[k] += sp
        out[k + 1] += sq
        out[k + 2] += sr
        k += 3
    while k < len(shifts):
        a = shifts[k]
        p = planes[a : a + n]
        sp = np.float32(0)
        for t in range(n):
            sp += given[t] * p[t]
        out[k] += sp
        k += 1
