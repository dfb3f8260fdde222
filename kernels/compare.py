"""Comparisons and logic: outputs are bool.

Comparisons broadcast by the axis rule of the elementwise ops, exactly, without a
tolerance; a NaN equals nothing. isfinite, isinf, isnan and is_empty answer for the
whole tensor at once: shape (1,).
"""

from __future__ import annotations

from typing import Any

from .dtypes import VarType
from .elementwise import aligned
from .infer import InferContext, broadcast_shape
from .registry import OpDef, op
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer_compare(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    shape = broadcast_shape(op, x.shape, y.shape, op.attr("axis"))
    op.set("Out", shape, VarType.BOOL, like=x)


def _infer_logical(op: InferContext) -> None:
    x = op.input("X")
    shape = x.shape
    if op.has("Y"):
        shape = broadcast_shape(op, shape, op.shape("Y"), -1)
    op.set("Out", shape, VarType.BOOL, like=x)


def _infer_one(op: InferContext) -> None:
    op.set("Out", (1,), VarType.BOOL)


def _compare(name: str, ufunc: str) -> OpDef:
    made = op(
        name,
        ins=[In("X"), In("Y")],
        outs=[Out("Out")],
        attrs=[Attr("axis", int, -1), Attr("force_cpu", bool, False)],
        infer=_infer_compare,
        grad=None,
    )

    @made.kernel
    def _(xp: Any, x: Any, y: Any, *, axis: int) -> Any:
        x, y = aligned(name, x, y, axis)
        return getattr(xp, ufunc)(x, y)

    return made


def _logical(name: str) -> OpDef:
    binary = name != "logical_not"
    made = op(
        name,
        ins=[In("X"), In("Y")] if binary else [In("X")],
        outs=[Out("Out")],
        infer=_infer_logical,
        grad=None,
    )

    @made.kernel
    def _(xp: Any, *operands: Any) -> Any:
        return getattr(xp, name)(*operands)

    return made


def _whole(name: str) -> OpDef:
    made = op(
        name,
        ins=[In("X")],
        outs=[Out("Out")],
        infer=_infer_one,
        grad=None,
        lod=None,
    )

    @made.kernel
    def _(xp: Any, x: Any) -> Any:
        found = getattr(xp, name)(getattr(x, "value", x))
        return (found.all() if name == "isfinite" else found.any()).reshape(1)

    return made


for _name, _ufunc in (
    ("less_than", "less"),
    ("less_equal", "less_equal"),
    ("greater_than", "greater"),
    ("greater_equal", "greater_equal"),
    ("equal", "equal"),
    ("not_equal", "not_equal"),
):
    _compare(_name, _ufunc)

for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    _logical(_name)

for _name in ("isfinite", "isinf", "isnan"):
    _whole(_name)

is_empty = op(
    "is_empty",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_one,
    grad=None,
    lod=None,
)


@is_empty.kernel
def _(xp: Any, x: Any) -> Any:
    return xp.full(1, x.size == 0)
