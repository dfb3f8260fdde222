"""Losses on class labels: the cross entropies.

Hard labels are class numbers of shape (..., 1); soft ones are distributions of x's
shape. A row whose label is ``ignore_index`` has loss 0 and no gradient. (The
gradient of the reference's softmax_with_cross_entropy on CPUs hands on the softmax
itself for such rows, as if no class were right.)
"""

from __future__ import annotations

from typing import Any

from .activation import SOFTMAX_FLOOR
from .grad import grad_op
from .infer import InferContext
from .registry import op
from .rows import check_ids
from .schema import Attr, In, Out

__all__ = ["labels"]

# -log(0), as the reference has it
_HUGE = 1e20
_IGNORE = Attr("ignore_index", int, -100)
_SOFT = Attr("soft_label", bool, False)


def labels(
    xp: Any, op_name: str, label: Any, classes: int, ignore: int
) -> tuple[Any, Any]:
    """Flat labels, and None or a mask of the ignored ones (whose label is then 0)."""
    flat = label.reshape(-1)
    unsigned = "u8" if flat.dtype.itemsize == 8 else "u4"
    inside = not flat.size or flat.view(unsigned).max() < classes
    if inside and not 0 <= ignore < classes:
        return flat, None
    ignored = flat == ignore
    flat = xp.where(ignored, 0, flat)
    check_ids(op_name, "label", flat, classes)
    return flat, ignored


def _minus_log(xp: Any, p: Any) -> Any:
    """-log(p), and `_HUGE` for p = 0."""
    zero = p == 0
    if zero.any():
        return xp.where(zero, _HUGE, -xp.log(xp.where(zero, 1, p))).astype(p.dtype)
    y = xp.log(p)
    return xp.negative(y, out=y)


def _infer_cross_entropy(op: InferContext) -> None:
    x, label = op.input("X"), op.input("Label")
    soft = op.attrs.get("soft_label", False)
    rank = len(x.shape)
    if soft:
        known = all(p == q or -1 in (p, q) for p, q in zip(x.shape, label.shape))
        op.check(
            len(label.shape) == rank and known,
            f"soft Label {label.shape} is not like X {x.shape}",
        )
    else:
        lead = label.shape[: rank - 1]
        op.check(
            (len(label.shape) == rank - 1 or label.shape[rank - 1 :] in ((1,), (-1,)))
            and all(p == q or -1 in (p, q) for p, q in zip(x.shape, lead)),
            f"Label {label.shape} does not give a class to each row of X {x.shape}",
        )
    tail = (1,) if len(label.shape) == rank else ()
    op.set("Y", (*x.shape[:-1], *tail), x.dtype, x.lod_level)
    if op.wants("XShape"):
        op.set("XShape", (*x.shape, 0), x.dtype, x.lod_level)
    if op.wants("MatchX"):
        op.set("MatchX", (*x.shape[:-1], *tail), x.dtype)


cross_entropy = op(
    "cross_entropy",
    ins=[In("X"), In("Label", no_grad=True)],
    outs=[Out("Y")],
    attrs=[_SOFT, _IGNORE],
    infer=_infer_cross_entropy,
    grad=grad_op(needs=["X", "Label"]),
)


def _picked(xp: Any, x: Any, flat_labels: Any) -> tuple[Any, Any]:
    """The element of each row that its label names, and its place in flat x."""
    classes = x.shape[-1]
    places = xp.arange(0, x.size, classes)
    places += flat_labels
    return x.reshape(-1).take(places), places


def _hard_loss(xp: Any, name: str, x: Any, label: Any, ignore: int) -> tuple[Any, Any]:
    """Loss and the picked probability, both of the label's shape."""
    flat, ignored = labels(xp, name, label, x.shape[-1], ignore)
    match, _ = _picked(xp, x, flat)
    y = _minus_log(xp, match)
    if ignored is not None:
        y[ignored] = 0
        match[ignored] = 0
    return y.reshape(label.shape), match.reshape(label.shape)


def _hard_grad(
    xp: Any, name: str, shape: Any, label: Any, match: Any, d_y: Any, ignore: int
) -> Any:
    """-d_y / match at the labels, zero elsewhere."""
    d_x = xp.zeros(shape, d_y.dtype)
    flat, ignored = labels(xp, name, label, shape[-1], ignore)
    places = xp.arange(0, d_x.size, shape[-1])
    places += flat
    if ignored is None:
        d_x.reshape(-1)[places] = -(d_y.reshape(-1) / match.reshape(-1))
    else:
        kept = ~ignored
        value = -(d_y.reshape(-1)[kept] / match.reshape(-1)[kept])
        d_x.reshape(-1)[places[kept]] = value
    return d_x


@cross_entropy.kernel
def _(xp: Any, x: Any, label: Any, *, soft_label: bool, ignore_index: int) -> Any:
    if soft_label:
        return (label * _minus_log(xp, x)).sum(axis=-1, keepdims=True)
    return _hard_loss(xp, "cross_entropy", x, label, ignore_index)[0]


@cross_entropy.grad_kernel
def _(
    xp: Any, x: Any, label: Any, d_y: Any, *, soft_label: bool, ignore_index: int
) -> Any:
    if soft_label:
        d_x = label * d_y
        d_x /= x
        return xp.negative(d_x, out=d_x)
    name = "cross_entropy_grad"
    flat, ignored = labels(xp, name, label, x.shape[-1], ignore_index)
    match, _ = _picked(xp, x, flat)
    return _hard_grad(xp, name, x.shape, label, match, d_y, ignore_index)


cross_entropy2 = op(
    "cross_entropy2",
    ins=[In("X"), In("Label", no_grad=True)],
    outs=[Out("Y"), Out("XShape"), Out("MatchX")],
    attrs=[_IGNORE],
    infer=_infer_cross_entropy,
    grad=grad_op(
        needs=["Label", "MatchX", "XShape"],
        shape_only=["XShape"],
        of=["Y"],
        type="cross_entropy_grad2",
    ),
)


@cross_entropy2.kernel
def _(xp: Any, x: Any, label: Any, *, ignore_index: int) -> Any:
    y, match = _hard_loss(xp, "cross_entropy2", x, label, ignore_index)
    return y, xp.empty((*x.shape, 0), x.dtype), match


@cross_entropy2.grad_kernel
def _(
    xp: Any, label: Any, match: Any, shape: Any, d_y: Any, *, ignore_index: int
) -> Any:
    name = "cross_entropy_grad2"
    return _hard_grad(xp, name, shape.shape[:-1], label, match, d_y, ignore_index)


def _infer_cross_entropy2_grad(op: InferContext) -> None:
    x = op.input("XShape")
    op.set("X@GRAD", x.shape[:-1], x.dtype, x.lod_level)


cross_entropy2.grad_def.infer = _infer_cross_entropy2_grad

# --- softmax_with_cross_entropy -----------------------------------------------


def _infer_softmax_loss(op: InferContext) -> None:
    x, label = op.input("Logits"), op.input("Label")
    axis, rank = op.attr("axis"), len(x.shape)
    op.check(-rank <= axis < rank, f"axis {axis} is not one of {rank} axes")
    axis %= rank
    out = list(x.shape)
    out[axis] = 1
    wanted = x.shape if op.attr("soft_label") else tuple(out)
    op.check(
        len(label.shape) == rank
        and all(p == q or -1 in (p, q) for p, q in zip(wanted, label.shape)),
        f"Label has shape {label.shape}, Logits {x.shape} want {wanted}",
    )
    op.set("Softmax", like=x)
    op.set("Loss", out, x.dtype, x.lod_level)


softmax_with_cross_entropy = op(
    "softmax_with_cross_entropy",
    ins=[In("Logits"), In("Label", no_grad=True)],
    outs=[Out("Softmax", intermediate=True), Out("Loss")],
    attrs=[
        _SOFT,
        Attr("numeric_stable_mode", bool, True),
        _IGNORE,
        Attr("axis", int, -1),
    ],
    infer=_infer_softmax_loss,
    grad=grad_op(needs=["Softmax", "Label"], to=["Logits"]),
)
softmax_with_cross_entropy.grad_def.overwrites = "Softmax"


def _infer_softmax_loss_grad(op: InferContext) -> None:
    op.set("Logits@GRAD", like=op.input("Softmax"))


softmax_with_cross_entropy.grad_def.infer = _infer_softmax_loss_grad


@softmax_with_cross_entropy.kernel
def _(
    xp: Any, x: Any, label: Any, *, soft_label: bool, ignore_index: int, axis: int
) -> Any:
    last = axis == -1 or axis == x.ndim - 1
    if not last:
        x, label = xp.moveaxis(x, axis, -1), xp.moveaxis(label, axis, -1)
    shifted = x - xp.maximum.reduce(x, axis=-1, keepdims=True)
    xp.maximum(shifted, SOFTMAX_FLOOR, out=shifted)
    softmax = xp.exp(shifted)
    total = xp.add.reduce(softmax, axis=-1, keepdims=True)
    softmax /= total
    loss = xp.log(total)
    if soft_label:
        shifted -= loss
        shifted *= label
        loss = -xp.add.reduce(shifted, axis=-1, keepdims=True)
    else:
        name = "softmax_with_cross_entropy"
        flat, ignored = labels(xp, name, label, x.shape[-1], ignore_index)
        loss -= _picked(xp, shifted, flat)[0].reshape(loss.shape)
        if ignored is not None:
            loss.reshape(-1)[ignored] = 0
    if not last:
        softmax, loss = xp.moveaxis(softmax, -1, axis), xp.moveaxis(loss, -1, axis)
    return softmax, loss


@softmax_with_cross_entropy.grad_kernel
def _(
    xp: Any,
    softmax: Any,
    label: Any,
    d_loss: Any,
    *,
    soft_label: bool,
    ignore_index: int,
    axis: int,
    out: Any,
) -> Any:
    if soft_label:
        d_x = xp.subtract(softmax, label, out=out)
        d_x *= d_loss
        return d_x
    last = axis == -1 or axis == softmax.ndim - 1
    if not last:
        softmax = xp.moveaxis(softmax, axis, -1)
        label, d_loss = xp.moveaxis(label, axis, -1), xp.moveaxis(d_loss, axis, -1)
        out = None
    if out is not None and not out.flags.c_contiguous:
        out = None
    name = "softmax_with_cross_entropy_grad"
    flat, ignored = labels(xp, name, label, softmax.shape[-1], ignore_index)
    if ignored is not None:
        # an ignored row's loss is the constant 0 (the reference's CPU kernel lets
        # its softmax part through all the same)
        d_loss = xp.where(ignored.reshape(d_loss.shape), 0, d_loss)
    if out is None:
        out = xp.empty(softmax.shape, softmax.dtype)
    d_x = xp.multiply(softmax, d_loss, out=out)
    places = xp.arange(0, d_x.size, d_x.shape[-1])
    places += flat
    d_x.reshape(-1)[places] -= d_loss.reshape(-1)
    return d_x if last else xp.moveaxis(d_x, -1, axis)


# --- sigmoid_cross_entropy_with_logits ----------------------------------------

sigmoid_cross_entropy = op(
    "sigmoid_cross_entropy_with_logits",
    ins=[In("X"), In("Label", no_grad=True)],
    outs=[Out("Out")],
    attrs=[_IGNORE, Attr("normalize", bool, False)],
    infer=lambda op: op.set("Out", like=op.input("X")),
    grad=grad_op(needs=["X", "Label"]),
)


def _finish(xp: Any, value: Any, label: Any, ignore: int, normalize: bool) -> Any:
    """Zero where ignored; divided by the number of the others if asked."""
    ignored = label == ignore
    if ignored.any():
        value[ignored] = 0
    if normalize:
        value /= max(1, label.size - int(ignored.sum()))
    return value


@sigmoid_cross_entropy.kernel
def _(xp: Any, x: Any, label: Any, *, ignore_index: int, normalize: bool) -> Any:
    # max(x, 0) - x z + log(1 + exp(-|x|)) overflows nowhere
    out = xp.abs(x)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    xp.log1p(out, out=out)
    out += xp.maximum(x, 0)
    out -= x * label
    return _finish(xp, out, label, ignore_index, normalize)


@sigmoid_cross_entropy.grad_kernel
def _(
    xp: Any, x: Any, label: Any, d_out: Any, *, ignore_index: int, normalize: bool
) -> Any:
    # sigmoid(x) = (1 + tanh(x / 2)) / 2 overflows nowhere
    d_x = xp.tanh(x * 0.5)
    d_x += 1
    d_x *= 0.5
    d_x -= label
    d_x *= d_out
    return _finish(xp, d_x, label, ignore_index, normalize)
