"""What travels in one step, read off the programs: messages and their exact sizes.

`traffic` walks a trainer's ops as the runtime does: gradients wait until the next
exchange (or until `FLUSH` bytes wait for one server), an exchange is one message each
way per server. Sizes are those of the wire format: a head, a record per variable,
arrays of up to `INLINE` bytes aligned inside the first frame, larger ones behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from fluidx.ir import Block, Operator, Program
from fluidx.kernels import VarType, to_numpy

from .config import TranspileError
from .facts import role_pairs
from .verify_model import read_roles

__all__ = ["Message", "Traffic", "Value", "Workload", "message_bytes", "traffic"]

# The wire format's numbers (`fluidx.distributed.wire` and ``config``; a test compares):
HEAD = 42  # magic, version, kind, flags, trainer, seq, step, counts
NAME = 2  # length of a name, before the name
RECORD = 3  # what a variable is, its dtype, its number of dimensions
SIZE = 8  # height of a sparse variable; one size of an array
WHERE = 1  # whether an array lies in the first frame
ALIGN = 64
INLINE = 16384
FLUSH = 4 << 20

_RPC = ("send", "recv", "send_barrier", "fetch_barrier")
_LOOKUPS = ("lookup_table", "lookup_table_v2")


@dataclass(frozen=True)
class Workload:
    """What programs do not say.

    batch: what -1 stands for. rows: parameter -> rows of its sparse gradient in one
    step of one trainer (as many as ids are fed), or a list: of each slice. distinct:
    table -> different ids looked up in one step, or a list: in each slice. Where not
    given, ids are taken to be all different and spread evenly over the slices.
    """

    batch: int = 1
    rows: Mapping[str, int | Sequence[int]] = field(default_factory=dict)
    distinct: Mapping[str, int | Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """A variable on its way. arrays: (sizes, bytes) of each array that it is."""

    name: str
    arrays: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def payload(self) -> int:
        return sum(size for _, size in self.arrays)


@dataclass(frozen=True)
class Message:
    """One message of a trainer, and the answer that it waits for (None: none).

    kind: PUSH or LOOKUP. names: what is wanted back.
    """

    trainer: str
    server: str
    kind: str
    values: tuple[Value, ...]
    names: tuple[str, ...] = ()
    barrier: bool = False
    answer: tuple[Value, ...] | None = None

    @property
    def sent(self) -> int:
        """Bytes of the message, as the runtime counts them."""
        return message_bytes(self.names, self.values)

    @property
    def received(self) -> int:
        """Bytes of the answer."""
        return 0 if self.answer is None else message_bytes((), self.answer)

    @property
    def payload_sent(self) -> int:
        return sum(v.payload for v in self.values)

    @property
    def payload_received(self) -> int:
        return sum(v.payload for v in self.answer or ())


@dataclass(frozen=True)
class Traffic:
    """What one trainer sends in one run of a program, in order.

    rounds: messages that leave together; the trainer waits for their answers.
    """

    trainer: str
    rounds: tuple[tuple[Message, ...], ...]

    @property
    def messages(self) -> list[Message]:
        return [m for round_ in self.rounds for m in round_]


def message_bytes(names: Sequence[str], values: Sequence[Value]) -> int:
    """Size of a message: head, records, inline arrays with their padding, the rest.

    >>> message_bytes(["w"], [])
    45
    """
    offset = HEAD + sum(NAME + len(n.encode()) for n in names)
    inline, outside = [], 0
    for value in values:
        offset += NAME + len(value.name.encode()) + RECORD
        offset += SIZE if len(value.arrays) == 2 else 0
        for shape, size in value.arrays:
            offset += SIZE * len(shape) + WHERE
            if size > INLINE:
                outside += size
            elif size:
                inline.append(size)
    for size in inline:
        offset += -offset % ALIGN + size
    return offset + outside


def dense(name: str, shape: Sequence[int], dtype: VarType) -> Value:
    return Value(name, ((tuple(shape), prod(shape) * to_numpy(dtype).itemsize),))


def sparse(name: str, rows: int, width: Sequence[int], dtype: VarType) -> Value:
    """Values of some rows, and their numbers."""
    shape = (rows, *width)
    return Value(name, (dense("", shape, dtype).arrays[0], ((rows,), 8 * rows)))


def traffic(
    programs: Mapping[str, Mapping[str, Program]],
    work: Workload | None = None,
    which: str = "main",
) -> list[Traffic]:
    """What every trainer of a set sends in one run of its main (or startup) program."""
    roles = read_roles(programs)
    servers = {r.endpoint: r.name for r in roles if r.listen is not None}
    trainers = [r for r in roles if r.listen is None]
    if not trainers:
        raise TranspileError("cost: the set has no trainer")
    work = work or Workload()
    found = []
    for role in trainers:
        program = role.main if which == "main" else role.startup
        found.append(_Walk(role.name, program, role.main, servers, work).run())
    return found


class _Walk:
    """One trainer's program, followed as the ``rpc`` kernels run it."""

    def __init__(
        self,
        name: str,
        program: Program,
        main: Program,
        servers: Mapping[str, str],
        work: Workload,
    ) -> None:
        self.name = name
        self.block: Block = program.global_block()
        self.main = main
        self.servers = servers
        self.work = work
        self.rounds: list[tuple[Message, ...]] = []
        self.pending: dict[str, list[Value]] = {}
        self.barriers: list[str] = []
        self.wanted: dict[str, list[Value]] = {}
        self.parts: dict[str, int] = {}
        # server's name of a slice of a gradient -> rows of it that come
        self.counts = _sparse_rows(self.block, work)

    def run(self) -> Traffic:
        for op in self.block.ops:
            if op.type in _RPC:
                if op.type != "recv" and op.type != "fetch_barrier":
                    self._exchange(only_wanted=True)
                getattr(self, f"_{op.type}")(op)
                continue
            self._exchange()
            if op.type == "distributed_lookup_table":
                self._lookup(op)
        self._exchange()
        self._leave()
        return Traffic(self.name, tuple(self.rounds))

    def _send(self, op: Operator) -> None:
        ends = op.attr("epmap")
        given = op.inputs["X"]
        names = op.attr("send_varnames") or given
        names = list(names) * (len(ends) // max(1, len(names)))
        sections = op.attr("sections") if op.attr("send_varnames") else ()
        params = [p for p, _ in role_pairs(op)]
        for i, (endpoint, name) in enumerate(zip(ends, names)):
            if endpoint not in self.servers:
                continue  # geo-SGD: the trainer's own communicator
            source = given[min(i, len(given) - 1)]
            rows = sections[i] if len(sections) > 1 else None
            value = self._value(source, name, rows, params, i, len(names))
            waiting = self.pending.setdefault(endpoint, [])
            waiting.append(value)
            if sum(v.payload for v in waiting) >= FLUSH:
                self.rounds.append((self._message(endpoint, False),))

    def _value(
        self,
        source: str,
        name: str,
        rows: int | None,
        params: Sequence[str],
        at: int,
        of: int,
    ) -> Value:
        var = self.block.var(source)
        shape = self._shape(var.shape)
        if var.type == VarType.SELECTED_ROWS:
            count = self.counts.get(source)
            if count is None:
                heights = [rows or shape[0]] * of
                param = params[0] if params else source
                count = _shared(self.work.rows.get(param, self.work.batch), heights)[at]
            return sparse(name, count, shape[1:], var.dtype)
        return dense(name, shape if rows is None else (rows, *shape[1:]), var.dtype)

    def _shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.work.batch if d < 0 else d for d in shape)

    def _send_barrier(self, op: Operator) -> None:
        if not op.attr("half_async"):
            self.barriers += op.attr("endpoints")

    def _recv(self, op: Operator) -> None:
        if op.attr("do_not_run"):
            return
        outs = op.outputs["Out"]
        names = op.attr("recv_varnames") or op.attr("varnames") or outs
        heights = [self._heights(n) for n in names]
        for i, (endpoint, name) in enumerate(zip(op.attr("epmap"), names)):
            var = self.block.var(outs[i] if len(outs) == len(names) else outs[0])
            shape = self._shape(var.shape)
            if len(outs) != len(names):
                shape = (heights[i] or shape[0], *shape[1:])
            self.wanted.setdefault(endpoint, []).append(dense(name, shape, var.dtype))

    def _heights(self, name: str) -> int | None:
        """Rows of a slice that this program declares."""
        for program in (self.block.program, self.main):
            var = program.global_block().vars.get(name)
            if var is not None:
                return var.shape[0]
        return None

    def _fetch_barrier(self, op: Operator) -> None:
        """Says hello; costs nothing in a step."""

    def _exchange(self, only_wanted: bool = False) -> None:
        if not self.wanted and (only_wanted or not self.barriers):
            return
        ends = dict.fromkeys([*self.barriers, *self.wanted])
        self.rounds.append(
            tuple(self._message(e, e in self.barriers, True) for e in ends)
        )
        self.barriers, self.wanted = [], {}

    def _message(self, endpoint: str, barrier: bool, answered: bool = False) -> Message:
        wanted = tuple(self.wanted.get(endpoint, ())) if answered else ()
        return Message(
            self.name,
            self.servers[endpoint],
            "PUSH",
            tuple(self.pending.pop(endpoint, ())),
            tuple(v.name for v in wanted),
            barrier,
            wanted if answered else None,
        )

    def _leave(self) -> None:
        """What nothing is wanted for goes with the next step's exchange."""
        late = [e for e, values in self.pending.items() if values]
        if late:
            self.rounds.append(tuple(self._message(e, False) for e in late))

    def _lookup(self, op: Operator) -> None:
        table = op.inputs["W"][0]
        heights = op.attr("height_sections")
        var = self.block.var(table)
        ids = sum(_ids(self.block, n, self.work.batch) for n in op.inputs["Ids"])
        counts = _shared(self.work.distinct.get(table, ids), heights)
        asked: dict[str, list[tuple[Value, Value]]] = {}
        for name, end, rows in zip(
            op.attr("table_names"), op.attr("endpoints"), counts
        ):
            if rows:
                numbers = dense(name, (rows,), VarType.INT64)
                found = dense(name, (rows, var.shape[1]), var.dtype)
                asked.setdefault(end, []).append((numbers, found))
        round_ = [
            Message(
                self.name,
                self.servers[end],
                "LOOKUP",
                tuple(q for q, _ in pairs),
                answer=tuple(a for _, a in pairs),
            )
            for end, pairs in asked.items()
        ]
        if round_:
            self.rounds.append(tuple(round_))


def _ids(block: Block, name: str, batch: int) -> int:
    shape = block.var(name).shape
    return prod(batch if d < 0 else d for d in shape)


def _shared(count: int | Sequence[int], heights: Sequence[int]) -> list[int]:
    """Rows of each slice: as given, or in proportion to the slices' heights.

    >>> _shared(10, [6, 3]), _shared([1, 4], [6, 3]), _shared(9, [2, 2])
    ([7, 3], [1, 4], [5, 4])
    """
    if not isinstance(count, int):
        return list(count)
    total = sum(heights) or 1
    bounds, low = [0], 0
    for height in heights:
        low += height
        bounds.append(-(-count * low // total))
    return [b - a for a, b in zip(bounds, bounds[1:])]


def _sparse_rows(block: Block, work: Workload) -> dict[str, int]:
    """Sparse variables -> rows in a step: as many as ids were looked up."""
    found: dict[str, int] = {}
    param_of = {g: p for op in block.ops for p, g in role_pairs(op)}
    for op in block.ops:
        if op.type == "split_selected_rows":
            source = op.inputs["X"][0]
            given = work.rows.get(param_of.get(source, ""), found.get(source, 0))
            shares = _shared(given, op.attr("height_sections"))
            found.update(zip(op.outputs["Out"], shares))
            continue
        rows = 0
        if op.type in tuple(f"{t}_grad" for t in _LOOKUPS):
            rows = _ids(block, op.inputs["Ids"][0], work.batch)
        else:
            rows = sum(found.get(n, 0) for n in _inputs(op)) if op.type == "sum" else 0
            if op.type in ("scale", "assign", "merge_selected_rows", "clip"):
                rows = found.get(op.inputs["X"][0], 0)
        for name in (n for args in op.outputs.values() for n in args):
            var = block.vars.get(name)
            if rows and var is not None and var.type == VarType.SELECTED_ROWS:
                given = work.rows.get(param_of.get(name, ""), rows)
                found[name] = given if isinstance(given, int) else sum(given)
    return found


def _inputs(op: Operator) -> Iterator[str]:
    for args in op.inputs.values():
        yield from args
