"""Which op of which role talks to which: every message joined with its receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from fluidx.ir import Block, Operator, Program, Variable
from fluidx.kernels import VarType, to_numpy

from .config import DistributedMode
from .facts import names_in, names_out
from .verify_model import Role, read_roles, split_name

__all__ = ["Link", "Place", "links"]


class Place(NamedTuple):
    """An op: role, "main" or "startup", block, position in the block."""

    role: str
    program: str
    block: int
    op: int


@dataclass(frozen=True)
class Link:
    """One message of a step. kind: "send", "recv", "barrier", "lookup" or "ring".

    size: bytes of its array; None if the program does not say (sparse, lookups).
    """

    kind: str
    source: Place
    target: Place
    name: str
    size: int | None = None


def links(programs: Mapping[str, Mapping[str, Program]]) -> list[Link]:
    """All messages of a set: those of the startup programs, then those of a step."""
    roles = read_roles(programs)
    servers = {r.endpoint: _Server(r) for r in roles if r.listen is not None}
    found: list[Link] = []
    trainers = [r for r in roles if r.listen is None]
    for which in ("startup", "main"):
        for role in trainers:
            found += _of_trainer(role, which, servers)
        found += _rings(trainers, which)
    return found


def size_of(var: Variable | None) -> int | None:
    """Bytes of a variable; None where they are not known before a run."""
    if var is None or var.type != VarType.LOD_TENSOR or min(var.shape, default=1) < 0:
        return None
    return prod(var.shape) * to_numpy(var.dtype).itemsize


class _Server:
    """Where a server takes gradients, and where its values come from."""

    def __init__(self, role: Role) -> None:
        self.role = role
        assert role.listen is not None
        self.listen = Place(role.name, "main", 0, role.ops.index(role.listen))
        self.takers: dict[str, Place] = {}
        blocks = role.main.blocks
        for entry in role.listen.attr("grad_to_block_id"):
            grad, _, number = entry.rpartition(":")
            base = split_name(grad)[0]
            self.takers[base] = self._taker(base, blocks[int(number)])
        self.made = dict(_writers(role.name, "main", blocks))
        for block in blocks:  # of a server's values, the updates are what is sent
            for at, op in enumerate(block.ops):
                for name in op.outputs.get("ParamOut", ()):
                    self.made[name] = Place(role.name, "main", block.idx, at)
        self.begun = dict(_writers(role.name, "startup", role.startup.blocks))

    def _taker(self, grad: str, block: Block) -> Place:
        for at, op in enumerate(block.ops):
            if any(split_name(n)[0] == grad for n in names_in(op)):
                return Place(self.role.name, "main", block.idx, at)
        return Place(self.role.name, "main", block.idx, 0) if block.ops else self.listen


def _writers(role: str, which: str, blocks: list[Block]) -> Iterator[tuple[str, Place]]:
    for block in blocks:
        for at, op in enumerate(block.ops):
            for name in names_out(op):
                yield name, Place(role, which, block.idx, at)


def _of_trainer(role: Role, which: str, servers: Mapping[str, _Server]) -> list[Link]:
    program = role.main if which == "main" else role.startup
    found: list[Link] = []
    for block in program.blocks:
        for at, op in enumerate(block.ops):
            act = _TALKING.get(op.type)
            if act is not None:
                here = Place(role.name, which, block.idx, at)
                found += act(op, here, block, servers)
    return found


def _sends(
    op: Operator, here: Place, block: Block, servers: Mapping[str, _Server]
) -> Iterator[Link]:
    ends, given = op.attr("epmap"), op.inputs["X"]
    names = op.attr("send_varnames") or given
    names = list(names) * (len(ends) // max(1, len(names)))
    sections = op.attr("sections")
    if not any(e in servers for e in ends):
        yield from _differences(here, servers)
        return
    for i, (end, name) in enumerate(zip(ends, names)):
        server = servers.get(end)
        if server is None:
            continue
        var = block._find_var_recursive(given[min(i, len(given) - 1)])
        size = size_of(var)
        if size is not None and var is not None and len(sections) > 1:
            size = size // var.shape[0] * sections[i]
        to = server.takers.get(split_name(name)[0], server.listen)
        yield Link("send", here, to, name, size)


def _differences(here: Place, servers: Mapping[str, _Server]) -> Iterator[Link]:
    """geo-SGD: the trainer's communicator sends what has changed."""
    for server in servers.values():
        assert server.role.listen is not None
        geo = server.role.listen.attr("distributed_mode") == DistributedMode.GEO
        if geo and here.program == "main":
            for name, to in server.takers.items():
                yield Link("send", here, to, name, size_of(server.role.var(name)))


def _recvs(
    op: Operator, here: Place, block: Block, servers: Mapping[str, _Server]
) -> Iterator[Link]:
    outs = op.outputs["Out"]
    names = op.attr("recv_varnames") or op.attr("varnames") or outs
    for end, name in zip(op.attr("epmap"), names):
        server = servers.get(end)
        if server is not None:
            known = server.begun if here.program == "startup" else server.made
            size = size_of(server.role.var(name))
            yield Link("recv", known.get(name, server.listen), here, name, size)


def _barriers(
    op: Operator, here: Place, block: Block, servers: Mapping[str, _Server]
) -> Iterator[Link]:
    for end in op.attr("endpoints"):
        if end in servers:
            ends = here, servers[end].listen
            source, target = ends if op.type == "send_barrier" else ends[::-1]
            yield Link("barrier", source, target, op.type)


def _lookups(
    op: Operator, here: Place, block: Block, servers: Mapping[str, _Server]
) -> Iterator[Link]:
    for end, name in zip(op.attr("endpoints"), op.attr("table_names")):
        if end in servers:
            server = servers[end]
            yield Link("lookup", server.made.get(name, server.listen), here, name)


_TALKING = {
    "send": _sends,
    "recv": _recvs,
    "send_barrier": _barriers,
    "fetch_barrier": _barriers,
    "distributed_lookup_table": _lookups,
}
_RINGS = ("c_allreduce", "c_broadcast", "c_reduce", "c_allgather")


def _rings(trainers: list[Role], which: str) -> list[Link]:
    """The n-th collective of a ring on one rank meets the n-th on the next."""
    seen: list[dict[tuple[int, int], tuple[Place, Operator]]] = []
    for role in trainers:
        counts: dict[int, int] = {}
        mine = {}
        block = (role.main if which == "main" else role.startup).global_block()
        for at, op in enumerate(block.ops):
            if op.type.startswith(_RINGS):
                ring = int(op.attr("ring_id"))
                number = counts[ring] = counts.get(ring, -1) + 1
                mine[ring, number] = Place(role.name, which, 0, at), op
        seen.append(mine)
    found = []
    for role, mine, following in zip(trainers, seen, seen[1:]):
        block = (role.main if which == "main" else role.startup).global_block()
        for key, (here, op) in mine.items():
            if key in following:
                name = op.inputs["X"][0]
                size = size_of(block.vars.get(name))
                found.append(Link("ring", here, following[key][0], name, size))
    return found
