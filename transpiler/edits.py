"""Small steps shared by the passes: ops made, variables declared and dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fluidx import kernels
from fluidx.ir import Block, Operator, OpRole, Parameter, Program, Variable, make_op
from fluidx.kernels import VarType

__all__ = [
    "RPC",
    "Slots",
    "adopt",
    "control_names",
    "declare",
    "drop_vars",
    "new_op",
    "rename_slots",
    "where_of",
]

Slots = Mapping[str, Sequence[str]]
RPC = int(OpRole.RPC)


def new_op(
    block: Block,
    type: str,
    inputs: Slots,
    outputs: Slots,
    attrs: Mapping[str, Any],
    role: int = 0,
    like: Operator | None = None,
    role_var: Sequence[str] = (),
) -> Operator:
    """An op for `block`, not inserted; it goes back to the user's line of `like`.

    An op type that has no kernel (``gen_nccl_id`` exists for GPUs only) can be part
    of a program; running it is another matter.
    """
    given = dict(attrs)
    if role_var:
        given["op_role_var"] = list(role_var)
    where = like.where if like is not None else None
    if kernels.has(type):
        return make_op(block, type, inputs, outputs, given, role=role, where=where)
    return Operator(block, type, inputs, outputs, {"op_role": role, **given}, where)


def declare(
    block: Block,
    name: str,
    shape: Sequence[int] = (),
    dtype: VarType = VarType.FP32,
    kind: VarType = VarType.LOD_TENSOR,
    persistable: bool = False,
    **facts: Any,
) -> str:
    """Declare a plain variable unless there is one; returns its name."""
    if name not in block.vars:
        block.vars[name] = Variable(
            block,
            kind,
            name,
            shape,
            dtype,
            persistable=persistable,
            **facts,
        )
    return name


class control_names:
    """Names of variables that only say what comes after what, new to a block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._next = 0

    def __call__(self) -> str:
        while True:
            name = f"__control_var@{self._next}"
            self._next += 1
            if name not in self._block.vars:
                return declare(self._block, name, dtype=VarType.BOOL)


def drop_vars(block: Block, names: Iterable[str]) -> None:
    """Forget variables; unknown names are passed over."""
    for name in names:
        block.vars.pop(name, None)
    block.program._touch()


def rename_slots(op: Operator, names: Mapping[str, str]) -> None:
    """Rename an op's variables, in ``op_role_var`` too."""
    for slots in (op.inputs, op.outputs):
        for args in slots.values():
            for i, name in enumerate(args):
                if name in names:
                    args[i] = names[name]
    given = op.attrs.get("op_role_var")
    if given and any(n in names for n in given):
        op.attrs["op_role_var"] = [names.get(n, n) for n in given]


def where_of(ops: Iterable[Operator]) -> Operator | None:
    """The first op that knows its user's line."""
    return next((op for op in ops if op.where is not None), None)


def adopt(target: Program, made: Program) -> None:
    """Put the content of `made` into the program that the user holds.

    Blocks and the variables that stay keep their identity.
    """
    for block in made.blocks[len(target.blocks) :]:
        target.blocks.append(Block(target, block.idx, block.parent_idx))
    del target.blocks[len(made.blocks) :]
    for old, new in zip(target.blocks, made.blocks):
        old.parent_idx, old.forward_block_idx = new.parent_idx, new.forward_block_idx
        old.vars = {n: _kept(old, n, v) for n, v in new.vars.items()}
        old.ops = new.ops
        for op in old.ops:
            op.block = old
            for key, value in op.attrs.items():
                op.attrs[key] = _own_blocks(target, value)
    target._touch()


def _kept(block: Block, name: str, var: Variable) -> Variable:
    known = block.vars.get(name)
    if known is not None and known.meta == var.meta and type(known) is type(var):
        known._persistable = var.persistable
        return known
    var.block = block
    return var


def _own_blocks(program: Program, value: Any) -> Any:
    if isinstance(value, Block):
        return program.blocks[value.idx]
    if isinstance(value, list) and value and isinstance(value[0], Block):
        return [program.blocks[b.idx] for b in value]
    return value


def is_parameter(var: Variable | None) -> bool:
    return isinstance(var, Parameter)
