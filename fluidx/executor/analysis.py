"""What a plan must know of a block before code is made: names, lifetimes, aliases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from fluidx import kernels
from fluidx.ir import Block, Operator
from fluidx.ir.errors import RunError, describe
from fluidx.kernels import EMPTY, GRAD, OpDef, VarType
from fluidx.kernels.floating import FLOATS_ONLY

from .steps import Notes, inner_writes, is_gradient_block

__all__ = ["BlockFacts", "Step", "analyse"]

_NEVER = 1 << 60
_WHOLE = (VarType.INT32, VarType.INT64, VarType.INT16, VarType.INT8, VarType.UINT8)


@dataclass
class Step:
    """One op, or a stretch of ops that one batch kernel runs."""

    ops: list[Operator]
    group: str | None = None


@dataclass
class BlockFacts:
    """Names and lifetimes of one block for one set of feeds and fetches.

    bound: names that live in the scope. needed: those read before this block
    writes them, with the (step, op, slot) that does. last_use: step of the last read
    of a name's contents; reads of mere shape are in last_touch only. root: the name
    whose memory a name may share. stored: fed names that the scope must hold too.
    absent: fetched names that a sub-block does not make. unmade: gradients that nobody
    makes before an op (by id) that takes them as zero then.
    """

    steps: list[Step]
    bound: set[str] = field(default_factory=set)
    needed: dict[str, tuple[Operator, str]] = field(default_factory=dict)
    last_use: dict[str, int] = field(default_factory=dict)
    last_touch: dict[str, int] = field(default_factory=dict)
    root: dict[str, str] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)
    shares: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    stored: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    unmade: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    notes: Notes = field(default_factory=Notes)

    def sharing(self, name: str) -> list[str]:
        """All names that may share memory with this one, itself included."""
        root = self.root.get(name, name)
        return self.shares.get(root, [name])

    def is_dead_after(self, name: str, step: int) -> bool:
        """Whether nobody looks at this memory after a step.

        Only temporaries can be: fed, fetched, bound and sent values stay.
        """
        names = self.sharing(name)
        return not any(
            n in self.pinned or self.last_use.get(n, -1) > step for n in names
        )

    def only_user_after(self, name: str, step: int) -> bool:
        """Whether no *other* name that shares this memory is read after a step."""
        return not any(
            n != name and (self.last_use.get(n, -1) > step or n in self.pinned)
            for n in self.sharing(name)
        )


def definition_of(op: Operator) -> OpDef:
    """The op's definition with a kernel; RunError otherwise."""
    try:
        found = kernels.find(op.type)
    except KeyError as error:
        raise RunError(describe(f"op {op.type}", error.args[0], op.where)) from None
    if found.run is None:
        raise RunError(describe(f"op {op.type}", "it has no kernel", op.where))
    if op.type in FLOATS_ONLY:
        _check_floating(op, found)
    return found


def _check_floating(op: Operator, found: OpDef) -> None:
    slot = found.ins[0].name
    for name in op.inputs.get(slot, ()):
        var = op.block._find_var_recursive(name)
        kind = None if var is None else var.dtype
        if kind in _WHOLE:
            message = f"takes floating-point numbers, {slot} {name} holds {kind}"
            raise RunError(describe(f"op {op.type}", message, op.where))


def _steps(ops: Sequence[Operator]) -> list[Step]:
    """Group consecutive ops of one batch group that do not touch each other."""
    steps: list[Step] = []
    read: set[str] = set()
    written: set[str] = set()
    for op in ops:
        group = definition_of(op).batch
        if group is not None and kernels.batch_of(group) is None:
            group = None
        ins, outs = set(op.input_arg_names), set(op.output_arg_names)
        clash = bool(ins & written or outs & (written | read))
        rpc = group is not None and group.startswith("rpc")
        if group and steps and steps[-1].group == group and (rpc or not clash):
            steps[-1].ops.append(op)
            read |= ins
            written |= outs
        else:
            steps.append(Step([op], group))
            read, written = ins, outs
    return steps


def analyse(
    block: Block,
    ops: Sequence[Operator],
    feeds: set[str],
    fetches: Sequence[str],
    notes: Notes | None = None,
) -> BlockFacts:
    """Facts of a block for the given feeds and fetches."""
    facts = BlockFacts(_steps(ops), notes=notes or Notes())
    shared = facts.shared = shared_with_sub_blocks(ops) | facts.notes.keep
    made: set[str] = set(feeds)
    for index, step in enumerate(facts.steps):
        for op in step.ops:
            definition = kernels.find(op.type)
            _note_reads(facts, block, op, definition, index, made)
            _note_writes(facts, block, op, definition, made)
    local = {n for n in made if GRAD in n} if is_gradient_block(block) else set()
    for name in {n for op in ops for n in touched(op)}:
        if name not in feeds and name not in local and _is_bound(block, name, shared):
            facts.bound.add(name)
    for name in fetches:
        facts.last_touch[name] = facts.last_use[name] = _NEVER
        facts.pinned.add(name)
        if name not in made:
            (facts.bound if block.parent_idx < 0 else facts.absent).add(name)
    facts.bound |= set(facts.needed)
    facts.stored = feeds & shared
    facts.pinned |= facts.bound | feeds | (shared - feeds)
    for name in set(facts.last_touch) | made:
        facts.shares[facts.root.get(name, name)].append(name)
    return facts


def touched(op: Operator) -> set[str]:
    """Variables of this block that an op or its sub-blocks name."""
    names = {*op.input_arg_names, *op.output_arg_names}
    if kernels.find(op.type).scoped:
        names |= inner_writes(op)
    return names - {EMPTY}


def _note_reads(
    facts: BlockFacts,
    block: Block,
    op: Operator,
    definition: OpDef,
    index: int,
    made: set[str],
) -> None:
    if "prior" in definition.keywords:
        for name in op.output(definition.outs[0].name):
            facts.last_touch[name] = facts.last_use[name] = index
    for slot, names in op.inputs.items():
        if definition.scoped and not slot.endswith(GRAD):
            continue  # taken from the scope, by the op or by its blocks
        for name in names:
            if name == EMPTY:
                continue
            facts.last_touch[name] = index
            if slot not in definition.shape_only:
                facts.last_use[name] = index
            if definition.effect or definition.shares:
                facts.pinned.add(name)
            if name in made:
                continue
            if slot in definition.unset and slot.endswith(GRAD):
                facts.unmade[id(op)].add(name)
            else:
                facts.needed.setdefault(name, (op, slot))


def _note_writes(
    facts: BlockFacts, block: Block, op: Operator, definition: OpDef, made: set[str]
) -> None:
    first = next((n for names in op.inputs.values() for n in names), None)
    outputs = op.output_arg_names
    if definition.scoped:
        outputs = [*outputs, *inner_writes(op)]
    if "prior" in definition.keywords:
        for name in set(outputs) - made - set(block.vars):  # it is from outside
            facts.needed.setdefault(name, (op, definition.outs[0].name))
    for name in outputs:
        if name == EMPTY:
            continue
        made.add(name)
        if definition.shares:
            facts.pinned.add(name)
        facts.last_touch.setdefault(name, -1)
        if definition.view and first is not None:
            facts.root[name] = facts.root.get(first, first)


def _is_bound(block: Block, name: str, shared: set[str]) -> bool:
    """Whether a name lives in the scope rather than in a local of the plan."""
    if name in shared:
        return True
    var = block._find_var_recursive(name)
    if var is None:
        return block.parent is not None
    return var.persistable or var.block is not block


def shared_with_sub_blocks(ops: Sequence[Operator]) -> set[str]:
    """Names that ops with sub-blocks read or write through the scope."""
    found: set[str] = set()
    for op in ops:
        for sub in op.sub_blocks:
            inner: set[str] = set()
            for o in sub.ops:
                inner.update(o.input_arg_names + o.output_arg_names)
            inner |= shared_with_sub_blocks(sub.ops)
            own = is_gradient_block(sub)  # gradients are handed over by the op
            found |= {n for n in inner if n not in sub.vars and not (own and GRAD in n)}
            for slots in (op.inputs, op.outputs):
                for slot, names in slots.items():
                    if not (own and slot.endswith(GRAD)):
                        found.update(names)
    return found - {EMPTY}
