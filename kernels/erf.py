"""The error function in array operations (numpy has none).

Coefficients: W. J. Cody, "Rational Chebyshev approximations for the error
function", Mathematics of Computation 23 (1969) 631-637.
"""

from __future__ import annotations

from typing import Any

__all__ = ["erf"]

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
    size = xp.minimum(xp.abs(x), 6.0)  # beyond, erf is 1 in float64
    square = size * size
    near = size * _polynomial(square, _P_NEAR) / _polynomial(square, _Q_NEAR)
    far = xp.exp(-square) * _polynomial(size, _P_FAR) / _polynomial(size, _Q_FAR)
    return xp.copysign(xp.where(size < 0.5, near, 1.0 - far), x)
