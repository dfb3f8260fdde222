"""Optimizer updates with a `SelectedRows` gradient, in place.

sgd, adagrad and lazy adam touch only the rows that the gradient names. momentum and
adam (not lazy) update every row, as with a dense gradient that is zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import check_ids, put_rows, subtract_rows
from .selected_rows import SelectedRows

__all__ = ["adagrad", "adam", "momentum", "sgd"]


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
    subtract_rows(xp, param, grad.rows, grad.value * rate)


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
    rows, g = merged.rows, merged.value
    velocity *= mu
    put_rows(xp, velocity, rows, velocity.take(rows, axis=0) + g)
    if nesterov:
        param -= velocity * (mu * rate)
        put_rows(xp, param, rows, param.take(rows, axis=0) - g * rate)
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
    beta1, rest1, beta2, rest2 = betas
    rows, g = merged.rows, merged.value
    param, m, v = state
    if lazy:
        p, m, v = (array.take(rows, axis=0) for array in state)
        m *= beta1
        m += g * rest1
        v *= beta2
        v += g * g * rest2
    else:
        p = param
        m *= beta1
        put_rows(xp, m, rows, m.take(rows, axis=0) + g * rest1)
        v *= beta2
        put_rows(xp, v, rows, v.take(rows, axis=0) + g * g * rest2)
    step = xp.sqrt(v)
    step += epsilon
    xp.divide(m, step, out=step)
    step *= rate
    p -= step
    if lazy:
        for array, some in zip(state, (p, m, v)):
            put_rows(xp, array, rows, some)


def adagrad(
    xp: Any, param: Any, grad: SelectedRows, moment: Any, rate: float, epsilon: float
) -> None:
    """Duplicate rows are added up first; only the rows present change."""
    merged = _checked("adagrad", param, grad).merged(xp)
    rows, g = merged.rows, merged.value
    some = moment.take(rows, axis=0)
    some += g * g
    put_rows(xp, moment, rows, some)
    step = g / (xp.sqrt(some) + epsilon)
    step *= rate
    put_rows(xp, param, rows, param.take(rows, axis=0) - step)
