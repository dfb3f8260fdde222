"""cumsum and allclose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dtypes import VarType
from .grad import GradContext, OpSpec
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _infer_cumsum(op: InferContext) -> None:
    x = op.input("X")
    axis, rank = op.attr("axis"), len(x.shape)
    op.check(-rank <= axis < rank, f"axis {axis} is not one of {rank} axes")
    op.set("Out", like=x)


def _grad_cumsum(op: GradContext) -> Sequence[OpSpec]:
    """The sums from the other end."""
    attrs = {**op.attrs, "reverse": not op.attrs.get("reverse", False)}
    inputs = {"X": op.output_grad("Out")}
    return [OpSpec("cumsum", inputs, {"Out": op.input_grad("X")}, attrs)]


cumsum = op(
    "cumsum",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[
        Attr("axis", int, -1),
        Attr("exclusive", bool, False),
        Attr("reverse", bool, False),
    ],
    infer=_infer_cumsum,
    grad=_grad_cumsum,
)


@cumsum.kernel
def _(xp: Any, x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    """Sums of all elements up to each along an axis.

    exclusive: without the element itself. reverse: from the end.
    """
    if not (exclusive or reverse):
        return xp.cumsum(x, axis, x.dtype)
    out = xp.empty(x.shape, x.dtype)
    source, target = xp.moveaxis(x, axis, 0), xp.moveaxis(out, axis, 0)
    if reverse:
        source, target = source[::-1], target[::-1]
    if exclusive:
        target[:1] = 0
        source, target = source[:-1], target[1:]
    target[...] = xp.cumsum(source, 0, x.dtype)
    return out


def _infer_allclose(op: InferContext) -> None:
    x, y = op.shape("Input"), op.shape("Other")
    op.check(
        len(x) == len(y) and all(p == q or -1 in (p, q) for p, q in zip(x, y)),
        f"shapes differ: Input {x} and Other {y}",
    )
    op.set("Out", (1,), VarType.BOOL)


allclose = op(
    "allclose",
    ins=[In("Input", no_grad=True), In("Other", no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("atol", float, 1e-8),
        Attr("equal_nan", bool, False),
        Attr("rtol", float, 1e-5),
    ],
    infer=_infer_allclose,
    grad=None,
    lod=None,
)


@allclose.kernel
def _(xp: Any, x: Any, y: Any, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Whether |x - y| <= atol + rtol * |y| everywhere; infinities equal themselves
    (in the reference they equal nothing)."""
    if x.shape != y.shape:
        raise ValueError(f"allclose: shapes differ: Input {x.shape}, Other {y.shape}")
    return xp.isclose(x, y, rtol, atol, equal_nan).all(keepdims=True).reshape(1)
