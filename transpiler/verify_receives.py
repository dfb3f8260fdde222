"""What `verify` asks of what a trainer gets: every parameter whole, from its owners."""

from __future__ import annotations

from collections.abc import Sequence

from fluidx.ir import Operator, Variable

from .facts import role_pairs
from .verify_look import Look, Piece, Trained
from .verify_model import looks

__all__ = ["Receives"]


class Receives(Look):
    """The part of a look at a trainer that concerns what it receives."""

    def lookups(self) -> None:
        ops = [op for b in self.role.main.blocks for op in b.ops]
        for op in ops:
            if op.type != "distributed_lookup_table":
                continue
            names, ends = op.attr("table_names"), op.attr("endpoints")
            rows, table = op.attr("height_sections"), op.inputs["W"][0]
            self.tables[table] = op
            whole = self.role.var(table)
            if not len(names) == len(ends) == len(rows):
                self.bad("table", f"{names}, {ends} and {rows} differ in number", op)
                continue
            if len(op.inputs["Ids"]) != len(op.outputs["Outputs"]):
                self.bad("table", "as many Outputs as Ids are needed", op, table)
            if whole is None or sum(rows) != whole.shape[0]:
                self.bad("tiling", f"rows {list(rows)} of {looks(whole)}", op, table)
            pieces = []
            for name, endpoint, count in zip(names, ends, rows):
                self.held(op, name, endpoint, count, whole)
                pieces.append(Piece(name, endpoint, count))
            trained = self.params.setdefault(table, Trained())
            trained.received, trained.recv = pieces, op

    def held(
        self,
        op: Operator,
        name: str,
        endpoint: str,
        rows: int | None,
        whole: Variable | None,
        program: str = "main",
    ) -> int:
        """A server holds this slice; its rows."""
        server = self.server(endpoint, op, program)
        if server is None:
            return 0
        there = server.var(name)
        known = name in server.initialised or name in server.made
        if there is None or not known:
            text = f"{endpoint} has no {name} to give"
            self.bad("recv", text, op, name, server, program)
            return 0
        wanted = whole.shape[1:] if whole is not None else ()
        same = whole is None or (there.dtype, there.type) == (whole.dtype, whole.type)
        if (rows is not None and there.shape != (rows, *wanted)) or not same:
            text = f"{name}: {looks(whole)} is wanted, {endpoint} has {looks(there)}"
            self.bad("shape", text, op, name, server, program)
        return there.shape[0] if there.shape else 0

    def receives(self) -> None:
        came: set[str] = set()
        for _, op in self.role.of_type("recv"):
            pair = next(role_pairs(op), None)
            for name in set(op.outputs.get("Out", ())) & came:
                self.bad("recv", f"{name} is received twice", op, name)
            came.update(op.outputs.get("Out", ()))
            pieces = self.pieces(op, "main")
            if pair is None or pieces is None:
                continue
            trained = self.params.setdefault(pair[0], Trained())
            if trained.recv is not None:
                self.bad("recv", f"{pair[0]} is received twice", op, pair[0])
            trained.recv, trained.received = op, pieces

    def pieces(self, op: Operator, program: str) -> list[Piece] | None:
        block = op.block
        outs = op.outputs.get("Out", [])
        names, ends = op.attr("recv_varnames") or outs, op.attr("epmap")
        if len(names) != len(ends):
            self.bad("recv", f"{names} from {len(ends)} servers", op, program=program)
            return None
        pieces = []
        for i, (name, endpoint) in enumerate(zip(names, ends)):
            whole = block.vars.get(outs[min(i, len(outs) - 1)])
            if whole is None:
                self.bad("undeclared", f"{outs} are not declared", op, program=program)
                return None
            cut = len(outs) < len(names)
            rows = self.held(
                op, name, endpoint, None if cut else whole.shape[0], whole, program
            )
            pieces.append(Piece(name, endpoint, rows))
        if len(outs) < len(names):
            whole = block.vars[outs[0]]
            if sum(p.rows for p in pieces) != whole.shape[0]:
                rows_ = [p.rows for p in pieces]
                text = f"slices of {rows_} rows make no {whole.name} {looks(whole)}"
                self.bad("tiling", text, op, whole.name, program=program)
        return pieces

    def joins(self, ops: Sequence[Operator], program: str) -> None:
        """Slices that are received are put together, in order, into the whole."""
        came: dict[str, Operator] = {}
        for op in ops:
            if op.type == "recv":
                came.update((n, op) for n in op.outputs.get("Out", []))
            if op.type == "sum":  # parts of a norm are added up
                for name in op.inputs["X"]:
                    came.pop(name, None)
            if op.type != "concat" or not any(n in came for n in op.inputs["X"]):
                continue
            names, target = op.inputs["X"], op.outputs["Out"][0]
            whole = op.block.vars.get(target)
            parts = [op.block.vars.get(n) for n in names]
            source = came.get(names[0])
            if source is None or source.outputs["Out"] != names:
                self.bad(
                    "join",
                    f"{names} are not what is received",
                    op,
                    target,
                    None,
                    program,
                )
            rows = [p.shape[0] for p in parts if p is not None]
            if whole is None or sum(rows) != whole.shape[0] or op.attr("axis"):
                text = f"slices of {rows} rows make no {target} {looks(whole)}"
                self.bad("tiling", text, op, target, program=program)
            for name in names:
                came.pop(name, None)
            came[target] = op
        for name, op in came.items():
            if op.type == "recv" and len(op.outputs["Out"]) > 1:
                text = f"{name} is received and never put into a whole"
                self.bad("join", text, op, name, program=program)
