"""Geo-SGD: a trainer updates by itself and pushes what it learned every so many steps.

Delta = (parameter - parameter at the last exchange) / trainers, of dense parameters
whole, of tables those rows that were looked up since. The servers add deltas up; what
they then have becomes the trainer's. The exchange is made by the `send` op at a step's
end, so that no parameter changes within a step. When the executor closes, what is left
is pushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows
from fluidx.kernels.sharding import cut_rows, to_device, to_host
from fluidx.transpiler import ShardPlan

__all__ = ["GeoExchange", "PushedVar"]

PARAM_INIT = "param_init"


@dataclass(frozen=True)
class PushedVar:
    """A parameter: its slices, their rows and servers. table: looked up by ids."""

    name: str
    slices: Sequence[str]
    sections: Sequence[int]
    epmap: Sequence[str]
    table: bool

    @classmethod
    def all_of(cls, info: Mapping[str, Mapping[str, Sequence[str]]]) -> list[PushedVar]:
        """From ``GeoSgdTranspiler.vars_info``."""
        return [
            cls(
                name,
                list(facts["var_names"]),
                [int(n) for n in facts["sections"]],
                list(facts["epmap"]),
                str(facts["is_sparse"][0]) == "True",
            )
            for name, facts in info.items()
        ]


class GeoExchange:
    """See the module. trainers: how many there are. push_nums: steps between pushes."""

    def __init__(
        self, variables: Iterable[PushedVar], trainers: int, push_nums: int
    ) -> None:
        self.variables = list(variables)
        self.trainers = trainers
        self.push_nums = push_nums
        self.exchanges = 0
        self._old: dict[str, Any] = {}
        self._touched: dict[str, list[Any]] = {}
        self._steps = 0
        self._client: Any = None
        self._scope: Any = None
        self._xp: Any = np

    @classmethod
    def of_plan(cls, plan: ShardPlan) -> GeoExchange:
        setting = plan.setting
        variables = [
            PushedVar(
                p.name, [s.name for s in p.slices], p.sections, p.endpoints, p.table
            )
            for p in plan.parameters
        ]
        return cls(variables, setting.trainers, setting.geo_push_nums)

    # ------------------------------------------------ what the role calls

    def begin(self) -> None:
        """Nothing is to be made ready."""

    def serves(self, client: Any) -> bool:
        """Whether this client's ops come here."""
        return self._client is client

    def between(self, client: Any, ctx: Any) -> GeoExchange:
        self._client, self._scope, self._xp = client, ctx.scope, ctx.xp
        return self

    def send(
        self,
        names: Sequence[str],
        values: list[Any],
        attrs: Mapping[str, Any],
        received: Mapping[str, Any],
    ) -> None:
        """The ids of a step's lookups; ``param_init``: the parameters are new."""
        if list(names) == [PARAM_INIT]:
            self._begin(received)
            return
        if not self._old:
            raise RuntimeError(
                "send: the trainer's startup program was not run by this Executor"
            )
        for table, ids in zip(attrs["send_varnames"], values):
            self._touched.setdefault(table, []).append(np.unique(ids))
        self._steps += 1
        if self._steps >= self.push_nums:
            self.exchange()

    def receive(self, wanted: Sequence[tuple[str, str]], trainer_id: int) -> list[Any]:
        values: list[Any] = self._client.exchange([], wanted, trainer_id)
        return values

    def end(self) -> None:
        """`Communicator.stop`: push what is left."""
        self.finish()

    def finish(self) -> None:
        """Push what the last steps have learned."""
        if self._steps:
            self.exchange()

    # ------------------------------------------------ how

    def _value(self, name: str) -> Any:
        holder = self._scope.find_var(name)
        if holder is None or holder.value is None:
            raise RuntimeError(f"send: parameter {name!r} has no value")
        return to_host(holder.value)

    def _begin(self, received: Mapping[str, Any]) -> None:
        """Remember where this trainer starts; tables start as the servers have them."""
        tables = [v for v in self.variables if v.table]
        wanted = [(e, s) for v in tables for e, s in zip(v.epmap, v.slices)]
        values = self.receive(wanted, self._client.trainer) if wanted else []
        came = dict(zip(wanted, values))
        for var in self.variables:
            if var.table:
                parts = [came[e, s] for e, s in zip(var.epmap, var.slices)]
                self._put(var.name, np.concatenate(parts))
            # what was received just now reaches the scope behind this op
            own = to_host(received.get(var.name))
            own = self._value(var.name) if own is None else own
            self._old[var.name] = own.copy()
        self._steps, self._touched = 0, {}

    def _put(self, name: str, value: Any) -> None:
        """Give the trainer a parameter, as an array of its own."""
        self._scope.find_var(name).value = to_device(self._xp, value.copy())

    def exchange(self) -> None:
        """Push all deltas; the servers' values come back."""
        self._steps = 0
        self.exchanges += 1
        dense = [v for v in self.variables if not v.table]
        touched = {
            v.name: np.unique(np.concatenate(self._touched.pop(v.name)))
            for v in self.variables
            if v.table and v.name in self._touched
        }
        for var in dense:
            delta = self._delta(self._value(var.name), self._old[var.name])
            self._push(var, delta)
        for var in self.variables:
            if var.name in touched:
                self._push(var, self._rows_delta(var, touched[var.name]))
        wanted = [(e, s) for v in dense for e, s in zip(v.epmap, v.slices)]
        came = iter(self._client.exchange([], wanted, self._client.trainer))
        for var in dense:
            parts = [next(came) for _ in var.slices]
            value = parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._old[var.name] = value
            self._put(var.name, value)
        for var in self.variables:
            if var.name in touched and len(touched[var.name]):
                self._fetch_rows(var, touched[var.name])

    def _delta(self, value: Any, old: Any) -> Any:
        return (value - old) / value.dtype.type(self.trainers)

    def _rows_delta(self, var: PushedVar, rows: Any) -> SelectedRows:
        value = self._value(var.name)
        delta = self._delta(value[rows], self._old[var.name][rows])
        return SelectedRows(rows, delta, len(value))

    def _push(self, var: PushedVar, delta: Any) -> None:
        parts = [delta] if len(var.slices) == 1 else cut_rows(delta, var.sections)
        for endpoint, piece, part in zip(var.epmap, var.slices, parts):
            if not isinstance(part, SelectedRows) or len(part.rows):
                self._client.push(endpoint, f"{piece}.delta", part)

    def _fetch_rows(self, var: PushedVar, rows: Any) -> None:
        bounds = np.cumsum([0, *var.sections])
        cuts = np.searchsorted(rows, bounds)
        asked = [
            (e, s, rows[a:b] - low)
            for e, s, low, a, b in zip(var.epmap, var.slices, bounds, cuts, cuts[1:])
            if a < b
        ]
        came = np.concatenate(self._client.lookup(asked, self._client.trainer))
        self._old[var.name][rows] = came
        table = self._scope.find_var(var.name).value
        table[to_device(self._xp, rows)] = to_device(self._xp, came)
