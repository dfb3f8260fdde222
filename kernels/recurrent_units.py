"""One step of a recurrent network: `lstm_unit` and `gru_unit`.

Their gates come in another order than those of `lstm`: input, forget, output,
candidate. `gru_unit` is a step of `gru`.
"""

from __future__ import annotations

from typing import Any

from .dtypes import is_floating
from .grad import grad_op
from .gru import GruCell, gru_size
from .infer import InferContext
from .packed import ACTIVATIONS, activate, slope
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer_lstm_unit(op: InferContext) -> None:
    x, before = op.input("X"), op.input("C_prev")
    op.check(is_floating(x.dtype), f"X must hold floats, got {x.dtype.name}")
    op.check(
        len(x.shape) == len(before.shape) == 2,
        f"takes matrices, got X {x.shape} and C_prev {before.shape}",
    )
    op.check(
        -1 in (x.shape[1], before.shape[1]) or x.shape[1] == 4 * before.shape[1],
        f"X must be 4 times as wide as C_prev, got {x.shape} and {before.shape}",
    )
    op.set("C", like=before)
    op.set("H", like=before)


lstm_unit = op(
    "lstm_unit",
    ins=[In("X"), In("C_prev")],
    outs=[Out("C"), Out("H")],
    attrs=[Attr("forget_bias", float, 0.0)],
    infer=_infer_lstm_unit,
    grad=grad_op(needs=["X", "C_prev", "C"]),
    lod="C_prev",
)


def _unit_gates(xp: Any, x: Any, forget_bias: float) -> Any:
    """The four gates of a unit: input, forget, output, candidate."""
    d = x.shape[1] // 4
    gates = x.copy()
    gates[:, d : 2 * d] += forget_bias
    activate(xp, "sigmoid", gates[:, : 3 * d])
    activate(xp, "tanh", gates[:, 3 * d :])
    return (gates[:, k * d : (k + 1) * d] for k in range(4))


@lstm_unit.kernel
def _(xp: Any, x: Any, before: Any, *, forget_bias: float) -> Any:
    i, f, o, candidate = _unit_gates(xp, x, forget_bias)
    cell = f * before + i * candidate
    return cell, o * xp.tanh(cell)


@lstm_unit.grad_kernel
def _(
    xp: Any,
    x: Any,
    before: Any,
    cell: Any,
    d_cell: Any,
    d_hidden: Any,
    *,
    forget_bias: float,
) -> Any:
    i, f, o, candidate = _unit_gates(xp, x, forget_bias)
    shown = xp.tanh(cell)
    d_all = d_hidden * o * (1 - shown * shown) + d_cell
    parts = [
        d_all * candidate * slope("sigmoid", i),
        d_all * before * slope("sigmoid", f),
        d_hidden * shown * slope("sigmoid", o),
        d_all * i * slope("tanh", candidate),
    ]
    return xp.concatenate(parts, axis=1), d_all * f


def _infer_gru_unit(op: InferContext) -> None:
    size, x, before = gru_size(op), op.input("Input"), op.shape("HiddenPrev")
    op.check(
        len(before) == 2 and before[1] in (-1, size),
        f"HiddenPrev must be (rows, {size}), got {before}",
    )
    for attr in ("activation", "gate_activation"):
        number = op.attr(attr)
        op.check(
            0 <= number < len(ACTIVATIONS),
            f"{attr} must be 0 to 3 ({', '.join(ACTIVATIONS)}), got {number}",
        )
    op.set("Gate", (x.shape[0], 3 * size), x.dtype)
    op.set("ResetHiddenPrev", (x.shape[0], size), x.dtype)
    op.set("Hidden", (x.shape[0], size), x.dtype)


gru_unit = op(
    "gru_unit",
    ins=[
        In("Input"),
        In("HiddenPrev"),
        In("Weight"),
        In("Bias", dispensable=True),
    ],
    outs=[
        Out("Gate", intermediate=True),
        Out("ResetHiddenPrev", intermediate=True),
        Out("Hidden"),
    ],
    attrs=[
        Attr("activation", int, 2),
        Attr("gate_activation", int, 1),
        Attr("origin_mode", bool, False),
    ],
    infer=_infer_gru_unit,
    grad=grad_op(
        needs=["Input", "HiddenPrev", "Weight", "Bias", "Gate", "ResetHiddenPrev"],
        of=["Hidden"],
        shape_only=["Input", "Bias"],
    ),
)


@gru_unit.kernel
def _(
    xp: Any,
    x: Any,
    before: Any,
    weight: Any,
    bias: Any,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Any:
    functions = (ACTIVATIONS[gate_activation], ACTIVATIONS[activation])
    cell = GruCell(xp, weight, *functions, origin_mode)
    gates = x.copy() if bias is None else x + bias
    reset, out = xp.empty_like(before), xp.empty_like(before)
    cell.step(gates, reset, out, before)
    return gates, reset, out


@gru_unit.grad_kernel
def _(
    xp: Any,
    x: Any,
    before: Any,
    weight: Any,
    bias: Any,
    gates: Any,
    reset: Any,
    d_hidden: Any,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Any:
    functions = (ACTIVATIONS[gate_activation], ACTIVATIONS[activation])
    cell = GruCell(xp, weight, *functions, origin_mode)
    d_gates = xp.empty_like(gates)
    d_before = cell.step_back(d_gates, gates, before, d_hidden)
    d_bias = None if bias is None else d_gates.sum(axis=0, keepdims=True)
    return d_gates, d_before, cell.weight_gradient(d_gates, reset, before), d_bias
