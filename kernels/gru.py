"""Gated recurrent units along sequences: `gru`. Their arithmetic is `GruCell`.

Cho et al., 2014; Chung et al., 2014. Input holds, already multiplied, what goes into
update gate, reset gate and candidate. Weight (size, 3 * size) is, in memory, a matrix
(size, 2 * size) for both gates and then one (size, size) for the candidate:

    u, r      = gate(x + h W_gates + b)
    candidate = act(x_c + (r * h) W_candidate + b_c)
    h         = (1 - u) * h + u * candidate
                (origin_mode: u * h + (1 - u) * candidate)

BatchGate, BatchResetHiddenPrev and BatchHidden keep all three gates, r * h, and h for
the gradient, in the order of `Packed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .dtypes import is_floating
from .grad import grad_op
from .infer import InferContext
from .packed import (
    Packed,
    activate,
    check_activations,
    infer_grad,
    slope,
)
from .registry import op
from .schema import Attr, In, Out

__all__ = ["GruCell", "gru_size"]


def gru_size(op: InferContext) -> int:
    """The width of the state; InferError where shapes do not fit each other."""
    x, weight = op.input("Input"), op.shape("Weight")
    op.check(is_floating(x.dtype), f"Input must hold floats, got {x.dtype.name}")
    op.check(len(x.shape) == 2, f"Input must be a matrix, got shape {x.shape}")
    op.check(
        len(weight) == 2 and weight[1] == 3 * weight[0],
        f"Weight must be (size, 3 * size), got {weight}",
    )
    wide = weight[1]
    op.check(x.shape[1] in (-1, wide), f"Input is {x.shape[1]} wide, Weight {wide}")
    if op.has("Bias"):
        given = op.shape("Bias")
        op.check(given == (1, wide), f"Bias must have shape {(1, wide)}, got {given}")
    return weight[0]


def _infer(op: InferContext) -> None:
    size, x = gru_size(op), op.input("Input")
    check_activations(op, "gate_activation", "activation")
    op.set("Hidden", (x.shape[0], size), x.dtype, x.lod_level)
    op.set("BatchGate", x.shape, x.dtype)
    op.set("BatchResetHiddenPrev", (x.shape[0], size), x.dtype)
    op.set("BatchHidden", (x.shape[0], size), x.dtype)


gru = op(
    "gru",
    ins=[
        In("Input"),
        In("H0", dispensable=True),
        In("Weight"),
        In("Bias", dispensable=True),
    ],
    outs=[
        Out("BatchGate", intermediate=True),
        Out("BatchResetHiddenPrev", intermediate=True),
        Out("BatchHidden", intermediate=True),
        Out("Hidden"),
    ],
    attrs=[
        Attr("activation", str, "tanh"),
        Attr("gate_activation", str, "sigmoid"),
        Attr("is_reverse", bool, False),
        Attr("origin_mode", bool, False),
    ],
    infer=_infer,
    grad=grad_op(
        needs=[
            *("Input", "H0", "Weight", "Bias"),
            *("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"),
        ],
        of=["Hidden"],
        shape_only=["Input", "Bias", "Hidden"],
    ),
)


gru.grad_def.infer = infer_grad


@dataclass(slots=True)
class GruCell:
    """One GRU: its weights, and which functions it applies."""

    xp: Any
    weight: Any
    gate: str
    candidate: str
    origin: bool

    @property
    def size(self) -> int:
        return len(self.weight)

    def weights(self, weight: Any) -> tuple[Any, Any]:
        """Views of the gates' and the candidate's part."""
        d, flat = self.size, weight.reshape(-1)
        return flat[: 2 * d * d].reshape(d, 2 * d), flat[2 * d * d :].reshape(d, d)

    def step(self, gates: Any, reset: Any, out: Any, old: Any) -> None:
        """Activate `gates` in place; fill in reset * old and the new state."""
        xp, d = self.xp, self.size
        for_gates, for_candidate = self.weights(self.weight)
        if old is not None:
            gates[:, : 2 * d] += old @ for_gates
        activate(xp, self.gate, gates[:, : 2 * d])
        u, r, candidate = (gates[:, k * d : (k + 1) * d] for k in range(3))
        if old is None:
            reset[...] = 0
        else:
            xp.multiply(r, old, out=reset)
            candidate += reset @ for_candidate
        activate(xp, self.candidate, candidate)
        new, kept = (1 - u, u) if self.origin else (u, 1 - u)
        xp.multiply(new, candidate, out=out)
        if old is not None:
            out += kept * old

    def step_back(self, d_gates: Any, gates: Any, old: Any, d_out: Any) -> Any:
        """Fill in the gradient of the gates before activation; returns that of old."""
        xp, d = self.xp, self.size
        for_gates, for_candidate = self.weights(self.weight)
        u, r, candidate = (gates[:, k * d : (k + 1) * d] for k in range(3))
        moved = d_out * (old - candidate if self.origin else candidate - old)
        new, kept = (1 - u, u) if self.origin else (u, 1 - u)
        d_candidate = d_gates[:, 2 * d :]
        xp.multiply(d_out * new, slope(self.candidate, candidate), out=d_candidate)
        d_reset = d_candidate @ for_candidate.T
        xp.multiply(moved, slope(self.gate, u), out=d_gates[:, :d])
        xp.multiply(d_reset * old, slope(self.gate, r), out=d_gates[:, d : 2 * d])
        d_old = d_out * kept
        d_old += d_reset * r
        d_old += d_gates[:, : 2 * d] @ for_gates.T
        return d_old

    def weight_gradient(self, d_gates: Any, reset: Any, old: Any) -> Any:
        made = self.xp.empty_like(self.weight)
        for_gates, for_candidate = self.weights(made)
        d = self.size
        self.xp.matmul(old.T, d_gates[:, : 2 * d], out=for_gates)
        self.xp.matmul(reset.T, d_gates[:, 2 * d :], out=for_candidate)
        return made


@gru.kernel
def _(
    xp: Any,
    x: Any,
    h0: Any,
    weight: Any,
    bias: Any,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    lod: Any,
) -> Any:
    packed = Packed.of("gru", "Input", lod, len(x), is_reverse)
    cell = GruCell(xp, weight, gate_activation, activation, origin_mode)
    gates = x.take(xp.asarray(packed.order), axis=0)
    if bias is not None:
        gates += bias
    hidden = xp.empty((len(gates), cell.size), x.dtype)
    reset = xp.empty_like(hidden)
    old = None if h0 is None else packed.started(xp, h0)
    for step in packed.steps:
        count = step.stop - step.start
        before = None if old is None else old[:count]
        cell.step(gates[step], reset[step], hidden[step], before)
        old = hidden[step]
    return gates, reset, hidden, packed.unpacked(xp, hidden)


@gru.grad_kernel
def _(
    xp: Any,
    x: Any,
    h0: Any,
    weight: Any,
    bias: Any,
    gates: Any,
    reset: Any,
    states: Any,
    hidden: Any,
    d_hidden: Any,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    lod: Any,
) -> Any:
    packed = Packed.of("gru_grad", "Hidden@GRAD", lod, len(d_hidden), is_reverse)
    cell = GruCell(xp, weight, gate_activation, activation, origin_mode)
    old = packed.before(xp, states, h0)
    d_states = d_hidden.take(xp.asarray(packed.order), axis=0)
    d_gates, d_old = xp.empty_like(gates), None
    for step in reversed(packed.steps):
        d_out = d_states[step]
        if d_old is not None:
            d_out[: len(d_old)] += d_old
        d_old = cell.step_back(d_gates[step], gates[step], old[step], d_out)
    return (
        packed.unpacked(xp, d_gates),
        None if h0 is None else packed.initial_gradient(xp, h0, d_old),
        cell.weight_gradient(d_gates, reset, old),
        None if bias is None else d_gates.sum(axis=0, keepdims=True),
    )
