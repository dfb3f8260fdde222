"""What `verify` asks of geo-SGD: that trainers and servers share every parameter."""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Operator, Parameter

from .facts import LOOKUPS, is_update
from .slicing import same_or_split_var
from .verify_model import Problem, Role, looks
from .verify_sends import COMMUNICATOR

__all__ = ["geo_problems"]


def geo_problems(role: Role, servers: Sequence[Role]) -> list[Problem]:
    """Problems of one trainer: it must tell its communicator about every step."""
    look = _Geo(role, servers)
    look.parameters()
    look.told()
    return look.found


class _Geo:
    def __init__(self, role: Role, servers: Sequence[Role]) -> None:
        self.role = role
        self.servers = servers
        self.found: list[Problem] = []
        self.held: dict[str, tuple[Role, int]] = {}
        for server in servers:
            for taker in server.takers.values():
                var = server.var(taker.param or "")
                if var is not None:
                    self.held[var.name] = (server, var.shape[0])

    def _bad(self, text: str, op: Operator | None, name: str, at: str = "main") -> None:
        self.found.append(Problem("geo", text, (self.role.side(op, name, at),)))

    def parameters(self) -> None:
        """Servers hold all rows of each updated parameter; dense ones come at first."""
        pieces = self._pieces()
        start = self.role.startup.global_block().ops
        came = {n for op in start if op.type == "recv" for n in op.outputs["Out"]}
        tables = {
            op.inputs["W"][0]
            for op in self.role.ops
            if op.type in LOOKUPS and op.attrs.get("is_sparse")
        }
        for op in self.role.ops:
            if not is_update(op):
                continue
            name = op.inputs["Param"][0]
            var = self.role.var(name)
            rows = sum(self.held[p][1] for p in pieces.get(name, ()))
            if var is None or rows != var.shape[0]:
                self._bad(f"servers hold {rows} rows of {looks(var)}", op, name)
            if self.role.var(f"{name}.delta") is None:
                self._bad(f"{name}.delta is not declared", op, name)
            missing = [p for p in pieces.get(name, ()) if p not in came]
            if missing and name not in tables:
                self._bad(
                    f"{missing[0]} is not received at the start", op, name, "startup"
                )

    def _pieces(self) -> dict[str, list[str]]:
        own = [v.name for v in self.role.main.list_vars() if isinstance(v, Parameter)]
        found: dict[str, list[str]] = {}
        for piece in self.held:
            stem = piece.rpartition(".block")[0] or piece
            name = piece if piece in own else stem
            if same_or_split_var(piece, name):
                found.setdefault(name, []).append(piece)
        return found

    def told(self) -> None:
        """The last op tells which rows of which tables a step touched."""
        for program, ops in (
            ("main", self.role.ops),
            ("startup", self.role.startup.global_block().ops),
        ):
            last = ops[-1] if ops else None
            if last is None or last.type != "send":
                self._bad("the last op must tell the communicator", last, "", program)
                continue
            names, ids = last.attr("send_varnames"), last.inputs.get("X", [])
            if last.attr("epmap") != [COMMUNICATOR] or len(names) != len(ids):
                self._bad(
                    f"{ids} are sent as {names} to {last.attr('epmap')}",
                    last,
                    "",
                    program,
                )
            if program == "startup" and ids != names:
                self._bad(f"{ids} are sent as {names}", last, "", program)
