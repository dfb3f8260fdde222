"""Programs as the reference's ProgramDesc bytes (``__model__``, ``.pdmodel``).

What such bytes cannot say: which variables are parameters, which are data, and where
gradients stop. Reading gives plain variables, as in the reference.

Bytes that the reference wrote come back as they were: attributes and variables keep the
order in which they were read, and what a `Program` has no place for (fields of newer
versions, which optional fields were set) stays in ``wire`` of the program, block,
variable or op. It is left out where writing anew gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidx.kernels import AttrType, VarType

from .attrs import coerce, kind_of
from .proto_schema import messages
from .roles import CALLSTACK, DEVICE, NAMESCOPE, ROLE, ROLE_VAR

if TYPE_CHECKING:
    from .block import Block
    from .errors import Where
    from .operator import Operator
    from .program import Program
    from .variable import Variable

__all__ = ["FIELD", "from_bytes", "op_message", "to_bytes", "var_message"]

#: the field of an Attribute message that holds values of a kind
FIELD = {
    AttrType.INT: "i",
    AttrType.FLOAT: "f",
    AttrType.STRING: "s",
    AttrType.INTS: "ints",
    AttrType.FLOATS: "floats",
    AttrType.STRINGS: "strings",
    AttrType.BOOLEAN: "b",
    AttrType.BOOLEANS: "bools",
    AttrType.BLOCK: "block",
    AttrType.LONG: "l",
    AttrType.BLOCKS: "blocks",
    AttrType.LONGS: "longs",
}

#: attributes that the reference writes into every op, and what absence means
_ALWAYS: Mapping[str, Any] = {ROLE: 0, ROLE_VAR: [], NAMESCOPE: "/", DEVICE: ""}


def from_bytes(data: bytes) -> Program:
    """The program that ProgramDesc bytes hold.

    TypeError: not bytes. BuildError: damaged, or of a kind that is not known; it says
    which block, op, variable and attribute.
    """
    from .proto_read import read_program

    return read_program(data)


def to_bytes(program: Program) -> bytes:
    """The program as ProgramDesc bytes; the same program gives the same bytes."""
    made = messages().Program()
    if program.wire:
        made.MergeFromString(program.wire)
    for block in program.blocks:
        _write_block(made.blocks.add(), block)
    if program._desc_version is not None:
        made.version.version = program._desc_version
    return made.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def _write_block(made: Any, block: Block) -> None:
    if block.wire:
        made.MergeFromString(block.wire)
    made.idx = block.idx
    made.parent_idx = block.parent_idx
    made.vars.extend(var_message(v) for v in block.vars.values())
    made.ops.extend(op_message(op) for op in block.ops)
    if block.forward_block_idx >= 0:
        made.forward_block_idx = block.forward_block_idx


# ---------------------------------------------------------------- variables


def var_message(var: Variable) -> Any:
    """A variable as its message."""
    made = messages().Variable(
        name=var.name.encode(),
        type=_kind_message(var),
        persistable=var.persistable,
        need_check_feed=True if var.need_check_feed else None,
    )
    if not var.wire:
        return made
    read = messages().Variable.FromString(var.wire)
    if _var_content(read) == _var_content(made):
        return read
    if read.type.HasField("reader") and var.type == VarType.READER:
        made.type.CopyFrom(read.type)
    return _carried_over(read, made)


def _kind_message(var: Variable) -> Any:
    made = messages().Kind(kind=int(var.type))
    tensor = messages().Tensor(dtype=int(var.dtype), dims=var.shape)
    if var.type == VarType.SELECTED_ROWS:
        made.selected_rows.CopyFrom(tensor)
    elif var.type in (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY):
        array = var.type == VarType.LOD_TENSOR_ARRAY
        holder = made.tensor_array if array else made.lod_tensor
        holder.tensor.CopyFrom(tensor)
        holder.lod_level = var.lod_level
    return made


def tensor_of(kind: Any) -> tuple[Any, int]:
    """The Tensor message (None where there is none) and LoD level of a Kind message."""
    if kind.HasField("selected_rows"):
        return kind.selected_rows, 0
    for field in ("lod_tensor", "tensor_array"):
        if kind.HasField(field):
            holder = getattr(kind, field)
            return holder.tensor, holder.lod_level
    return None, 0


def _var_content(var: Any) -> tuple[Any, ...]:
    tensor, lod_level = tensor_of(var.type)
    has_dtype = tensor is not None and tensor.HasField("dtype")
    return (
        var.name,
        var.type.kind,
        tensor.dtype if has_dtype else int(VarType.FP32),
        list(tensor.dims) if tensor is not None else [],
        lod_level,
        var.persistable,
        var.need_check_feed,
    )


def _carried_over(read: Any, made: Any) -> Any:
    """`made`, with the unknown fields of `read`."""
    for field in read.DESCRIPTOR.fields:
        read.ClearField(field.name)
    read.MergeFrom(made)
    return read


# ---------------------------------------------------------------- ops


def op_message(op: Operator) -> Any:
    """An op as its message. BuildError names an attribute that has no kind."""
    if not op.wire:
        return _fresh_op(op, {})
    read = messages().Operator.FromString(op.wire)
    made = _fresh_op(op, {a.name.decode(): a.kind for a in read.attrs})
    if _op_content(read) == _op_content(made):
        return read
    return _carried_over(read, made)


def _fresh_op(op: Operator, kinds: Mapping[str, int]) -> Any:
    made = messages().Operator(type=op.type.encode())
    for slots, given in ((made.inputs, op.inputs), (made.outputs, op.outputs)):
        for name in sorted(given):  # the order in which the reference has them
            arguments = [n.encode() for n in given[name]]
            slots.add(name=name.encode(), arguments=arguments)
    for name, value in _all_attrs(op):
        attr = made.attrs.add(name=name.encode())
        try:
            kind = AttrType(kinds.get(name, kind_of(op.type, name, value)))
            _set_value(attr, kind, coerce(kind, value))
        except TypeError as error:
            raise op.error(f"attribute {name}: {error}") from None
    return made


def _all_attrs(op: Operator) -> Iterator[tuple[str, Any]]:
    yield from op.attrs.items()
    for name, value in _ALWAYS.items():
        if name not in op.attrs:
            yield name, value
    if op.where and CALLSTACK not in op.attrs:
        yield CALLSTACK, [_frame(op.where)]


def _frame(where: Where) -> str:
    """A line of the user's code as it stands in a traceback."""
    import linecache

    source = linecache.getline(where.file, where.line).strip()
    head = f'  File "{where.file}", line {where.line}, in {where.function}\n'
    return f"{head}    {source}\n" if source else head


def _set_value(attr: Any, kind: AttrType, value: Any) -> None:
    attr.kind = int(kind)
    many = isinstance(value, list)
    wired = [_wired(v) for v in value] if many else _wired(value)
    if many:
        getattr(attr, FIELD[kind]).extend(wired)
    else:
        setattr(attr, FIELD[kind], wired)


def _wired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    return getattr(value, "idx", value)


def _op_content(op: Any) -> tuple[Any, ...]:
    attrs = {
        a.name: (a.kind, _plain(getattr(a, FIELD[AttrType(a.kind)]))) for a in op.attrs
    }
    for name, value in _ALWAYS.items():
        absent = [] if value == [] else _wired(value)
        attrs.setdefault(name.encode(), (kind_of("", name, value), absent))
    return op.type, _slot_content(op.inputs), _slot_content(op.outputs), attrs


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, bytes)) else list(value)


def _slot_content(slots: Sequence[Any]) -> dict[bytes, list[bytes]]:
    return {s.name: list(s.arguments) for s in slots if s.arguments}
