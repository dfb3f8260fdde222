"""``fluid.op``: a single op, run on a scope without a program.

scope.var("x").get_tensor().set(numpy.ones((2, 3), "float32"), place)
scope.var("y")
Operator("scale", X="x", Out="y", scale=2.0).run(scope, place)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx import kernels
from fluidx.executor import Executor
from fluidx.ir import Block, Program
from fluidx.ir import Operator as _ProgramOp
from fluidx.ir.errors import EnforceNotMet
from fluidx.kernels import OpDef, SelectedRows, VarType, as_dtype
from fluidx.tensor import Place, Scope

__all__ = ["Operator", "OperatorFactory", "get_all_op_protos"]


class _Single:
    """An op with its variables and attributes (``core.Operator``)."""

    def __init__(self, definition: OpDef, given: dict[str, Any]) -> None:
        self._definition = definition
        self._inputs = _slots(definition.ins, given)
        self._outputs = _slots(definition.outs, given)
        self._attrs = given
        unknown = sorted(set(given) - set(definition.attrs))
        if unknown:
            slots = [s.name for s in definition.ins]
            slots += [s.name for s in definition.outs]
            raise ValueError(
                f"op {definition.type}: no slot or attribute {', '.join(unknown)}; it "
                f"has {slots} and {sorted(definition.attrs)}"
            )

    def type(self) -> str:
        return self._definition.type

    def inputs(self) -> dict[str, list[str]]:
        """Slot -> names."""
        return {k: list(v) for k, v in self._inputs.items()}

    def outputs(self) -> dict[str, list[str]]:
        return {k: list(v) for k, v in self._outputs.items()}

    def input_vars(self) -> list[str]:
        return [n for names in self._inputs.values() for n in names]

    def output_vars(self, has_intermediate: bool = True) -> list[str]:
        hidden = {s.name for s in self._definition.outs if s.intermediate}
        return [
            n
            for slot, names in self._outputs.items()
            for n in names
            if has_intermediate or slot not in hidden
        ]

    def no_intermediate_outputs(self) -> list[str]:
        return self.output_vars(has_intermediate=False)

    def support_gpu(self) -> bool:
        return True

    def run(self, scope: Scope, place: Place) -> None:
        """Read the inputs from the scope, leave the outputs there.

        EnforceNotMet: an input is missing or holds nothing; RunError: the op failed.
        """
        place = getattr(place, "place", place)
        program = Program()
        block = program.global_block()
        for name in self.input_vars():
            _declare(block, scope, name)
        for name in self.output_vars():
            if not block.has_var(name):
                block.create_var(name=name, dtype="float32", persistable=True)
            scope.var(name)
        block.append_op(self.type(), self._inputs, self._outputs, self._attrs)
        Executor(place).run(program, scope=scope)

    def __str__(self) -> str:
        block = Program().global_block()
        op = _ProgramOp(
            block, self.type(), self._inputs, self._outputs, dict(self._attrs)
        )
        return str(op)


def _slots(known: Any, given: dict[str, Any]) -> dict[str, list[str]]:
    """Take the names of these slots out of the keyword arguments."""
    found = {}
    for slot in known:
        value = given.pop(slot.name, None)
        if value is not None:
            many = value if isinstance(value, (list, tuple, set)) else [value]
            found[slot.name] = [str(n) for n in many]
    return found


def _declare(block: Block, scope: Scope, name: str) -> None:
    if block.has_var(name):
        return
    held = scope.find_var(name)
    value = None if held is None else held.value
    if value is None:
        raise EnforceNotMet(f"the scope holds no value for input {name!r}")
    kind = VarType.LOD_TENSOR
    if isinstance(value, SelectedRows):
        kind = VarType.SELECTED_ROWS
    elif isinstance(value, list):
        kind = VarType.LOD_TENSOR_ARRAY
    block.create_var(
        name=name,
        type=kind,
        shape=getattr(value, "shape", None),
        dtype=as_dtype(getattr(value, "dtype", np.dtype("float32"))),
        lod_level=len(held.lod or ()) if held is not None else 0,
        persistable=True,
    )


class OperatorFactory:
    """Makes ops by type; `Operator` is one."""

    def __call__(self, *args: Any, **kwargs: Any) -> _Single:
        """An op: its type, then slots and attributes by name.

        Slots take a name or a list of names. ValueError: no such op, slot or attribute.
        """
        kwargs = dict(kwargs)
        if len(args) > 1 or ("type" in kwargs and args):
            raise ValueError("Operator takes one positional argument: the type")
        type = args[0] if args else kwargs.pop("type", None)
        return _Single(self.get_op_info(type), kwargs)

    def types(self) -> list[str]:
        return kernels.all_types()

    def get_op_info(self, type: Any) -> OpDef:
        try:
            return kernels.find(type)
        except KeyError as error:
            raise ValueError(str(error.args[0])) from None

    def get_op_input_names(self, type: str) -> list[str]:
        return [s.name for s in self.get_op_info(type).ins]

    def get_op_output_names(self, type: str) -> list[str]:
        return [s.name for s in self.get_op_info(type).outs]

    def get_op_inputs(self, type: str) -> list[tuple[str, bool]]:
        """(slot, whether it takes several variables)."""
        return [(s.name, s.duplicable) for s in self.get_op_info(type).ins]

    def get_op_outputs(self, type: str) -> list[tuple[str, bool]]:
        return [(s.name, s.duplicable) for s in self.get_op_info(type).outs]

    def get_op_attr_names(self, type: str) -> list[str]:
        return list(self.get_op_info(type).attrs)


Operator = OperatorFactory()


def get_all_op_protos() -> list[OpDef]:
    """The definition of every op."""
    return [kernels.find(t) for t in kernels.all_types()]
