"""Reductions over some axes: sum, mean, max, min, prod, all, any.

dim: axes, negative ones from the end. keep_dim: leave them as size 1. reduce_all:
all axes, whatever `dim` says. A full reduction without keep_dim has shape (1,).
Integers stay what they are (a mean of integers is cut off toward zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .arrays import sum_to
from .dtypes import VarType, to_numpy
from .grad import grad_op
from .infer import InferContext, Shape
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_ATTRS = (
    Attr("dim", AttrType.INTS, [0]),
    Attr("in_dtype", int, -1),
    Attr("keep_dim", bool, False),
    Attr("out_dtype", int, -1),
    Attr("reduce_all", bool, False),
)


def _axes(dim: Sequence[int] | int, rank: int, reduce_all: bool) -> tuple[int, ...]:
    """The axes to reduce, ascending, each once."""
    if reduce_all:
        return tuple(range(rank))
    if isinstance(dim, int):
        dim = (dim,)
    return tuple(sorted({d + rank if d < 0 else d for d in dim}))


def _kept_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape of the result with keep_dim."""
    return tuple(1 if i in axes else size for i, size in enumerate(shape))


def _infer(op: InferContext) -> None:
    x = op.input("X")
    rank = len(x.shape)
    dim = op.attr("dim")
    axes = _axes(dim, rank, op.attr("reduce_all"))
    op.check(
        all(0 <= a < rank for a in axes),
        f"dim {dim} is out of range for X of shape {x.shape}",
    )
    shape = _kept_shape(x.shape, axes)
    if not op.attr("keep_dim"):
        shape = tuple(s for i, s in enumerate(shape) if i not in axes) or (1,)
    wanted = op.attr("out_dtype")
    dtype = VarType(wanted) if wanted >= 0 else x.dtype
    # the first axis carries the LoD
    op.set("Out", shape, dtype, 0 if 0 in axes else x.lod_level)


def _share_lod(
    lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]
) -> dict[str, Any]:
    axes = _axes(attrs["dim"], values["X"].ndim, attrs["reduce_all"])
    return {} if 0 in axes else {"Out": lod["X"]}


_Reduce = Callable[[Any, Any, tuple[int, ...]], Any]


def _declare(name: str, reduce: _Reduce, grad: grad_op | None) -> OpDef:
    """reduce(xp, x, axes) gives the result with the reduced axes kept as 1."""
    made = op(
        f"reduce_{name}",
        ins=[In("X")],
        outs=[Out("Out")],
        attrs=_ATTRS,
        infer=_infer,
        grad=grad,
    )
    made.lod_kernel(_share_lod)

    @made.kernel
    def _(
        xp: Any, x: Any, *, dim: Any, keep_dim: bool, out_dtype: int, reduce_all: bool
    ) -> Any:
        if out_dtype >= 0:
            x = x.astype(to_numpy(out_dtype), copy=False)
        axes = _axes(dim, x.ndim, reduce_all)
        y = reduce(xp, x, axes)
        if keep_dim:
            return y
        shape = tuple(s for i, s in enumerate(x.shape) if i not in axes)
        return y.reshape(shape or (1,))

    return made


def _sum(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    if len(axes) < x.ndim:
        return sum_to(xp, x, _kept_shape(x.shape, axes))
    return x.sum(dtype=x.dtype, keepdims=True)


def _count(x: Any, axes: tuple[int, ...]) -> int:
    total = 1
    for axis in axes:
        total *= x.shape[axis]
    return total


def _mean(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    if x.itemsize == 2 and x.dtype.kind == "f":  # a sum of float16 may not fit float16
        return x.mean(axis=axes, dtype="float32", keepdims=True).astype(x.dtype)
    total, count = _sum(xp, x, axes), _count(x, axes)
    if x.dtype.kind == "f":
        return total / count
    return (total - xp.fmod(total, count)) // count


_of_shape = grad_op(needs=["X"], shape_only=["X"])
_of_values = grad_op(needs=["X", "Out"])

reduce_sum = _declare("sum", _sum, _of_shape)


@reduce_sum.grad_kernel
def _(xp: Any, x: Any, d: Any, *, dim: Any, reduce_all: bool) -> Any:
    g = xp.empty(x.shape, x.dtype)
    g[...] = d.reshape(_kept_shape(x.shape, _axes(dim, x.ndim, reduce_all)))
    return g


reduce_mean = _declare("mean", _mean, _of_shape)


@reduce_mean.grad_kernel
def _(xp: Any, x: Any, d: Any, *, dim: Any, reduce_all: bool) -> Any:
    axes = _axes(dim, x.ndim, reduce_all)
    g = xp.empty(x.shape, x.dtype)
    g[...] = d.reshape(_kept_shape(x.shape, axes)) / _count(x, axes)
    return g


def _extreme_grad(made: OpDef) -> None:
    @made.grad_kernel
    def _(xp: Any, x: Any, y: Any, d: Any, *, dim: Any, reduce_all: bool) -> Any:
        """Every value that equals the extreme gets the whole gradient."""
        shape = _kept_shape(x.shape, _axes(dim, x.ndim, reduce_all))
        return (x == y.reshape(shape)) * d.reshape(shape)


def _extreme(name: str) -> _Reduce:
    """The largest or smallest value; of nothing, the one that any other beats."""

    def reduce(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
        if x.size or _count(x, axes):
            return getattr(x, name)(axis=axes, keepdims=True)
        whole = x.dtype.kind in "iu"
        limits = xp.iinfo(x.dtype) if whole else None
        if name == "max":
            bound = limits.min if limits else -xp.inf
        else:
            bound = limits.max if limits else xp.inf
        return xp.full(_kept_shape(x.shape, axes), bound, x.dtype)

    return reduce


_extreme_grad(_declare("max", _extreme("max"), _of_values))
_extreme_grad(_declare("min", _extreme("min"), _of_values))

reduce_prod = _declare(
    "prod",
    lambda xp, x, axes: x.prod(axis=axes, dtype=x.dtype, keepdims=True),
    _of_values,
)


@reduce_prod.grad_kernel
def _(xp: Any, x: Any, y: Any, d: Any, *, dim: Any, reduce_all: bool) -> Any:
    """The product of the others, by running products from both sides.

    Right for zeros too, where the reference's Out / X is NaN.
    """
    axes = _axes(dim, x.ndim, reduce_all)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    order = kept + axes
    turned = x.transpose(order)
    if not x.size:
        return xp.zeros(x.shape, x.dtype)
    lines = turned.reshape(-1, _count(x, axes))
    before, after = xp.ones_like(lines), xp.ones_like(lines)
    before[:, 1:] = xp.cumprod(lines[:, :-1], axis=1)
    after[:, :-1] = xp.cumprod(lines[:, :0:-1], axis=1)[:, ::-1]
    before *= after
    before *= d.reshape(-1, 1)
    back = [order.index(i) for i in range(x.ndim)]
    return before.reshape(turned.shape).transpose(back)


_declare("all", lambda xp, x, axes: x.all(axis=axes, keepdims=True), None)
_declare("any", lambda xp, x, axes: x.any(axis=axes, keepdims=True), None)
