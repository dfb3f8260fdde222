"""The ONNX graph while it is written: values, constants, and what variables are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fluidx.ir import Block, Operator, Variable
from fluidx.kernels import EMPTY, VarType

from .errors import Unsupported

__all__ = ["Graph", "dtype_of"]

Value = str


def dtype_of(var_type: Any) -> np.dtype[Any]:
    """numpy's dtype of a variable's. Unsupported: it has none (bfloat16)."""
    name = VarType(var_type).name
    names = {
        "BOOL": "bool",
        "FP16": "float16",
        "FP32": "float32",
        "FP64": "float64",
        "INT8": "int8",
        "UINT8": "uint8",
        "INT16": "int16",
        "INT32": "int32",
        "INT64": "int64",
    }
    if name not in names:
        raise Unsupported(f"values of type {name} are not exported")
    return np.dtype(names[name])


class Graph:
    """Nodes and initializers; `values` tells what holds a variable at this point.

    A program may write a variable twice, ONNX may not: rules read and write variables
    through `take` and `give`, and name nothing themselves.
    """

    def __init__(self, block: Block, parameter: Callable[[str], Any]) -> None:
        from onnx import helper

        self._helper = helper
        self.block = block
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.values: dict[str, Value] = {}
        self._parameter = parameter
        self._known: dict[Any, Value] = {}
        self._used: set[str] = set()
        self._count = 0

    # ------------------------------------------------ names

    def unique(self, stem: str) -> Value:
        """A name that no value has yet."""
        name = stem
        while not name or name in self._used:
            self._count += 1
            name = f"{stem}_{self._count}"
        self._used.add(name)
        return name

    def has(self, op: Operator, slot: str) -> bool:
        """Whether an input slot is used."""
        return any(n != EMPTY for n in op.inputs.get(slot, ()))

    def var(self, op: Operator, slot: str, index: int = 0) -> Variable:
        """The variable in a slot, of inputs or outputs."""
        names = op.inputs.get(slot) or op.outputs.get(slot) or []
        if len(names) <= index:
            raise Unsupported(f"{slot} is missing")
        return self.block._var_recursive(names[index])

    def shape(self, op: Operator, slot: str) -> tuple[int, ...]:
        """The declared shape, -1 where unknown."""
        return self.var(op, slot).shape

    def static(self, op: Operator, slot: str, axes: Sequence[int]) -> list[int]:
        """Sizes that must be known. Unsupported: one is not."""
        shape = self.shape(op, slot)
        sizes = [shape[a] for a in axes]
        if any(s < 0 for s in sizes):
            raise Unsupported(f"the sizes of {slot} {list(shape)} must be known")
        return sizes

    def dtype(self, op: Operator, slot: str) -> np.dtype[Any]:
        return dtype_of(self.var(op, slot).dtype)

    # ------------------------------------------------ values

    def take(self, op: Operator, slot: str, index: int = 0) -> Value:
        """What holds the variable of an input slot."""
        return self.read(self.var(op, slot, index).name)

    def take_all(self, op: Operator, slot: str) -> list[Value]:
        return [self.read(n) for n in op.input(slot) if n != EMPTY]

    def read(self, name: str) -> Value:
        """What holds a variable; parameters become constants at their first use."""
        if name not in self.values:
            value = self._parameter(name)
            if value is None:
                raise Unsupported(
                    f"it reads {name!r}, which has no value in the scope, is not fed, "
                    "and is no exported output of an op before it"
                )
            self.values[name] = self.unique(name)
            self.constants[self.values[name]] = np.asarray(value)
        return self.values[name]

    def give(self, op: Operator, slot: str, value: Value, index: int = 0) -> None:
        """From here on the variable of an output slot is this value."""
        names = op.outputs.get(slot, [])
        if len(names) <= index or names[index] == EMPTY:
            return
        name = names[index]
        last: Any = self.nodes[-1].output if self.nodes else []
        if name not in self._used and value in last and value not in self.constants:
            self._used.add(name)
            last[list(last).index(value)] = name
            value = name
        self.values[name] = value

    def node(self, type: str, inputs: Sequence[Value], **attrs: Any) -> Value:
        """Add a node with one output."""
        return self.nodes_of(type, inputs, 1, **attrs)[0]

    def nodes_of(
        self, type: str, inputs: Sequence[Value], count: int, **attrs: Any
    ) -> list[Value]:
        """Add a node with several outputs."""
        outputs = [self.unique(f"{type}.tmp") for _ in range(count)]
        self.nodes.append(self._helper.make_node(type, inputs, outputs, **attrs))
        return outputs

    def constant(self, value: Any, dtype: Any) -> Value:
        """A constant, once for all its users."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.unique("constant")
            self.constants[self._known[key]] = array
        return self._known[key]

    def ints(self, *values: int) -> Value:
        """A constant int64 vector, as sizes and axes are."""
        return self.constant(values, np.int64)

    # ------------------------------------------------ small idioms

    def reshape(self, value: Value, *shape: int) -> Value:
        return self.node("Reshape", [value, self.ints(*shape)])

    def cast(self, value: Value, dtype: Any) -> Value:
        number = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", [value], to=number)

    def sizes(self, value: Value, start: int = 0, end: int | None = None) -> Value:
        """Some of a value's sizes, found when the model runs."""
        attrs = {"start": start} | ({} if end is None else {"end": end})
        return self.node("Shape", [value], **attrs)

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        return self.node("Transpose", [value], perm=list(perm))

    def channels_first(self, value: Value, rank: int) -> Value:
        return self.transpose(value, [0, rank - 1, *range(1, rank - 1)])

    def channels_last(self, value: Value, rank: int) -> Value:
        return self.transpose(value, [0, *range(2, rank), 1])
