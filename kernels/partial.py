"""Columns of several matrices side by side or summed, and rows in another order."""

from __future__ import annotations

from typing import Any

from .context import RunContext
from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .registry import OpDef, op
from .schema import Attr, In, Out

__all__: list[str] = []

_COLUMNS = (Attr("start_index", int, 0), Attr("length", int, -1))


def _width(op: InferContext) -> int:
    """How many columns are taken of each input."""
    metas = op.inputs("X")
    op.check(bool(metas), "needs input X")
    for meta in metas:
        op.check(len(meta.shape) == 2, f"X must hold matrices, got {meta.shape}")
    width = metas[0].shape[1]
    op.check(
        all(meta.shape[1] == width for meta in metas),
        f"matrices of different widths: {[meta.shape for meta in metas]}",
    )
    start, length = op.attr("start_index"), op.attr("length")
    if width < 0:
        return -1 if length < 0 else int(length)
    op.check(-width <= start < width, f"start_index {start} is not in {width} columns")
    room = width - start % width
    op.check(length <= room, f"columns {start} to {start + length} of only {width}")
    return room if length < 0 else int(length)


def _infer_concat(op: InferContext) -> None:
    width, first = _width(op), op.input("X")
    many = len(op.inputs("X"))
    op.set("Out", (first.shape[0], -1 if width < 0 else width * many), first.dtype)


def _infer_sum(op: InferContext) -> None:
    width, first = _width(op), op.input("X")
    op.set("Out", (first.shape[0], width), first.dtype)


def _declare(name: str, infer: Any, *attrs: Attr) -> OpDef:
    return op(
        name,
        ins=[In("X", duplicable=True)],
        outs=[Out("Out")],
        attrs=(*_COLUMNS, *attrs),
        infer=infer,
        grad=grad_op(needs=["X"], shape_only=["X"]),
        lod=None,
    )


def _part(x: Any, start: int, length: int) -> slice:
    """The columns that are taken; a negative start counts from the end."""
    start %= x.shape[1]
    return slice(start, None if length < 0 else start + length)


def _placed(xp: Any, x: Any, part: slice, values: Any) -> Any:
    made = xp.zeros(x.shape, x.dtype)
    made[:, part] = values
    return made


partial_concat = _declare("partial_concat", _infer_concat)


@partial_concat.kernel
def _(xp: Any, xs: Any, *, start_index: int, length: int) -> Any:
    part = _part(xs[0], start_index, length)
    return xp.concatenate([x[:, part] for x in xs], 1)


@partial_concat.grad_kernel
def _(xp: Any, xs: Any, d_out: Any, *, start_index: int, length: int) -> Any:
    part = _part(xs[0], start_index, length)
    each = xp.split(d_out, len(xs), 1)
    return [_placed(xp, x, part, d) for x, d in zip(xs, each)]


partial_sum = _declare("partial_sum", _infer_sum, Attr("use_mkldnn", bool, False))


@partial_sum.kernel
def _(xp: Any, xs: Any, *, start_index: int, length: int) -> Any:
    """A negative start_index, which reads elsewhere in the reference, as above."""
    part = _part(xs[0], start_index, length)
    out = xs[0][:, part].copy()
    for x in xs[1:]:
        out += x[:, part]
    return out


@partial_sum.grad_kernel
def _(xp: Any, xs: Any, d_out: Any, *, start_index: int, length: int) -> Any:
    part = _part(xs[0], start_index, length)
    return [_placed(xp, x, part, d_out) for x in xs]


# --- shuffle_batch -----------------------------------------------------------------


def _infer_shuffle(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) >= 2, f"X must have two dimensions at least, got {x.shape}")
    op.set("Out", like=x)
    op.set("ShuffleIdx", (-1,), VarType.INT64)


def _infer_shuffle_grad(op: InferContext) -> None:
    op.set("X@GRAD", like=op.input("Out@GRAD"))


shuffle_batch = op(
    "shuffle_batch",
    ins=[In("X"), In("Seed", no_grad=True)],
    outs=[Out("Out"), Out("ShuffleIdx"), Out("SeedOut")],
    attrs=[Attr("startup_seed", int, 0)],
    infer=_infer_shuffle,
    grad=grad_op(needs=["ShuffleIdx"], of=["Out"]),
    random=True,
    unset=["Seed"],
)
shuffle_batch.grad_def.infer = _infer_shuffle_grad


@shuffle_batch.kernel
def _(xp: Any, x: Any, seed: Any, *, ctx: RunContext, startup_seed: int) -> Any:
    """Rows (of the last dimension) in another order: row i of X is row ShuffleIdx[i].

    SeedOut is the seed of the next run; Seed is empty in the first one, which starts
    from startup_seed (0: from the program's generator).
    """
    start = startup_seed if seed is None or not seed.size else int(seed.reshape(-1)[0])
    generator = ctx.host_generator(start % 2**63)
    rows = x.reshape([-1, x.shape[-1]])
    places = xp.asarray(generator.permutation(len(rows)))
    out = xp.empty_like(rows)
    out[places] = rows
    following = generator.integers(1, 2**31, 1)
    return out.reshape(x.shape), places, xp.asarray(following)


@shuffle_batch.grad_kernel
def _(xp: Any, places: Any, d_out: Any) -> Any:
    return d_out.reshape([-1, d_out.shape[-1]])[places].reshape(d_out.shape)
