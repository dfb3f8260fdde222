"""``variable[...]``: integers, slices, an ellipsis, and Variables as bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidx.ir import Variable, default_main_program, unique_name
from fluidx.kernels import VarType
from fluidx.layers.emit import is_integer

__all__ = ["getitem"]

# an end beyond every size; inference and kernel cut it, as the reference's do
_END = 10000000


@dataclass
class _Cut:
    """What happens to one dimension: [start:end:step], and whether it goes."""

    axis: int
    start: Any
    end: Any
    step: int = 1
    drop: bool = False


def getitem(self: Variable, item: Any) -> Variable:
    """A part of the variable, as numpy's basic indexing takes it.

    Integers, slices and one ellipsis, separated by commas; bounds may be int32
    Variables of shape [1]. A step may be negative where the size is known, and as a
    bare ``::-1`` anywhere. An index outside a known size is an IndexError.

    >>> import fluidx as fluid
    >>> x = fluid.data("getitem_in", [None, 4, 6])
    >>> x[:, 1, 2:].shape
    (-1, 4)
    """
    cuts, reversed_axes = _parse(self, item)
    plain = [c for c in cuts if c.step == 1]
    strided = [c for c in cuts if c.step != 1]
    made = self
    if plain and not strided:
        made = _slice(made, plain)
    elif strided:
        made = _strided(made, plain, strided)
    if reversed_axes:
        # dimensions that went no longer count
        gone = [c.axis for c in cuts if c.drop]
        axes = [a - sum(g < a for g in gone) for a in reversed_axes]
        made = _append(self, "reverse", {"X": made}, {"axis": axes}, "slice_reverse")
    return made


def _append(
    var: Variable, type: str, inputs: dict[str, Any], attrs: Any, label: str
) -> Variable:
    block = default_main_program().current_block()
    made = block.create_var(
        name=unique_name.generate(f"{var.name}_{label}"), dtype=var.dtype
    )
    block.append_op(type, inputs, {"Out": made}, attrs)
    return made


def _parse(var: Variable, item: Any) -> tuple[list[_Cut], list[int]]:
    """The cuts by dimension, and the dimensions to turn round."""
    items = _without_ellipsis(var, item if isinstance(item, tuple) else (item,))
    cuts, turned = [], []
    for axis, part in enumerate(items):
        if isinstance(part, slice):
            step = 1 if part.step is None else _number(var, part.step)
            if part.start is None and part.stop is None and step == 1:
                continue
            if part.start is None and part.stop is None and step == -1:
                turned.append(axis)
                continue
            if step == 0:
                raise ValueError(f"{var.name}[...]: a step cannot be 0")
            cuts.append(_cut(var, axis, part, step))
        elif isinstance(part, Variable):
            cuts.append(_Cut(axis, part, _next(part), drop=True))
        elif is_integer(part):
            index = _in_range(var, axis, int(part))
            end = _END if index == -1 else index + 1
            cuts.append(_Cut(axis, index, end, drop=True))
        else:
            raise TypeError(
                f"{var.name}[...]: an index is an integer, a slice, an ellipsis or a "
                f"Variable, got {part!r:.60}"
            )
    return cuts, turned


def _without_ellipsis(var: Variable, items: tuple[Any, ...]) -> list[Any]:
    rank = len(var.shape)
    where = [i for i, part in enumerate(items) if part is Ellipsis]
    if len(where) > 1:
        raise IndexError(f"{var.name}[...]: only one ellipsis can be an index")
    if len(items) - len(where) > rank:
        raise IndexError(
            f"{var.name}[...]: {len(items) - len(where)} indices for shape "
            f"{list(var.shape)}"
        )
    if not where:
        return list(items)
    gap = [slice(None)] * (rank - len(items) + 1)
    return [*items[: where[0]], *gap, *items[where[0] + 1 :]]


def _number(var: Variable, value: Any) -> int:
    if not is_integer(value):
        raise TypeError(f"{var.name}[...]: a step must be an integer, got {value!r}")
    return int(value)


def _in_range(var: Variable, axis: int, index: int) -> int:
    size = var.shape[axis]
    if size >= 0 and not -size <= index < size:
        raise IndexError(
            f"{var.name}[...]: index {index} is outside dimension {axis} of shape "
            f"{list(var.shape)}"
        )
    return index


def _cut(var: Variable, axis: int, part: slice, step: int) -> _Cut:
    """One dimension's slice; open ends reach as far as the step goes."""
    start, stop = part.start, part.stop
    for bound in (start, stop):
        known = bound is None or is_integer(bound) or isinstance(bound, Variable)
        if not known:
            raise TypeError(
                f"{var.name}[...]: a bound must be an integer or a Variable, got "
                f"{bound!r}"
            )
    if step < 0:
        start, stop = _backward_bounds(var, axis, part)
    if start is None:
        start = 0
    return _Cut(axis, _plain(start), _END if stop is None else _plain(stop), step)


def _backward_bounds(var: Variable, axis: int, part: slice) -> tuple[int, int]:
    """Start and end of a slice that walks backward, free of Python's special cases."""
    size = var.shape[axis]
    if size < 0 or isinstance(part.start, Variable) or isinstance(part.stop, Variable):
        raise ValueError(
            f"{var.name}[...]: a negative step needs a known size and integer bounds"
        )
    start, stop, _ = part.indices(size)
    # an end of -1 would count from the other side again
    return start, -size - 1 if stop < 0 else stop


def _plain(bound: Any) -> Any:
    return int(bound) if isinstance(bound, np.integer) else bound


def _next(index: Variable) -> Variable:
    """index + 1, the end of a slice that holds just that index."""
    block = default_main_program().current_block()
    one = _filled(1)
    made = block.create_var(dtype=index.dtype)
    block.append_op("elementwise_add", {"X": index, "Y": one}, {"Out": made})
    made.stop_gradient = True
    return made


def _filled(value: int) -> Variable:
    block = default_main_program().current_block()
    made = block.create_var(dtype=VarType.INT32, stop_gradient=True)
    attrs = {
        "shape": [1],
        "dtype": int(VarType.INT32),
        "value": float(value),
        "force_cpu": True,
    }
    block.append_op("fill_constant", {}, {"Out": made}, attrs)
    return made


def _bounds(inputs: dict[str, Any], attrs: Any, slot: str, values: list[Any]) -> None:
    """Put starts or ends into the op: Variables of shape [1] where there is one."""
    attrs[slot.lower()] = [-1 if isinstance(v, Variable) else v for v in values]
    if any(isinstance(v, Variable) for v in values):
        inputs[f"{slot}TensorList"] = [
            v if isinstance(v, Variable) else _filled(v) for v in values
        ]


def _slice(var: Variable, cuts: list[_Cut]) -> Variable:
    inputs: dict[str, Any] = {"Input": var}
    attrs: dict[str, Any] = {
        "axes": [c.axis for c in cuts],
        "decrease_axis": [c.axis for c in cuts if c.drop],
        "infer_flags": [
            -1 if isinstance(c.start, Variable) or isinstance(c.end, Variable) else 1
            for c in cuts
        ],
    }
    _bounds(inputs, attrs, "Starts", [c.start for c in cuts])
    _bounds(inputs, attrs, "Ends", [c.end for c in cuts])
    return _append(var, "slice", inputs, attrs, "slice")


def _strided(var: Variable, plain: list[_Cut], strided: list[_Cut]) -> Variable:
    """With steps: one strided_slice; dimensions that go are cut by a slice first."""
    drops = [c for c in plain if c.drop]
    made = _slice(var, drops) if drops else var
    cuts = sorted([c for c in plain if not c.drop] + strided, key=lambda c: c.axis)
    gone = [c.axis for c in drops]
    inputs: dict[str, Any] = {"Input": made}
    attrs: dict[str, Any] = {
        "axes": [c.axis - sum(g < c.axis for g in gone) for c in cuts],
        "infer_flags": [
            -1 if isinstance(c.start, Variable) or isinstance(c.end, Variable) else 1
            for c in cuts
        ],
        "strides": [c.step for c in cuts],
    }
    _bounds(inputs, attrs, "Starts", [c.start for c in cuts])
    _bounds(inputs, attrs, "Ends", [c.end for c in cuts])
    return _append(var, "strided_slice", inputs, attrs, "strided_slice")
