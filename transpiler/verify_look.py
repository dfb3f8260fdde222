"""What `verify` remembers of a trainer while it looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fluidx.ir import Operator

from .verify_model import Problem, Role

__all__ = ["Look", "Piece", "Trained"]


@dataclass
class Piece:
    """A gradient slice on its way, or a parameter slice: name, server, rows."""

    name: str
    endpoint: str
    rows: int


@dataclass
class Trained:
    """What a trainer does for one parameter."""

    sent: list[Piece] = field(default_factory=list)
    send: Operator | None = None
    received: list[Piece] = field(default_factory=list)
    recv: Operator | None = None


class Look:
    """One trainer among its servers, and what was found wrong with it."""

    def __init__(self, role: Role, servers: Mapping[str, Role]) -> None:
        self.role = role
        self.servers = servers
        listen = next(iter(servers.values())).listen
        assert listen is not None
        self.fanin = int(listen.attr("Fanin"))
        self.mode = listen.attr("distributed_mode")
        self.id = role.trainer_id if role.trainer_id is not None else 0
        self.params: dict[str, Trained] = {}
        self.sent: dict[tuple[str, str], Operator] = {}
        self.tables: dict[str, Operator] = {}
        self.found: list[Problem] = []

    def bad(
        self,
        kind: str,
        text: str,
        op: Operator | None = None,
        name: str = "",
        other: Role | None = None,
        program: str = "main",
    ) -> None:
        sides = [self.role.side(op, name, program)]
        if other is not None:
            sides.append(other.side(other.listen, name))
        self.found.append(Problem(kind, text, tuple(sides)))

    def server(self, endpoint: str, op: Operator, program: str = "main") -> Role | None:
        found = self.servers.get(endpoint)
        if found is None:
            text = f"{endpoint} is no server: they are {sorted(self.servers)}"
            self.bad("endpoint", text, op, program=program)
        return found
