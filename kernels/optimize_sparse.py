"""Optimizer updates with a `SelectedRows` gradient, in place.

sgd, adagrad and lazy adam touch only the rows that the gradient names. momentum and
adam (not lazy) update every row, as with a dense gradient that is zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .indexing import check_ids, flat_places
from .selected_rows import SelectedRows

__all__ = ["adagrad", "adam", "momentum", "sgd"]


def _subtract_rows(xp: Any, param: Any, rows: Any, values: Any) -> None:
    """param[rows] -= values, where a row may appear several times."""
    if param.flags.c_contiguous:
        places = flat_places(xp, rows, param.size // param.shape[0])
        xp.subtract.at(param.reshape(-1), places, values.reshape(-1))
    else:
        xp.subtract.at(param, rows, values)


def _checked(name: str, param: Any, grad: SelectedRows) -> SelectedRows:
    if grad.value.shape[1:] != param.shape[1:]:
        raise ValueError(
            f"{name}: rows of shape {tuple(grad.value.shape[1:])} for a parameter of "
            f"shape {tuple(param.shape)}"
        )
    check_ids(name, "row", grad.rows, param.shape[0])
    return grad


def sgd(xp: Any, param: Any, grad: SelectedRows, rate: float) -> None:
    """param[rows] -= rate * value."""
    _checked("sgd", param, grad)
    _subtract_rows(xp, param, grad.rows, grad.value * rate)


def momentum(
    xp: Any,
    param: Any,
    grad: SelectedRows,
    velocity: Any,
    rate: float,
    mu: float,
    nesterov: bool,
) -> None:
    """Every row's velocity decays and moves its parameters.

    All rows of the gradient count, in any order (the reference's kernel loses some
    where they are distinct but unsorted).
    """
    merged = _checked("momentum", param, grad).merged(xp)
    velocity *= mu
    velocity[merged.rows] += merged.value
    if nesterov:
        param -= velocity * (mu * rate)
        param[merged.rows] -= merged.value * rate
    else:
        param -= velocity * rate


def adam(
    xp: Any,
    state: Sequence[Any],
    grad: SelectedRows,
    rate: float,
    betas: Sequence[float],
    epsilon: float,
    lazy: bool,
) -> None:
    """Adam on all rows, or (lazy) on those of the gradient; state: param, moments."""
    merged = _checked("adam", state[0], grad).merged(xp)
    param, m, v = state
    beta1, rest1, beta2, rest2 = betas
    rows, g = merged.rows, merged.value
    if lazy:
        some_m = m[rows] * beta1 + g * rest1
        some_v = v[rows] * beta2 + g * g * rest2
        m[rows], v[rows] = some_m, some_v
        param[rows] -= some_m / (xp.sqrt(some_v) + epsilon) * rate
        return
    m *= beta1
    m[rows] += g * rest1
    v *= beta2
    v[rows] += g * g * rest2
    step = xp.sqrt(v)
    step += epsilon
    xp.divide(m, step, out=step)
    step *= rate
    param -= step


def adagrad(
    xp: Any, param: Any, grad: SelectedRows, moment: Any, rate: float, epsilon: float
) -> None:
    """Duplicate rows are added up first; only the rows present change."""
    merged = _checked("adagrad", param, grad).merged(xp)
    rows, g = merged.rows, merged.value
    some = moment[rows] + g * g
    moment[rows] = some
    param[rows] -= g / (xp.sqrt(some) + epsilon) * rate
