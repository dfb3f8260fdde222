"""Ops that cut variables for parameter servers, and the lookup in a cut table.

Mirrors what ``fluid.transpiler.DistributeTranspiler`` inserts around sends, and in
place of the lookups of a table that lives on the servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dtypes import VarType
from .grad import GradContext, OpSpec
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows

__all__ = ["cut_rows", "to_device", "to_host"]


def to_host(value: Any) -> Any:
    """The value as numpy holds it, wherever it is."""
    if isinstance(value, np.ndarray) or value is None:
        return value
    if isinstance(value, SelectedRows):
        return SelectedRows(to_host(value.rows), to_host(value.value), value.height)
    return value.get() if hasattr(value, "get") else np.asarray(value)


def to_device(xp: Any, value: Any) -> Any:
    """A received value as `xp` wants it."""
    if xp is np:
        return value
    if isinstance(value, SelectedRows):
        return SelectedRows(
            xp.asarray(value.rows), xp.asarray(value.value), value.height
        )
    return xp.asarray(value)


def cut_rows(value: Any, sections: Sequence[int]) -> list[Any]:
    """Consecutive slices along axis 0, as views; sparse rows get local numbers."""
    pieces = []
    low = 0
    for rows in sections:
        high = low + rows
        if isinstance(value, SelectedRows):
            inside = (value.rows >= low) & (value.rows < high)
            pieces.append(
                SelectedRows(value.rows[inside] - low, value.value[inside], rows)
            )
        else:
            pieces.append(value[low:high])
        low = high
    return pieces


def _equal_parts(type: str, height: int, count: int, num: int) -> list[int]:
    parts = num or count
    if parts < 1 or height % parts:
        raise ValueError(f"{type}: {height} rows do not make {parts} equal parts")
    return [height // parts] * parts


def _sections(type: str, height: int, sections: Sequence[int], count: int) -> None:
    if sum(sections) != height or len(sections) != count:
        raise ValueError(
            f"{type}: sections {list(sections)} for {height} rows and {count} outputs"
        )


def _infer_split_byref(op: InferContext) -> None:
    x = op.input("X")
    count = op.out_counts.get("Out", 0)
    sections = list(op.attr("sections"))
    if not sections:
        parts = op.attr("num") or count
        op.check(
            x.shape[0] < 0 or x.shape[0] % parts == 0,
            f"{x.shape[0]} rows do not make {parts} equal parts",
        )
        sections = [x.shape[0] if x.shape[0] < 0 else x.shape[0] // parts] * parts
    op.check(len(sections) == count, f"{len(sections)} sections, {count} outputs")
    op.check(
        x.shape[0] < 0 or sum(sections) == x.shape[0] or min(sections) < 0,
        f"sections {sections} do not add up to {x.shape[0]} rows",
    )
    metas = []
    for rows in sections:
        op.set("Out", (rows, *x.shape[1:]), like=x)
        metas.append(op.outs["Out"][0])
    op.set_each("Out", metas)


def _grad_by(type: str) -> Any:
    """Gradient rule: one op of this type puts the pieces together again."""

    def rule(op: GradContext) -> list[OpSpec]:
        inputs = {"X": op.output_grad("Out")}
        return [OpSpec(type, inputs, {"Out": op.input_grad("X")}, {})]

    return rule


split_byref = op(
    "split_byref",
    ins=[In("X")],
    outs=[Out("Out", duplicable=True)],
    attrs=[Attr("num", int, 0), Attr("sections", AttrType.INTS, [])],
    infer=_infer_split_byref,
    grad=_grad_by("concat"),
    view=True,
    lod=None,
)


@split_byref.kernel
def _(
    xp: Any, x: Any, *, num: int, sections: list[int], counts: dict[str, int]
) -> list[Any]:
    count = counts["Out"]
    if not sections:
        sections = _equal_parts("split_byref", x.shape[0], count, num)
    _sections("split_byref", x.shape[0], sections, count)
    return cut_rows(x, sections)


def _infer_split_rows(op: InferContext) -> None:
    x = op.input("X")
    sections = op.attr("height_sections")
    count = op.out_counts.get("Out", 0)
    op.check(len(sections) == count, f"{len(sections)} sections, {count} outputs")
    metas = []
    for rows in sections:
        op.set("Out", (rows, *x.shape[1:]), like=x)
        metas.append(op.outs["Out"][0])
    op.set_each("Out", metas)


split_selected_rows = op(
    "split_selected_rows",
    ins=[In("X")],
    outs=[Out("Out", duplicable=True)],
    attrs=[Attr("height_sections", AttrType.LONGS, [])],
    infer=_infer_split_rows,
    grad=_grad_by("sum"),
    lod=None,
)


@split_selected_rows.kernel
def _(
    xp: Any, x: Any, *, height_sections: list[int], counts: dict[str, int]
) -> list[Any]:
    if not isinstance(x, SelectedRows):
        raise TypeError("split_selected_rows: X is not a SelectedRows")
    _sections("split_selected_rows", x.height, height_sections, counts["Out"])
    return cut_rows(x, height_sections)


def _infer_fake_init(op: InferContext) -> None:
    op.set("Out", op.attr("shape"))


fake_init = op(
    "fake_init",
    outs=[Out("Out")],
    attrs=[Attr("shape", AttrType.LONGS)],
    infer=_infer_fake_init,
    grad=None,
)


@fake_init.kernel
def _(xp: Any, *, shape: list[int]) -> Any:
    # one zero, seen everywhere: the real table is on the servers and may be huge
    return xp.broadcast_to(xp.zeros((), xp.float32), tuple(shape))


def _infer_lookup(op: InferContext) -> None:
    w = op.input("W")
    op.check(len(w.shape) == 2, f"W has shape {w.shape}, not (rows, width)")
    metas = []
    for ids in op.inputs("Ids"):
        shape = _lookup_shape(
            ids.shape, w.shape[1], op.attrs["lookup_table_version"], op.check
        )
        op.set("Outputs", shape, VarType(op.attr("dtype")), like=ids)
        metas.append(op.outs["Outputs"][0])
    op.set_each("Outputs", metas)


def _lookup_shape(
    shape: tuple[int, ...], width: int, version: str, check: Any
) -> tuple[int, ...]:
    """v1 replaces the ids' last dimension (which is 1), v2 appends one."""
    if version == "lookup_table_v2":
        return (*shape, width)
    check(bool(shape) and shape[-1] in (1, -1), f"Ids {shape} must end in 1")
    return (*shape[:-1], width)


distributed_lookup_table = op(
    "distributed_lookup_table",
    ins=[In("Ids", duplicable=True), In("W")],
    outs=[Out("Outputs", duplicable=True)],
    attrs=[
        Attr("dtype", int, 5),
        Attr("endpoints", AttrType.STRINGS, ["127.0.0.1:6164"]),
        Attr("height_sections", AttrType.LONGS, []),
        Attr("lookup_table_version", str, "lookup_table"),
        Attr("padding_idx", AttrType.LONG, -1),
        Attr("table_names", AttrType.STRINGS, [""]),
        Attr("trainer_id", int, 0),
    ],
    infer=_infer_lookup,
    grad=None,
    effect=True,
    lod="Ids",
    unset=["W"],  # the servers have it
)


@distributed_lookup_table.kernel
def _(
    xp: Any,
    ids: list[Any],
    w: Any,
    *,
    ctx: Any,
    endpoints: list[str],
    height_sections: list[int],
    lookup_table_version: str,
    padding_idx: int,
    table_names: list[str],
    trainer_id: int,
) -> list[Any]:
    def check(ok: bool, message: str) -> None:
        if not ok:
            raise ValueError(f"distributed_lookup_table: {message}")

    hosts = [to_host(i) for i in ids]
    flat = np.concatenate([i.reshape(-1) for i in hosts])
    unique, inverse = np.unique(flat, return_inverse=True)
    if padding_idx != -1 and unique.size:
        kept = unique != padding_idx
        if not kept.all():  # nobody is asked for the padding row
            where = np.flatnonzero(~kept)[0]
            table = _fetch_rows(
                unique[kept],
                w,
                ctx.rpc,
                table_names,
                endpoints,
                height_sections,
                trainer_id,
                check,
            )
            table = np.insert(table, where, 0, axis=0)
            return _spread(xp, table, inverse, hosts, lookup_table_version, check)
    table = _fetch_rows(
        unique, w, ctx.rpc, table_names, endpoints, height_sections, trainer_id, check
    )
    return _spread(xp, table, inverse, hosts, lookup_table_version, check)


def _fetch_rows(
    unique: Any,
    w: Any,
    rpc: Any,
    tables: Sequence[str],
    endpoints: Sequence[str],
    heights: Sequence[int],
    trainer: int,
    check: Any,
) -> Any:
    """The table's rows of these ascending ids, each from the server that has it."""
    bounds = np.cumsum([0, *heights])
    if not len(unique):
        check(w is not None, "no ids came, and W has no value that tells its width")
        return np.zeros((0, w.shape[1]), w.dtype)
    check(
        len(tables) == len(endpoints) == len(heights),
        f"tables {tables}, endpoints {endpoints}, heights {heights}",
    )
    bad = unique[0] if unique[0] < 0 else unique[-1]
    check(0 <= bad < bounds[-1], f"id {bad} is not in [0, {bounds[-1]})")
    cuts = np.searchsorted(unique, bounds)
    requests = [
        (endpoint, table, unique[a:b] - low)
        for endpoint, table, low, a, b in zip(endpoints, tables, bounds, cuts, cuts[1:])
        if a < b
    ]
    rows = rpc.lookup(requests, trainer)
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def _spread(
    xp: Any, table: Any, inverse: Any, ids: list[Any], version: str, check: Any
) -> list[Any]:
    """The rows handed out to every id, in the shape of each Ids variable."""
    outs = []
    low = 0
    inverse = inverse.reshape(-1)
    for each in ids:
        shape = _lookup_shape(each.shape, table.shape[1], version, check)
        out = table[inverse[low : low + each.size]].reshape(shape)
        outs.append(out if xp is np else xp.asarray(out))
        low += each.size
    return outs
