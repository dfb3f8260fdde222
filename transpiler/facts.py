"""What a training program says about its own update, found once, by op role.

Everything here is read off op roles, ``op_role_var`` and slots, never off names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from fluidx.ir import Operator, Program, Variable
from fluidx.kernels import VarType

from .clipping import optimizer_clip
from .loss_scaling import scaling_ops
from .marks import (
    BACKWARD,
    LOOKUPS,
    OPTIMIZE,
    SCHEDULE,
    is_clip,
    is_lookup,
    is_update,
    names_in,
    names_out,
    role_of,
    role_pairs,
)

__all__ = [
    "BACKWARD",
    "LOOKUPS",
    "OPTIMIZE",
    "SCHEDULE",
    "Facts",
    "is_clip",
    "is_lookup",
    "is_update",
    "names_in",
    "names_out",
    "role_of",
    "role_pairs",
]


@dataclass
class Facts:
    """A program's update, indexed. Ops are those of `main` and `startup` themselves.

    gradients: parameter -> gradient, in *parameter order* (first appearance).
    updates: parameter -> its ops with role Optimize, in program order.
    update_order: parameters in order of the ops that change them.
    schedule: ops with role LRSched. counters: step counters of the schedule.
    writers: name -> last op of block 0 that writes it.
    staying: ids of ops with role Optimize that stay on the trainer: clipping, and
    the scaling of mixed precision.
    across: those of them that look at several merged gradients (global norm).
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
    staying: set[int] = field(default_factory=set)
    across: list[Operator] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    local_tables: set[str] = field(default_factory=set)
    inits: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, main: Program, startup: Program, merging: bool = False) -> Facts:
        """Read a program once; linear in its ops.

        merging: gradients of several trainers are merged on servers, so that an
        optimizer's ``grad_clip`` has to see what was merged.
        """
        made = cls(main, startup)
        ops = main.global_block().ops
        scaling = scaling_ops(ops)
        clip = optimizer_clip(ops, scaling)
        made.staying = {id(op) for op in ops if is_clip(op)} | scaling
        if merging:
            made.across = clip.across
            made.staying.update(map(id, clip.across))
        else:
            made.staying |= clip.ops
        made._walk(ops, clip.source if merging else {})
        made._tables()
        for at, op in enumerate(startup.global_block().ops):
            for name in names_out(op):
                made.inits.setdefault(name, []).append(at)
        return made

    def _walk(self, ops: Iterable[Operator], source: dict[str, str]) -> None:
        updates: dict[str, list[Operator]] = defaultdict(list)
        order: dict[str, None] = {}
        for op in ops:
            for name in names_out(op):
                self.writers[name] = op
            if not self.moves(op):
                continue
            if role_of(op) & SCHEDULE:
                self.schedule.append(op)
                self.counters += _counter(op, self.main)
                continue
            for param, grad in role_pairs(op):
                self.gradients.setdefault(param, source.get(grad, grad))
                updates[param].append(op)
            if is_update(op):
                order.setdefault(op.inputs["Param"][0])
        self.updates = dict(updates)
        self.update_order = list(order)

    def _tables(self) -> None:
        for block in self.main.blocks:
            for op in block.ops:
                if op.type in LOOKUPS:
                    if is_lookup(op):
                        self.tables.add(op.inputs["W"][0])
                    if op.type == "lookup_table" and op.attrs.get("is_sparse"):
                        self.local_tables.add(op.inputs["W"][0])

    def moves(self, op: Operator) -> bool:
        """Whether this op leaves the trainer: it updates, or makes the rate."""
        if not role_of(op) & (OPTIMIZE | SCHEDULE):
            return False
        return id(op) not in self.staying

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
