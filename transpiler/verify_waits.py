"""Who waits for whom: barriers pair, and nobody waits in a circle.

Every RPC op of every trainer is a node, and so is every round of every server. An
edge says what has to happen first. A round of a synchronous server comes after the
barriers of all trainers; what is received behind a barrier comes after the round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fluidx.ir import Operator

from .facts import role_pairs
from .verify_model import GEO, SYNC, Problem, Role

__all__ = ["wait_problems"]

_RPC = ("send", "send_barrier", "recv", "fetch_barrier")
Node = tuple[str, int]


def wait_problems(
    trainers: Sequence[Role], servers: Sequence[Role], complete: bool
) -> list[Problem]:
    """Problems with barriers, control variables and the order of waiting."""
    listen = servers[0].listen
    assert listen is not None
    mode = listen.attr("distributed_mode")
    found: list[Problem] = []
    for trainer in trainers:
        found += _Order(trainer, servers, mode).problems()
    found += _alike(trainers)
    if not found and mode == SYNC:
        found += _circles(trainers, servers, complete)
    return found


class _Order:
    """One trainer's RPC ops, in order."""

    def __init__(self, role: Role, servers: Sequence[Role], mode: int) -> None:
        self.role = role
        self.ends = sorted(s.endpoint for s in servers)
        self.mode = mode
        self.ops = [op for _, op in role.of_type(*_RPC)]
        self.barriers = [op for op in self.ops if op.type == "send_barrier"]
        # cut at run time: a barrier ends the trainer's batch, servers keep the step
        self.half = any(op.attr("half_async") for op in self.barriers)
        self.found: list[Problem] = []

    def _bad(self, text: str, op: Operator | None, name: str = "") -> None:
        self.found.append(Problem("barrier", text, (self.role.side(op, name),)))

    def problems(self) -> list[Problem]:
        self._kinds()
        self._controls()
        if self.mode == SYNC and self.barriers and not self.half:
            self._rounds()
        elif self.barriers:
            self._half()
        return self.found

    def _kinds(self) -> None:
        for op in self.ops:
            if (
                op.type.endswith("barrier")
                and sorted(op.attr("endpoints")) != self.ends
            ):
                text = f"{op.type} is for {op.attr('endpoints')}, the servers are "
                self._bad(text + str(self.ends), op)
            if op.type != "send_barrier":
                continue
            half = op.attr("half_async")
            if half != self.half or half < (self.mode != SYNC):
                self._bad(f"half_async is {half}, distributed_mode {self.mode}", op)
        sends = [op for op in self.ops if op.type == "send"]
        cut_late = all(op.attr("send_varnames") or _is_factor(op) for op in sends)
        if self.mode == SYNC and not self.barriers and not cut_late:
            self._bad("a synchronous trainer needs a send_barrier", sends[0])
        if self.half and not cut_late:
            self._bad("half_async for gradients that are not cut when sent", None)
        if (self.half or self.mode != SYNC) and len(self.barriers) > 1:
            self._bad("more than one barrier per step", self.barriers[1])

    def _controls(self) -> None:
        """Control variables are made before they are read, and all are read."""
        made: dict[str, Operator] = {}
        unread: dict[str, Operator] = {}
        for op in self.ops:
            for name in op.inputs.get("X", []) if op.type != "send" else ():
                unread.pop(name, None)
                if name not in made:
                    self._bad(
                        f"{op.type} waits for {name}, made by nothing before", op, name
                    )
            outs = op.outputs.get("Out", [])
            if op.type in ("send", "send_barrier"):
                for name in outs:
                    if name in made:
                        self._bad(f"{name} is made by two ops", op, name)
                    made[name] = unread[name] = op
        if self.mode == GEO:
            return
        for name, op in unread.items():
            half = op.type == "send_barrier" and (self.half or self.mode != SYNC)
            if not half and (self.barriers or not self._alone(op)):
                self._bad(f"nothing waits for {name} of {op.type}", op, name)

    def _alone(self, op: Operator) -> bool:
        """Without barriers nobody waits for counts, or for gradients of tables."""
        if op.type != "send":
            return False
        pair = next(role_pairs(op), ("", ""))
        return bool(op.attr("merge_add")) or pair[0] in self.role.tables

    def _half(self) -> None:
        """send... send_barrier recv..."""
        seen = [op.type for op in self.ops]
        at = seen.index("send_barrier")
        if "recv" in seen[:at] or "send" in seen[at:]:
            self._bad(
                "send_barrier must follow the sends and come before the recvs",
                self.ops[at],
            )

    def _rounds(self) -> None:
        """send... send_barrier recv... fetch_barrier, once or several times."""
        barrier: Operator | None = None
        fetching: Operator | None = None
        sends: list[str] = []
        came: list[str] = []
        for op in self.ops:
            if op.type == "send":
                if barrier is not None:
                    self._bad("send between send_barrier and fetch_barrier", op)
                sends += op.outputs.get("Out", [])
            elif op.type == "send_barrier":
                if barrier is not None:
                    self._bad("send_barrier before the fetch_barrier of the last", op)
                if sorted(op.inputs.get("X", [])) != sorted(sends):
                    self._bad(f"waits for {op.inputs.get('X')}, sent is {sends}", op)
                barrier, fetching, sends, came = op, None, [], []
            else:
                wanted = barrier.outputs["Out"] if barrier is not None else None
                if wanted is None or op.inputs.get("X") != wanted:
                    text = f"{op.type} waits for {op.inputs.get('X')}, not {wanted}"
                    self._bad(text, op)
                came += op.outputs["Out"] if op.type == "recv" else []
                if op.type == "fetch_barrier":
                    fetching, barrier = op, None
                    if op.outputs["Out"] != came:
                        self._bad(f"{came} came, fetched is {op.outputs['Out']}", op)
        if sends:
            self._bad(f"{sends} are sent behind the last send_barrier", None)
        if barrier is not None:
            self._bad("send_barrier without a fetch_barrier", barrier)
        if fetching is None:
            self._bad("the last send_barrier has no fetch_barrier", self.barriers[-1])


def _is_factor(op: Operator) -> bool:
    return not op.attrs.get("op_role_var")


def _alike(trainers: Sequence[Role]) -> list[Problem]:
    """All trainers make the same exchanges in the same order."""
    found = []
    shapes = [
        [(op.type, sorted(op.attr("endpoints"))) for _, op in t.of_type(*_RPC[1::2])]
        for t in trainers
    ]
    for trainer, shape in zip(trainers, shapes):
        if shape != shapes[0]:
            text = f"barriers differ: {shapes[0]} and {shape}"
            sides = (trainers[0].side(), trainer.side())
            found.append(Problem("barrier", text, sides))
    return found


def _circles(
    trainers: Sequence[Role], servers: Sequence[Role], complete: bool
) -> list[Problem]:
    """A circle of waiting over all roles."""
    import networkx as nx

    graph: nx.DiGraph[Node] = nx.DiGraph()
    ops: dict[Node, tuple[Role, Operator]] = {}
    longest: Counter[str] = Counter()
    for trainer in trainers:
        rounds: Counter[str] = Counter()
        last: Node | None = None
        for at, op in trainer.of_type(*_RPC):
            node = (trainer.name, at)
            ops[node] = (trainer, op)
            if last is not None:
                graph.add_edge(last, node)
            last = node
            if op.type == "send_barrier":
                for endpoint in op.attr("endpoints"):
                    rounds[endpoint] += 1
                    graph.add_edge(node, (endpoint, rounds[endpoint]))
            elif op.type == "recv":
                for endpoint in set(op.attr("epmap")):
                    graph.add_edge((endpoint, rounds[endpoint]), node)
        longest |= rounds
    for endpoint, count in longest.items():  # one round after the other
        rows = [(endpoint, n) for n in range(count + 1)]
        graph.add_edges_from(zip(rows, rows[1:]))
    if nx.is_directed_acyclic_graph(graph):  # find_cycle is not linear
        return []
    circle = nx.find_cycle(graph)
    sides = tuple(r.side(op) for r, op in (ops[n] for n, _ in circle if n in ops))
    return [Problem("circle", "these wait for each other", sides)]
