"""Operators: one op of a block, its variables by slot, its attributes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidx import kernels
from fluidx.kernels import EMPTY, GRAD, In, InferContext, InferError, Meta, OpDef, Out

from . import names
from .attrs import coerce, is_block, kind_of, plain
from .errors import BuildError, Where, describe
from .roles import COMMON, COMMON_DEFAULTS, DEVICE, NAMESCOPE, ROLE, ROLE_VAR
from .variable import Variable

if TYPE_CHECKING:
    from .block import Block

__all__ = ["Operator", "user_line"]

Slots = dict[str, list[str]]


def user_line() -> Where | None:
    """The innermost line on the stack that is not fluidx's own."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        # `with` blocks of ours (loops, branches) leave through contextlib
        if not (name in ("fluidx", "contextlib") or name.startswith("fluidx.")):
            code = frame.f_code
            return Where(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _arg_names(value: Any, slot: str, type: str) -> list[str]:
    """Names in a slot, from a Variable, a name, or a sequence of them."""
    if value is None:
        return []
    many = value if isinstance(value, (list, tuple)) else [value]
    found = []
    for item in many:
        if isinstance(item, bytes):
            item = item.decode()
        name = item if isinstance(item, str) else getattr(item, "name", None)
        if not isinstance(name, str):
            raise BuildError(
                f"op {type}, slot {slot}: expected a Variable, got "
                f"{item.__class__.__name__} {item!r:.60}"
            )
        found.append(name)
    return found


class Operator:
    """One op: ``type``, variables by slot, attributes, and where it was written.

    attrs holds every attribute of the op, defaults filled in. Made by
    `Block.append_op`; slots hold names, so renaming is cheap. wire: what the
    protobuf bytes that it was read from say beyond that (see `proto`).
    """

    __slots__ = ("attrs", "block", "inputs", "outputs", "type", "where", "wire")

    def __init__(
        self,
        block: Block,
        type: str,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        where: Where | None = None,
    ) -> None:
        self.block = block
        self.type = type
        self.where = where
        self.wire = b""
        self.inputs: Slots = {
            k: _arg_names(v, k, type) for k, v in (inputs or {}).items()
        }
        self.outputs: Slots = {
            k: _arg_names(v, k, type) for k, v in (outputs or {}).items()
        }
        self.attrs: dict[str, Any] = {
            k: plain(v) for k, v in (attrs or {}).items() if v is not None
        }

    # ------------------------------------------------ reading

    @property
    def idx(self) -> int:
        """Position in the block (linear search)."""
        return next(i for i, op in enumerate(self.block.ops) if op is self)

    # in the order of the slots' names, as the reference keeps them

    @property
    def input_names(self) -> list[str]:
        return sorted(self.inputs)

    @property
    def output_names(self) -> list[str]:
        return sorted(self.outputs)

    @property
    def attr_names(self) -> list[str]:
        return list(self.attrs)

    @property
    def input_arg_names(self) -> list[str]:
        return [n for slot in sorted(self.inputs) for n in self.inputs[slot]]

    @property
    def output_arg_names(self) -> list[str]:
        return [n for slot in sorted(self.outputs) for n in self.outputs[slot]]

    def input(self, name: str) -> list[str]:
        """Names of the variables in an input slot."""
        return list(self.inputs.get(name, ()))

    def output(self, name: str) -> list[str]:
        """Names of the variables in an output slot."""
        return list(self.outputs.get(name, ()))

    def has_attr(self, name: str) -> bool:
        return (
            name in self.attrs
            or name in COMMON_DEFAULTS
            or (kernels.has(self.type) and name in kernels.find(self.type).defaults)
        )

    def attr(self, name: str) -> Any:
        """An attribute's value; KeyError names the op's attributes."""
        if name in self.attrs:
            return self.attrs[name]
        if kernels.has(self.type):
            defaults = kernels.find(self.type).defaults
            if name in defaults:
                return defaults[name]
        if name in COMMON_DEFAULTS:
            return plain(COMMON_DEFAULTS[name])
        raise KeyError(
            f"op {self.type} has no attribute {name!r}; it has {sorted(self.attrs)}"
        )

    def all_attrs(self) -> dict[str, Any]:
        return dict(self.attrs)

    def attr_type(self, name: str) -> kernels.AttrType:
        return kind_of(self.type, name, self.attr(name))

    @property
    def desc(self) -> Any:
        """A view in which facts are calls (``op.desc.type()``); see `desc`."""
        from .desc import OpDesc

        return OpDesc(self)

    def _block_attr(self, name: str) -> Block:
        return self.attr(name)  # type: ignore[no-any-return]

    def _block_attr_id(self, name: str) -> int:
        return int(self.attr(name).idx)

    @property
    def role(self) -> int:
        return int(self.attrs.get(ROLE, 0))

    @property
    def role_var(self) -> list[str]:
        """[parameter, gradient, ...] that this op makes or uses."""
        return list(self.attrs.get(ROLE_VAR, ()))

    @property
    def definition(self) -> OpDef:
        return kernels.find(self.type)

    @property
    def sub_blocks(self) -> list[Block]:
        """Blocks that attributes of this op refer to."""
        found: list[Block] = []
        for value in self.attrs.values():
            found += filter(is_block, value if isinstance(value, list) else (value,))
        return found

    # ------------------------------------------------ changing

    def _set_attr(self, name: str, value: Any) -> None:
        self.attrs[name] = self._coerced(name, value)
        self.block.program._touch()

    def _remove_attr(self, name: str) -> None:
        self.attrs.pop(name, None)
        self.block.program._touch()

    def _rename_input(self, old: str, new: str) -> None:
        _rename(self.inputs, old, new)
        self.block.program._touch()

    def _rename_output(self, old: str, new: str) -> None:
        _rename(self.outputs, old, new)
        self.block.program._touch()

    def copy_to(self, block: Block) -> Operator:
        """An equal op for another block (not inserted)."""
        made = Operator.__new__(Operator)  # nothing is left to convert
        made.block = block
        made.type = self.type
        made.where = self.where
        made.wire = self.wire
        made.inputs = {k: v[:] for k, v in self.inputs.items()}
        made.outputs = {k: v[:] for k, v in self.outputs.items()}
        made.attrs = {
            k: v[:] if v.__class__ is list else v for k, v in self.attrs.items()
        }
        return made

    # ------------------------------------------------ checking

    def fill_common(self) -> None:
        """Fill in the op role, name scope and defaults of a freshly built op."""
        program = self.block.program
        self.attrs.setdefault(ROLE, int(program._op_role))
        if ROLE_VAR not in self.attrs and program._op_role_var:
            self.attrs[ROLE_VAR] = list(program._op_role_var)
        self.attrs.setdefault(NAMESCOPE, names.current_scope())
        if program._device:
            self.attrs.setdefault(DEVICE, program._device)
        definition = self._known()
        for name, value in self.attrs.items():
            if name not in definition.attrs and name not in COMMON:
                raise self.error(
                    f"no attribute {name!r}; it has {sorted(definition.attrs)}"
                )
            self.attrs[name] = self._coerced(name, value)
        self.fill_defaults()

    def fill_defaults(self) -> None:
        """Give the op the attributes of its type that it was not given."""
        for name, value in self._known().defaults.items():
            if name not in self.attrs:
                self.attrs[name] = _unshared(value)

    def _coerced(self, name: str, value: Any) -> Any:
        try:
            return coerce(kind_of(self.type, name, plain(value)), value)
        except TypeError as error:
            raise self.error(f"attribute {name}: {error}") from None

    def _known(self) -> OpDef:
        try:
            return kernels.find(self.type)
        except KeyError as error:
            raise self.error(str(error.args[0])) from None

    def check_slots(self) -> None:
        """Slots must be the op's own, required ones filled, single ones single."""
        definition = self._known()
        for given, slots, side in (
            (self.inputs, definition.ins, "input"),
            (self.outputs, definition.outs, "output"),
        ):
            known = {s.name: s for s in slots}
            for name, args in given.items():
                if name not in known:
                    raise self.error(f"no {side} {name!r}; it has {list(known)}")
                if len(args) > 1 and not known[name].duplicable:
                    raise self.error(f"{side} {name} takes one variable, got {args}")
            for slot in slots:
                if side == "input" and self.needs(slot) and not given.get(slot.name):
                    raise self.error(f"{side} {slot.name} is missing")

    def needs(self, slot: In | Out) -> bool:
        """Whether a slot must hold something.

        Gradient ops do without what nobody needs; ops that act on the world (recv,
        listen_and_serv) may have nothing to wait for, and blocks nothing to read.
        """
        definition = self.definition
        optional = definition.forward or definition.effect or definition.scoped
        return not (slot.dispensable or optional)

    def infer(self) -> None:
        """Set shape, dtype, LoD level and kind of the outputs."""
        for slot, metas in self.inferred().items():
            for name, meta in zip(self.outputs.get(slot, ()), metas):
                var = self.block._find_var_recursive(name)
                if var is not None:
                    var.set_meta(meta)

    def inferred(self) -> Mapping[str, Sequence[Meta]]:
        """Facts of the outputs by slot, from those of the inputs; nothing is set."""
        definition = self._known()
        context = InferContext(
            self.type,
            {k: self._metas(k, v) for k, v in self.inputs.items()},
            {**definition.defaults, **self.attrs},
            {k: len(v) for k, v in self.outputs.items()},
        )
        try:
            definition.infer(context)
        except (InferError, IndexError, KeyError, TypeError, ValueError) as error:
            raise self.error(self._why(error)) from error
        return context.outs

    def _metas(self, slot: str, args: Sequence[str]) -> list[Meta]:
        found = []
        for name in args:
            if name == EMPTY:
                continue
            var = self.block._find_var_recursive(name)
            if var is None and self.block.forward_block_idx >= 0:
                # a gradient that comes from outside the block: like its variable
                var = self.block._find_var_recursive(name.partition(GRAD)[0])
            if var is None:
                raise self.error(
                    f"input {slot}: no variable {name!r} in block {self.block.idx} "
                    "or around it"
                )
            found.append(var.meta)
        return found

    def _why(self, error: Exception) -> str:
        text = str(error)
        if isinstance(error, InferError):
            text = text.removeprefix(f"{self.type}: ")
        shapes = []
        for slot, args in self.inputs.items():
            for name in args:
                var = self.block._find_var_recursive(name)
                if var is not None and not slot.endswith(GRAD):
                    shapes.append(f"{slot} {name} {list(var.shape)}")
        return f"{text} ({'; '.join(shapes)})" if shapes else text

    def error(self, message: str) -> BuildError:
        """A `BuildError` that names this op and the user's line."""
        return BuildError(describe(f"op {self.type}", message, self.where))

    def to_string(self, throw_on_error: bool = True) -> str:
        from .text import op_line

        return op_line(self)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{self.to_string()}>"


def _unshared(value: Any) -> Any:
    """A list as a new one; everything else cannot change."""
    return list(value) if isinstance(value, list) else value


def _rename(slots: Slots, old: str, new: str) -> None:
    for args in slots.values():
        for i, name in enumerate(args):
            if name == old:
                args[i] = new


def flat(slots: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """All names of all slots."""
    return (n for args in slots.values() for n in args)


def variable_of(item: Variable | str) -> str:
    """The name of a variable given by itself or by name."""
    return item if isinstance(item, str) else item.name
