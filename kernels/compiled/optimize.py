"""Compiled optimizer updates: one pass over parameter, gradient and state.

Every operation is NumPy's, rounded as there (no fastmath): a parameter becomes the same
to the last bit, whole on one machine or in slices on several servers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numba import njit

from fluidx.kernels import compiled
from fluidx.kernels import optimize as plain
from fluidx.kernels.registry import Call
from fluidx.kernels.threads import share

__all__ = ["adam", "momentum", "sgd"]


def _rounded(function: Callable[..., Any]) -> Any:
    """Decorator: compiled without a change of order or rounding."""
    return njit(cache=True, nogil=True, error_model="numpy")(function)


@_rounded
def _sgd(p: Any, g: Any, rate: Any) -> None:
    for i in range(len(p)):
        p[i] -= g[i] * rate


@_rounded
def _momentum(p: Any, g: Any, v: Any, rate: Any, mu: Any) -> None:
    for i in range(len(p)):
        now = v[i] * mu + g[i]
        v[i] = now
        p[i] -= now * rate


@_rounded
def _nesterov(p: Any, g: Any, v: Any, rate: Any, mu: Any) -> None:
    for i in range(len(p)):
        now = v[i] * mu + g[i]
        v[i] = now
        p[i] -= (now * mu + g[i]) * rate


@_rounded
def _adam(
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    rate: Any,
    epsilon: Any,
    beta1: Any,
    rest1: Any,
    beta2: Any,
    rest2: Any,
) -> None:
    for i in range(len(p)):
        first = m[i] * beta1 + g[i] * rest1
        second = v[i] * beta2 + g[i] * g[i] * rest2
        m[i] = first
        v[i] = second
        p[i] -= first / (math.sqrt(second) + epsilon) * rate


def _by(kernel: Any) -> Callable[..., None]:
    """`optimize.walk` with a compiled step, where arrays are long and plain."""

    def walk(xp: Any, arrays: Sequence[Any], step: Any, *numbers: Any) -> None:
        like = arrays[0]
        plain_ones = like.size >= compiled.SMALLEST and like.dtype.char in "fd"
        if not plain_ones or not all(
            a.dtype == like.dtype and a.flags.c_contiguous for a in arrays
        ):
            plain.walk(xp, arrays, step, *numbers)
            return
        flat = [a.reshape(-1) for a in arrays]
        given = [like.dtype.type(n) for n in numbers]
        share(
            like.size,
            like.size * len(arrays),
            lambda a, b: kernel(*(f[a:b] for f in flat), *given),
        )

    return walk


def _many(update: Callable[..., Any], by: Callable[..., Callable[..., None]]) -> Any:
    """A batch kernel; by(attrs) is how the arrays of a call are walked."""

    def many(xp: Any, ctx: Any, calls: list[Call]) -> list[tuple[Any, ...]]:
        rates = plain.Rates()
        return [update(xp, c.inputs, c.attrs, rates, by(c.attrs)) for c in calls]

    return many


_SGD, _MOMENTUM, _NESTEROV, _ADAM = map(_by, (_sgd, _momentum, _nesterov, _adam))

sgd = _many(plain.sgd_update, lambda attrs: _SGD)
momentum = _many(
    plain.momentum_update,
    lambda attrs: _NESTEROV if attrs["use_nesterov"] else _MOMENTUM,
)
adam = _many(plain.adam_update, lambda attrs: _ADAM)
