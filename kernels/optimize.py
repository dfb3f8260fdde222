"""Optimizer updates: sgd, momentum, adam, adagrad; dense here, sparse beside.

Parameters and state are updated in place and returned. Consecutive updates of one
kind run as one batch: rates are read once, and each array is walked in pieces that
stay in cache, with one scratch buffer per thread and no temporaries.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from . import optimize_sparse as sparse
from .dtypes import VarType
from .infer import InferContext
from .registry import Call, OpDef, batch_kernel, op
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows
from .threads import share

__all__ = ["Rates", "adam_update", "momentum_update", "sgd_update", "walk"]

# elements per piece: with four arrays of float32 beside the scratch, 2.6 MB
_PIECE = 1 << 17

_local = threading.local()

# how a step goes over arrays: `walk`, or what stands in for it
Walk = Callable[..., None]


def _scratch(xp: Any, like: Any) -> Any:
    """An array like `like` with any content, the same one each time on a CPU."""
    if xp is not np:
        return xp.empty(like.shape, like.dtype)
    views: dict[Any, Any] | None = getattr(_local, "views", None)
    if views is None or len(views) > 4096:
        views = _local.views = {}
    key = like.dtype.char, like.shape
    found = views.get(key)
    if found is None:
        base = views.get(like.dtype.char)
        if base is None:
            base = views[like.dtype.char] = np.empty(_PIECE, like.dtype)
        if like.size > _PIECE:
            return np.empty(like.shape, like.dtype)
        found = views[key] = base[: like.size].reshape(like.shape)
    return found


def _pieces(xp: Any, arrays: Sequence[Any]) -> Any:
    """The arrays themselves, or where they are long, short stretches of them."""
    first = arrays[0]
    if first.size <= _PIECE or xp is not np:
        return (arrays,)
    if not all(a.flags.c_contiguous for a in arrays):
        return (arrays,)
    flat = [a.reshape(-1) for a in arrays]
    # equal pieces, so that no short one is left over at the end
    count = -(-first.size // _PIECE)
    step = -(-first.size // count)
    return [[a[i : i + step] for a in flat] for i in range(0, first.size, step)]


def walk(
    xp: Any, arrays: Sequence[Any], step: Callable[..., Any], *numbers: Any
) -> None:
    """step(xp, pieces, scratch, *numbers) along arrays of one shape, in place.

    numbers: Python floats; they come as the arrays' element type. Long arrays are
    walked by several threads at once.
    """
    like = arrays[0]
    given = [_number(xp, n, like) for n in numbers]
    pieces = _pieces(xp, arrays)

    def some(begin: int, end: int) -> None:
        for piece in pieces[begin:end]:
            step(xp, piece, _scratch(xp, piece[0]), *given)

    if len(pieces) == 1:
        some(0, 1)
    else:
        share(len(pieces), like.size * len(arrays), some)


@lru_cache(maxsize=256)
def _scalar(value: float, char: str) -> Any:
    """A 0-d array: numpy's ufuncs take one faster than a Python number."""
    made = np.array(value, char)
    made.flags.writeable = False
    return made


def _number(xp: Any, value: float, like: Any) -> Any:
    return _scalar(value, like.dtype.char) if xp is np else value


@lru_cache(maxsize=256)
def as_float32(value: float) -> float:
    """An attribute as the reference stores it: rounded to float32."""
    return float(np.float32(value))


class Rates:
    """Learning rates of a batch, each array read once."""

    def __init__(self) -> None:
        self._array: Any = None
        self._value = 0.0

    def __call__(self, array: Any) -> float:
        if array is not self._array:
            self._array, self._value = array, float(array.reshape(-1)[0])
        return self._value


Update = Callable[[Any, Sequence[Any], dict[str, Any], Any], tuple[Any, ...]]


def _batched(made: OpDef, update: Update) -> None:
    """Give an op its kernel, and its group a batch kernel, from one function.

    update(xp, inputs, attrs, rates) -> outputs in slot order.
    """
    attrs = tuple(made.attrs)

    def one(xp: Any, *inputs: Any, **given: Any) -> Any:
        outs = update(xp, inputs, given, Rates())
        return outs if len(made.outs) > 1 else outs[0]

    one.__signature__ = _signature(attrs)  # type: ignore[attr-defined]
    made.kernel(one)

    def many(xp: Any, ctx: Any, calls: list[Call]) -> list[tuple[Any, ...]]:
        rates = Rates()
        return [update(xp, call.inputs, call.attrs, rates) for call in calls]

    batch_kernel(made.type)(many)


def _signature(attrs: Sequence[str]) -> Any:
    import inspect

    kind = inspect.Parameter
    named = [kind("xp", kind.POSITIONAL_ONLY), kind("inputs", kind.VAR_POSITIONAL)]
    return inspect.Signature([*named, *(kind(a, kind.KEYWORD_ONLY) for a in attrs)])


def _infer_update(op: InferContext) -> None:
    """Every output looks like the input that it replaces."""
    param, grad = op.input("Param"), op.input("Grad")
    alike = len(grad.shape) == len(param.shape) and all(
        p == g or -1 in (p, g) for p, g in zip(param.shape, grad.shape)
    )
    op.check(
        alike or grad.kind is VarType.SELECTED_ROWS,
        f"Param has shape {param.shape}, Grad {grad.shape}",
    )
    for slot in op.out_counts:
        op.set(slot, like=op.input(slot[: -len("Out")]))


def _declare(
    name: str, ins: Sequence[In], states: Sequence[str], attrs: Sequence[Attr] = ()
) -> OpDef:
    return op(
        name,
        ins=ins,
        outs=[Out(s + "Out") for s in states],
        attrs=attrs,
        infer=_infer_update,
        grad=None,
        inplace={s + "Out": s for s in states},
        lod=None,
        batch=name,
    )


# --- sgd ----------------------------------------------------------------------

sgd = _declare("sgd", [In("Param"), In("LearningRate"), In("Grad")], ["Param"])


def _sgd_step(xp: Any, arrays: Sequence[Any], t: Any, rate: Any) -> None:
    p, g = arrays
    xp.multiply(g, rate, t)
    xp.subtract(p, t, p)


def sgd_update(
    xp: Any, inputs: Sequence[Any], attrs: Any, rates: Any, by: Walk = walk
) -> tuple[Any, ...]:
    """param -= rate * grad."""
    param, rate, grad = inputs
    value = rates(rate)
    if isinstance(grad, SelectedRows):
        sparse.sgd(xp, param, grad, value)
    else:
        by(xp, (param, grad), _sgd_step, value)
    return (param,)


_batched(sgd, sgd_update)

# --- momentum -----------------------------------------------------------------

momentum = _declare(
    "momentum",
    [In("Param"), In("Grad"), In("Velocity"), In("LearningRate")],
    ["Param", "Velocity"],
    [Attr("mu", float), Attr("use_nesterov", bool, False)],
)


def _momentum_step(xp: Any, arrays: Sequence[Any], t: Any, rate: Any, mu: Any) -> None:
    p, g, v = arrays
    xp.multiply(v, mu, v)
    xp.add(v, g, v)
    xp.multiply(v, rate, t)
    xp.subtract(p, t, p)


def _nesterov_step(xp: Any, arrays: Sequence[Any], t: Any, rate: Any, mu: Any) -> None:
    p, g, v = arrays
    xp.multiply(v, mu, v)
    xp.add(v, g, v)
    xp.multiply(v, mu, t)
    xp.add(t, g, t)
    xp.multiply(t, rate, t)
    xp.subtract(p, t, p)


def momentum_update(
    xp: Any, inputs: Sequence[Any], attrs: Any, rates: Any, by: Walk = walk
) -> tuple[Any, ...]:
    """velocity = mu * velocity + grad; param -= rate * velocity.

    Nesterov: param -= rate * (grad + mu * velocity).
    """
    param, grad, velocity, rate = inputs
    value, mu = rates(rate), as_float32(attrs["mu"])
    nesterov = attrs["use_nesterov"]
    if isinstance(grad, SelectedRows):
        sparse.momentum(xp, param, grad, velocity, value, mu, nesterov)
    else:
        step = _nesterov_step if nesterov else _momentum_step
        by(xp, (param, grad, velocity), step, value, mu)
    return param, velocity


_batched(momentum, momentum_update)

# --- adam ---------------------------------------------------------------------

adam = _declare(
    "adam",
    [
        In("Param"),
        In("Grad"),
        In("LearningRate"),
        In("Moment1"),
        In("Moment2"),
        In("Beta1Pow"),
        In("Beta2Pow"),
        In("Beta1Tensor", dispensable=True),
        In("Beta2Tensor", dispensable=True),
    ],
    ["Param", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow"],
    [
        Attr("beta1", float, 0.9),
        Attr("beta2", float, 0.999),
        Attr("epsilon", float, 1e-8),
        Attr("lazy_mode", bool, False),
        Attr("min_row_size_to_use_multithread", AttrType.LONG, 1000),
    ],
)


def _adam_step(
    xp: Any,
    arrays: Sequence[Any],
    t: Any,
    rate: Any,
    epsilon: Any,
    beta1: Any,
    rest1: Any,
    beta2: Any,
    rest2: Any,
) -> None:
    p, g, m, v = arrays
    xp.multiply(m, beta1, m)
    xp.multiply(g, rest1, t)
    xp.add(m, t, m)
    xp.multiply(v, beta2, v)
    xp.multiply(g, g, t)
    xp.multiply(t, rest2, t)
    xp.add(v, t, v)
    xp.sqrt(v, t)
    xp.add(t, epsilon, t)
    xp.divide(m, t, t)
    xp.multiply(t, rate, t)
    xp.subtract(p, t, p)


def adam_update(
    xp: Any, inputs: Sequence[Any], attrs: Any, rates: Any, by: Walk = walk
) -> tuple[Any, ...]:
    """Adam (Kingma and Ba, 2015, section 2: epsilon beside the uncorrected root)."""
    param, grad, rate, m, v, pow1, pow2, given1, given2 = inputs
    beta1 = as_float32(attrs["beta1"]) if given1 is None else rates(given1)
    beta2 = as_float32(attrs["beta2"]) if given2 is None else rates(given2)
    betas = beta1, 1 - beta1, beta2, 1 - beta2
    now1, now2 = pow1.item(), pow2.item()
    pow1.fill(now1 * beta1)
    pow2.fill(now2 * beta2)
    value, epsilon = rates(rate), attrs["epsilon"]
    if isinstance(grad, SelectedRows):
        # as the reference: powers first, so the correction is one step ahead
        value *= math.sqrt(1 - pow2.item()) / (1 - pow1.item())
        lazy = attrs["lazy_mode"]
        sparse.adam(xp, (param, m, v), grad, value, betas, epsilon, lazy)
        return param, m, v, pow1, pow2
    value *= math.sqrt(1 - now2) / (1 - now1)
    by(xp, (param, grad, m, v), _adam_step, value, epsilon, *betas)
    return param, m, v, pow1, pow2


_batched(adam, adam_update)

# --- adagrad ------------------------------------------------------------------

adagrad = _declare(
    "adagrad",
    [In("Param"), In("Grad"), In("Moment"), In("LearningRate")],
    ["Param", "Moment"],
    [Attr("epsilon", float, 1e-6)],
)


def _adagrad_step(
    xp: Any, arrays: Sequence[Any], t: Any, rate: Any, epsilon: Any
) -> None:
    p, g, m = arrays
    xp.multiply(g, g, t)
    xp.add(m, t, m)
    xp.sqrt(m, t)
    xp.add(t, epsilon, t)
    xp.divide(g, t, t)
    xp.multiply(t, rate, t)
    xp.subtract(p, t, p)


def _adagrad(xp: Any, inputs: Sequence[Any], attrs: Any, rates: Any) -> tuple[Any, ...]:
    """moment += grad ** 2; param -= rate * grad / (sqrt(moment) + epsilon)."""
    param, grad, moment, rate = inputs
    value, epsilon = rates(rate), attrs["epsilon"]
    if isinstance(grad, SelectedRows):
        sparse.adagrad(xp, param, grad, moment, value, epsilon)
        return param, moment
    walk(xp, (param, grad, moment), _adagrad_step, value, epsilon)
    return param, moment


_batched(adagrad, _adagrad)
