"""``desc`` of programs, blocks, ops and variables: their facts as calls.

In the reference a program has two halves, and ``desc`` is the C++ one, where names,
types and shapes are methods: ``op.desc.type()``, ``var.desc.shape()``. Here they are
views: what is read and changed through them is the program itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx import kernels
from fluidx.kernels import AttrType

from .attrs import kind_of
from .block import Block
from .errors import EnforceNotMet
from .operator import Operator
from .program import Program
from .proto import op_message, var_message
from .proto_schema import messages
from .roles import CALLSTACK, DEVICE, NAMESCOPE, ROLE, ROLE_VAR
from .variable import Variable

__all__ = ["BlockDesc", "OpDesc", "ProgramDesc", "VarDesc", "plain_of"]


def plain_of(value: Any) -> Any:
    """What a view shows; anything else as it is."""
    return getattr(value, "_of", value)


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


class _Desc:
    """A view; two of the same thing are equal."""

    _of: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._of is self._of

    def __hash__(self) -> int:
        return hash(id(self._of))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._of!r}>"

    @property
    def _program(self) -> Program:
        return self._of.block.program  # type: ignore[no-any-return]


class ProgramDesc(_Desc):
    """``core.ProgramDesc``: of a program, or of a new one."""

    def __init__(self, program: Program | None = None) -> None:
        self._of: Program = Program() if program is None else program

    def num_blocks(self) -> int:
        return len(self._of.blocks)

    def block(self, index: int) -> BlockDesc:
        return BlockDesc(self._of.blocks[index])

    def append_block(self, parent: BlockDesc) -> BlockDesc:
        """A new block inside `parent`; the current block stays."""
        current = self._of.current_block_idx
        made = self._of._create_block(parent.id)
        self._of.current_block_idx = current
        return BlockDesc(made)

    def get_feed_target_names(self) -> list[str]:
        """What the feed ops of a saved program make."""
        return self._names("feed", "outputs", "Out")

    def get_fetch_target_names(self) -> list[str]:
        return self._names("fetch", "inputs", "X")

    def _names(self, type: str, side: str, slot: str) -> list[str]:
        ops = [op for op in self._of.global_block().ops if op.type == type]
        return [n for op in ops for n in getattr(op, side).get(slot, ())]

    def serialize_to_string(self) -> bytes:
        return self._of.serialize_to_string()

    def parse_from_string(self, data: bytes) -> None:
        """Become the program that these bytes hold."""
        self._of.__dict__.update(Program.parse_from_string(data).__dict__)
        for block in self._of.blocks:
            block.program = self._of

    def flush(self) -> None:
        """Nothing to do: there is no second half."""

    def _version(self) -> int:
        return self._of._desc_version or 0

    def _set_version(self, version: int) -> None:
        self._of._desc_version = int(version)


class BlockDesc(_Desc):
    """``core.BlockDesc``. Names are given as bytes or str."""

    def __init__(self, block: Block) -> None:
        self._of: Block = block

    @property
    def id(self) -> int:
        return self._of.idx

    idx = id

    @property
    def parent(self) -> int:
        return self._of.parent_idx

    @property
    def _program(self) -> Program:
        return self._of.program

    def get_forward_block_idx(self) -> int:
        return self._of.forward_block_idx

    def _set_forward_block_idx(self, index: int) -> None:
        self._of.forward_block_idx = index

    # ------------------------------------------------ ops

    def op_size(self) -> int:
        return len(self._of.ops)

    def op(self, index: int) -> OpDesc:
        return OpDesc(self._of.ops[index])

    def append_op(self) -> OpDesc:
        """A new op at the end, to be filled in."""
        return self._insert_op(len(self._of.ops))

    def _prepend_op(self) -> OpDesc:
        return self._insert_op(0)

    def _insert_op(self, index: int) -> OpDesc:
        made = Operator(self._of, "")
        self._of.ops.insert(index, made)
        self._of.program._touch()
        return OpDesc(made)

    def _remove_op(self, start: int, end: int) -> None:
        del self._of.ops[start:end]
        self._of.program._touch()

    # ------------------------------------------------ variables

    def var(self, name: str | bytes) -> VarDesc:
        """The variable of this name, which is declared if there is none."""
        return VarDesc(self._of.create_var(name=_text(name)))

    def find_var(self, name: str | bytes) -> VarDesc | None:
        found = self._of.vars.get(_text(name))
        return None if found is None else VarDesc(found)

    def find_var_recursive(self, name: str | bytes) -> VarDesc | None:
        found = self._of._find_var_recursive(_text(name))
        return None if found is None else VarDesc(found)

    def has_var(self, name: str | bytes) -> bool:
        return _text(name) in self._of.vars

    def has_var_recursive(self, name: str | bytes) -> bool:
        return self._of._find_var_recursive(_text(name)) is not None

    def all_vars(self) -> list[VarDesc]:
        return [VarDesc(v) for v in self._of.vars.values()]

    def _rename_var(self, old: str | bytes, new: str | bytes) -> None:
        self._of._rename_var(_text(old), _text(new))

    def _remove_var(self, name: str | bytes) -> None:
        self._of._remove_var(_text(name))

    def serialize_to_string(self) -> bytes:
        program = messages().Program.FromString(self._of.program.serialize_to_string())
        return program.blocks[self._of.idx].SerializeToString(deterministic=True)  # type: ignore[no-any-return]


class OpDesc(_Desc):
    """``core.OpDesc``: of an op, or of a new one in no program."""

    def __init__(self, op: Operator | None = None) -> None:
        self._of: Operator = (
            Operator(Program().global_block(), "") if op is None else op
        )

    def type(self) -> str:
        return self._of.type

    def set_type(self, type: str) -> None:
        self._of.type = type
        self._program._touch()

    def block(self) -> BlockDesc:
        return BlockDesc(self._of.block)

    def copy_from(self, other: OpDesc) -> None:
        """Take type, slots and attributes of another op."""
        copy = plain_of(other).copy_to(self._of.block)
        self._of.type, self._of.attrs = copy.type, copy.attrs
        self._of.inputs, self._of.outputs = copy.inputs, copy.outputs
        self._program._touch()

    # ------------------------------------------------ slots

    def input(self, slot: str) -> list[str]:
        """Names in a slot. EnforceNotMet: the op has nothing there."""
        return self._slot("input", self._of.inputs, slot)

    def output(self, slot: str) -> list[str]:
        return self._slot("output", self._of.outputs, slot)

    def _slot(self, side: str, slots: dict[str, list[str]], slot: str) -> list[str]:
        if slot not in slots:
            raise EnforceNotMet(
                f"op {self._of.type} has no {side} {slot!r}; it has {list(slots)}"
            )
        return list(slots[slot])

    def inputs(self) -> dict[str, list[str]]:
        return {k: list(v) for k, v in self._of.inputs.items()}

    def outputs(self) -> dict[str, list[str]]:
        return {k: list(v) for k, v in self._of.outputs.items()}

    def input_names(self) -> list[str]:
        return sorted(self._of.inputs)

    def output_names(self) -> list[str]:
        return sorted(self._of.outputs)

    def input_arg_names(self) -> list[str]:
        return self._of.input_arg_names

    def output_arg_names(self) -> list[str]:
        return self._of.output_arg_names

    def set_input(self, slot: str, names: Sequence[str | bytes]) -> None:
        self._of.inputs[slot] = [_text(n) for n in names]
        self._program._touch()

    def set_output(self, slot: str, names: Sequence[str | bytes]) -> None:
        self._of.outputs[slot] = [_text(n) for n in names]
        self._program._touch()

    def _rename_input(self, old: str, new: str) -> None:
        self._of._rename_input(old, new)

    def _rename_output(self, old: str, new: str) -> None:
        self._of._rename_output(old, new)

    # ------------------------------------------------ attributes

    def attr_names(self) -> list[str]:
        """All, with those that every op has."""
        common = (ROLE, ROLE_VAR, NAMESCOPE, CALLSTACK, DEVICE)
        return list(dict.fromkeys([*self._of.attrs, *common]))

    def has_attr(self, name: str) -> bool:
        return name in self.attr_names() or self._of.has_attr(name)

    def attr(self, name: str) -> Any:
        """A value; blocks as views. EnforceNotMet: no such attribute."""
        value = self._value(name)
        if isinstance(value, list):
            return [BlockDesc(v) if isinstance(v, Block) else v for v in value]
        return BlockDesc(value) if isinstance(value, Block) else value

    def _value(self, name: str) -> Any:
        try:
            return self._of.attr(name)
        except KeyError as error:
            if name not in self.attr_names():
                raise EnforceNotMet(str(error.args[0])) from None
        return {ROLE: 0, ROLE_VAR: [], CALLSTACK: []}.get(name, "")

    def attr_type(self, name: str) -> AttrType:
        return kind_of(self._of.type, name, self._value(name))

    def _set_attr(self, name: str, value: Any) -> None:
        self._of._set_attr(name, plain_of(value))

    def set_block_attr(self, name: str, block: BlockDesc) -> None:
        self._of._set_attr(name, plain_of(block))

    def set_blocks_attr(self, name: str, blocks: Sequence[BlockDesc]) -> None:
        self._of._set_attr(name, [plain_of(b) for b in blocks])

    def remove_attr(self, name: str) -> None:
        self._of.attrs.pop(name, None)
        self._program._touch()

    def _block_attr_id(self, name: str) -> int:
        return self._of._block_attr_id(name)

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [block.idx for block in self._of.attr(name)]

    # ------------------------------------------------ the whole

    def check_attrs(self) -> None:
        """Fill in defaults; BuildError for an attribute that the op has not."""
        self._of.fill_common()

    def infer_shape(self, block: BlockDesc) -> None:
        """Set shape, dtype and LoD level of the outputs."""
        self._of.infer()

    def infer_var_type(self, block: BlockDesc) -> None:
        """The same: inference finds kinds, too."""
        self._of.infer()

    def serialize_to_string(self) -> bytes:
        return op_message(self._of).SerializeToString(deterministic=True)  # type: ignore[no-any-return]


class VarDesc(_Desc):
    """``core.VarDesc``: of a variable, or (given a name) of a new one in no program."""

    VarType = kernels.VarType

    def __init__(self, var: Variable | str) -> None:
        made = isinstance(var, (str, bytes))
        block = Program().global_block() if made else None
        self._of: Variable = (
            block.create_var(name=_text(var)) if block is not None else var  # type: ignore[arg-type, assignment]
        )

    def name(self) -> str:
        return self._of.name

    def set_name(self, name: str) -> None:
        self._of.block._rename_var(self._of.name, name)

    def shape(self) -> list[int]:
        return list(self._of.shape)

    get_shape = shape

    def set_shape(self, shape: Sequence[int]) -> None:
        self._of.set_shape(shape)

    def dtype(self) -> kernels.VarType:
        return self._of.dtype

    def set_dtype(self, dtype: Any) -> None:
        self._of.set_dtype(dtype)

    def type(self) -> kernels.VarType:
        return self._of.type

    def set_type(self, type: kernels.VarType) -> None:
        self._of.type = kernels.VarType(type)
        self._program._touch()

    def lod_level(self) -> int:
        return self._of.lod_level

    def set_lod_level(self, level: int) -> None:
        self._of._lod_level = int(level)
        self._program._touch()

    def persistable(self) -> bool:
        return self._of.persistable

    def set_persistable(self, value: bool) -> None:
        self._of.persistable = value

    def need_check_feed(self) -> bool:
        return self._of.need_check_feed

    def set_need_check_feed(self, value: bool) -> None:
        self._of.need_check_feed = bool(value)

    def serialize_to_string(self) -> bytes:
        return var_message(self._of).SerializeToString(deterministic=True)  # type: ignore[no-any-return]
