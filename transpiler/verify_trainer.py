"""What `verify` asks of a trainer: that what it sends and receives fits the servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fluidx.ir import Operator, Parameter, Variable

from .facts import BACKWARD, role_of, role_pairs
from .verify_model import GEO, Problem, Role, looks, split_name

__all__ = ["trainer_problems"]

_COMMUNICATOR = "127.0.0.1:6164"  # of geo-SGD: no server


@dataclass
class _Piece:
    """A gradient slice on its way, or a parameter slice: name, server, rows."""

    name: str
    endpoint: str
    rows: int


@dataclass
class _Trained:
    """What a trainer does for one parameter."""

    sent: list[_Piece] = field(default_factory=list)
    send: Operator | None = None
    received: list[_Piece] = field(default_factory=list)
    recv: Operator | None = None


def trainer_problems(role: Role, servers: Sequence[Role]) -> list[Problem]:
    """Problems between one trainer and the servers."""
    return _Trainer(role, {s.endpoint: s for s in servers}).problems()


class _Trainer:
    def __init__(self, role: Role, servers: Mapping[str, Role]) -> None:
        self.role = role
        self.servers = servers
        listen = next(iter(servers.values())).listen
        assert listen is not None
        self.fanin = int(listen.attr("Fanin"))
        self.mode = listen.attr("distributed_mode")
        self.id = role.trainer_id if role.trainer_id is not None else 0
        self.params: dict[str, _Trained] = {}
        self.sent: dict[tuple[str, str], Operator] = {}
        self.tables: dict[str, Operator] = {}
        self.found: list[Problem] = []

    def _bad(
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

    def problems(self) -> list[Problem]:
        self._splits()
        self._sends()
        self._lookups()
        self._receives()
        self._joins(self.role.ops, "main")
        if self.mode != GEO:
            self._expected()
            self._trained()
        self._start()
        self._numbers()
        self.role.messages = len(self.sent) + sum(
            len(p.received) for p in self.params.values()
        )
        return self.found

    def _server(self, endpoint: str, op: Operator, program: str = "main") -> Role | None:
        found = self.servers.get(endpoint)
        if found is None:
            text = f"{endpoint} is no server: they are {sorted(self.servers)}"
            self._bad("endpoint", text, op, program=program)
        return found

    # ------------------------------------------------ sending

    def _splits(self) -> None:
        """Slices tile what is cut."""
        for _, op in self.role.of_type("split_byref", "split_selected_rows"):
            rows = op.attrs.get("sections") or op.attrs.get("height_sections") or []
            whole = self.role.var(op.inputs["X"][0])
            outs = [self.role.var(n) for n in op.outputs["Out"]]
            self._tiles(op, whole, outs, rows)

    def _tiles(
        self,
        op: Operator,
        whole: Variable | None,
        parts: Sequence[Variable | None],
        rows: Sequence[int],
    ) -> None:
        if whole is None or any(p is None for p in parts):
            missing = [n for n in op.output_arg_names if self.role.var(n) is None]
            self._bad("undeclared", f"{missing or op.input_arg_names} not declared", op)
            return
        have = [p.shape[0] for p in parts if p is not None]
        if list(rows) != have:
            self._bad("tiling", f"sections {list(rows)}, but slices of {have} rows", op)
        if sum(have) != whole.shape[0]:
            text = f"slices of {have} rows do not tile {whole.name} {looks(whole)}"
            self._bad("tiling", text, op, whole.name)
        for part in parts:
            assert part is not None
            same = part.shape[1:] == whole.shape[1:] and part.type == whole.type
            if not same or part.dtype != whole.dtype:
                text = f"slice {part.name} is {looks(part)} of {looks(whole)}"
                self._bad("tiling", text, op, part.name)

    def _sends(self) -> None:
        for at, op in self.role.of_type("send"):
            names = op.attr("send_varnames") or op.inputs.get("X", [])
            ends = op.attr("epmap")
            if ends == [_COMMUNICATOR] and self.mode == GEO:
                continue
            if len(names) == 1:
                names = names * len(ends)
            if len(names) != len(ends):
                self._bad("send", f"{len(names)} variables for {len(ends)} servers", op)
                continue
            self._made_before(at, op)
            pair = next(role_pairs(op), None)
            counts = pair is not None and pair[0] == pair[1]
            for i, (name, endpoint) in enumerate(zip(names, ends)):
                server = self._server(endpoint, op)
                if server is None:
                    continue
                if (endpoint, name) in self.sent:
                    self._bad("send", f"{name} is sent twice to {endpoint}", op, name, server)
                self.sent[endpoint, name] = op
                if counts:
                    self._counted(op, name, server)
                    continue
                rows = self._fits(op, i, name, server)
                if pair is not None:
                    piece = _Piece(name, endpoint, rows)
                    self._note(pair[0], op).sent.append(piece)

    def _note(self, param: str, op: Operator) -> _Trained:
        trained = self.params.setdefault(param, _Trained())
        if trained.send is not None and trained.send is not op:
            self._bad("send", f"the gradient of {param} is sent by two ops", op, param)
        trained.send = op
        return trained

    def _made_before(self, at: int, op: Operator) -> None:
        """What is sent was made before, and is not changed behind it."""
        for name in op.inputs.get("X", []):
            places = self.role.writes.get(name, [])
            var = self.role.var(name)
            if var is not None and var.persistable:
                continue  # a counter: initialised
            if not places or min(places) > at:
                self._bad("flow", f"{name} is sent before it is made", op, name)
            elif max(places) > at:
                late = self.role.ops[max(places)]
                self._bad("flow", f"{name} is changed after it was sent", late, name)

    def _fits(self, op: Operator, i: int, name: str, server: Role) -> int:
        """The server waits for this, in this shape; its rows."""
        assert server.listen is not None
        base, trainer = split_name(name)
        if name not in server.listen.inputs.get("X", []):
            text = f"{name} is sent to {server.endpoint}, which does not wait for it"
            self._bad("send", text, op, name, server)
            return 0
        if trainer is not None and trainer != self.id:
            text = f"{name} is the part of trainer {trainer}, sent by trainer {self.id}"
            self._bad("send", text, op, name, server)
        there = server.var(name)
        assert there is not None
        if op.attr("send_varnames"):
            whole = self.role.var(op.inputs["X"][0])
            rows = list(op.attr("sections"))
            part = rows[i] if i < len(rows) else -1
            ours = (part, *whole.shape[1:]) if whole is not None else ()
            same = whole is not None and there.shape == ours
            if whole is not None and sum(rows) != whole.shape[0]:
                self._bad("tiling", f"sections {rows} of {looks(whole)}", op, whole.name)
        else:
            mine = self.role.var(op.inputs["X"][i % len(op.inputs["X"])])
            same = looks(mine) == looks(there)
            ours = mine.shape if mine is not None else ()
        if not same:
            text = f"{name} leaves as {list(ours)}, {server.endpoint} has {looks(there)}"
            self._bad("shape", text, op, name, server)
        return there.shape[0] if there.shape else 0

    def _counted(self, op: Operator, name: str, server: Role) -> None:
        base, trainer = split_name(name)
        parts = {n for b in server.main.blocks for o in b.ops for n in o.input_arg_names}
        if trainer != self.id or name not in parts:
            self._bad("counter", f"{server.endpoint} does not count {name}", op, name, server)

    def _expected(self) -> None:
        """Everything that servers wait for is sent."""
        for endpoint, server in self.servers.items():
            assert server.listen is not None
            for name in server.listen.inputs.get("X", []):
                base, trainer = split_name(name)
                if trainer in (None, self.id) and (endpoint, name) not in self.sent:
                    text = f"{endpoint} waits for {name}, which nobody sends"
                    self._bad("send", text, None, name, server)
            self._counters(endpoint, server)

    def _counters(self, endpoint: str, server: Role) -> None:
        """Counts that a server adds up without listing them as gradients."""
        assert server.listen is not None
        arriving = set(server.listen.inputs.get("X", []))
        for block in server.listen.attr("optimize_blocks"):
            for op in block.ops:
                for name in op.inputs.get("X", ()) if op.type == "sum" else ():
                    counts = split_name(name)[1] == self.id and name not in arriving
                    if counts and (endpoint, name) not in self.sent:
                        text = f"{endpoint} adds up {name}, which nobody sends"
                        self._bad("counter", text, op, name, server)

    # ------------------------------------------------ tables

    def _lookups(self) -> None:
        ops = [op for b in self.role.main.blocks for op in b.ops]
        for op in ops:
            if op.type != "distributed_lookup_table":
                continue
            names, ends = op.attr("table_names"), op.attr("endpoints")
            rows, table = op.attr("height_sections"), op.inputs["W"][0]
            self.tables[table] = op
            whole = self.role.var(table)
            if not len(names) == len(ends) == len(rows):
                self._bad("table", f"{names}, {ends} and {rows} differ in number", op)
                continue
            if len(op.inputs["Ids"]) != len(op.outputs["Outputs"]):
                self._bad("table", "as many Outputs as Ids are needed", op, table)
            if whole is None or sum(rows) != whole.shape[0]:
                self._bad("tiling", f"rows {list(rows)} of {looks(whole)}", op, table)
            pieces = []
            for name, endpoint, count in zip(names, ends, rows):
                self._held(op, name, endpoint, count, whole)
                pieces.append(_Piece(name, endpoint, count))
            trained = self.params.setdefault(table, _Trained())
            trained.received, trained.recv = pieces, op

    def _held(
        self,
        op: Operator,
        name: str,
        endpoint: str,
        rows: int | None,
        whole: Variable | None,
        program: str = "main",
    ) -> int:
        """A server holds this slice; its rows."""
        server = self._server(endpoint, op, program)
        if server is None:
            return 0
        there = server.var(name)
        known = name in server.initialised or name in server.made
        if there is None or not known:
            text = f"{endpoint} has no {name} to give"
            self._bad("recv", text, op, name, server, program)
            return 0
        wanted = whole.shape[1:] if whole is not None else ()
        if rows is not None and there.shape != (rows, *wanted):
            text = f"{name}: {rows} rows are wanted, {endpoint} has {looks(there)}"
            self._bad("shape", text, op, name, server, program)
        return there.shape[0] if there.shape else 0

    # ------------------------------------------------ receiving

    def _receives(self) -> None:
        for _, op in self.role.of_type("recv"):
            pair = next(role_pairs(op), None)
            pieces = self._pieces(op, "main")
            if pair is None or pieces is None:
                continue
            trained = self.params.setdefault(pair[0], _Trained())
            if trained.recv is not None:
                self._bad("recv", f"{pair[0]} is received twice", op, pair[0])
            trained.recv, trained.received = op, pieces

    def _pieces(self, op: Operator, program: str) -> list[_Piece] | None:
        block = op.block
        outs = op.outputs.get("Out", [])
        names, ends = op.attr("recv_varnames") or outs, op.attr("epmap")
        if len(names) != len(ends):
            self._bad("recv", f"{names} from {len(ends)} servers", op, program=program)
            return None
        pieces = []
        for i, (name, endpoint) in enumerate(zip(names, ends)):
            whole = block.vars.get(outs[min(i, len(outs) - 1)])
            if whole is None:
                self._bad("undeclared", f"{outs} are not declared", op, program=program)
                return None
            cut = len(outs) < len(names)
            rows = self._held(
                op, name, endpoint, None if cut else whole.shape[0], whole, program
            )
            pieces.append(_Piece(name, endpoint, rows))
        if len(outs) < len(names):
            whole = block.vars[outs[0]]
            if sum(p.rows for p in pieces) != whole.shape[0]:
                rows_ = [p.rows for p in pieces]
                text = f"slices of {rows_} rows make no {whole.name} {looks(whole)}"
                self._bad("tiling", text, op, whole.name, program=program)
        return pieces

    def _joins(self, ops: Sequence[Operator], program: str) -> None:
        """Slices that are received are put together, in order, into the whole."""
        came: dict[str, Operator] = {}
        for op in ops:
            if op.type == "recv":
                came.update((n, op) for n in op.outputs.get("Out", []))
            if op.type != "concat" or not set(op.inputs["X"]) & set(came):
                continue
            names, target = op.inputs["X"], op.outputs["Out"][0]
            whole = op.block.vars.get(target)
            parts = [op.block.vars.get(n) for n in names]
            source = came.get(names[0])
            if source is None or source.outputs["Out"] != names:
                self._bad("join", f"{names} are not what is received", op, target, None, program)
            rows = [p.shape[0] for p in parts if p is not None]
            if whole is None or sum(rows) != whole.shape[0] or op.attr("axis"):
                text = f"slices of {rows} rows make no {target} {looks(whole)}"
                self._bad("tiling", text, op, target, program=program)
            for name in names:
                came.pop(name, None)
            came[target] = op
        for name, op in came.items():
            if op.type == "recv" and len(op.outputs["Out"]) > 1:
                text = f"{name} is received and never put into a whole"
                self._bad("join", text, op, name, program=program)

    # ------------------------------------------------ parameters

    def _trained(self) -> None:
        """Every parameter with a gradient goes out and comes back, slice by slice."""
        for name in self._with_gradient():
            trained = self.params.get(name, _Trained())
            if not trained.sent:
                self._bad("send", f"the gradient of {name} is never sent", None, name)
            elif not trained.received:
                self._bad("recv", f"{name} is never received", trained.send, name)
        for name, trained in self.params.items():
            if trained.sent and trained.received:
                self._owned(name, trained)
            self._whole(name, trained)

    def _with_gradient(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        for op in self.role.ops:
            if role_of(op) & BACKWARD:
                for param, _ in role_pairs(op):
                    var = self.role.var(param)
                    if isinstance(var, Parameter) and var.trainable:
                        seen.setdefault(param)
        return iter(seen)

    def _owned(self, name: str, trained: _Trained) -> None:
        """The server that takes a gradient slice gives the slice that it updates."""
        if len(trained.sent) != len(trained.received):
            text = f"{name} leaves in {len(trained.sent)} slices and comes back in "
            self._bad("owner", text + str(len(trained.received)), trained.recv, name)
            return
        for out, back in zip(trained.sent, trained.received):
            server = self.servers[out.endpoint]
            taker = server.takers.get(split_name(out.name)[0])
            param = taker.param if taker is not None else None
            if param != back.name or out.endpoint != back.endpoint:
                text = (
                    f"{out.name} goes to {out.endpoint}, which updates {param}; "
                    f"{back.name} comes from {back.endpoint}"
                )
                self._bad("owner", text, trained.recv, back.name, server)

    def _whole(self, name: str, trained: _Trained) -> None:
        var = self.role.var(name)
        rows = sum(p.rows for p in trained.received)
        if var is None or not trained.received or rows == var.shape[0]:
            return
        text = f"{rows} rows come back of {name} {looks(var)}"
        self._bad("tiling", text, trained.recv, name)

    # ------------------------------------------------ startup

    def _start(self) -> None:
        """The trainer starts with what the servers have; tables are only declared."""
        ops = self.role.startup.global_block().ops
        got: dict[str, list[_Piece]] = {}
        for op in ops:
            if op.type == "recv":
                pieces = self._pieces(op, "startup")
                for name in op.outputs.get("Out", []):
                    got.setdefault(name, pieces or [])
            if op.type == "fetch_barrier":
                self._all_ends(op, "startup")
        self._joins(ops, "startup")
        for name, trained in self.params.items():
            if name in self.tables or trained.recv is None:
                continue
            for piece in trained.received:
                there = [p for p in got.get(piece.name, []) if p.name == piece.name]
                if not there or there[0].endpoint != piece.endpoint:
                    text = f"the first {piece.name} is not received from {piece.endpoint}"
                    self._bad("startup", text, trained.recv, piece.name)
        for table, op in self.tables.items():
            made = self.role.initialised.get(table)
            shape = made.attrs.get("shape") if made is not None else None
            var = self.role.var(table)
            if made is None or made.type != "fake_init":
                self._bad("startup", f"remote table {table} is not declared", op, table)
            elif var is not None and list(shape or ()) != list(var.shape):
                text = f"remote table {table} is declared as {shape}, used as {looks(var)}"
                self._bad("startup", text, op, table)

    def _all_ends(self, op: Operator, program: str) -> None:
        if sorted(op.attr("endpoints")) != sorted(self.servers):
            text = f"{op.type} is for {op.attr('endpoints')}, not for every server"
            self._bad("barrier", text, op, program=program)

    def _numbers(self) -> None:
        """One trainer has one number."""
        both = ((self.role.ops, "main"), (self.role.startup.global_block().ops, "startup"))
        for ops, program in both:
            for op in ops:
                known = op.type in (
                    "recv",
                    "send_barrier",
                    "fetch_barrier",
                    "distributed_lookup_table",
                )
                if known and op.attr("trainer_id") != self.id:
                    text = f"{op.type} says trainer {op.attr('trainer_id')}, not {self.id}"
                    self._bad("trainer", text, op, program=program)
        if not 0 <= self.id < self.fanin:
            self._bad("trainer", f"trainer {self.id} of {self.fanin}")


