"""Programs as `verify` sees them: roles, and what each sends, takes and holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fluidx.ir import Operator, Program, Variable

from .config import TranspileError
from .facts import names_out

__all__ = [
    "GEO",
    "SYNC",
    "Problem",
    "Role",
    "Side",
    "Taker",
    "looks",
    "read_roles",
    "split_name",
]

SYNC, GEO = 0, 3


def split_name(name: str) -> tuple[str, int | None]:
    """``G.trainer_1`` is gradient G of trainer 1; ``G`` of nobody in particular."""
    base, mark, number = name.rpartition(".trainer_")
    return (base, int(number)) if mark and number.isdigit() else (name, None)


@dataclass(frozen=True)
class Side:
    """One end of a problem: where, which op, and the user's line behind it."""

    role: str
    program: str
    op: Operator | None = None
    name: str = ""

    def __str__(self) -> str:
        text = f"{self.role} {self.program}"
        if self.op is not None:
            text += f", op {self.op.type}"
        if self.name:
            text += f", variable {self.name}"
        if self.op is not None and self.op.where is not None:
            text += f" (from {self.op.where})"
        return text


@dataclass(frozen=True)
class Problem:
    """What does not fit, and both its sides."""

    kind: str
    message: str
    sides: tuple[Side, ...]

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.kind}: {self.message}", *(f"  {s}" for s in self.sides)]
        )


@dataclass(frozen=True)
class Taker:
    """What a server does with a gradient: the block, and the slice it updates."""

    block: int
    param: str | None


@dataclass
class Role:
    """One process: its programs and what they say. `listen`: the op that serves."""

    name: str
    main: Program
    startup: Program
    listen: Operator | None = None
    messages: int = 0
    takers: dict[str, Taker] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        assert self.listen is not None
        return str(self.listen.attr("endpoint"))

    @property
    def ops(self) -> list[Operator]:
        return self.main.global_block().ops

    def var(self, name: str) -> Variable | None:
        return self.main.global_block().vars.get(name)

    def side(
        self, op: Operator | None = None, name: str = "", program: str = "main"
    ) -> Side:
        return Side(self.name, program, op, name)

    def of_type(self, *types: str) -> Iterator[tuple[int, Operator]]:
        """(position, op) of the global block's ops of these types."""
        for at, op in enumerate(self.ops):
            if op.type in types:
                yield at, op

    @cached_property
    def writes(self) -> Mapping[str, list[int]]:
        """name -> positions of the ops of the global block that write it."""
        return _places(self.ops, names_out)

    @cached_property
    def initialised(self) -> Mapping[str, Operator]:
        """name -> the last startup op that writes it."""
        return {n: op for op in self.startup.global_block().ops for n in names_out(op)}

    @cached_property
    def made(self) -> set[str]:
        """Names that the blocks of a server write."""
        assert self.listen is not None
        blocks = self.listen.attr("optimize_blocks")
        return {n for b in blocks for op in b.ops for n in names_out(op)}

    @cached_property
    def tables(self) -> set[str]:
        """Parameters that this trainer looks up on servers."""
        ops = (op for b in self.main.blocks for op in b.ops)
        return {o.inputs["W"][0] for o in ops if o.type == "distributed_lookup_table"}

    @cached_property
    def trainer_id(self) -> int | None:
        """The number this trainer gives itself; None if it never does."""
        for ops in (self.ops, self.startup.global_block().ops):
            for op in ops:
                if op.type in ("recv", "fetch_barrier", "send_barrier"):
                    return int(op.attr("trainer_id"))
        return None


def _places(ops: Sequence[Operator], names: object) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, op in enumerate(ops):
        for name in names(op):  # type: ignore[operator]
            found.setdefault(name, []).append(at)
    return found


def looks(var: Variable | None) -> str:
    """A variable's shape, dtype and kind, for people and for comparing."""
    if var is None:
        return "undeclared"
    kind = "" if var.type.name == "LOD_TENSOR" else f" {var.type.name}"
    return f"{var.dtype.name}{list(var.shape)}{kind}"


def read_roles(programs: Mapping[str, Mapping[str, Program]]) -> list[Role]:
    """The roles of a set, in order of their names' appearance."""
    roles = []
    for name, both in programs.items():
        if "main" not in both:
            raise TranspileError(f"verify: role {name} has no main program")
        role = Role(name, both["main"], both.get("startup") or Program())
        serving = [op for op in role.ops if op.type == "listen_and_serv"]
        if serving:
            role.listen = serving[0]
        roles.append(role)
    if not roles:
        raise TranspileError("verify: no programs were given")
    return roles
