"""Ops that move whole rows of sequences: expand, reverse, concat, slice, reshape."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .grad import GradContext, OpSpec, grad_op
from .infer import InferContext, known_product, same_as
from .lod import host, innermost, joined, lengths_of, ranges, sole_level
from .registry import op
from .rows import add_rows, check_ids
from .schema import Attr, In, Out

__all__: list[str] = []

# --- expand -------------------------------------------------------------------


def _infer_expand(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    op.check(len(x.shape) >= 2, f"X has shape {x.shape}, not (rows, ...)")
    level = y.lod_level if op.op_type == "sequence_expand_as" else x.lod_level
    op.set("Out", (-1, *x.shape[1:]), x.dtype, level)


sequence_expand = op(
    "sequence_expand",
    ins=[In("X"), In("Y", no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("ref_level", int, -1)],
    infer=_infer_expand,
    grad=grad_op(needs=["X", "Y"], shape_only=["X", "Y"]),
)
sequence_expand_as = op(
    "sequence_expand_as",
    ins=[In("X"), In("Y", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_expand,
    grad=grad_op(needs=["X", "Y"], shape_only=["X", "Y"]),
    lod="Y",
)


def _repeats(name: str, like: Any, level: int) -> Any:
    """How often each sequence of X is to come."""
    if not like:
        raise ValueError(f"{name}: Y has no LoD, so no sequences")
    if not -1 <= level < len(like):
        raise ValueError(f"{name}: ref_level {level} is not in [-1, {len(like)})")
    return lengths_of(np.asarray(like[level]))


def _sequences(name: str, levels: Any, rows: int, count: int) -> Any:
    """The offsets of X's sequences; without LoD each row is one."""
    if levels:
        offsets = sole_level(name, "X", levels, rows)
    else:
        offsets = np.arange(rows + 1)
    if len(offsets) != count + 1:
        raise ValueError(
            f"{name}: X has {len(offsets) - 1} sequences, Y says how often {count} come"
        )
    return offsets


def _copies(name: str, rows: int, levels: Any, like: Any, level: int) -> Any:
    """For each row of the result, the row of X; and the copies' lengths."""
    repeats = _repeats(name, like, level)
    offsets = _sequences(name, levels, rows, len(repeats))
    lengths = np.repeat(lengths_of(offsets), repeats)
    return ranges(np.repeat(offsets[:-1], repeats), lengths), lengths


@sequence_expand.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    if not lod["X"]:
        return {}
    rows, name = len(values["X"]), "sequence_expand"
    _, lengths = _copies(name, rows, lod["X"], lod["Y"], attrs["ref_level"])
    return {"Out": [joined(lengths)]}


@sequence_expand.kernel
def _(xp: Any, x: Any, y: Any, *, ref_level: int, lod: Any) -> Any:
    """Each sequence of X as often as Y's sequence of that number is long."""
    name = "sequence_expand"
    rows, _ = _copies(name, len(x), lod.get("X"), lod.get("Y"), ref_level)
    return x.take(xp.asarray(rows), axis=0)


@sequence_expand.grad_kernel
def _(xp: Any, x: Any, y: Any, d_out: Any, *, ref_level: int, lod: Any) -> Any:
    name = "sequence_expand_grad"
    rows, _ = _copies(name, len(x), lod.get("X"), lod.get("Y"), ref_level)
    d_x = xp.zeros(x.shape, d_out.dtype)
    add_rows(xp, d_x, xp.asarray(rows), d_out)
    return d_x


def _row_repeats(name: str, rows: int, like: Any) -> Any:
    if like and len(like) != 1:
        raise ValueError(
            f"{name}: takes one level of sequences, the LoD of Y has {len(like)}"
        )
    repeats = _repeats(name, like, 0)
    if len(repeats) != rows:
        raise ValueError(f"{name}: X has {rows} rows, Y has {len(repeats)} sequences")
    return repeats


@sequence_expand_as.kernel
def _(xp: Any, x: Any, y: Any, *, lod: Any) -> Any:
    """Each row of X as often as Y's sequence of that number is long."""
    repeats = _row_repeats("sequence_expand_as", len(x), lod.get("Y"))
    return x.take(xp.asarray(np.repeat(np.arange(len(x)), repeats)), axis=0)


@sequence_expand_as.grad_kernel
def _(xp: Any, x: Any, y: Any, d_out: Any, *, lod: Any) -> Any:
    repeats = _row_repeats("sequence_expand_as_grad", len(x), lod.get("Y"))
    d_x = xp.zeros(x.shape, d_out.dtype)
    full = np.flatnonzero(repeats)
    if len(full):
        starts = xp.asarray((np.cumsum(repeats) - repeats)[full])
        d_x[xp.asarray(full)] = xp.add.reduceat(d_out, starts, axis=0)
    return d_x


# --- reverse ------------------------------------------------------------------


def _grad_reverse(op: GradContext) -> list[OpSpec]:
    inputs, outputs = {"X": op.output_grad("Y")}, {"Y": op.input_grad("X")}
    return [OpSpec("sequence_reverse", inputs, outputs, dict(op.attrs))]


sequence_reverse = op(
    "sequence_reverse",
    ins=[In("X")],
    outs=[Out("Y")],
    infer=same_as("X", "Y"),
    grad=_grad_reverse,
)


@sequence_reverse.kernel
def _(xp: Any, x: Any, *, lod: Any) -> Any:
    """Each sequence's rows from the last to the first."""
    offsets = sole_level("sequence_reverse", "X", lod.get("X"), len(x))
    turn = np.repeat(offsets[:-1] + offsets[1:] - 1, lengths_of(offsets))
    return x.take(xp.asarray(turn - np.arange(len(x))), axis=0)


# --- concat -------------------------------------------------------------------


def _infer_concat(op: InferContext) -> None:
    first = op.input("X")
    rows = [meta.shape[0] for meta in op.inputs("X")]
    for meta in op.inputs("X"):
        op.check(
            len(meta.shape) == len(first.shape)
            and all(
                a == b or -1 in (a, b) for a, b in zip(meta.shape[1:], first.shape[1:])
            ),
            f"rows of {first.shape} and {meta.shape} do not go together",
        )
    total = -1 if -1 in rows else sum(rows)
    op.set("Out", (total, *first.shape[1:]), first.dtype, first.lod_level)


sequence_concat = op(
    "sequence_concat",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out")],
    infer=_infer_concat,
    grad=grad_op(needs=["X"], shape_only=["X"]),
)


def _pieces(name: str, sizes: list[int], lods: Any) -> tuple[Any, Any]:
    """(sequences, inputs): where each piece starts in X's laid end to end; lengths.

    The reference takes several levels too, but then loses rows; here that is an error.
    """
    starts, lengths, before = [], [], 0
    for i, rows in enumerate(sizes):
        levels = lods[i] if lods else None
        offsets = sole_level(name, f"X[{i}]", levels, rows)
        starts.append(offsets[:-1] + before)
        lengths.append(lengths_of(offsets))
        before += rows
    counts = [len(s) for s in starts]
    if len(set(counts)) != 1:
        raise ValueError(f"{name}: the inputs have {counts} sequences, not as many")
    return np.stack(starts, 1), np.stack(lengths, 1)


@sequence_concat.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    sizes = [len(x) for x in values["X"]]
    _, lengths = _pieces("sequence_concat", sizes, lod["X"])
    return {"Out": [joined(lengths.sum(1))]}


def _interleaved(name: str, xs: Any, lods: Any) -> Any:
    starts, lengths = _pieces(name, [len(x) for x in xs], lods)
    return ranges(starts.reshape(-1), lengths.reshape(-1))


@sequence_concat.kernel
def _(xp: Any, xs: Any, *, lod: Any) -> Any:
    """The first sequences of all inputs, then the second ones, and so on."""
    rows = _interleaved("sequence_concat", xs, lod.get("X"))
    return xp.concatenate(xs).take(xp.asarray(rows), axis=0)


@sequence_concat.grad_kernel
def _(xp: Any, xs: Any, d_out: Any, *, lod: Any) -> Any:
    rows = _interleaved("sequence_concat_grad", xs, lod.get("X"))
    back = np.empty(len(rows), rows.dtype)
    back[rows] = np.arange(len(rows))
    d_all = d_out.take(xp.asarray(back), axis=0)
    ends = joined([len(x) for x in xs])
    return [d_all[a:b] for a, b in pairwise(ends)]


# --- slice --------------------------------------------------------------------


def _infer_slice(op: InferContext) -> None:
    x = op.input("X")
    for slot in ("Offset", "Length"):
        shape = op.shape(slot)
        op.check(len(shape) == 2, f"{slot} has shape {shape}, not (sequences, 1)")
    # as in the reference: the rows of X, and no level
    op.set("Out", x.shape, x.dtype)


sequence_slice = op(
    "sequence_slice",
    ins=[In("X"), In("Offset", no_grad=True), In("Length", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_slice,
    grad=grad_op(needs=["X", "Offset", "Length"], shape_only=["X"]),
)


def _slices(name: str, x: Any, offset: Any, length: Any, levels: Any) -> Any:
    """The rows of X that stay."""
    offsets = sole_level(name, "X", levels, len(x))
    first, many = host(offset).reshape(-1), host(length).reshape(-1)
    sizes = lengths_of(offsets)
    if not len(first) == len(many) == len(sizes):
        raise ValueError(
            f"{name}: {len(sizes)} sequences, but {len(first)} offsets and {len(many)} "
            "lengths"
        )
    wrong = np.flatnonzero((first < 0) | (many < 0) | (first + many > sizes))
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"{name}: {many[i]} rows from {first[i]} on are not in sequence {i}, "
            f"which has {sizes[i]}"
        )
    return ranges(offsets[:-1] + first, many)


@sequence_slice.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return {"Out": [joined(host(values["Length"]).reshape(-1))]}


@sequence_slice.kernel
def _(xp: Any, x: Any, offset: Any, length: Any, *, lod: Any) -> Any:
    """`Length` rows from `Offset` on, of each sequence."""
    rows = _slices("sequence_slice", x, offset, length, lod.get("X"))
    return x.take(xp.asarray(rows), axis=0)


@sequence_slice.grad_kernel
def _(xp: Any, x: Any, offset: Any, length: Any, d_out: Any, *, lod: Any) -> Any:
    rows = _slices("sequence_slice_grad", x, offset, length, lod.get("X"))
    d_x = xp.zeros(x.shape, d_out.dtype)
    d_x[xp.asarray(rows)] = d_out
    return d_x


# --- reshape ------------------------------------------------------------------


def _infer_reshape(op: InferContext) -> None:
    x, width = op.input("X"), op.attr("new_dim")
    op.check(len(x.shape) == 2, f"X has shape {x.shape}, not (rows, width)")
    op.check(width > 0, f"new_dim must be positive, got {width}")
    op.set("Out", (-1, width), x.dtype, x.lod_level)


sequence_reshape = op(
    "sequence_reshape",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("new_dim", int)],
    infer=_infer_reshape,
    grad=grad_op(needs=["X"], shape_only=["X"], view=True),
    view=True,
)


@sequence_reshape.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    width = values["X"].shape[1]
    ends = np.asarray(lod["X"][-1]) * width // attrs["new_dim"]
    return {"Out": [ends.tolist()]}


@sequence_reshape.kernel
def _(xp: Any, x: Any, *, new_dim: int, lod: Any) -> Any:
    """Rows of another width; each sequence's elements stay its own."""
    offsets = sole_level("sequence_reshape", "X", lod.get("X"), len(x))
    sizes = lengths_of(offsets) * x.shape[1]
    wrong = np.flatnonzero(sizes % new_dim)
    if len(wrong):
        raise ValueError(
            f"sequence_reshape: sequence {wrong[0]} has {sizes[wrong[0]]} elements, "
            f"not a multiple of new_dim {new_dim}"
        )
    return x.reshape(-1, new_dim)


@sequence_reshape.grad_kernel
def _(xp: Any, d_out: Any, x: Any) -> Any:
    return d_out.reshape(x.shape)


# --- scatter ------------------------------------------------------------------


def _infer_scatter(op: InferContext) -> None:
    op.check(op.shape("Ids")[1:] in ((1,), ()), "Ids must have one id a row")
    op.set("Out", like=op.input("X"))


sequence_scatter = op(
    "sequence_scatter",
    ins=[In("X"), In("Ids", no_grad=True), In("Updates")],
    outs=[Out("Out")],
    infer=_infer_scatter,
    grad=grad_op(needs=["Ids", "Updates"], shape_only=["Updates"]),
)


def _cells(xp: Any, name: str, shape: Any, ids: Any, levels: Any) -> Any:
    """Where each update goes in the flattened X."""
    offsets = innermost(name, "Ids", levels, len(ids))
    height, width = shape[0], known_product(shape[1:])
    if len(offsets) - 1 != height:
        raise ValueError(
            f"{name}: X has {height} rows, Ids {len(offsets) - 1} sequences"
        )
    flat = ids.reshape(-1)
    check_ids(name, "id", flat, width)
    row = np.repeat(np.arange(height) * width, lengths_of(offsets))
    return xp.asarray(row) + flat


@sequence_scatter.kernel
def _(xp: Any, x: Any, ids: Any, updates: Any, *, lod: Any) -> Any:
    """Out[i, id] += update for the ids and updates of sequence i."""
    cells = _cells(xp, "sequence_scatter", x.shape, ids, lod.get("Ids"))
    out = x.copy()
    xp.add.at(out.reshape(-1), cells, updates.reshape(-1))
    return out


@sequence_scatter.grad_kernel
def _(xp: Any, ids: Any, updates: Any, d_out: Any, *, lod: Any) -> Any:
    name = "sequence_scatter_grad"
    cells = _cells(xp, name, d_out.shape, ids, lod.get("Ids"))
    return d_out.copy(), d_out.reshape(-1).take(cells).reshape(updates.shape)
