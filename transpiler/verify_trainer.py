"""What `verify` asks of a trainer: that what it sends and receives fits the servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluidx.ir import Operator, Parameter

from .facts import BACKWARD, names_in, names_out, role_of, role_pairs
from .verify_geo import geo_problems
from .verify_look import Piece, Trained
from .verify_model import GEO, Problem, Role, looks, split_name
from .verify_receives import Receives
from .verify_sends import Sends

__all__ = ["trainer_problems"]

_NUMBERED = ("recv", "send_barrier", "fetch_barrier", "distributed_lookup_table")


def trainer_problems(role: Role, servers: Sequence[Role]) -> list[Problem]:
    """Problems between one trainer and the servers."""
    return _Trainer(role, {s.endpoint: s for s in servers}).problems()


class _Trainer(Sends, Receives):
    def problems(self) -> list[Problem]:
        self.splits()
        self.sends()
        self.lookups()
        self.receives()
        self.joins(self.role.ops, "main")
        if self.mode != GEO:
            self.expected()
            self._trained()
            self._made()
        self._start()
        self._numbers()
        if self.mode == GEO:
            self.found += geo_problems(self.role, list(self.servers.values()))
        self.role.messages = len(self.sent) + sum(
            len(p.received) for p in self.params.values()
        )
        return self.found

    # ------------------------------------------------ parameters

    def _trained(self) -> None:
        """Every parameter with a gradient goes out and comes back, slice by slice."""
        for name in self._with_gradient():
            trained = self.params.get(name, Trained())
            if not trained.sent:
                self.bad("send", f"the gradient of {name} is never sent", None, name)
            elif not trained.received:
                self.bad("recv", f"{name} is never received", trained.send, name)
        for name, trained in self.params.items():
            if trained.sent and trained.received:
                self._owned(name, trained)
            self._whole(name, trained)

    def _made(self) -> None:
        """Ops behind the backward part read what was made or received before."""
        known: set[str] = set()
        received = False
        for op in self.role.ops:
            received = received or op.type in ("recv", "send_barrier")
            for name in names_in(op) if received and op.type not in _NUMBERED else ():
                var = self.role.var(name)
                kept = var is not None and (var.persistable or var.is_data)
                if name not in known and not kept:
                    self.bad("flow", f"{name} is read before it is made", op, name)
            if op.type != "fetch_barrier":  # its outputs say what came before
                known.update(names_out(op))

    def _with_gradient(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        for op in self.role.ops:
            if role_of(op) & BACKWARD:
                for param, _ in role_pairs(op):
                    var = self.role.var(param)
                    if isinstance(var, Parameter) and var.trainable:
                        seen.setdefault(param)
        return iter(seen)

    def _owned(self, name: str, trained: Trained) -> None:
        """The server that takes a gradient slice gives the slice that it updates."""
        if len(trained.sent) != len(trained.received):
            text = f"{name} leaves in {len(trained.sent)} slices and comes back in "
            self.bad("owner", text + str(len(trained.received)), trained.recv, name)
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
                self.bad("owner", text, trained.recv, back.name, server)

    def _whole(self, name: str, trained: Trained) -> None:
        var = self.role.var(name)
        rows = sum(p.rows for p in trained.received)
        if var is None or not trained.received or rows == var.shape[0]:
            return
        text = f"{rows} rows come back of {name} {looks(var)}"
        self.bad("tiling", text, trained.recv, name)

    # ------------------------------------------------ startup

    def _start(self) -> None:
        """The trainer starts with what the servers have; tables are only declared."""
        ops = self.role.startup.global_block().ops
        got: dict[str, list[Piece]] = {}
        fetched = -1
        for op in ops:
            if op.type == "recv":
                pieces = self.pieces(op, "startup")
                for name in op.outputs.get("Out", []):
                    got.setdefault(name, pieces or [])
            if op.type == "fetch_barrier":
                self._all_ends(op, "startup")
                fetched = len(got)
        if fetched != len(got):
            text = "a fetch_barrier must follow what is received at the start"
            self.bad("barrier", text, program="startup")
        self.joins(ops, "startup")
        for name, trained in self.params.items():
            if name in self.tables or trained.recv is None:
                continue
            for piece in trained.received:
                there = [p for p in got.get(piece.name, []) if p.name == piece.name]
                if not there or there[0].endpoint != piece.endpoint:
                    text = (
                        f"the first {piece.name} is not received from {piece.endpoint}"
                    )
                    self.bad("startup", text, trained.recv, piece.name)
        for table, op in self.tables.items():
            made = self.role.initialised.get(table)
            shape = made.attrs.get("shape") if made is not None else None
            var = self.role.var(table)
            if made is None or made.type != "fake_init":
                self.bad("startup", f"remote table {table} is not declared", op, table)
            elif var is not None and list(shape or ()) != list(var.shape):
                text = (
                    f"remote table {table} is declared as {shape}, used as {looks(var)}"
                )
                self.bad("startup", text, op, table)

    def _all_ends(self, op: Operator, program: str) -> None:
        if sorted(op.attr("endpoints")) != sorted(self.servers):
            text = f"{op.type} is for {op.attr('endpoints')}, not for every server"
            self.bad("barrier", text, op, program=program)

    def _numbers(self) -> None:
        """One trainer has one number."""
        both = (
            (self.role.ops, "main"),
            (self.role.startup.global_block().ops, "startup"),
        )
        for ops, program in both:
            for op in ops:
                if op.type in _NUMBERED and op.attr("trainer_id") != self.id:
                    text = (
                        f"{op.type} says trainer {op.attr('trainer_id')}, not {self.id}"
                    )
                    self.bad("trainer", text, op, program=program)
        if not 0 <= self.id < self.fanin:
            self.bad("trainer", f"trainer {self.id} of {self.fanin}")
