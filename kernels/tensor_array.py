"""Arrays of tensors (``LOD_TENSOR_ARRAY``), written and read by index.

A value is a `TensorArray`, None where nothing was written; ops change it in place.
Arrays of gradients (their names hold ``@GRAD``) add up what is written and give up
what is read: a forward op that writes an element ends what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .dtypes import VarType
from .grad import GRAD, GradContext, OpSpec
from .infer import InferContext
from .registry import op
from .schema import In, Out
from .selected_rows import SelectedRows

__all__ = ["TensorArray", "add_values", "zeros_for"]


class TensorArray(list[Any]):
    """The elements; `lods` holds the LoD of those that have one, by index."""

    __slots__ = ("lods",)

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self.lods: dict[int, Any] = {}

    def of(self, index: int) -> Any:
        """The LoD of an element, or None."""
        return self.lods.get(index)


def _lod_at(array: Any, index: int) -> Any:
    return array.of(index) if isinstance(array, TensorArray) else None


def _with_lod(array: Any, index: int, levels: Any) -> Any:
    """The array, which knows from now on the LoD of this element."""
    if not levels and not isinstance(array, TensorArray):
        return array
    made = array if isinstance(array, TensorArray) else TensorArray(array)
    if levels:
        made.lods[index] = levels
    else:
        made.lods.pop(index, None)
    return made


def add_values(xp: Any, a: Any, b: Any) -> Any:
    """The sum of two gradients: arrays, `SelectedRows`, or tensor arrays.

    None counts as zero. A new value, but for tensor arrays, which `a` takes up.
    """
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list):
        a += [None] * (len(b) - len(a))
        if isinstance(a, TensorArray) and isinstance(b, TensorArray):
            a.lods = {**b.lods, **a.lods}
        for i, item in enumerate(b):
            a[i] = add_values(xp, a[i], item)
        return a
    if a.__class__ is SelectedRows and b.__class__ is SelectedRows:
        rows = xp.concatenate([a.rows, b.rows])
        return SelectedRows(rows, xp.concatenate([a.value, b.value]), a.height)
    if a.__class__ is SelectedRows:
        a = a.to_dense(xp)
    elif b.__class__ is SelectedRows:
        b = b.to_dense(xp)
    return a + b


def zeros_for(xp: Any, value: Any) -> Any:
    """A gradient of zeros for a value; an array's has no elements yet."""
    if value is None:
        return None
    if isinstance(value, list):
        return TensorArray()
    if value.__class__ is SelectedRows:
        return replace(value, value=xp.zeros_like(value.value))
    return xp.zeros_like(value)


def _is_gradient(name: str) -> bool:
    return GRAD in name


def _index(i: Any, op: str) -> int:
    if i.size != 1:
        raise ValueError(f"{op}: I must have one element, its shape is {i.shape}")
    index = int(i.reshape(-1)[0])
    if index < 0:
        raise ValueError(f"{op}: index I is {index}")
    return index


# --- write ---------------------------------------------------------------------------


def _infer_write(op: InferContext) -> None:
    op.set("Out", like=replace(op.input("X"), kind=VarType.LOD_TENSOR_ARRAY))


def _write_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "I": op.input("I"), "X_W": op.input("X")}
    return [OpSpec("read_from_array", inputs, {"Out": op.input_grad("X")}, {})]


write_to_array = op(
    "write_to_array",
    ins=[In("X"), In("I", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_write,
    grad=_write_grad,
    lod=None,
    shares=True,
)


@write_to_array.kernel
def _(
    xp: Any,
    x: Any,
    i: Any,
    *,
    prior: Any,
    names: Mapping[str, Sequence[str]],
    lod: Mapping[str, Any] | None = None,
) -> Any:
    """prior: the array so far, which grows as far as needed."""
    index = _index(i, "write_to_array")
    array = TensorArray() if prior is None else prior
    array = _with_lod(array, index, lod.get("X") if lod else None)
    array += [None] * (index + 1 - len(array))
    if _is_gradient(names["Out"][0]):
        array[index] = add_values(xp, array[index], x)
    else:
        array[index] = x
    return array


@write_to_array.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """The elements' LoD goes with the array; it may have some from here on."""
    return {}


# --- read ----------------------------------------------------------------------------


def _infer_read(op: InferContext) -> None:
    like = op.input("X_W") if op.has("X_W") else op.input("X")
    op.set("Out", like=replace(like, kind=VarType.LOD_TENSOR))


def _read_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "I": op.input("I")}
    return [OpSpec("write_to_array", inputs, {"Out": op.input_grad("X")}, {})]


read_from_array = op(
    "read_from_array",
    ins=[In("X"), In("I", no_grad=True), In("X_W", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_read,
    grad=_read_grad,
    lod=None,
    shares=True,
)


@read_from_array.kernel
def _(xp: Any, x: Any, i: Any, like: Any, *, names: Mapping[str, Sequence[str]]) -> Any:
    """like: what the element's gradient looks like, zero if nothing was written."""
    index = _index(i, "read_from_array")
    array = () if x is None else x
    value = array[index] if index < len(array) else None
    if _is_gradient(names["X"][0]):
        if value is not None:
            x[index] = None
            return value
        if like is not None:
            return zeros_for(xp, like)
    if value is None:
        raise IndexError(
            f"read_from_array: nothing was written at index {index} of an array of "
            f"length {len(array)}"
        )
    return value


@read_from_array.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """The element's; a gradient has that of its element."""
    if lod.get("X_W"):
        return {"Out": lod["X_W"]}
    return {"Out": _lod_at(values["X"], _index(values["I"], "read_from_array"))}


# --- length --------------------------------------------------------------------------


def _infer_length(op: InferContext) -> None:
    op.set("Out", (1,), VarType.INT64)


lod_array_length = op(
    "lod_array_length",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_length,
    grad=None,
    lod=None,
)


@lod_array_length.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.array([0 if x is None else len(x)], dtype="int64")
