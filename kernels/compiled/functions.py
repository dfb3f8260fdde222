"""exp and others as arithmetic that LLVM turns into vector instructions.

LLVM calls the C library for them, one number at a time: 3 to 10 ns each, against 0.3
here. Their users are compiled with these inlined, and numba keeps results by the file
they stand in: after a change here remove ``__pycache__``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from fluidx.kernels.erf import ABOVE, BELOW, LARGEST, NEAR
from fluidx.kernels.registry import declared

from .vectors import JIT

__all__ = ["above", "erf", "exact", "exp", "from_order", "in_order", "loops", "own"]

# as `vectors.JIT`, but in the order that stands there: rounding to whole numbers by
# adding and subtracting a large one must not be undone
EXACT: dict[str, Any] = {
    "fastmath": {"contract"},
    "forceinline": True,
    "error_model": "numpy",
}
#: divisions by zero give infinity or NaN, not an error that LLVM would have to foresee
LOOPS: dict[str, Any] = {**JIT, "error_model": "numpy"}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def loops(function: _Function) -> _Function:
    """Decorator: compiled with `LOOPS`."""
    return njit(**LOOPS)(function)  # type: ignore[no-any-return]


def exact(function: _Function) -> _Function:
    """Decorator: compiled with `EXACT`, into those that call it."""
    return njit(**EXACT)(function)  # type: ignore[no-any-return]


def _inside(function: Callable[..., Any]) -> Any:
    """Decorator: the function writes LLVM's instructions for a call of it."""
    return intrinsic(function)


def own(type: str) -> Callable[..., Any]:
    """The op's own kernel, for what its compiled one hands on."""
    run = declared(type).run
    assert run is not None
    return run


_INTEGERS: dict[Any, Any] = {types.float32: types.int32, types.float64: types.int64}
_FLOATS: dict[Any, Any] = {v: k for k, v in _INTEGERS.items()}
_LLVM = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
_LLVM |= {types.int32: ir.IntType(32), types.int64: ir.IntType(64)}


@_inside
def _scaled(typing: Any, y: Any, shifted: Any) -> Any:
    """y * 2^n, n being the last bits of `shifted`."""
    width, bias, shift = (32, 127, 23) if y == types.float32 else (64, 1023, 52)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = ir.IntType(width)
        n = builder.bitcast(args[1], whole)
        n = builder.shl(builder.add(n, whole(bias)), whole(shift))
        return builder.fmul(args[0], builder.bitcast(n, _LLVM[y]))

    return y(y, shifted), generate


@_inside
def in_order(typing: Any, x: Any) -> Any:
    """An integer for a float, in the same order; NaN at an end. (LLVM finds the
    largest of integers in vectors, of floats only where there is no NaN.)"""
    result = _INTEGERS[x]

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _flipped(builder, builder.bitcast(args[0], _LLVM[result]))

    return result(x), generate


def _flipped(builder: Any, bits: Any) -> Any:
    """Negative floats have their bits in the opposite order."""
    kind = bits.type
    sign = builder.ashr(bits, kind(kind.width - 1))
    return builder.xor(bits, builder.and_(sign, kind((1 << (kind.width - 1)) - 1)))


@_inside
def from_order(typing: Any, number: Any) -> Any:
    """The float of an integer from `in_order`."""
    result = _FLOATS[number]

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(_flipped(builder, args[0]), _LLVM[result])

    return result(number), generate


@_inside
def above(typing: Any, a: Any, b: Any) -> Any:
    """The larger of two integers of one type, in that type."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.icmp_signed(">", *args), *args)

    return a(a, a), generate


def exp(x: Any) -> Any:
    """e^x within 2 units in the last place, for x up to 88 (709 in float64).

    What would be smaller than the smallest normal number is 0; NaN stays NaN.
    """
    raise NotImplementedError("only inside compiled functions")


# a float's last bit is worth 1 there; log(2) in two parts, of which the first has
# zeros at its end, so that whole multiples of it are exact
_SHIFT32, _HIGH32 = np.float32(1.5 * 2**23), np.float32(0.693359375)
_LOW32 = np.float32(math.log(2) - 0.693359375)
_SHIFT64 = 1.5 * 2.0**52
_HIGH64 = float.fromhex("0x1.62e42feep-1")
_LOW64 = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2E = 1 / math.log(2)
_LOG2E32 = np.float32(_LOG2E)
# 1 / k!
_T = [1 / math.factorial(k) for k in range(14)]
_S = [np.float32(t) for t in _T[:8]]
_T2, _T3, _T4, _T5, _T6, _T7, _T8, _T9, _T10, _T11, _T12, _T13 = _T[2:]
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7 = _S
_NONE32, _LOWEST32 = np.float32(0), np.float32(-87.33654)


@overload(exp, jit_options=cast(Any, EXACT), inline="never")
def _exp(x: Any) -> Any:
    """The Taylor series around whole multiples of log(2)."""

    def single(x: Any) -> Any:
        t = x * _LOG2E32 + _SHIFT32
        n = t - _SHIFT32
        r = x - n * _HIGH32
        r = r - n * _LOW32
        p = _S7 * r + _S6
        p = p * r + _S5
        p = p * r + _S4
        p = p * r + _S3
        p = p * r + _S2
        p = p * r + _S1
        p = p * r + _S0
        return _NONE32 if x < _LOWEST32 else _scaled(p, t)

    def double(x: Any) -> Any:
        t = x * _LOG2E + _SHIFT64
        n = t - _SHIFT64
        r = x - n * _HIGH64
        r = r - n * _LOW64
        p = _T13 * r + _T12
        p = p * r + _T11
        p = p * r + _T10
        p = p * r + _T9
        p = p * r + _T8
        p = p * r + _T7
        p = p * r + _T6
        p = p * r + _T5
        p = p * r + _T4
        p = p * r + _T3
        p = p * r + _T2
        p = p * r + 1.0
        p = p * r + 1.0
        return 0.0 if x < -708.3964 else _scaled(p, t)

    return single if x == types.float32 else double


# as float32, so that nothing around them becomes float64
_NEAR, _ABOVE, _BELOW = (
    tuple(np.float32(v) for v in part) for part in (NEAR, ABOVE, BELOW)
)
_LARGEST, _ONE = np.float32(LARGEST), np.float32(1)


@exact
def erf(x: Any, gone: Any) -> Any:
    """The error function of a float32, as `erf` in the parent package; gone: e^-x^2."""
    size = abs(x)
    square = size * size
    near = _NEAR[6] * square + _NEAR[5]
    near = near * square + _NEAR[4]
    near = near * square + _NEAR[3]
    near = near * square + _NEAR[2]
    near = near * square + _NEAR[1]
    near = near * square + _NEAR[0]
    size = _LARGEST if size > _LARGEST else size
    above = (_ABOVE[2] * size + _ABOVE[1]) * size + _ABOVE[0]
    below = (_BELOW[2] * size + _BELOW[1]) * size + _BELOW[0]
    far = _ONE - gone * above / below
    far = -far if x < 0 else far
    return far if abs(x) > _ONE else x * near
