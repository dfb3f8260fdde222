"""The same elements in other places, or several times: flip, roll, meshgrid,
expand_as, unbind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .grad import GradContext, OpSpec, grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out
from .slicing import axis_in

__all__: list[str] = []


# --- flip, roll --------------------------------------------------------------------


def _infer_flip(op: InferContext) -> None:
    x = op.input("X")
    dims = [axis_in(op, d, len(x.shape)) for d in op.attr("dims")]
    op.check(len(set(dims)) == len(dims), f"dims {op.attr('dims')} repeat an axis")
    op.set("Out", like=x)


def _grad_flip(op: GradContext) -> list[OpSpec]:
    """Turned round again."""
    inputs = {"X": op.output_grad("Out")}
    return [OpSpec("flip", inputs, {"Out": op.input_grad("X")}, dict(op.attrs))]


flip = op(
    "flip",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("dims", AttrType.INTS)],
    infer=_infer_flip,
    grad=_grad_flip,
    view=True,
)


@flip.kernel
def _(xp: Any, x: Any, *, dims: Sequence[int]) -> Any:
    return xp.flip(x, axis=tuple(dims))


def _infer_roll(op: InferContext) -> None:
    x, shifts, dims = op.input("X"), op.attr("shifts"), op.attr("dims")
    op.check(len(shifts) == len(dims), f"{len(shifts)} shifts for {len(dims)} dims")
    for dim in dims:
        axis_in(op, dim, len(x.shape))
    op.set("Out", like=x)


roll = op(
    "roll",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("dims", AttrType.LONGS, []), Attr("shifts", AttrType.LONGS, [])],
    infer=_infer_roll,
    grad=grad_op(needs=["X"], shape_only=["X"]),
)


@roll.kernel
def _(xp: Any, x: Any, *, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    return xp.roll(x, tuple(shifts), tuple(dims))


@roll.grad_kernel
def _(xp: Any, x: Any, d: Any, *, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    return xp.roll(d, tuple(-s for s in shifts), tuple(dims))


# --- meshgrid, expand_as, unbind ---------------------------------------------------


def _infer_meshgrid(op: InferContext) -> None:
    metas = op.inputs("X")
    op.check(len(metas) >= 2, f"needs two X at least, got {len(metas)}")
    for meta in metas:
        op.check(len(meta.shape) == 1, f"an X has shape {meta.shape}, not (n,)")
    op.set("Out", [m.shape[0] for m in metas], metas[0].dtype)


meshgrid = op(
    "meshgrid",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out", duplicable=True)],
    infer=_infer_meshgrid,
    grad=grad_op(needs=["X"], shape_only=["X"]),
    lod=None,
)


@meshgrid.kernel
def _(xp: Any, xs: list[Any]) -> list[Any]:
    """Output i holds X[i] along axis i, the same along all others."""
    shape = [x.size for x in xs]
    made = []
    for i, x in enumerate(xs):
        out = xp.empty(shape, x.dtype)
        out[...] = x.reshape([-1] + [1] * (len(xs) - 1 - i))
        made.append(out)
    return made


@meshgrid.grad_kernel
def _(xp: Any, xs: list[Any], d_outs: list[Any]) -> list[Any]:
    axes = range(len(xs))
    return [
        d.sum(axis=tuple(a for a in axes if a != i)).reshape(x.shape)
        for i, (x, d) in enumerate(zip(xs, d_outs))
    ]


def _infer_expand_as(op: InferContext) -> None:
    x, target = op.input("X"), op.shape("target_tensor")
    op.check(len(x.shape) == len(target), f"ranks differ: X {x.shape}, target {target}")
    op.check(
        all(p < 1 or q < 0 or q % p == 0 for p, q in zip(x.shape, target)),
        f"X {x.shape} cannot be repeated to {target}",
    )
    op.set("Out", target, x.dtype)


expand_as = op(
    "expand_as",
    ins=[In("X"), In("target_tensor", no_grad=True)],
    outs=[Out("Out")],
    infer=_infer_expand_as,
    grad=grad_op(
        needs=["X", "target_tensor"], shape_only=["X", "target_tensor"], to=["X"]
    ),
    lod=None,
)


def _times(x: Any, target: Any) -> list[int]:
    if x.ndim != target.ndim or any(
        p == 0 or q % p for p, q in zip(x.shape, target.shape)
    ):
        raise ValueError(f"expand_as: {x.shape} cannot be repeated to {target.shape}")
    return [q // p for p, q in zip(x.shape, target.shape)]


@expand_as.kernel
def _(xp: Any, x: Any, target: Any) -> Any:
    """X repeated along each axis until it has the target's shape."""
    return xp.tile(x, _times(x, target))


@expand_as.grad_kernel
def _(xp: Any, x: Any, target: Any, d: Any) -> Any:
    times = _times(x, target)
    split = d.reshape([n for pair in zip(times, x.shape) for n in pair])
    return split.sum(axis=tuple(range(0, 2 * len(times), 2)))


def _infer_unbind(op: InferContext) -> None:
    x = op.input("X")
    axis = axis_in(op, op.attr("axis"), len(x.shape))
    count = op.out_counts["Out"]
    op.check(
        x.shape[axis] in (-1, count),
        f"axis {axis} of {x.shape} does not fall into {count} outputs",
    )
    op.set("Out", x.shape[:axis] + x.shape[axis + 1 :], x.dtype, x.lod_level)


def _grad_unbind(op: GradContext) -> list[OpSpec]:
    """Put together again by `stack`."""
    inputs = {"X": op.output_grad("Out")}
    return [OpSpec("stack", inputs, {"Y": op.input_grad("X")}, dict(op.attrs))]


unbind = op(
    "unbind",
    ins=[In("X")],
    outs=[Out("Out", duplicable=True)],
    attrs=[Attr("axis", int, 0)],
    infer=_infer_unbind,
    grad=_grad_unbind,
    view=True,
)


@unbind.kernel
def _(xp: Any, x: Any, *, axis: int) -> list[Any]:
    rows = xp.moveaxis(x, axis, 0)
    return [rows[i] for i in range(x.shape[axis])]
