"""Reading ProgramDesc bytes (see `proto`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fluidx.kernels import AttrType, VarType, as_dtype

from .attrs import short_float
from .block import Block
from .errors import BuildError, Where
from .operator import Operator
from .program import Program
from .proto import FIELD, op_message, tensor_of, var_message
from .proto_schema import messages
from .roles import CALLSTACK
from .variable import Variable

__all__ = ["read_program"]

_FRAME = re.compile(r'\s*File "(.*)", line (\d+), in (.*)')


def read_program(data: bytes) -> Program:
    """See `proto.from_bytes`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a saved program is bytes, got {data.__class__.__name__}")
    from google.protobuf.message import DecodeError

    try:
        read = messages().Program.FromString(bytes(data))
    except DecodeError as error:
        raise _wrong(f"{len(data)} bytes that are not a program: {error}") from None
    if not read.blocks:
        raise _wrong(f"{len(data)} bytes hold no block")
    program = Program()
    program._desc_version = read.version.version if read.HasField("version") else None
    program.blocks = [
        _read_block(program, i, block) for i, block in enumerate(read.blocks)
    ]
    for block, message in zip(program.blocks, read.blocks):
        if not -1 <= block.forward_block_idx < len(program.blocks):
            raise _wrong(f"block {block.idx} is of block {block.forward_block_idx}")
        for var in message.vars:
            _read_var(block, var)
        for op in message.ops:
            block._adopt(_read_op(block, op))
        block.wire = _unknown(message)
    program.wire = _unknown(read, keep="op_versions")
    program._touch()
    return program


def _wrong(message: str) -> BuildError:
    return BuildError(f"saved program: {message}")


def _text(data: bytes, what: str) -> str:
    """A name; it must be there and be text."""
    try:
        name = data.decode()
    except UnicodeDecodeError:
        raise _wrong(f"{what}: the name {data[:40]!r} is not UTF-8") from None
    if not name:
        raise _wrong(f"{what}: a name is empty")
    return name


def _unknown(message: Any, keep: str = "") -> bytes:
    """What is left of a message without the fields that we read."""
    for field in message.DESCRIPTOR.fields:
        if field.name != keep:
            message.ClearField(field.name)
    return message.SerializeToString()  # type: ignore[no-any-return]


def _read_block(program: Program, index: int, message: Any) -> Block:
    if message.idx != index:
        raise _wrong(f"block {message.idx} stands at place {index}")
    parent = message.parent_idx
    if not (0 <= parent < index or (parent == -1 and index == 0)):
        raise _wrong(f"block {index} cannot be inside block {parent}")
    block = Block(program, index, parent)
    if message.HasField("forward_block_idx"):
        block.forward_block_idx = message.forward_block_idx
    return block


# ---------------------------------------------------------------- variables


def _read_var(block: Block, message: Any) -> None:
    name = _text(message.name, f"a variable of block {block.idx}")
    what = f"variable {name!r}"
    if name in block.vars:
        raise _wrong(f"{what} stands twice in block {block.idx}")
    tensor, lod_level = tensor_of(message.type)
    dtype = None
    try:
        kind = VarType(message.type.kind)
        if tensor is not None and tensor.HasField("dtype"):
            dtype = as_dtype(VarType(tensor.dtype))
    except (TypeError, ValueError) as error:
        raise _wrong(f"{what}: {error}") from None
    var = Variable(
        block,
        kind,
        name,
        tensor.dims if tensor is not None else (),
        dtype,
        lod_level,
        persistable=message.persistable,
        need_check_feed=message.need_check_feed,
    )
    block.vars[name] = var
    read = message.SerializeToString(deterministic=True)
    if var_message(var).SerializeToString(deterministic=True) != read:
        var.wire = read


# ---------------------------------------------------------------- ops


def _read_op(block: Block, message: Any) -> Operator:
    type = _text(message.type, f"an op of block {block.idx}")
    what = f"block {block.idx}, op {len(block.ops)} ({type})"
    op = Operator(block, type)
    op.inputs = _read_slots(message.inputs, what)
    op.outputs = _read_slots(message.outputs, what)
    for attr in message.attrs:
        name = _text(attr.name, f"{what}, an attribute")
        if name in op.attrs:
            raise _wrong(f"{what}: attribute {name} stands twice")
        op.attrs[name] = _read_value(attr, block.program, f"{what}, attribute {name}")
    op.where = _where(op.attrs.get(CALLSTACK, ()))
    read = message.SerializeToString(deterministic=True)
    try:
        same = op_message(op).SerializeToString(deterministic=True) == read
    except BuildError:  # an attribute of a kind that is not the declared one
        same = False
    if not same:
        op.wire = read
    return op


def _read_slots(slots: Sequence[Any], what: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for slot in slots:
        name = _text(slot.name, f"{what}, a slot")
        if name in found:
            raise _wrong(f"{what}: slot {name} stands twice")
        found[name] = [_text(n, f"{what}, slot {name}") for n in slot.arguments]
    return found


def _read_value(attr: Any, program: Program, what: str) -> Any:
    try:
        kind = AttrType(attr.kind)
    except ValueError:
        raise _wrong(f"{what} is of an unknown kind {attr.kind}") from None
    field = FIELD[kind]
    value = getattr(attr, field)
    if kind.name.endswith("S"):
        return [_plain(kind, v, program, what) for v in value]
    if not attr.HasField(field):
        raise _wrong(f"{what} ({kind.name}) has no value")
    return _plain(kind, value, program, what)


def _plain(kind: AttrType, value: Any, program: Program, what: str) -> Any:
    if kind in (AttrType.FLOAT, AttrType.FLOATS):
        return short_float(value)
    if kind in (AttrType.BLOCK, AttrType.BLOCKS):
        if not 0 <= value < len(program.blocks):
            raise _wrong(f"{what}: there is no block {value}")
        return program.blocks[value]
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return value


def _where(callstack: Sequence[str]) -> Where | None:
    """The user's innermost line of a stored call stack (innermost frame first)."""
    if not isinstance(callstack, list):
        return None
    frames = [m for m in map(_FRAME.match, callstack) if m]
    users = [m for m in frames if "/paddle/fluid/" not in m[1]]
    found = (users or frames)[:1]
    return Where(found[0][1], int(found[0][2]), found[0][3]) if found else None
