"""What `verify` asks of what a trainer sends: each slice once, to its owner."""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Operator, Variable

from .facts import role_pairs
from .verify_look import Look, Piece, Trained
from .verify_model import GEO, Role, looks, split_name

__all__ = ["COMMUNICATOR", "Sends"]

COMMUNICATOR = "127.0.0.1:6164"  # of geo-SGD: no server


class Sends(Look):
    """The part of a look at a trainer that concerns what it sends."""

    def splits(self) -> None:
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
            self.bad("undeclared", f"{missing or op.input_arg_names} not declared", op)
            return
        have = [p.shape[0] for p in parts if p is not None]
        if list(rows) != have:
            self.bad("tiling", f"sections {list(rows)}, but slices of {have} rows", op)
        if sum(have) != whole.shape[0]:
            text = f"slices of {have} rows do not tile {whole.name} {looks(whole)}"
            self.bad("tiling", text, op, whole.name)
        for part in parts:
            assert part is not None
            same = part.shape[1:] == whole.shape[1:] and part.type == whole.type
            if not same or part.dtype != whole.dtype:
                text = f"slice {part.name} is {looks(part)} of {looks(whole)}"
                self.bad("tiling", text, op, part.name)

    def sends(self) -> None:
        for at, op in self.role.of_type("send"):
            names = op.attr("send_varnames") or op.inputs.get("X", [])
            ends = op.attr("epmap")
            if ends == [COMMUNICATOR] and self.mode == GEO:
                continue
            if len(names) == 1:
                names = names * len(ends)
            if len(names) != len(ends):
                self.bad("send", f"{len(names)} variables for {len(ends)} servers", op)
                continue
            self._made_before(at, op)
            pair = next(role_pairs(op), None)
            counts = pair is not None and pair[0] == pair[1]
            for i, (name, endpoint) in enumerate(zip(names, ends)):
                server = self.server(endpoint, op)
                if server is None:
                    continue
                if (endpoint, name) in self.sent:
                    self.bad(
                        "send", f"{name} is sent twice to {endpoint}", op, name, server
                    )
                self.sent[endpoint, name] = op
                if counts:
                    self._counted(op, name, server)
                    continue
                rows = self._fits(op, i, name, server)
                if pair is not None:
                    piece = Piece(name, endpoint, rows)
                    self._note(pair[0], op).sent.append(piece)

    def _note(self, param: str, op: Operator) -> Trained:
        trained = self.params.setdefault(param, Trained())
        if trained.send is not None and trained.send is not op:
            self.bad("send", f"the gradient of {param} is sent by two ops", op, param)
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
                self.bad("flow", f"{name} is sent before it is made", op, name)
            elif max(places) > at:
                late = self.role.ops[max(places)]
                self.bad("flow", f"{name} is changed after it was sent", late, name)

    def _fits(self, op: Operator, i: int, name: str, server: Role) -> int:
        """The server waits for this, in this shape; its rows."""
        assert server.listen is not None
        base, trainer = split_name(name)
        if name not in server.listen.inputs.get("X", []):
            text = f"{name} is sent to {server.endpoint}, which does not wait for it"
            self.bad("send", text, op, name, server)
            return 0
        if trainer is not None and trainer != self.id:
            text = f"{name} is the part of trainer {trainer}, sent by trainer {self.id}"
            self.bad("send", text, op, name, server)
        there = server.var(name)
        assert there is not None
        if op.attr("send_varnames"):
            whole = self.role.var(op.inputs["X"][0])
            rows = list(op.attr("sections"))
            part = rows[i] if i < len(rows) else -1
            if whole is None:  # said elsewhere: nothing makes it
                return 0
            ours = (part, *whole.shape[1:])
            same = there.shape == ours and _alike(whole, there)
            if sum(rows) != whole.shape[0]:
                self.bad("tiling", f"sections {rows} of {looks(whole)}", op, whole.name)
        else:
            mine = self.role.var(op.inputs["X"][i % len(op.inputs["X"])])
            same = looks(mine) == looks(there)
            ours = mine.shape if mine is not None else ()
        if not same:
            text = (
                f"{name} leaves as {list(ours)}, {server.endpoint} has {looks(there)}"
            )
            self.bad("shape", text, op, name, server)
        return there.shape[0] if there.shape else 0

    def _counted(self, op: Operator, name: str, server: Role) -> None:
        base, trainer = split_name(name)
        parts = {
            n for b in server.main.blocks for o in b.ops for n in o.input_arg_names
        }
        same = looks(self.role.var(op.inputs["X"][0])) == looks(server.var(name))
        if trainer != self.id or name not in parts or not same:
            self.bad(
                "counter", f"{server.endpoint} does not count {name}", op, name, server
            )

    def expected(self) -> None:
        """Everything that servers wait for is sent."""
        for endpoint, server in self.servers.items():
            assert server.listen is not None
            for name in server.listen.inputs.get("X", []):
                base, trainer = split_name(name)
                if trainer in (None, self.id) and (endpoint, name) not in self.sent:
                    text = f"{endpoint} waits for {name}, which nobody sends"
                    self.bad("send", text, None, name, server)
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
                        self.bad("counter", text, op, name, server)


def _alike(one: Variable, other: Variable) -> bool:
    return (one.dtype, one.type) == (other.dtype, other.type)
