"""The error function in array operations (numpy has none).

In float64 with the coefficients of W. J. Cody, "Rational Chebyshev approximations for
the error function", Mathematics of Computation 23 (1969) 631-637; in float32 with
shorter ones, fitted for it.
"""

from __future__ import annotations

from typing import Any

from .arrays import beside, blocks
from .scratch import scratch

__all__ = ["ABOVE", "BELOW", "LARGEST", "NEAR", "erf"]

#: from here on erf is 1, in float64 too
LARGEST = 6.0
#: float32, lowest power first: x NEAR(x^2) up to 1, relative error 1.2e-9
NEAR = (
    1.1283791657308662,
    -3.761262583552101e-1,
    1.1283585236485288e-1,
    -2.6853814876405452e-2,
    5.188332483246086e-3,
    -8.010231260889566e-4,
    7.853975075683417e-5,
)
#: beyond: 1 - exp(-x^2) ABOVE(x) / BELOW(x), absolute error 1.2e-8
ABOVE = (9.935070940783156e-1, 4.132687545681697e-1, 3.3450898805415276e-3)
BELOW = (1.0, 1.5063813963996244, 7.915026147501693e-1)

# numerator and denominator in x^2 up to |x| = 0.5, highest power first
_P_NEAR = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_Q_NEAR = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
# of exp(x^2) erfc(x) in x beyond
_P_FAR = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_Q_FAR = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    total = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total *= x
        total += c
    return total


def erf(xp: Any, x: Any) -> Any:
    """The error function of a floating array; absolute error a few ulps of 1."""
    if x.itemsize == 2:  # the coefficients are beyond float16's range
        return erf(xp, x.astype("float32")).astype(x.dtype)
    flat, out = x.reshape(-1), xp.empty(x.size, x.dtype)
    part = _single if x.itemsize == 4 else _double
    for b in blocks(xp, x.size):
        part(xp, flat[b], out[b])
    return out.reshape(x.shape)


def _double(xp: Any, x: Any, out: Any) -> None:
    size = xp.minimum(xp.abs(x), LARGEST)
    square = size * size
    near = size * _polynomial(square, _P_NEAR) / _polynomial(square, _Q_NEAR)
    far = xp.exp(-square) * _polynomial(size, _P_FAR) / _polynomial(size, _Q_FAR)
    _join(xp, x, size < 0.5, near, far, out)


def _join(xp: Any, x: Any, inside: Any, near: Any, far: Any, out: Any) -> None:
    """near where inside, else 1 - far, with X's sign. Products with the truth values
    take numpy a fifth of the time of `where`."""
    near *= inside
    xp.subtract(1.0, far, out=far)
    far *= xp.logical_not(inside, out=inside)
    near += far
    xp.copysign(near, x, out=out)


def _single(xp: Any, x: Any, out: Any) -> None:
    size, square, near, far = scratch(xp, "erf", (4, x.size), x.dtype)
    xp.abs(x, out=size)
    xp.minimum(size, beside(xp, LARGEST, x), out=size)
    xp.multiply(size, size, out=square)
    _horner(xp, square, NEAR, near)
    near *= size
    _horner(xp, size, ABOVE, far)
    below = _horner(xp, size, BELOW, out)
    far /= below
    xp.negative(square, out=square)
    far *= xp.exp(square, out=square)
    _join(xp, x, size < 1.0, near, far, out)


def _horner(xp: Any, x: Any, factors: tuple[float, ...], out: Any) -> Any:
    """A polynomial, factors lowest power first."""
    xp.multiply(x, factors[-1], out=out)
    for factor in factors[-2:0:-1]:
        out += factor
        out *= x
    out += factors[0]
    return out
