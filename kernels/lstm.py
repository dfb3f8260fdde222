"""Long short-term memory along sequences: `lstm`, and `lstmp` with projection.

Hochreiter and Schmidhuber, 1997; peepholes: Gers and Schmidhuber, 2000; projection:
Sak, Senior and Beaufays, 2014. Input holds, already multiplied, what goes into the four
gates of a row, in the order candidate, input, forget, output; so do Weight and Bias,
whose end holds the peepholes of input, forget and output gate:

    candidate = act(x_c + h W_c + b_c)
    i, f      = gate(x + h W + b + c_before * peephole)
    c         = i * candidate + f * c_before
    o         = gate(x_o + h W_o + b_o + c * peephole_o)
    h         = o * cell(c)            (lstmp: h = proj(h ProjWeight))

BatchGate, BatchCellPreAct and BatchHidden keep gates, cell(c) and h for the gradient,
in the order of `Packed`. As in the reference, no gradient comes through Cell.
"""

from __future__ import annotations

from typing import Any

from .dtypes import is_floating
from .grad import grad_op
from .infer import InferContext
from .packed import Packed, activate, check_activations, infer_grad, slope
from .registry import op, takes
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer(op: InferContext) -> None:
    x, weight, bias = op.input("Input"), op.shape("Weight"), op.shape("Bias")
    op.check(is_floating(x.dtype), f"Input must hold floats, got {x.dtype.name}")
    op.check(len(x.shape) == 2, f"Input must be a matrix, got shape {x.shape}")
    op.check(
        len(weight) == 2 and weight[1] % 4 == 0,
        f"Weight must be (width, 4 * size), got {weight}",
    )
    wide = weight[1]
    op.check(x.shape[1] in (-1, wide), f"Input is {x.shape[1]} wide, Weight {wide}")
    size = wide // 4
    long = 7 * size if op.attr("use_peepholes") else wide
    op.check(bias == (1, long), f"Bias must have shape {(1, long)}, got {bias}")
    op.check(op.has("H0") == op.has("C0"), "takes both of H0 and C0, or none")
    gates = ("gate_activation", "cell_activation", "candidate_activation")
    check_activations(op, *gates)
    if op.op_type == "lstmp":
        check_activations(op, "proj_activation")
        projection = op.shape("ProjWeight")
        op.check(
            projection == (size, weight[0]),
            f"ProjWeight must have shape {(size, weight[0])}, got {projection}",
        )
        op.set("Projection", (x.shape[0], weight[0]), x.dtype, x.lod_level)
        op.set("BatchHidden", (x.shape[0], size), x.dtype)
    else:
        op.check(weight[0] == size, f"Weight must be ({size}, {wide}), got {weight}")
        op.set("Hidden", (x.shape[0], size), x.dtype, x.lod_level)
    op.set("Cell", (x.shape[0], size), x.dtype, x.lod_level)
    op.set("BatchGate", (x.shape[0], wide), x.dtype)
    op.set("BatchCellPreAct", (x.shape[0], size), x.dtype)


_GATES = (
    Attr("use_peepholes", bool, True),
    Attr("is_reverse", bool, False),
    Attr("gate_activation", str, "sigmoid"),
    Attr("cell_activation", str, "tanh"),
    Attr("candidate_activation", str, "tanh"),
)
_PROJECTED = (
    *_GATES,
    Attr("proj_activation", str, "tanh"),
    Attr("cell_clip", float, 0.0),
    Attr("proj_clip", float, 0.0),
)
_STATES = (
    In("Input"),
    In("H0", dispensable=True),
    In("C0", dispensable=True),
    In("Weight"),
)
_KEPT = (
    Out("BatchGate", intermediate=True),
    Out("BatchCellPreAct", intermediate=True),
)

lstm = op(
    "lstm",
    ins=[*_STATES, In("Bias")],
    outs=[Out("Hidden"), Out("Cell"), *_KEPT],
    attrs=_GATES,
    infer=_infer,
    grad=grad_op(
        needs=[
            *("Input", "H0", "C0", "Weight", "Bias"),
            *("Hidden", "Cell", "BatchGate", "BatchCellPreAct"),
        ],
        of=["Hidden"],
        shape_only=["Input"],
    ),
)
lstmp = op(
    "lstmp",
    ins=[*_STATES, In("ProjWeight"), In("Bias")],
    outs=[
        Out("Projection"),
        Out("Cell"),
        *_KEPT,
        Out("BatchHidden", intermediate=True),
    ],
    attrs=_PROJECTED,
    infer=_infer,
    grad=grad_op(
        needs=[
            *("H0", "C0", "Weight", "ProjWeight", "Bias"),
            *("Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"),
        ],
        of=["Projection"],
    ),
)


for _made in (lstm, lstmp):
    _made.grad_def.infer = infer_grad


class _Cell:
    """One LSTM: its weights, and which functions it applies."""

    def __init__(
        self,
        xp: Any,
        packed: Packed,
        weight: Any,
        bias: Any,
        attrs: dict[str, Any],
        projection: Any = None,
    ) -> None:
        self.xp, self.packed = xp, packed
        self.weight, self.bias, self.projection = weight, bias, projection
        self.peepholes: bool = attrs["use_peepholes"]
        self.gate: str = attrs["gate_activation"]
        self.cell: str = attrs["cell_activation"]
        self.candidate: str = attrs["candidate_activation"]
        self.cell_clip: float = attrs.get("cell_clip", 0.0)
        self.proj_clip: float = attrs.get("proj_clip", 0.0)
        # the reference applies the cell's activation to projections, whatever else
        # proj_activation says, and models were trained by it
        self.proj = attrs.get("proj_activation", "identity")
        if self.proj != "identity":
            self.proj = self.cell

    @property
    def size(self) -> int:
        return int(self.weight.shape[1]) // 4

    def peephole(self, gate: int) -> Any:
        """The weights from the cell to gate 0, 1, 2: input, forget, output."""
        start = (4 + gate) * self.size
        return self.bias[0, start : start + self.size]

    def forward(self, x: Any, h0: Any, c0: Any) -> Any:
        """gates, cells, cell(c), h, and what goes into the next step (packed rows)."""
        xp, d = self.xp, self.size
        gates = x.take(xp.asarray(self.packed.order), axis=0)
        gates += self.bias[:, : 4 * d]
        cells = xp.empty((len(gates), d), x.dtype)
        shown, hidden = xp.empty_like(cells), xp.empty_like(cells)
        passed = hidden
        if self.projection is not None:
            passed = xp.empty((len(gates), len(self.weight)), x.dtype)
        before = after = None
        if h0 is not None:
            before, after = self.packed.started(xp, h0), self.packed.started(xp, c0)
        for step in self.packed.steps:
            count = step.stop - step.start
            old_h = None if before is None else before[:count]
            old_c = None if after is None else after[:count]
            self._step(gates[step], cells[step], shown[step], old_h, old_c)
            xp.multiply(gates[step, 3 * d :], shown[step], out=hidden[step])
            if self.projection is not None:
                self._project(hidden[step], passed[step])
            before, after = passed[step], cells[step]
        return gates, cells, shown, hidden, passed

    def _step(self, gates: Any, cell: Any, shown: Any, old_h: Any, old_c: Any) -> None:
        xp, d = self.xp, self.size
        if old_h is not None:
            gates += old_h @ self.weight
        if self.peepholes and old_c is not None:
            gates[:, d : 2 * d] += old_c * self.peephole(0)
            gates[:, 2 * d : 3 * d] += old_c * self.peephole(1)
        activate(xp, self.candidate, gates[:, :d])
        activate(xp, self.gate, gates[:, d : 3 * d])
        xp.multiply(gates[:, :d], gates[:, d : 2 * d], out=cell)
        if old_c is not None:
            cell += gates[:, 2 * d : 3 * d] * old_c
        if self.cell_clip > 0:
            xp.clip(cell, -self.cell_clip, self.cell_clip, out=cell)
        if self.peepholes:
            gates[:, 3 * d :] += cell * self.peephole(2)
        activate(xp, self.gate, gates[:, 3 * d :])
        shown[...] = cell
        activate(xp, self.cell, shown)

    def _project(self, hidden: Any, out: Any) -> None:
        self.xp.matmul(hidden, self.projection, out=out)
        activate(self.xp, self.proj, out)
        if self.proj_clip > 0:
            self.xp.clip(out, -self.proj_clip, self.proj_clip, out=out)

    def backward(
        self, d_passed: Any, passed: Any, kept: Any, cells: Any, old_c: Any
    ) -> Any:
        """Packed gradients: of the gates before activation, of the projection before
        its own, and of the states before the first step.

        kept: gates, cell(c). old_c: the cell before each packed row.
        """
        xp = self.xp
        gates, shown = kept
        open_ = abs(cells) < self.cell_clip if self.cell_clip > 0 else None
        d_gates = xp.empty_like(gates)
        d_projected = xp.empty_like(d_passed) if self.projection is not None else None
        d_before = d_after = None
        for step in reversed(self.packed.steps):
            d_h = d_passed[step].copy()
            if d_before is not None:
                d_h[: len(d_before)] += d_before
            if d_projected is not None:
                d_h *= slope(self.proj, passed[step])
                if self.proj_clip > 0:
                    d_h *= abs(passed[step]) < self.proj_clip
                d_projected[step] = d_h
                d_h = d_h @ self.projection.T
            d_after = self._step_back(
                d_gates[step],
                (gates[step], shown[step], old_c[step]),
                d_h,
                d_after,
                None if open_ is None else open_[step],
            )
            d_before = d_gates[step] @ self.weight.T
        return d_gates, d_projected, d_before, d_after

    def _step_back(
        self, d_gates: Any, kept: Any, d_h: Any, d_after: Any, open_: Any
    ) -> Any:
        """Fill in d_gates; returns the gradient of the cell before.

        open_: which cells were not clipped; only those hand a gradient on.
        """
        xp, d = self.xp, self.size
        gates, shown, old_c = kept
        candidate, i, f, o = (gates[:, k * d : (k + 1) * d] for k in range(4))
        xp.multiply(d_h * shown, slope(self.gate, o), out=d_gates[:, 3 * d :])
        d_cell = d_h * o
        d_cell *= slope(self.cell, shown)
        if d_after is not None:
            d_cell[: len(d_after)] += d_after
        if self.peepholes:
            d_cell += d_gates[:, 3 * d :] * self.peephole(2)
        if open_ is not None:
            d_cell *= open_
        xp.multiply(d_cell * i, slope(self.candidate, candidate), out=d_gates[:, :d])
        xp.multiply(d_cell * candidate, slope(self.gate, i), out=d_gates[:, d : 2 * d])
        forgotten = d_gates[:, 2 * d : 3 * d]
        xp.multiply(d_cell * old_c, slope(self.gate, f), out=forgotten)
        d_cell *= f
        if self.peepholes:
            d_cell += d_gates[:, d : 2 * d] * self.peephole(0)
            d_cell += forgotten * self.peephole(1)
        return d_cell

    def bias_gradient(self, d_gates: Any, cells: Any, old_c: Any) -> Any:
        xp, d = self.xp, self.size
        parts = [d_gates.sum(axis=0)]
        if self.peepholes:
            for gate, seen in ((1, old_c), (2, old_c), (3, cells)):
                moved = d_gates[:, gate * d : (gate + 1) * d] * seen
                parts.append(moved.sum(axis=0))
        return xp.concatenate(parts)[None]


def _run(cell: _Cell, x: Any, h0: Any, c0: Any) -> Any:
    """What goes on, cells, gates, cell(c), and h; the first two in rows of x."""
    gates, cells, shown, hidden, passed = cell.forward(x, h0, c0)
    back = cell.packed.unpacked
    return back(cell.xp, passed), back(cell.xp, cells), gates, shown, hidden


def _run_back(cell: _Cell, h0: Any, c0: Any, made: Any, kept: Any, d_made: Any) -> Any:
    """Gradients of Input, H0, C0, Weight and Bias; and that of packed projections.

    made: what went on, and the cells. kept: gates and cell(c), packed.
    """
    xp, packed = cell.xp, cell.packed
    order = xp.asarray(packed.order)
    passed, cells = (m.take(order, axis=0) for m in made)
    old_c = packed.before(xp, cells, c0)
    d_gates, d_projected, d_h0, d_c0 = cell.backward(
        d_made.take(order, axis=0), passed, kept, cells, old_c
    )
    d_weight = packed.before(xp, passed, h0).T @ d_gates
    found = (
        packed.unpacked(xp, d_gates),
        None if h0 is None else packed.initial_gradient(xp, h0, d_h0),
        None if c0 is None else packed.initial_gradient(xp, c0, d_c0),
        d_weight,
        cell.bias_gradient(d_gates, cells, old_c),
    )
    return found, d_projected


@lstm.kernel
@takes(_GATES)
def _(
    xp: Any, x: Any, h0: Any, c0: Any, weight: Any, bias: Any, *, lod: Any, **attrs: Any
) -> Any:
    packed = Packed.of("lstm", "Input", lod, len(x), attrs["is_reverse"])
    return _run(_Cell(xp, packed, weight, bias, attrs), x, h0, c0)[:4]


@lstm.grad_kernel
@takes(_GATES)
def _(
    xp: Any,
    x: Any,
    h0: Any,
    c0: Any,
    weight: Any,
    bias: Any,
    hidden: Any,
    cells: Any,
    gates: Any,
    shown: Any,
    d_hidden: Any,
    *,
    lod: Any,
    **attrs: Any,
) -> Any:
    reverse = attrs["is_reverse"]
    packed = Packed.of("lstm_grad", "Hidden@GRAD", lod, len(hidden), reverse)
    cell = _Cell(xp, packed, weight, bias, attrs)
    return _run_back(cell, h0, c0, (hidden, cells), (gates, shown), d_hidden)[0]


@lstmp.kernel
@takes(_PROJECTED)
def _(
    xp: Any,
    x: Any,
    h0: Any,
    c0: Any,
    weight: Any,
    projection: Any,
    bias: Any,
    *,
    lod: Any,
    **attrs: Any,
) -> Any:
    packed = Packed.of("lstmp", "Input", lod, len(x), attrs["is_reverse"])
    return _run(_Cell(xp, packed, weight, bias, attrs, projection), x, h0, c0)


@lstmp.grad_kernel
@takes(_PROJECTED)
def _(
    xp: Any,
    h0: Any,
    c0: Any,
    weight: Any,
    projection: Any,
    bias: Any,
    passed: Any,
    cells: Any,
    gates: Any,
    shown: Any,
    hidden: Any,
    d_passed: Any,
    *,
    lod: Any,
    **attrs: Any,
) -> Any:
    reverse = attrs["is_reverse"]
    packed = Packed.of("lstmp_grad", "Projection@GRAD", lod, len(passed), reverse)
    cell = _Cell(xp, packed, weight, bias, attrs, projection)
    (d_x, d_h0, d_c0, d_weight, d_bias), d_projected = _run_back(
        cell, h0, c0, (passed, cells), (gates, shown), d_passed
    )
    return d_x, d_h0, d_c0, d_weight, hidden.T @ d_projected, d_bias
