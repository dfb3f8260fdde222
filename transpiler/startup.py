"""Passes that make startup programs: of a trainer, and of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fluidx.ir import Block, Editor, Operator, Program, Variable
from fluidx.kernels import VarType

from .edits import RPC, control_names, declare, drop_vars, new_op
from .facts import Facts, names_in, names_out
from .plan import ShardPlan, Slice
from .pserver import local_names
from .trainer import leaving_vars

__all__ = ["pserver_startup", "trainer_startup"]


def trainer_startup(
    program: Program, *, plan: ShardPlan, trainer_id: int, facts: Facts
) -> Program:
    """Parameters are initialised here and then received from the servers.

    What only the update needs is not initialised; remote tables are declared, not
    filled. `program` is the local startup program that `facts` was read from.
    """
    made = program.clone()
    rewrite_startup(made, plan, trainer_id, facts)
    return made


def rewrite_startup(
    program: Program, plan: ShardPlan, trainer_id: int, facts: Facts
) -> None:
    """`trainer_startup`, in place."""
    block = program.global_block()
    edit = Editor(block)
    control = control_names(block)
    gone = leaving_vars(facts, plan)
    tables = {p.name for p in plan.parameters if p.table}
    for op in block.ops:
        if set(names_out(op)) & (gone | tables):
            edit.remove(op)
    counter_inits(block, plan, edit)
    receive_parameters(block, plan, trainer_id, edit, control())
    for param in plan.parameters:
        if param.table:
            like = facts.updates[param.name][0]
            shape = {"shape": list(param.shape)}
            op = new_op(block, "fake_init", {}, {"Out": [param.name]}, shape, 0, like)
            edit.append(op)
    edit.commit()
    drop_vars(block, gone)


def receive_parameters(
    block: Block, plan: ShardPlan, trainer_id: int, edit: Editor, done: str
) -> None:
    """recv of every parameter that comes whole, fetch_barrier, concat of the slices."""
    own = {"trainer_id": trainer_id}
    whole = [p for p in plan.parameters if not p.table]
    for param in whole:
        names = [s.name for s in param.slices]
        if param.sliced:
            for piece in param.slices:
                declare(block, piece.name, piece.shape, param.dtype)
        attrs = {"epmap": param.endpoints, **own}
        edit.append(new_op(block, "recv", {}, {"Out": names}, attrs, RPC))
    ends = {"endpoints": list(plan.setting.endpoints), **own}
    edit.append(new_op(block, "fetch_barrier", {}, {"Out": [done]}, ends, RPC))
    for param in whole:
        if param.sliced:
            names = [s.name for s in param.slices]
            inputs, outputs = {"X": names}, {"Out": [param.name]}
            edit.append(new_op(block, "concat", inputs, outputs, {"axis": 0}))


def counter_inits(block: Block, plan: ShardPlan, edit: Editor) -> None:
    """Without barriers each trainer counts its steps; servers add the counts up."""
    if plan.setting.sync or plan.setting.geo:
        return
    trainers = plan.setting.trainers
    for counter in plan.counters:
        for op in block.ops:
            if op.outputs.get("Out") == [counter]:
                op.attrs["value"] = float(-trainers)
        for trainer in reversed(range(trainers)):
            name = f"{counter}.trainer_{trainer}"
            declare(block, name, [1], VarType.INT64, persistable=True)
            attrs = {"shape": [1], "dtype": int(VarType.INT64), "value": 1.0}
            op = new_op(block, "fill_constant", {}, {"Out": [name]}, attrs)
            edit.prepend(op)


def pserver_startup(
    program: Program, *, plan: ShardPlan, endpoint: str, facts: Facts, main: Program
) -> Program:
    """Every variable of this server's main program is initialised, sliced as it is.

    `program` is the local startup program that `facts` was read from, `main` the
    server's main program.
    """
    return _ServerStartup(program, plan, endpoint, facts, main).made


class _ServerStartup:
    def __init__(
        self,
        program: Program,
        plan: ShardPlan,
        endpoint: str,
        facts: Facts,
        main: Program,
    ) -> None:
        self.source = program.global_block()
        self.plan = plan
        self.facts = facts
        self.made = Program()
        self.made.random_seed = program.random_seed
        self.block = self.made.global_block()
        self.of: dict[str, list[tuple[str, Slice | None]]] = {}
        for name, var in main.global_block().vars.items():
            self._declare(name, var)
        self._origins(main, endpoint)
        self._copy()
        edit = Editor(self.block)
        counter_inits(self.block, plan, edit)
        self._backups(endpoint, edit)
        edit.commit()

    def _declare(self, name: str, var: Variable) -> None:
        facts = Variable.facts(var)
        facts["persistable"] = var.type != VarType.STEP_SCOPES
        self.block.vars[name] = Variable(self.block, **facts)

    def _origins(self, main: Program, endpoint: str) -> None:
        """Which variables of the server each variable of the source becomes."""
        known = main.global_block().vars
        for name in known:
            if name in self.facts.inits:
                self.of[name] = [(name, None)]
        for slices in self.plan.on(endpoint).values():
            for piece in slices:
                self._origins_of(piece, known)

    def _origins_of(self, piece: Slice, known: Mapping[str, Variable]) -> None:
        used = {n for op in self.facts.updates[piece.param] for n in names_in(op)}
        names = {n: n for n in used}
        names.update(local_names(self.plan, self.facts, piece))
        for old, new in names.items():
            if new in known and old in self.facts.inits:
                whole = self.source.vars.get(old)
                cut = whole is not None and known[new].shape != whole.shape
                if new != old or cut:
                    found = self.of.setdefault(old, [])
                    found[:] = [f for f in found if f[0] != new]
                    found.append((new, piece))

    def _copy(self) -> None:
        ops = self.source.ops
        places = {at for name in self.of for at in self.facts.inits[name]}
        todo = list(places)
        while todo:  # what these ops read must be made, too
            for name in names_in(ops[todo.pop()]):
                for at in self.facts.inits.get(name, ()):
                    if at not in places:
                        places.add(at)
                        todo.append(at)
        for at in sorted(places):
            self._copy_op(ops[at])

    def _copy_op(self, op: Operator) -> None:
        targets = [t for name in names_out(op) for t in self.of.get(name, ())]
        pieces = {piece.name: piece for _, piece in targets if piece is not None}
        for piece in pieces.values() or [None]:
            made = op.copy_to(self.block)
            names = {
                old: new
                for old in (*names_in(op), *names_out(op))
                for new, of in self.of.get(old, ())
                if of is piece
            }
            self.block.ops.append(made)
            self._rename(made, names, piece)

    def _rename(
        self, op: Operator, names: Mapping[str, str], piece: Slice | None
    ) -> None:
        whole = self.source.vars
        cut = False
        for slots in (op.inputs, op.outputs):
            for args in slots.values():
                for i, name in enumerate(args):
                    args[i] = names.get(name, name)
                    if args[i] not in self.block.vars and name in whole:
                        facts = Variable.facts(whole[name])
                        self.block.vars[name] = Variable(self.block, **facts)
                    cut |= _is_cut(self.block.vars.get(args[i]), whole.get(name))
        if cut and piece is not None:
            slice_init(op, piece)

    def _backups(self, endpoint: str, edit: Editor) -> None:
        """Each trainer's copy of a slice, for the delay compensation."""
        if not self.plan.setting.dc_asgd:
            return
        for name, pieces in self.plan.on(endpoint).items():
            for piece in pieces:
                if self.plan.by_name[name].sparse:
                    continue
                for trainer in range(self.plan.setting.trainers):
                    copy = f"{piece.name}.trainer_{trainer}_bak"
                    ins, outs = {"X": [piece.name]}, {"Out": [copy]}
                    like = self.facts.updates[name][0]
                    edit.append(new_op(self.block, "assign", ins, outs, {}, 0, like))


def _is_cut(var: Variable | None, whole: Variable | None) -> bool:
    return var is not None and whole is not None and var.shape != whole.shape


_VALUES = ("fp32_values", "int32_values", "int64_values", "bool_values")


def slice_init(op: Operator, piece: Slice) -> None:
    """Make an initialiser fill the rows of one slice only."""
    if "shape" in op.attrs:
        op.attrs["shape"] = list(piece.shape)
    width = prod(piece.shape[1:])
    rows = slice(piece.row * width, (piece.row + piece.rows) * width)
    for name in _VALUES:
        values: Sequence[Any] = op.attrs.get(name) or ()
        if len(values) >= rows.stop:
            op.attrs[name] = list(values[rows])
