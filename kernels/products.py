"""Products of tensors: addmm, bmm, dot, cross, kron; and the distance of two, dist."""

from __future__ import annotations

import math
from typing import Any

from .arrays import sum_to
from .grad import grad_op
from .infer import InferContext, Shape, broadcast_shape
from .registry import op
from .schema import Attr, In, Out

__all__: list[str] = []

_PAIR = (In("X"), In("Y"))


def _same(op: InferContext, what: str, p: int, q: int) -> int:
    """The one size that two are; unknown sizes go with all."""
    op.check(p == q or -1 in (p, q), f"{what}: {p} and {q}")
    return max(p, q)


# --- addmm, bmm --------------------------------------------------------------------


def _infer_addmm(op: InferContext) -> None:
    base, x, y = op.shape("Input"), op.shape("X"), op.shape("Y")
    op.check(
        len(base) == len(x) == len(y) == 2,
        f"takes matrices, got Input {base}, X {x} and Y {y}",
    )
    _same(op, f"X {x} and Y {y} cannot be multiplied", x[1], y[0])
    out = (x[0], y[1])
    for size, full in zip(base, out):
        op.check(
            size == full or size in (1, -1) or full == -1,
            f"Input {base} does not go with a product of shape {out}",
        )
    op.set("Out", out, like=op.input("Input"))


addmm = op(
    "addmm",
    ins=[In("Input"), *_PAIR],
    outs=[Out("Out")],
    attrs=[
        Attr("Alpha", float, 1.0),
        Attr("Beta", float, 1.0),
        Attr("use_mkldnn", bool, False),
    ],
    infer=_infer_addmm,
    grad=grad_op(needs=["Input", "X", "Y"], shape_only=["Input"]),
)


@addmm.kernel
def _(xp: Any, base: Any, x: Any, y: Any, *, Alpha: float, Beta: float) -> Any:
    """Beta * Input + Alpha * X @ Y; Input may be broadcast."""
    out = xp.dot(x, y)
    if Alpha != 1.0:
        out *= Alpha
    out += base if Beta == 1.0 else base * Beta
    return out


@addmm.grad_kernel
def _(
    xp: Any,
    base: Any,
    x: Any,
    y: Any,
    d: Any,
    *,
    Alpha: float,
    Beta: float,
    wants: Any,
) -> Any:
    d_base = d_x = d_y = None
    if wants[0]:
        d_base = sum_to(xp, d, base.shape) * Beta
    if wants[1]:
        d_x = xp.dot(d, y.T)
        d_x *= Alpha
    if wants[2]:
        d_y = xp.dot(x.T, d)
        d_y *= Alpha
    return d_base, d_x, d_y


def _infer_bmm(op: InferContext) -> None:
    x, y = op.shape("X"), op.shape("Y")
    op.check(len(x) == len(y) == 3, f"takes three dimensions, got X {x} and Y {y}")
    batch = _same(op, "X and Y differ in batch size", x[0], y[0])
    _same(op, f"X {x} and Y {y} cannot be multiplied", x[2], y[1])
    op.set("Out", (batch, x[1], y[2]), like=op.input("X"))


bmm = op(
    "bmm",
    ins=_PAIR,
    outs=[Out("Out")],
    infer=_infer_bmm,
    grad=grad_op(needs=["X", "Y"]),
)


@bmm.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"bmm: batch sizes {x.shape[0]} and {y.shape[0]} differ")
    return xp.matmul(x, y)


@bmm.grad_kernel
def _(xp: Any, x: Any, y: Any, d: Any, *, wants: Any) -> Any:
    d_x = xp.matmul(d, y.transpose(0, 2, 1)) if wants[0] else None
    return d_x, xp.matmul(x.transpose(0, 2, 1), d) if wants[1] else None


# --- dot, cross --------------------------------------------------------------------


def _infer_dot(op: InferContext) -> None:
    x, y = op.input("X"), op.shape("Y")
    op.check(len(x.shape) in (1, 2), f"X has shape {x.shape}, not (n,) or (b, n)")
    op.check(
        len(x.shape) == len(y)
        and all(p == q or -1 in (p, q) for p, q in zip(x.shape, y)),
        f"shapes differ: X {x.shape} and Y {y}",
    )
    op.set("Out", (*x.shape[:-1], 1), x.dtype)


dot = op(
    "dot",
    ins=_PAIR,
    outs=[Out("Out")],
    infer=_infer_dot,
    grad=grad_op(needs=["X", "Y"]),
    lod=None,
)


@dot.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    """Inner products along the last axis, which stays with size 1."""
    if x.shape != y.shape:
        raise ValueError(f"dot: shapes differ: X {x.shape} and Y {y.shape}")
    return (x * y).sum(axis=-1, keepdims=True, dtype=x.dtype)


@dot.grad_kernel
def _(xp: Any, x: Any, y: Any, d: Any, *, wants: Any) -> Any:
    return y * d if wants[0] else None, x * d if wants[1] else None


# what the reference writes into ``dim`` where the user gave none
_FIRST_OF_THREE = 9


def _axis_of_three(shape: Shape, dim: int) -> int:
    """The dimension of size 3 that is meant; ValueError if there is none."""
    if dim == _FIRST_OF_THREE:
        if 3 not in shape:
            raise ValueError(f"no dimension of {tuple(shape)} has size 3")
        return shape.index(3)
    if not -len(shape) <= dim < len(shape):
        raise ValueError(f"dim {dim} is not one of {len(shape)} axes")
    if shape[dim] not in (3, -1):
        raise ValueError(f"dimension {dim} of {tuple(shape)} has not size 3")
    return dim


def _infer_cross(op: InferContext) -> None:
    x, y = op.input("X"), op.shape("Y")
    op.check(
        len(x.shape) == len(y)
        and all(p == q or -1 in (p, q) for p, q in zip(x.shape, y)),
        f"shapes differ: X {x.shape} and Y {y}",
    )
    if not (op.attr("dim") == _FIRST_OF_THREE and -1 in x.shape):
        try:
            _axis_of_three(x.shape, op.attr("dim"))
        except ValueError as error:
            op.fail(str(error))
    op.set("Out", like=x)


cross = op(
    "cross",
    ins=_PAIR,
    outs=[Out("Out")],
    attrs=[Attr("dim", int, _FIRST_OF_THREE)],
    infer=_infer_cross,
    grad=grad_op(needs=["X", "Y"]),
)


def _cross(xp: Any, x: Any, y: Any, axis: int) -> Any:
    """x x y along an axis of size 3."""
    out = xp.empty_like(x)
    a, b, o = (xp.moveaxis(v, axis, 0) for v in (x, y, out))
    o[0] = a[1] * b[2] - a[2] * b[1]
    o[1] = a[2] * b[0] - a[0] * b[2]
    o[2] = a[0] * b[1] - a[1] * b[0]
    return out


@cross.kernel
def _(xp: Any, x: Any, y: Any, *, dim: int) -> Any:
    return _cross(xp, x, y, _axis_of_three(x.shape, dim))


@cross.grad_kernel
def _(xp: Any, x: Any, y: Any, d: Any, *, dim: int, wants: Any) -> Any:
    axis = _axis_of_three(x.shape, dim)
    d_x = _cross(xp, y, d, axis) if wants[0] else None
    return d_x, _cross(xp, d, x, axis) if wants[1] else None


# --- kron --------------------------------------------------------------------------


def _aligned(x: Shape, y: Shape) -> tuple[Shape, Shape]:
    """Both shapes with the same rank, ones in front."""
    rank = max(len(x), len(y))
    return (1,) * (rank - len(x)) + tuple(x), (1,) * (rank - len(y)) + tuple(y)


def _infer_kron(op: InferContext) -> None:
    x = op.input("X")
    pairs = zip(*_aligned(x.shape, op.shape("Y")))
    op.set("Out", [-1 if -1 in pair else pair[0] * pair[1] for pair in pairs], x.dtype)


kron = op(
    "kron",
    ins=_PAIR,
    outs=[Out("Out")],
    infer=_infer_kron,
    grad=grad_op(needs=["X", "Y"]),
    lod=None,
)


@kron.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    """Blocks X[i] * Y; the lower rank gets ones in front."""
    a, b = _aligned(x.shape, y.shape)
    left = [n for size in a for n in (size, 1)]
    right = [n for size in b for n in (1, size)]
    out = x.reshape(left) * y.reshape(right)
    return out.reshape([p * q for p, q in zip(a, b)])


@kron.grad_kernel
def _(xp: Any, x: Any, y: Any, d: Any, *, wants: Any) -> Any:
    a, b = _aligned(x.shape, y.shape)
    rank = len(a)
    split = d.reshape([n for pair in zip(a, b) for n in pair])
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    blocks = split.transpose(order).reshape(x.size, y.size)
    d_x = xp.dot(blocks, y.reshape(-1)).reshape(x.shape) if wants[0] else None
    d_y = xp.dot(x.reshape(-1), blocks).reshape(y.shape) if wants[1] else None
    return d_x, d_y


# --- dist --------------------------------------------------------------------------


def _infer_dist(op: InferContext) -> None:
    broadcast_shape(op, *_aligned(op.shape("X"), op.shape("Y")), -1)
    op.set("Out", (1,), op.input("X").dtype)


dist = op(
    "dist",
    ins=_PAIR,
    outs=[Out("Out")],
    attrs=[Attr("p", float, 2.0)],
    infer=_infer_dist,
    grad=grad_op(needs=["X", "Y", "Out"]),
    lod=None,
)


@dist.kernel
def _(xp: Any, x: Any, y: Any, *, p: float) -> Any:
    """The p-norm of X - Y (p 0: how many differ), as a tensor of shape (1,)."""
    gap = abs(x - y).reshape(-1)
    if p == 0:
        return (gap != 0).sum(keepdims=True, dtype=x.dtype)
    if math.isinf(p):
        return gap.max(keepdims=True) if p > 0 else gap.min(keepdims=True)
    if p == 1:
        return gap.sum(keepdims=True)
    if p == 2:
        return xp.sqrt(xp.dot(gap, gap)).reshape(1)
    return (gap**p).sum(keepdims=True) ** (1.0 / p)


@dist.grad_kernel
def _(xp: Any, x: Any, y: Any, out: Any, d: Any, *, p: float, wants: Any) -> Any:
    """Where X and Y agree the gradient is 0 for p >= 1 (the reference: NaN if they
    agree everywhere)."""
    gap = x - y
    way = xp.sign(gap)
    if p == 0:
        slope = xp.zeros_like(gap)
    elif math.isinf(p):
        slope = way * (abs(gap) == out) * d
    elif p == 1:
        slope = way * d
    else:
        top = xp.where(out == 0, xp.ones_like(out), out) if p > 1 else out
        slope = way * (abs(gap) / top) ** (p - 1) * d
    d_x = sum_to(xp, slope, _aligned(x.shape, slope.shape)[0]) if wants[0] else None
    d_y = sum_to(xp, -slope, _aligned(y.shape, slope.shape)[0]) if wants[1] else None
    return (
        None if d_x is None else d_x.reshape(x.shape),
        None if d_y is None else d_y.reshape(y.shape),
    )
