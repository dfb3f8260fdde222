"""Normalizations by parameters: data_norm, spectral_norm, affine_channel.

Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018).
"""

from __future__ import annotations

import math
from typing import Any

from .grad import GRAD, GradContext, OpSpec, grad_op
from .infer import InferContext, known_product
from .registry import op
from .schema import Attr, In, Out
from .window import channels_last

__all__ = ["affine_channel", "data_norm", "spectral_norm"]

# --- data_norm ----------------------------------------------------------------

_DATA_NORM = (
    Attr("epsilon", float, 1e-4),
    Attr("slot_dim", int, -1),
    Attr("summary_decay_rate", float, 0.9999999),
    Attr("enable_scale_and_shift", bool, False),
    Attr("data_layout", str, "NCHW"),
    Attr("sync_stats", bool, False),
    Attr("use_mkldnn", bool, False),
)
_SUMMARY = ("BatchSize", "BatchSum", "BatchSquareSum")
# a slot whose first column (shows) is smaller was not filled
_UNSEEN = 1e-7


def _infer_data_norm(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) == 2, f"X needs shape (n, width), got {x.shape}")
    width = x.shape[1]
    slots = list(_SUMMARY)
    if op.attr("enable_scale_and_shift"):
        slots += ["scale_w", "bias"]
    for slot in slots:
        shape = op.shape(slot)
        op.check(
            len(shape) == 1 and (shape[0] == width or -1 in (width, shape[0])),
            f"{slot} needs shape ({width},) for X {x.shape}, got {shape}",
        )
    op.set("Y", like=x)
    op.set("Means", (width,), x.dtype)
    op.set("Scales", (width,), x.dtype)


def _data_norm_grad(op: GradContext) -> list[OpSpec]:
    """Its gradient op also names the summaries, which it leaves as they are."""
    inputs = {s: op.input(s) for s in ("X", "scale_w", "bias")}
    inputs |= {s: op.output(s) for s in ("Means", "Scales")}
    inputs["Y" + GRAD] = op.output_grad("Y")
    outputs = {s: op.input(s) for s in _SUMMARY}
    for slot in ("X", *_SUMMARY, "scale_w", "bias"):
        outputs[slot + GRAD] = op.input_grad(slot)
    return [
        OpSpec(
            "data_norm_grad",
            {k: v for k, v in inputs.items() if v},
            {k: v for k, v in outputs.items() if v},
            dict(op.attrs),
        )
    ]


data_norm = op(
    "data_norm",
    ins=[
        In("scale_w", dispensable=True),
        In("bias", dispensable=True),
        In("X"),
        *(In(slot) for slot in _SUMMARY),
    ],
    outs=[
        Out("Y"),
        Out("Means", intermediate=True),
        Out("Scales", intermediate=True),
    ],
    attrs=_DATA_NORM,
    infer=_infer_data_norm,
    grad=_data_norm_grad,
    lod="X",
)


def _filled(xp: Any, x: Any, slot_dim: int) -> Any:
    """(n, slots, 1): which slots of each row hold anything."""
    slots = x.reshape(len(x), -1, slot_dim)
    return xp.abs(slots[:, :, :1]) >= _UNSEEN


@data_norm.kernel
def _(
    xp: Any,
    scale_w: Any,
    bias: Any,
    x: Any,
    size: Any,
    total: Any,
    squares: Any,
    *,
    slot_dim: int,
    enable_scale_and_shift: bool,
) -> Any:
    means = total / size
    scales = xp.sqrt(size / squares)
    y = (x - means) * scales
    if enable_scale_and_shift:
        y *= scale_w
        y += bias
    if slot_dim > 0:
        slots = y.reshape(len(x), -1, slot_dim)
        slots *= _filled(xp, x, slot_dim)
    return y, means, scales


def _infer_data_norm_grad(op: InferContext) -> None:
    x = op.input("X")
    op.set("X" + GRAD, like=x)
    for slot in (*_SUMMARY, *(s + GRAD for s in (*_SUMMARY, "scale_w", "bias"))):
        op.set(slot, (x.shape[1],), x.dtype)


data_norm_grad = op(
    "data_norm_grad",
    ins=[
        In("scale_w", dispensable=True),
        In("bias", dispensable=True),
        In("X"),
        In("Means"),
        In("Scales"),
        In("Y" + GRAD),
    ],
    outs=[
        *(Out(slot) for slot in _SUMMARY),
        *(
            Out(slot + GRAD, dispensable=True)
            for slot in ("X", *_SUMMARY, "scale_w", "bias")
        ),
    ],
    attrs=_DATA_NORM,
    infer=_infer_data_norm_grad,
    grad=None,
    lod=None,
)


@data_norm_grad.kernel
def _(
    xp: Any,
    scale_w: Any,
    bias: Any,
    x: Any,
    means: Any,
    scales: Any,
    d_y: Any,
    *,
    ctx: Any,
    names: dict[str, list[str]],
    epsilon: float,
    slot_dim: int,
    enable_scale_and_shift: bool,
) -> Any:
    """What the optimizer subtracts from the summaries is this batch's share of them:
    its size, sums, and squares of the distances (mirrors DataNormGradKernel)."""
    centred = x - means
    if slot_dim > 0:
        filled = _filled(xp, x, slot_dim)
        mask = xp.broadcast_to(filled, (*filled.shape[:2], slot_dim))
        mask = mask.reshape(x.shape).astype(x.dtype)
        seen = mask.sum(axis=0)
        some = xp.maximum(seen, 1)
        d_size = (seen > 0).astype(x.dtype)
        d_sum = (x * mask).sum(axis=0) / some
        d_squares = (centred * centred * mask).sum(axis=0) / some + seen * epsilon
        kept = d_y * mask if enable_scale_and_shift else d_y
    else:
        d_size = xp.full(means.shape, len(x), x.dtype)
        d_sum = x.sum(axis=0)
        d_squares = (centred * centred).sum(axis=0) + len(x) * epsilon
        kept = d_y
    d_x = kept * scales
    d_scale = d_bias = None
    if enable_scale_and_shift:
        d_scale = (kept * centred).sum(axis=0) * scales
        d_bias = kept.sum(axis=0)
        d_x *= scale_w
    kept_summaries = [_held(ctx, names.get(slot)) for slot in _SUMMARY]
    return (*kept_summaries, d_x, d_size, d_sum, d_squares, d_scale, d_bias)


def _held(ctx: Any, names: list[str] | None) -> Any:
    """What a persistable variable holds."""
    found = ctx.scope.find_var(names[0]) if names and ctx.scope else None
    return None if found is None else found.value


# --- spectral_norm ------------------------------------------------------------


def _infer_spectral(op: InferContext) -> None:
    weight, dim = op.input("Weight"), op.attr("dim")
    shape = weight.shape
    op.check(2 <= len(shape) <= 5, f"Weight needs 2 to 5 dimensions, got {shape}")
    op.check(dim in (0, 1), f"dim must be 0 or 1, got {dim}")
    op.check(
        op.attr("power_iters") >= 0,
        f"power_iters must be at least 0, got {op.attr('power_iters')}",
    )
    rest = known_product((*shape[:dim], *shape[dim + 1 :]))
    for slot, size in (("U", shape[dim]), ("V", rest)):
        given = op.shape(slot)
        op.check(
            len(given) == 1 and (given[0] == size or -1 in (given[0], size)),
            f"{slot} needs shape ({size},) for Weight {shape}, got {given}",
        )
    op.set("Out", like=weight)


spectral_norm = op(
    "spectral_norm",
    ins=[In("Weight"), In("U", no_grad=True), In("V", no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("dim", int, 0),
        Attr("power_iters", int, 1),
        Attr("eps", float, 1e-12),
    ],
    infer=_infer_spectral,
    grad=grad_op(needs=["Weight", "U", "V"]),
)


def _power(
    xp: Any, weight: Any, u: Any, v: Any, dim: int, iters: int, eps: float
) -> tuple[Any, ...]:
    """The weight as a matrix, its singular vectors and value by power iteration."""
    front = xp.moveaxis(weight, dim, 0) if dim else weight
    matrix = front.reshape(len(front), math.prod(front.shape[1:]))
    for _ in range(iters):
        v = matrix.T @ u
        v = v / (xp.sqrt(v @ v) + eps)
        u = matrix @ v
        u = u / (xp.sqrt(u @ u) + eps)
    return front.shape, matrix, u, v, u @ (matrix @ v)


def _back(xp: Any, matrix: Any, shape: tuple[int, ...], dim: int) -> Any:
    front = matrix.reshape(shape)
    return xp.ascontiguousarray(xp.moveaxis(front, 0, dim)) if dim else front


@spectral_norm.kernel
def _(
    xp: Any, weight: Any, u: Any, v: Any, *, dim: int, power_iters: int, eps: float
) -> Any:
    *_, sigma = _power(xp, weight, u, v, dim, power_iters, eps)
    return weight / sigma


@spectral_norm.grad_kernel
def _(
    xp: Any,
    weight: Any,
    u: Any,
    v: Any,
    d_out: Any,
    *,
    dim: int,
    power_iters: int,
    eps: float,
) -> Any:
    """The vectors count as constants."""
    shape, matrix, u, v, sigma = _power(xp, weight, u, v, dim, power_iters, eps)
    d_front = xp.moveaxis(d_out, dim, 0) if dim else d_out
    d = d_front.reshape(matrix.shape)
    slope = (d * matrix).sum() / (sigma * sigma)
    d_matrix = d / sigma
    d_matrix -= (slope * u)[:, None] * v
    return _back(xp, d_matrix, shape, dim)


# --- affine_channel -----------------------------------------------------------


def _infer_affine_channel(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) >= 2, f"X needs shape (n, channels, ...), got {x.shape}")
    last = channels_last(op.attr("data_layout"), op.fail)
    channels = x.shape[-1 if last else 1]
    for slot in ("Scale", "Bias"):
        shape = op.shape(slot)
        op.check(
            len(shape) == 1 and (shape[0] == channels or -1 in (shape[0], channels)),
            f"{slot} needs shape ({channels},) for X {x.shape}, got {shape}",
        )
    op.set("Out", like=x)


affine_channel = op(
    "affine_channel",
    ins=[In("X"), In("Scale"), In("Bias")],
    outs=[Out("Out")],
    attrs=[Attr("data_layout", str, "AnyLayout")],
    infer=_infer_affine_channel,
    grad=grad_op(needs=["X", "Scale"]),
)


def _wide(x: Any, data_layout: str) -> tuple[int, ...]:
    """The shape that a vector of channels takes beside x."""
    if data_layout == "NHWC" or x.ndim == 2:
        return (-1,)
    return (-1, *(1,) * (x.ndim - 2))


@affine_channel.kernel
def _(xp: Any, x: Any, scale: Any, bias: Any, *, data_layout: str) -> Any:
    wide = _wide(x, data_layout)
    out = x * scale.reshape(wide)
    out += bias.reshape(wide)
    return out


@affine_channel.grad_kernel
def _(
    xp: Any,
    x: Any,
    scale: Any,
    d_out: Any,
    *,
    data_layout: str,
    wants: tuple[bool, ...],
) -> Any:
    wide = _wide(x, data_layout)
    channel = x.ndim - 1 if len(wide) == 1 else 1
    axes = tuple(i for i in range(x.ndim) if i != channel)
    dx = d_out * scale.reshape(wide) if wants[0] else None
    d_scale = (d_out * x).sum(axes) if wants[1] else None
    return dx, d_scale, d_out.sum(axes) if wants[2] else None


def _infer_affine_channel_grad(op: InferContext) -> None:
    op.set("X@GRAD", like=op.input("X"))
    for slot in ("Scale@GRAD", "Bias@GRAD"):
        op.set(slot, like=op.input("Scale"))


affine_channel.grad_def.infer = _infer_affine_channel_grad
