"""What a training program says about its own update, found once, by op role.

Everything here is read off op roles, ``op_role_var`` and slots, never off names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fluidx.ir import Operator, OpRole, Program, Variable
from fluidx.kernels import VarType

__all__ = ["Facts", "is_clip", "is_lookup", "moves", "names_in", "role_pairs"]

_CLIP_SCOPE = "@CLIP"
LOOKUPS = ("lookup_table", "lookup_table_v2")
_TRAINING = OpRole.Optimize | OpRole.LRSched


def names_in(op: Operator) -> Iterator[str]:
    """All names that an op reads."""
    for args in op.inputs.values():
        yield from args


def names_out(op: Operator) -> Iterator[str]:
    """All names that an op writes."""
    for args in op.outputs.values():
        yield from args


def is_clip(op: Operator) -> bool:
    """Whether `fluid.clip.set_gradient_clip` made this op.

    Such ops see one trainer's gradient and stay there (the reference tells them by
    their name scope, too).
    """
    return bool(op.role & OpRole.Optimize) and _CLIP_SCOPE in op.attrs.get(
        "op_namescope", ""
    )


def moves(op: Operator) -> bool:
    """Whether this op leaves the trainer: it updates, or makes the learning rate."""
    return bool(op.role & _TRAINING) and not is_clip(op)


def role_pairs(op: Operator) -> Iterator[tuple[str, str]]:
    """The (parameter, gradient) pairs of an op."""
    given = op.attrs.get("op_role_var") or ()
    yield from zip(given[::2], given[1::2])


def is_lookup(op: Operator) -> bool:
    """A forward table lookup whose table may live on servers alone."""
    if op.type not in LOOKUPS or op.role & OpRole.Backward:
        return False
    attrs = op.attrs
    # the reference fails on a distributed `lookup_table`; its v2 it keeps local
    distributed = op.type == "lookup_table" and attrs.get("is_distributed")
    return bool(attrs.get("remote_prefetch") or distributed)


def is_update(op: Operator) -> bool:
    """An op that changes a parameter; not every one has a learning rate."""
    return bool(op.inputs.get("Param")) and bool(op.role & OpRole.Optimize)


@dataclass
class Facts:
    """A program's update, indexed. Ops are those of `main` and `startup` themselves.

    gradients: parameter -> gradient, in *parameter order* (first appearance).
    updates: parameter -> its ops with role Optimize, in program order.
    update_order: parameters in order of the ops that change them.
    schedule: ops with role LRSched. counters: step counters of the schedule.
    writers: name -> last op of block 0 that writes it.
    tables: parameters that are looked up remotely. local_tables: those that geo-SGD
    does not receive at the start.
    inits: name -> the startup ops that write it.
    """

    main: Program
    startup: Program
    gradients: dict[str, str] = field(default_factory=dict)
    updates: dict[str, list[Operator]] = field(default_factory=dict)
    update_order: list[str] = field(default_factory=list)
    schedule: list[Operator] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    writers: dict[str, Operator] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    local_tables: set[str] = field(default_factory=set)
    inits: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, main: Program, startup: Program) -> Facts:
        """Read a program once; linear in its ops."""
        made = cls(main, startup)
        updates: dict[str, list[Operator]] = defaultdict(list)
        order: dict[str, None] = {}
        for op in main.global_block().ops:
            for name in names_out(op):
                made.writers[name] = op
            if moves(op):
                made._moving(op, updates, order)
        made.updates = dict(updates)
        made.update_order = list(order)
        made.tables = {
            op.inputs["W"][0] for b in main.blocks for op in b.ops if is_lookup(op)
        }
        made.local_tables = {
            op.inputs["W"][0]
            for b in main.blocks
            for op in b.ops
            if op.type == "lookup_table" and op.attrs.get("is_sparse")
        }
        inits: dict[str, list[int]] = defaultdict(list)
        for at, op in enumerate(startup.global_block().ops):
            for name in names_out(op):
                inits[name].append(at)
        made.inits = dict(inits)
        return made

    def _moving(
        self, op: Operator, updates: dict[str, list[Operator]], order: dict[str, None]
    ) -> None:
        if op.role & OpRole.LRSched:
            self.schedule.append(op)
            self.counters += _counter(op, self.main)
            return
        for param, grad in role_pairs(op):
            self.gradients.setdefault(param, grad)
            updates[param].append(op)
        if is_update(op):
            order.setdefault(op.inputs["Param"][0])

    def var(self, name: str) -> Variable | None:
        """A variable of the main program's global block."""
        return self.main.global_block().vars.get(name)

    def is_sparse(self, name: str) -> bool:
        """Whether a variable holds SELECTED_ROWS."""
        var = self.var(name)
        return var is not None and var.type == VarType.SELECTED_ROWS


def _counter(op: Operator, program: Program) -> Iterable[str]:
    """The counter that a schedule's op advances in place."""
    if op.type != "increment" or op.inputs.get("X") != op.outputs.get("Out"):
        return ()
    name = op.inputs["X"][0]
    var = program.global_block().vars.get(name)
    return (name,) if var is not None and var.persistable else ()
