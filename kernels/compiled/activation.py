"""Compiled activations: one pass where NumPy's chain of ufuncs makes several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidx.kernels import compiled
from fluidx.kernels.threads import share

from .functions import erf, exact, exp, loops, own

__all__ = [
    "gelu",
    "gelu_grad",
    "leaky_relu_grad",
    "relu_grad",
    "sigmoid",
    "swish",
    "swish_grad",
]

_HALF, _ONE = np.float32(0.5), np.float32(1)
_SQRT_HALF = np.float32(math.sqrt(0.5))
_DENSITY = np.float32(1 / math.sqrt(2 * math.pi))


def _fits(*arrays: Any) -> bool:
    """Whether all are contiguous, large enough, and float32 or float64 alike."""
    first = arrays[0]
    return (
        first.size >= compiled.SMALLEST
        and first.dtype.char in "fd"
        and all(a.dtype == first.dtype and a.flags.c_contiguous for a in arrays)
    )


def _each(kernel: Any, out: Any, *arrays: Any) -> Any:
    """Fill `out` (None: a new array) with what `kernel` makes of flat arrays."""
    first = arrays[0]
    if out is None or not _fits(out, first) or out.shape != first.shape:
        out = np.empty(first.shape, first.dtype)
    flat = [a.reshape(-1) for a in (*arrays, out)]
    share(first.size, first.size, lambda a, b: kernel(*(f[a:b] for f in flat)))
    return out


# --- relu ---------------------------------------------------------------------


@loops
def _relu_grad(y: Any, d: Any, out: Any) -> None:
    zero, one = y.dtype.type(0), y.dtype.type(1)
    for i in range(len(y)):
        out[i] = d[i] * (one if y[i] > 0 else zero)


def relu_grad(xp: Any, y: Any, d: Any, *, out: Any = None) -> Any:
    if not _fits(y, d):
        return own("relu_grad")(xp, y, d, out=out)
    return _each(_relu_grad, out, y, d)


@loops
def _leaky_relu_grad(y: Any, d: Any, out: Any, alpha: float) -> None:
    slope = y.dtype.type(alpha)
    for i in range(len(y)):
        out[i] = d[i] if y[i] > 0 else d[i] * slope


def leaky_relu_grad(xp: Any, y: Any, d: Any, *, alpha: float) -> Any:
    if not _fits(y, d):
        return own("leaky_relu_grad")(xp, y, d, alpha=alpha)
    return _each(lambda a, b, out: _leaky_relu_grad(a, b, out, alpha), None, y, d)


# --- sigmoid, swish -----------------------------------------------------------


@exact
def _sigmoid_of(x: Any, limit: Any, one: Any) -> Any:
    """1 / (1 + exp(-x)); limit: the largest argument of exp that is finite."""
    x = -x
    x = limit if x > limit else x
    return one / (one + exp(x))


@loops
def _limits(x: Any) -> Any:
    """The largest argument of exp, and 1, as X's elements."""
    return x.dtype.type(88 if x.itemsize == 4 else 709), x.dtype.type(1)


@loops
def _sigmoid(x: Any, out: Any) -> None:
    limit, one = _limits(x)
    for i in range(len(x)):
        out[i] = _sigmoid_of(x[i], limit, one)


def sigmoid(xp: Any, x: Any, *, out: Any = None) -> Any:
    if not _fits(x):
        return own("sigmoid")(xp, x, out=out)
    return _each(_sigmoid, out, x)


@loops
def _swish(x: Any, out: Any, beta: float) -> None:
    limit, one = _limits(x)
    slope = x.dtype.type(beta)
    for i in range(len(x)):
        out[i] = x[i] * _sigmoid_of(x[i] * slope, limit, one)


def swish(xp: Any, x: Any, *, beta: float) -> Any:
    if not _fits(x):
        return own("swish")(xp, x, beta=beta)
    return _each(lambda a, out: _swish(a, out, beta), None, x)


@loops
def _swish_grad(x: Any, d: Any, out: Any, beta: float) -> None:
    limit, one = _limits(x)
    slope = x.dtype.type(beta)
    for i in range(len(x)):
        s = _sigmoid_of(x[i] * slope, limit, one)
        out[i] = d[i] * (s + slope * x[i] * s * (one - s))


def swish_grad(xp: Any, x: Any, d: Any, *, beta: float) -> Any:
    if not _fits(x, d):
        return own("swish_grad")(xp, x, d, beta=beta)
    return _each(lambda a, b, out: _swish_grad(a, b, out, beta), None, x, d)


# --- gelu ---------------------------------------------------------------------


@loops
def _gelu(x: Any, out: Any) -> None:
    for i in range(len(x)):
        v = x[i] * _SQRT_HALF
        out[i] = x[i] * _HALF * (_ONE + erf(v, exp(-v * v)))


@loops
def _gelu_grad(x: Any, d: Any, out: Any) -> None:
    for i in range(len(x)):
        v = x[i] * _SQRT_HALF
        gone = exp(-v * v)
        gate = _HALF * (_ONE + erf(v, gone))
        out[i] = d[i] * (gate + x[i] * gone * _DENSITY)


def gelu(xp: Any, x: Any, *, approximate: bool) -> Any:
    if approximate or x.dtype != np.float32 or not _fits(x):
        return own("gelu")(xp, x, approximate=approximate)
    return _each(_gelu, None, x)


def gelu_grad(xp: Any, x: Any, d: Any, *, approximate: bool) -> Any:
    if approximate or x.dtype != np.float32 or not _fits(x, d):
        return own("gelu_grad")(xp, x, d, approximate=approximate)
    return _each(_gelu_grad, None, x, d)
