"""Matrix products: mul (the product under every fc) and matmul."""

from __future__ import annotations

from typing import Any

from .grad import grad_op
from .infer import InferContext, Shape, broadcast_shape, known_product
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__ = ["matrix"]


def _product(sizes: Shape) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


# --- mul ---------------------------------------------------------------------------


def _infer_mul(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    p, q = op.attr("x_num_col_dims"), op.attr("y_num_col_dims")
    op.check(
        0 < p < len(x.shape),
        f"x_num_col_dims {p} must split X of shape {x.shape} in two",
    )
    op.check(
        0 < q < len(y.shape),
        f"y_num_col_dims {q} must split Y of shape {y.shape} in two",
    )
    inner, rows = known_product(x.shape[p:]), known_product(y.shape[:q])
    op.check(
        inner == rows or -1 in (inner, rows),
        f"X {x.shape} has {inner} columns but Y {y.shape} has {rows} rows",
    )
    op.set("Out", x.shape[:p] + y.shape[q:], like=x)


mul = op(
    "mul",
    ins=[In("X"), In("Y")],
    outs=[Out("Out")],
    attrs=[
        Attr("force_fp32_output", bool, False),
        Attr("scale_out", float, 1.0),
        Attr("scale_x", float, 1.0),
        Attr("scale_y", AttrType.FLOATS, [1.0]),
        Attr("use_mkldnn", bool, False),
        Attr("x_num_col_dims", int, 1),
        Attr("y_num_col_dims", int, 1),
    ],
    infer=_infer_mul,
    grad=grad_op(needs=["X", "Y"]),
)


def matrix(x: Any, split: int) -> Any:
    """X as a matrix: the first `split` axes are its rows."""
    if x.ndim == 2 and split == 1:
        return x
    shape = x.shape
    return x.reshape(_product(shape[:split]), _product(shape[split:]))


@mul.kernel
def _(xp: Any, x: Any, y: Any, *, x_num_col_dims: int, y_num_col_dims: int) -> Any:
    z = xp.dot(matrix(x, x_num_col_dims), matrix(y, y_num_col_dims))
    if x.ndim == 2 and y.ndim == 2:
        return z
    return z.reshape(x.shape[:x_num_col_dims] + y.shape[y_num_col_dims:])


@mul.grad_kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    d: Any,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
    wants: tuple[bool, bool],
) -> Any:
    gx = gy = None
    if d.ndim != 2:
        d = matrix(d, x_num_col_dims)
    if wants[0]:
        gx = xp.dot(d, matrix(y, y_num_col_dims).T)
        if x.ndim != 2:
            gx = gx.reshape(x.shape)
    if wants[1]:
        gy = xp.dot(matrix(x, x_num_col_dims).T, d)
        if y.ndim != 2:
            gy = gy.reshape(y.shape)
    return gx, gy


# --- matmul ------------------------------------------------------------------------


def _left(shape: Shape, transposed: bool) -> Shape:
    """(..., M, K) of the left operand; one axis is a row, transposed a column."""
    if len(shape) == 1:
        return (shape[0], 1) if transposed else (1, shape[0])
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _right(shape: Shape, transposed: bool) -> Shape:
    """(..., K, N) of the right operand; one axis is a column, transposed a row."""
    if len(shape) == 1:
        return (1, shape[0]) if transposed else (shape[0], 1)
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _out_shape(x: Shape, y: Shape, tx: bool, ty: bool, whole: Shape) -> Shape:
    """Of (..., M, N), the axes that came from an operand of one axis go."""
    rows = () if len(x) == 1 and not tx else whole[-2:-1]
    columns = () if len(y) == 1 and not ty else whole[-1:]
    return (*whole[:-2], *rows, *columns) or (1,)


def _infer_matmul(op: InferContext) -> None:
    x, y = op.input("X"), op.input("Y")
    tx, ty = op.attr("transpose_X"), op.attr("transpose_Y")
    op.check(bool(x.shape) and bool(y.shape), "X and Y need an axis at least")
    a, b = _left(x.shape, tx), _right(y.shape, ty)
    op.check(
        a[-1] == b[-2] or -1 in (a[-1], b[-2]),
        f"X {x.shape} (transpose {tx}) has {a[-1]} columns but "
        f"Y {y.shape} (transpose {ty}) has {b[-2]} rows",
    )
    batch = broadcast_shape(op, a[:-2], b[:-2], -1)
    whole = (*batch, a[-2], b[-1])
    op.set("Out", _out_shape(x.shape, y.shape, tx, ty, whole), like=x)


matmul = op(
    "matmul",
    ins=[In("X"), In("Y")],
    outs=[Out("Out")],
    attrs=[
        Attr("Scale_out", float, 1.0),
        Attr("Scale_x", float, 1.0),
        Attr("Scale_y", float, 1.0),
        Attr("alpha", float, 1.0),
        Attr("force_fp32_output", bool, False),
        Attr("fused_reshape_Out", AttrType.INTS, []),
        Attr("fused_transpose_Out", AttrType.INTS, []),
        Attr("head_number", int, 1),
        Attr("transpose_X", bool, False),
        Attr("transpose_Y", bool, False),
        Attr("use_mkldnn", bool, False),
        Attr("use_quantizer", bool, False),
    ],
    infer=_infer_matmul,
    grad=grad_op(needs=["X", "Y"]),
)


def _swapped(x: Any) -> Any:
    return x.T if x.ndim == 2 else x.swapaxes(-1, -2)


def _operands(x: Any, y: Any, tx: bool, ty: bool) -> tuple[Any, Any]:
    """Views (..., M, K) and (..., K, N)."""
    if x.ndim == 1:
        a = x.reshape(_left(x.shape, tx))
    else:
        a = _swapped(x) if tx else x
    if y.ndim == 1:
        b = y.reshape(_right(y.shape, ty))
    else:
        b = _swapped(y) if ty else y
    return a, b


def _times(xp: Any, a: Any, b: Any) -> Any:
    """a @ b; a stack of matrices times one matrix is one product of matrices."""
    if b.ndim == 2:
        if a.ndim == 2:
            return xp.dot(a, b)
        flat = a.reshape(_product(a.shape[:-1]), a.shape[-1])
        return xp.dot(flat, b).reshape(*a.shape[:-1], b.shape[-1])
    return xp.matmul(a, b)


@matmul.kernel
def _(
    xp: Any, x: Any, y: Any, *, transpose_X: bool, transpose_Y: bool, alpha: float
) -> Any:
    a, b = _operands(x, y, transpose_X, transpose_Y)
    z = _times(xp, a, b)
    if alpha != 1.0:
        z *= alpha
    if x.ndim > 1 < y.ndim:
        return z
    return z.reshape(_out_shape(x.shape, y.shape, transpose_X, transpose_Y, z.shape))


def _unbatched(g: Any, like: Any) -> Any:
    """Sum a gradient over the batch axes in which its operand was broadcast."""
    extra = g.ndim - like.ndim
    if extra:
        g = g.sum(axis=tuple(range(extra)))
    axes = tuple(i for i in range(g.ndim - 2) if like.shape[i] == 1 != g.shape[i])
    return g.sum(axis=axes, keepdims=True) if axes else g


def _inner_grad(xp: Any, a: Any, d: Any, like: Any) -> Any:
    """a^T d, summed to the shape of the operand `like` it is the gradient of.

    Where a stack met one matrix, its rows are stacked: one product of matrices.
    """
    if (
        like.ndim == 2
        and a.ndim > 2
        and a.ndim == d.ndim
        and a.shape[:-2] == d.shape[:-2]
    ):
        rows = _product(a.shape[:-1])
        a, d = a.reshape(rows, a.shape[-1]), d.reshape(rows, d.shape[-1])
    return _unbatched(_times(xp, _swapped(a), d), like)


def _outer_grad(xp: Any, d: Any, b: Any, like: Any) -> Any:
    """d b^T, summed likewise."""
    return _unbatched(_times(xp, d, _swapped(b)), like)


@matmul.grad_kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    d: Any,
    *,
    transpose_X: bool,
    transpose_Y: bool,
    alpha: float,
    wants: tuple[bool, bool],
) -> Any:
    """Of z = a b: d b^T for a and a^T d for b; the other way round (b d^T and d^T a)
    where the operand itself is the transpose, so that gradients come out in its
    layout."""
    a, b = _operands(x, y, transpose_X, transpose_Y)
    if x.ndim == 1 or y.ndim == 1:
        longer = a if a.ndim > b.ndim else b
        d = d.reshape(*longer.shape[:-2], a.shape[-2], b.shape[-1])
    if alpha != 1.0:
        d = d * alpha
    gx = gy = None
    if wants[0]:
        if transpose_X:
            gx = _outer_grad(xp, b, d, x.reshape(a.shape[::-1]) if x.ndim == 1 else x)
        else:
            gx = _outer_grad(xp, d, b, a)
        gx = gx.reshape(x.shape)
    if wants[1]:
        if transpose_Y:
            gy = _inner_grad(xp, d, a, y.reshape(b.shape[::-1]) if y.ndim == 1 else y)
        else:
            gy = _inner_grad(xp, a, d, b)
        gy = gy.reshape(y.shape)
    return gx, gy
