"""What servers hold of a model, as whole variables: pulled for saving, cut for loading.

Parameters, what optimizers keep beside them, and the step counter of a schedule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluidx.io.errors import ModelFileError
from fluidx.io.paths import open_read, var_path
from fluidx.io.tensors import Reader
from fluidx.io.values import put
from fluidx.io.vars import read_vars
from fluidx.ir import Variable
from fluidx.transpiler.facts import Facts
from fluidx.transpiler.plan import ShardPlan
from fluidx.transpiler.pserver import local_names

__all__ = ["Held", "held", "load_on", "pulled"]


@dataclass(frozen=True)
class Held:
    """One whole variable. parts: (server, its name there, first row, rows) in order
    of rows; of one that is not cut, a server that has it."""

    name: str
    cut: bool
    parts: tuple[tuple[str, str, int, int], ...]


def held(plan: ShardPlan, facts: Facts) -> list[Held]:
    """All that servers hold, by the local program's names."""
    block = facts.main.global_block()
    shapes = {v.name: tuple(v.shape) for v in block.vars.values() if v.persistable}
    found: dict[str, Held] = {}
    for param in plan.parameters:
        own = [param.name, *_kept(facts, param.name)]
        parts: dict[str, list[tuple[str, str, int, int]]] = {n: [] for n in own}
        for piece in param.slices:
            names = local_names(plan, facts, piece)
            for name in own:
                there = names.get(name, name)
                parts[name].append((piece.endpoint, there, piece.row, piece.rows))
        for name in own:
            if name in shapes:
                cut = shapes[name] == tuple(param.shape)
                some = parts[name] if cut else parts[name][:1]
                found[name] = Held(name, cut, tuple(some))
    for counter in plan.counters:
        if plan.busy and not plan.setting.geo:
            found[counter] = Held(counter, False, ((plan.busy[0], counter, 0, 1),))
    return list(found.values())


def _kept(facts: Facts, name: str) -> Iterator[str]:
    """What the update of a parameter writes besides it."""
    for op in facts.updates[name]:
        for other in op.output_arg_names:
            if other != name:
                yield other


def pulled(
    plan: ShardPlan, facts: Facts, executor: Any, trainer: int
) -> dict[str, Any]:
    """The values of `held`, from the servers. ModelFileError: a wrong executor."""
    rpc = getattr(executor, "rpc", None)
    if rpc is None:
        raise ModelFileError("servers are asked by the executor that has trained")
    wanted = held(plan, facts)
    if plan.setting.geo:  # trainers update: servers hold parameters only
        names = {p.name for p in plan.parameters}
        wanted = [h for h in wanted if h.name in names]
    asked = [(part[0], part[1]) for h in wanted for part in h.parts]
    came = iter(rpc.exchange([], asked, trainer))
    result = {}
    for one in wanted:
        values = [np.asarray(next(came)) for _ in one.parts]
        result[one.name] = np.concatenate(values) if one.cut else values[0]
    return result


def load_on(
    plan: ShardPlan, facts: Facts, endpoint: str, folder: str, executor: Any
) -> ShardPlan:
    """Give a server's variables the values that a saved model has for them.

    Gives the plan, in which a schedule goes on where the model's stood.

    What optimizers keep stays as the startup program made it where the model has no
    file for it. MissingFileError: a parameter is missing. ValueError: other shapes.
    """
    block = facts.main.global_block()
    params = {p.name for p in plan.parameters}
    for one in held(plan, facts):
        parts = one.parts
        if not one.cut:
            value = _load_whole(facts, plan, one, endpoint, folder, executor)
            if one.name in plan.counters and value is not None:
                plan = replace(plan, counter_start=int(value.reshape(-1)[0]))
            continue
        mine = [part for part in parts if part[0] == endpoint]
        if not mine or (one.name not in params and not _is_there(folder, one.name)):
            continue
        value = _read(block.var(one.name), folder)
        for _, name, row, rows in mine:
            put({name: (np.ascontiguousarray(value[row : row + rows]), None)}, executor)
    return plan


def _load_whole(
    facts: Facts, plan: ShardPlan, one: Held, endpoint: str, folder: str, executor: Any
) -> Any:
    """Of a small variable every server with a slice has its own. Gives the value."""
    if not _is_there(folder, one.name):
        return None
    with open_read(var_path(folder, one.name)) as file:
        # the reference puts the values of all servers into one file
        value, _ = Reader(file, f"{folder}/{one.name}").value()
    names = {one.name} if one.name in plan.counters else set()
    for pieces in plan.on(endpoint).values():
        for piece in pieces:
            if one.name in _kept(facts, piece.param):
                names.add(local_names(plan, facts, piece).get(one.name, one.name))
    for name in names:
        put({name: (value.copy(), None)}, executor)
    return value


def _is_there(folder: str, name: str) -> bool:
    return os.path.exists(var_path(folder, name))


def _read(var: Variable, folder: str) -> Any:
    value, _ = read_vars(folder, [var], None)[var.name]
    if tuple(value.shape) != tuple(var.shape):
        raise ValueError(
            f"{var.name}: the model in {folder} has shape {tuple(value.shape)}, the "
            f"program {tuple(var.shape)}"
        )
    return value
