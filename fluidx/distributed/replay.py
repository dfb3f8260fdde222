"""Runs the programs of all roles in one process and remembers what they computed.

`Local` is the program as its author wrote it, on the batches of all trainers together;
`Cluster` are its roles on the same batches. Both begin with the same parameters.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fluidx.executor import BuildStrategy, CompiledProgram, Executor
from fluidx.ir import Program
from fluidx.kernels import SelectedRows, VarType
from fluidx.tensor import LoDTensor, Scope
from fluidx.transpiler import Distributed, DistributedMode, Facts, Slice
from fluidx.transpiler.pserver import local_names

from .inprocess import InProcessCluster, sleep

__all__ = ["Cluster", "Feeds", "Local", "Part", "State", "Values", "feeds_of", "whole"]

Values = dict[str, Any]
#: step -> trainer -> feed
Feeds = Sequence[Sequence[Mapping[str, Any]]]
FeedFn = Callable[[int, int, int], Mapping[str, Any]]


def feeds_of(feed_fn: FeedFn, steps: int, trainers: int) -> Feeds:
    """What every trainer is fed in every step, made beforehand."""
    return [
        [dict(feed_fn(step, t, trainers)) for t in range(trainers)]
        for step in range(steps)
    ]


def joined(feeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The trainers' batches behind one another."""
    return {name: _behind([f[name] for f in feeds]) for name in feeds[0]}


def _behind(parts: Sequence[Any]) -> Any:
    arrays = [np.asarray(p) for p in parts]
    if not any(isinstance(p, LoDTensor) for p in parts):
        return np.concatenate(arrays)
    lengths = [p.recursive_sequence_lengths() for p in parts]
    levels = [[n for part in level for n in part] for level in zip(*lengths)]
    made = LoDTensor(np.concatenate(arrays))
    made.set_recursive_sequence_lengths(levels)
    return made


def _held(scope: Scope, names: Sequence[str]) -> Values:
    """Copies of the values that a scope has under these names."""
    found = {}
    for name in names:
        holder = scope.find_var(name)
        if holder is not None and holder.value is not None:
            found[name] = dense(holder.value).copy()
    return found


def dense(value: Any) -> Any:
    """Any value as a numpy array."""
    if isinstance(value, LoDTensor):
        value = value.value
    if isinstance(value, SelectedRows):
        return np.asarray(value.to_dense())
    return np.asarray(value)


def intermediates(program: Program) -> list[str]:
    """Variables of the main block that one step computes and forgets."""
    block = program.global_block()
    found: dict[str, None] = {}
    for op in block.ops:
        for name in op.output_arg_names:
            var = block.vars.get(name)
            if var is None or var.persistable or op.type in ("send", "recv"):
                continue
            whole = var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
            if whole and var.dtype != VarType.BOOL:
                found.setdefault(name)
    return list(found)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # more servers than there is work for is what the user asked for
        warnings.filterwarnings("ignore", "pserver .* has nothing to update")
        yield


class Local:
    """One process. states[k]: persistable values before step k; the last: the end.

    watch: a step of which all intermediate values are kept, in `seen`.
    """

    def __init__(self, made: Distributed, feeds: Feeds, watch: int = -1) -> None:
        main, startup = made.main, made.startup
        names = [v.name for v in main.list_vars() if v.persistable]
        scope, exe = Scope(), Executor()
        exe.run(startup, scope=scope)
        self.parameters = [p.name for p in main.all_parameters()]
        self.states = [_held(scope, names)]
        self.seen: Values = {}
        for step, parts in enumerate(feeds):
            wanted = intermediates(main) if step == watch else []
            got = exe.run(
                main,
                feed=joined(parts),
                fetch_list=wanted,
                scope=scope,
                return_numpy=False,
            )
            self.seen.update((n, dense(v)) for n, v in zip(wanted, got))
            self.states.append(_held(scope, names))


class _Piece(NamedTuple):
    """Where a part of a local variable is: a role's name for rows of it, from `row` on.

    row None: a copy of the whole.
    """

    role: str
    name: str
    row: int | None


class Part(NamedTuple):
    """The same, with the value that was there."""

    role: str
    name: str
    row: int | None
    value: Any


State = dict[str, list[Part]]


def whole(parts: Sequence[Part]) -> Any:
    """A variable put together from the rows that roles hold."""
    if parts[0].row is None:
        return parts[0].value
    return np.concatenate([p.value for p in sorted(parts, key=lambda p: p.row or 0)])


@dataclass
class Cluster:
    """All roles of a set, once.

    states[k]: values by local name as the servers (or trainer 0) hold them before step
    k; only kept where roles go in step. trainers[t]: the same of the parameters that
    trainer t has. final: values at the end. merged: gradients of the watched step as
    the servers have put them together. seen[t]: as of `Local`.
    """

    made: Distributed
    feeds: Feeds
    start: Values
    hub: InProcessCluster
    watch: int = -1
    states: list[State] = field(default_factory=list)
    trainers: dict[int, list[Values]] = field(default_factory=dict)
    merged: State = field(default_factory=dict)
    seen: dict[int, Values] = field(default_factory=dict)
    training: set[str] = field(default_factory=set)
    final: State = field(default_factory=dict)

    def run(self) -> Cluster:
        """Run to the end; ClusterFailure if a role fails."""
        self.scopes = {role: Scope() for role in self.made.programs}
        self.places: dict[str, list[_Piece]] = {}
        for name, pieces in self._places():
            known = self.places.setdefault(name, [])
            known += [p for p in pieces if p not in known]
        roles: dict[str, Callable[[], Any]] = {}
        for role in self.made.servers:
            roles[role] = partial(self._serve, role)
        for number, role in enumerate(self.made.trainers):
            roles[role] = partial(self._train, role, number)
        with _quiet():
            self.hub.run(roles)
        self.final = self._state()
        return self

    @property
    def in_step(self) -> bool:
        """Whether all roles have the same values after each step, as one process."""
        plan = self.made.plan
        if plan is None:
            return self.made.config.collective_mode != "local_sgd"
        return plan.setting.distributed_mode == DistributedMode.SYNC

    # ------------------------------------------------ roles

    def _serve(self, role: str) -> None:
        both, scope, exe = self.made.programs[role], self.scopes[role], Executor()
        exe.run(both["startup"], scope=scope)
        for name, pieces in self.places.items():
            if name in self.start:
                self._give(name, [p for p in pieces if p.role == role])
        exe.run(both["main"], scope=scope)

    def _give(self, name: str, pieces: Sequence[_Piece]) -> None:
        """The local run's first value of a parameter, or of rows of it."""
        for piece in pieces:
            holder = self.scopes[piece.role].find_var(piece.name)
            if holder is None or holder.value is None:
                continue
            value, rows = self.start[name], np.asarray(holder.value).shape[0]
            low = piece.row or 0
            part = value if piece.row is None else value[low : low + rows]
            if part.shape == np.asarray(holder.value).shape:
                holder.value = part.copy()

    def _train(self, role: str, number: int) -> None:
        both, scope, exe = self.made.programs[role], self.scopes[role], Executor()
        exe.run(both["startup"], scope=scope)
        plan = self.made.plan
        apart = {p.name for p in plan.parameters if p.table} if plan else set()
        for name, value in self.start.items():
            holder = scope.find_var(name)
            if holder is not None and name not in apart:
                holder.value = value.copy()
        own = [n for n in self.start if n not in apart]
        mine = self.trainers[number] = [_held(scope, own)]
        if number == 0:
            self.states.append(self._state())
        main: Any = self._compiled(both["main"], number)
        if not self.in_step:
            self.training.add(role)
            sleep(1e-9)  # until the others are ready, too: who begins is a choice
        for step, parts in enumerate(self.feeds):
            last = step == len(self.feeds) - 1
            wanted = intermediates(both["main"]) if step == self.watch else []
            got = exe.run(
                main,
                feed=parts[number],
                fetch_list=wanted,
                scope=scope,
                return_numpy=False,
            )
            if wanted:
                self.seen[number] = {n: dense(v) for n, v in zip(wanted, got)}
            if self.in_step or last:
                mine.append(_held(scope, own))
            if number == 0 and self.in_step:
                self.states.append(self._state())
                if step == self.watch:
                    self.merged = self._merged()
        self.training.discard(role)
        exe.close()

    def _compiled(self, main: Program, number: int) -> Any:
        if self.made.config.mode != "nccl2":
            return main
        strategy = BuildStrategy()
        strategy.trainer_id = number
        return CompiledProgram(main, build_strategy=strategy).with_data_parallel()

    # ------------------------------------------------ what is where

    def _places(self) -> Iterator[tuple[str, list[_Piece]]]:
        """Local variable -> where its parts are; parameters and what updates need."""
        plan = self.made.plan
        if plan is None:
            first = self.made.trainers[0]
            for var in self.made.main.list_vars():
                if var.persistable:
                    yield var.name, [_Piece(first, var.name, None)]
            return
        facts = Facts.of(self.made.main, self.made.startup, plan.setting.suffixed)
        roles = dict(zip(plan.setting.endpoints, self.made.servers))
        for param in plan.parameters:
            found: dict[str, list[_Piece]] = {}
            for piece in param.slices:
                for old, new in self._names(facts, piece).items():
                    cut = self._is_cut(old, param.shape, param.sliced)
                    row = piece.row if cut else None
                    place = _Piece(roles[piece.endpoint], new, row)
                    found.setdefault(old, []).append(place)
            yield from found.items()

    def _names(self, facts: Facts, piece: Slice) -> Mapping[str, str]:
        assert self.made.plan is not None
        updates = facts.updates[piece.param]
        block = self.made.main.global_block()
        read = {n for op in updates for n in op.input_arg_names}
        kept = {n for n, v in block.vars.items() if v.persistable}
        names = {n: n for n in read & kept}
        names.update(local_names(self.made.plan, facts, piece))
        return {n: m for n, m in names.items() if n in block.vars}

    def _is_cut(self, name: str, shape: Sequence[int], sliced: bool) -> bool:
        var = self.made.main.global_block().vars[name]
        return sliced and tuple(var.shape) == tuple(shape)

    def _parts(self, pieces: Sequence[_Piece]) -> list[Part]:
        parts = []
        for piece in pieces:
            holder = self.scopes[piece.role].find_var(piece.name)
            if holder is not None and holder.value is not None:
                parts.append(Part(*piece, dense(holder.value).copy()))
        return parts

    def _state(self) -> State:
        """Persistable values by local name, as the roles hold them."""
        block = self.made.main.global_block()
        pieces = {n: p for n, p in self.places.items() if block.vars[n].persistable}
        first = self.made.trainers[0]
        for name in self.start:  # what nobody trains stays on the trainers
            pieces.setdefault(name, [_Piece(first, name, None)])
        found = {name: self._parts(places) for name, places in pieces.items()}
        return {name: parts for name, parts in found.items() if parts}

    def _merged(self) -> State:
        plan = self.made.plan
        grads = [p.grad for p in plan.parameters] if plan is not None else []
        found = {g: self._parts(self.places.get(g, [])) for g in grads}
        return {name: parts for name, parts in found.items() if parts}
