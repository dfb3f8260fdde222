"""Rows that take different ways: split_lod_tensor, merge_lod_tensor (``IfElse``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .grad import GradContext, OpSpec
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []


def _rows_of(mask: Any, x: Any, op: str) -> Any:
    rows = mask.reshape(-1)
    if len(rows) != x.shape[0]:
        raise ValueError(f"{op}: Mask has {len(rows)} elements, X {x.shape[0]} rows")
    return rows


def _infer_split(op: InferContext) -> None:
    op.set("OutTrue", like=op.input("X"))
    op.set("OutFalse", like=op.input("X"))


def _split_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {
        "X": op.input("X"),
        "Mask": op.input("Mask"),
        "InTrue": op.output_grad("OutTrue"),
        "InFalse": op.output_grad("OutFalse"),
    }
    attrs = {"level": op.attrs.get("level", 0)}
    return [OpSpec("merge_lod_tensor", inputs, {"Out": op.input_grad("X")}, attrs)]


split_lod_tensor = op(
    "split_lod_tensor",
    ins=[In("X"), In("Mask", no_grad=True)],
    outs=[Out("OutTrue"), Out("OutFalse")],
    attrs=[Attr("level", int, 0)],
    infer=_infer_split,
    grad=_split_grad,
    lod=None,
)


@split_lod_tensor.kernel
def _(xp: Any, x: Any, mask: Any, *, lod: Mapping[str, Any]) -> tuple[Any, Any]:
    """The rows of X where Mask is true, and the others."""
    if lod.get("X"):
        raise ValueError("split_lod_tensor: X has LoD; rows are split one by one")
    rows = _rows_of(mask, x, "split_lod_tensor")
    return x[rows], x[~rows]


def _infer_merge(op: InferContext) -> None:
    op.set("Out", like=op.input("InTrue"))


def _merge_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out"), "Mask": op.input("Mask")}
    outputs = {
        "OutTrue": op.input_grad("InTrue"),
        "OutFalse": op.input_grad("InFalse"),
    }
    attrs = {"level": op.attrs.get("level", 0)}
    return [OpSpec("split_lod_tensor", inputs, outputs, attrs)]


merge_lod_tensor = op(
    "merge_lod_tensor",
    ins=[In("X", no_grad=True), In("Mask", no_grad=True), In("InTrue"), In("InFalse")],
    outs=[Out("Out")],
    attrs=[Attr("level", int, 0)],
    infer=_infer_merge,
    grad=_merge_grad,
    lod=None,
)


@merge_lod_tensor.kernel
def _(xp: Any, x: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Rows of InTrue where Mask is true, of InFalse elsewhere, in order.

    A branch that did not run, since it has no rows, gives None.
    """
    rows = _rows_of(mask, x, "merge_lod_tensor")
    like = no if yes is None else yes
    if like is None:
        raise ValueError("merge_lod_tensor: neither branch has a value")
    out = xp.empty((len(rows), *like.shape[1:]), like.dtype)
    for part, place in ((yes, rows), (no, ~rows)):
        if part is not None:
            out[place] = part
    return out
