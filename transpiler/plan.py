"""The plan: parameters in order -> row blocks -> servers.

`make_plan` computes it from a program and a `Setting` alone; every pass for every
role reads it, so the roles agree by construction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fluidx.kernels import VarType

from .clipping import ClipPlan, clip_plan
from .config import Setting, TranspileError
from .facts import Facts
from .slicing import row_counts

__all__ = ["ShardPlan", "Sharded", "Slice", "make_plan"]

# These updates look at the whole parameter (its norm): cutting it changes the result.
# lars_momentum does, too, but the reference cuts it.
_WHOLE = frozenset({"lamb", "clip_by_norm"})
# So do these, unless the parts are added up across servers (a global norm).
_NORMS = frozenset({"reduce_sum", "squared_l2_norm", "l1_norm", "norm"})


@dataclass(frozen=True)
class Slice:
    """Rows of one parameter on one server.

    param: the whole. name, grad: of the slice and of its gradient (without
    trainer). row: the first.
    """

    param: str
    index: int
    name: str
    grad: str
    endpoint: str
    row: int
    shape: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class Sharded:
    """One trained parameter, its gradient and its slices.

    sparse: its gradient is SELECTED_ROWS. table: it is looked up on the servers and
    never comes whole.
    """

    name: str
    grad: str
    shape: tuple[int, ...]
    dtype: VarType
    sparse: bool
    table: bool
    slices: tuple[Slice, ...]

    @property
    def sliced(self) -> bool:
        return len(self.slices) > 1

    @property
    def sections(self) -> list[int]:
        """Rows of each slice."""
        return [s.rows for s in self.slices]

    @property
    def endpoints(self) -> list[str]:
        return [s.endpoint for s in self.slices]


@dataclass(frozen=True)
class ShardPlan:
    """Which server holds which rows of which parameter, and what they are called.

    parameters: in *parameter order*. sending: the same names in the order in which
    their slices were dealt out. update_order: in order of the ops that update them.
    counters: step counters of the learning-rate schedule. counter_start: what the
    first of them is before the first step of one process. clip: what a global norm
    over merged gradients has to exchange, if there is one.
    """

    setting: Setting
    parameters: tuple[Sharded, ...]
    sending: tuple[str, ...]
    update_order: tuple[str, ...]
    counters: tuple[str, ...]
    clip: ClipPlan | None = None
    counter_start: int = 0

    def to_text(self) -> str:
        """One line per slice: its name, shape, rows of the whole, and server."""
        lines = []
        for param in self.parameters:
            kind = " rows" if param.sparse else ""
            for piece in param.slices:
                last = piece.row + piece.rows
                lines.append(
                    f"{piece.name} {param.dtype.name}{list(piece.shape)}{kind} "
                    f"[{piece.row}:{last}] on {piece.endpoint}"
                )
        return "\n".join(lines)

    @cached_property
    def by_name(self) -> Mapping[str, Sharded]:
        return {p.name: p for p in self.parameters}

    @cached_property
    def dealt(self) -> tuple[Sharded, ...]:
        """The parameters in the order of `sending`."""
        return tuple(self.by_name[n] for n in self.sending)

    @cached_property
    def _on(self) -> Mapping[str, Mapping[str, tuple[Slice, ...]]]:
        found: dict[str, dict[str, list[Slice]]] = defaultdict(dict)
        for param in self.dealt:
            for piece in param.slices:
                found[piece.endpoint].setdefault(param.name, []).append(piece)
        return {e: {n: tuple(v) for n, v in of.items()} for e, of in found.items()}

    def on(self, endpoint: str) -> Mapping[str, tuple[Slice, ...]]:
        """parameter -> its slices on this server, in the order of `sending`."""
        self.setting.index(endpoint)
        return self._on.get(endpoint, {})

    def sent_name(self, name: str, trainer: int) -> str:
        """What trainer's part of a gradient or slice is called on the way."""
        return f"{name}.trainer_{trainer}" if self.setting.suffixed else name

    def parts(self, name: str) -> list[str]:
        """What all trainers' parts of a gradient slice are called."""
        if not self.setting.suffixed:
            return [name]
        return [self.sent_name(name, t) for t in range(self.setting.trainers)]

    def part_name(self, name: str, piece: Slice) -> str:
        """What a value computed from one slice is called, told apart from others."""
        param = self.by_name[piece.param]
        return f"{name}.block{piece.index}" if param.sliced else name

    @cached_property
    def busy(self) -> list[str]:
        """The servers that hold something, in the order of the setting."""
        return [e for e in self.setting.endpoints if e in self._on]

    @cached_property
    def _renamed(self) -> dict[int, Mapping[str, str]]:
        return {}

    def renamed(self, trainer: int) -> Mapping[str, str]:
        """Gradients that carry the trainer's number throughout its main program."""
        if not (self.setting.suffixed and self.setting.sync):
            return {}
        if trainer not in self._renamed:
            self._renamed[trainer] = {
                p.grad: self.sent_name(p.grad, trainer)
                for p in self.parameters
                if not p.sliced
            }
        return self._renamed[trainer]


@dataclass(frozen=True)
class _Piece:
    """What a dispatcher sees of a gradient slice."""

    name: str
    shape: tuple[int, ...]
    dtype: VarType


def _cut(facts: Facts, setting: Setting, name: str, grad: str) -> list[_Piece]:
    var = facts.var(name)
    if var is None or facts.var(grad) is None:
        missing = name if var is None else grad
        raise TranspileError(
            f"{facts.updates[name][0].type} updates {name} by {grad}, but the program "
            f"has no variable {missing}"
        )
    rows = [var.shape[0]]
    if setting.slice_up and not (_needs_whole(facts, name) and not setting.geo):
        rows = row_counts(var.shape, len(setting.endpoints), setting.min_block_size)
    if len(rows) == 1:
        return [_Piece(grad, var.shape, var.dtype)]
    return [
        _Piece(f"{grad}.block{i}", (n, *var.shape[1:]), var.dtype)
        for i, n in enumerate(rows)
    ]


def _needs_whole(facts: Facts, name: str) -> bool:
    kinds = _WHOLE if facts.across else _WHOLE | _NORMS
    return any(op.type in kinds for op in facts.updates[name])


def _sharded(
    facts: Facts,
    name: str,
    pieces: Sequence[_Piece],
    owners: Sequence[str],
    geo: bool,
) -> Sharded:
    var = facts.main.global_block().var(name)
    slices, row = [], 0
    for i, (piece, owner) in enumerate(zip(pieces, owners)):
        own = f"{name}.block{i}" if len(pieces) > 1 else name
        slices.append(Slice(name, i, own, piece.name, owner, row, piece.shape))
        row += piece.shape[0]
    grad = facts.gradients[name]
    tables = facts.local_tables if geo else facts.tables
    return Sharded(
        name,
        grad,
        var.shape,
        var.dtype,
        facts.is_sparse(grad),
        name in tables,
        tuple(slices),
    )


def _owners(
    setting: Setting, dispatcher: object, pieces: Sequence[_Piece]
) -> list[str]:
    owners = list(dispatcher.dispatch(pieces))  # type: ignore[attr-defined]
    if len(owners) != len(pieces):
        raise TranspileError(
            f"the dispatcher gave {len(owners)} endpoints for {len(pieces)} variables"
        )
    for owner in owners:
        setting.index(owner)
    return owners


def make_plan(facts: Facts, setting: Setting) -> ShardPlan:
    """The plan: a pure function of the program and the setting.

    Slices are dealt out in *parameter order*; without slicing the order is first
    shuffled by a generator seeded with the program's ``random_seed``, as in the
    reference. TranspileError if nothing is trained.
    """
    if not facts.gradients:
        raise TranspileError(
            "the program updates no parameter: call optimizer.minimize(loss) first"
        )
    order = list(facts.gradients)
    if not setting.slice_up:
        np.random.RandomState(facts.main.random_seed).shuffle(order)
    dispatcher = setting.dispatcher(list(setting.endpoints))
    made = {}
    for name in order:
        pieces = _cut(facts, setting, name, facts.gradients[name])
        owners = _owners(setting, dispatcher, pieces)
        made[name] = _sharded(facts, name, pieces, owners, setting.geo)
    never = set(order).difference(facts.update_order)
    if never:
        raise TranspileError(f"no op updates {sorted(never)[0]}: it has no slot Param")
    return ShardPlan(
        setting,
        tuple(made[n] for n in facts.gradients),
        tuple(order),
        tuple(n for n in facts.update_order if n in made),
        tuple(facts.counters),
        clip_plan(facts.across, facts.updates),
        _counter_start(facts),
    )


def _counter_start(facts: Facts) -> int:
    ops = facts.startup.global_block().ops
    for counter in facts.counters:
        for op in ops:
            if op.outputs.get("Out") == [counter] and "value" in op.attrs:
                return int(op.attrs["value"])
    return 0
