"""What gradient blocks need of the blocks that they differentiate.

A gradient block (``forward_block_idx`` names the other) runs in a scope inside the
step of the forward block, and finds the variables declared there by name. A name
alone does not tell which value is meant where a block overwrites a variable, or
where a loop does from step to step. So each read is traced to the forward op that it
belongs to, and the forward block also keeps the values that are needed under names of
their own, ``acc@VALUE1@2``: what ``acc`` held in block 2 after it was written once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fluidx import kernels
from fluidx.ir import Block, Operator, Program
from fluidx.kernels import EMPTY, GRAD, GradContext, VarType

__all__ = ["Notes", "inner_writes", "is_gradient_block", "notes_of", "reads_lod"]


@dataclass
class Notes:
    """What gradient blocks ask of one block.

    keep: variables that must stay in the block's scope. entry, after: values to be
    kept as (variable, name): when the block begins, and after an op (by id).
    renamed: in a gradient block, op (by id) -> variable -> name of the value meant.
    in_place: variables whose arrays some op changes, so that keeping needs a copy.
    """

    keep: set[str] = field(default_factory=set)
    entry: list[tuple[str, str]] = field(default_factory=list)
    after: dict[int, list[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    renamed: dict[int, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    in_place: frozenset[str] = frozenset()

    def ops(self, ops: list[Operator]) -> list[Operator]:
        """The ops with the values that they mean."""
        return [self._meaning(op) for op in ops] if self.renamed else ops

    def _meaning(self, op: Operator) -> Operator:
        names = self.renamed.get(id(op))
        if not names:
            return op
        made = op.copy_to(op.block)
        made.inputs = {
            slot: [names.get(n, n) for n in args] for slot, args in op.inputs.items()
        }
        return made


def is_gradient_block(block: Block) -> bool:
    return block.forward_block_idx >= 0


def inner_writes(op: Operator) -> set[str]:
    """Variables from outside that an op's sub-blocks write."""
    found: set[str] = set()
    for block in op.sub_blocks:
        local = is_gradient_block(block)
        for inner in block.ops:
            names = {*inner.output_arg_names, *inner_writes(inner)} - {EMPTY}
            found |= {
                n for n in names if n not in block.vars and not (local and GRAD in n)
            }
    return found


def notes_of(program: Program) -> dict[int, Notes]:
    """Notes by block index; empty for a program without gradient blocks."""
    blocks = [b for b in program.blocks if is_gradient_block(b)]
    return _Tracer(program).trace(blocks) if blocks else {}


class _Tracer:
    def __init__(self, program: Program) -> None:
        self.program = program
        changed = frozenset(_changed_in_place(program))
        self.notes: dict[int, Notes] = defaultdict(lambda: Notes(in_place=changed))
        self.owner = {
            inner.idx: (block, index)
            for block in program.blocks
            for index, op in enumerate(block.ops)
            for inner in op.sub_blocks
        }
        self._writes: dict[int, dict[str, list[int]]] = {}
        self._makers: dict[int, dict[str, list[tuple[int, _Reads]]]] = {}

    def trace(self, blocks: list[Block]) -> dict[int, Notes]:
        for block in blocks:
            forward = self.program.blocks[block.forward_block_idx]
            last = len(forward.ops) - 1
            for op in block.ops:
                names = {n for n in op.input_arg_names if n != EMPTY}
                for name in names:
                    self._keep(forward, name)
                    if GRAD in name and reads_lod(op):  # that of its variable
                        self._keep(forward, name[: name.index(GRAD)])
                if op.sub_blocks:  # its blocks are traced by themselves
                    continue
                found = self._forward_op(op, forward, last)
                last = last if found is None else found
                for slot, args in op.inputs.items():
                    for name in args:
                        self._value(op, slot, name, forward, found)
        return dict(self.notes)

    def _around(self, block: Block) -> Iterator[tuple[Block, int]]:
        """The blocks around a block, with the position of the op that runs it."""
        while block.idx in self.owner:
            block, index = self.owner[block.idx]
            yield block, index

    def _keep(self, forward: Block, name: str) -> None:
        for block in (forward, *(b for b, _ in self._around(forward))):
            if name in block.vars:
                if block.parent_idx >= 0:
                    self.notes[block.idx].keep.add(name)
                return

    # ------------------------------------------------ which forward op

    def _forward_op(self, op: Operator, forward: Block, last: int) -> int | None:
        """The position of the forward op that a gradient op belongs to."""
        reads = _Reads.of(op.inputs)
        for index, wanted in reversed(self._gradients(forward).get(op.type, ())):
            if index <= last and reads == wanted:
                return index
        return None

    def _gradients(self, forward: Block) -> dict[str, list[tuple[int, _Reads]]]:
        """By type of gradient op: forward positions, and what it would read there."""
        known = self._makers.get(forward.idx)
        if known is None:
            known = self._makers[forward.idx] = defaultdict(list)
            for index, op in enumerate(forward.ops):
                if op.sub_blocks or op.definition.grad is None:
                    continue
                attrs = {**op.definition.defaults, **op.attrs}
                context = GradContext(op.type, op.inputs, op.outputs, attrs)
                for spec in op.definition.grad_specs(context):
                    known[spec.type].append((index, _Reads.of(spec.inputs)))
        return known

    # ------------------------------------------------ which value

    def _value(
        self, op: Operator, slot: str, name: str, forward: Block, index: int | None
    ) -> None:
        if name == EMPTY or GRAD in name or name in op.output_arg_names:
            return
        after = index is None or self._is_output(forward.ops[index], slot, name)
        levels = [(forward, index), *self._around(forward)]
        for block, position in levels:
            if block.parent_idx < 0:
                return
            writes = self._writes_of(block).get(name, [])
            count = len(writes)
            if position is not None:
                count = sum(w < position or (after and w == position) for w in writes)
            if writes and self._is_tensor(block, name):
                if name not in block.vars or count < len(writes):
                    key = f"{name}@VALUE{count}@{block.idx}"
                    self._save(block, name, key, writes[count - 1] if count else None)
                    self.notes[op.block.idx].renamed[id(op)][name] = key
                return
            if name in block.vars:
                return
            after = False

    def _is_output(self, op: Operator, slot: str, name: str) -> bool:
        """Whether the value that the op made is meant, not one that it took."""
        if name in op.input_arg_names and name in op.output_arg_names:
            return slot in op.outputs
        return name in op.output_arg_names

    def _is_tensor(self, block: Block, name: str) -> bool:
        var = block._find_var_recursive(name)
        return var is None or var.type != VarType.LOD_TENSOR_ARRAY

    def _writes_of(self, block: Block) -> dict[str, list[int]]:
        known = self._writes.get(block.idx)
        if known is None:
            known = self._writes[block.idx] = defaultdict(list)
            for index, op in enumerate(block.ops):
                for name in {*op.output_arg_names, *inner_writes(op)} - {EMPTY}:
                    known[name].append(index)
        return known

    def _save(self, block: Block, name: str, key: str, at: int | None) -> None:
        notes = self.notes[block.idx]
        place = notes.entry if at is None else notes.after[id(block.ops[at])]
        if (name, key) not in place:
            place.append((name, key))
        if name in block.vars:
            notes.keep.add(name)


@dataclass(frozen=True)
class _Reads:
    """The forward values that a gradient op reads, by slot."""

    slots: frozenset[tuple[str, tuple[str, ...]]]

    @staticmethod
    def of(inputs: dict[str, list[str]]) -> _Reads:
        return _Reads(
            frozenset(
                (slot, tuple(args))
                for slot, args in inputs.items()
                if args and not slot.endswith(GRAD) and not any(GRAD in n for n in args)
            )
        )


def reads_lod(op: Operator) -> bool:
    """Whether an op's kernel or its LoD rule looks at the LoD of its inputs."""
    definition = kernels.find(op.type) if kernels.has(op.type) else None
    return definition is not None and (
        definition.lod_rule is not None or "lod" in definition.keywords
    )


def _changed_in_place(program: Program) -> set[str]:
    """Variables whose arrays some op changes in place."""
    found: set[str] = set()
    for op in program.all_ops():
        if kernels.has(op.type):
            for slot in op.definition.inplace:
                found.update(op.output(slot))
    return found
