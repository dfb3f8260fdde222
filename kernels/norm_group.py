"""group_norm and instance_norm: statistics per sample, over groups of channels.

Sources: Wu and He, "Group Normalization" (2018); Ulyanov et al., "Instance
Normalization" (2016). The gradient of group_norm for X is whole; without Scale the
reference's misses the part that comes through the mean.
"""

from __future__ import annotations

import math
from typing import Any

from .grad import grad_op
from .infer import InferContext, known_product
from .norm import check_epsilon
from .registry import op
from .schema import Attr, In, Out
from .window import channels_last

__all__ = ["group_norm", "instance_norm"]


def _check_vector(op: InferContext, slot: str, size: int) -> None:
    if op.has(slot):
        shape = op.shape(slot)
        op.check(
            len(shape) == 1 and (-1 in (size, shape[0]) or shape[0] == size),
            f"{slot} needs shape ({size},) for X {op.shape('X')}, got {shape}",
        )


def _infer_group_norm(op: InferContext) -> None:
    check_epsilon(op)
    x = op.input("X")
    last = channels_last(op.attr("data_layout"), op.fail)
    op.check(len(x.shape) == 4, f"X needs 4 dimensions, got shape {x.shape}")
    channels = x.shape[3 if last else 1]
    groups = op.attr("groups")
    op.check(
        groups > 0
        and (channels < 0 or (groups - 1) * _group_size(channels, groups) < channels),
        f"{channels} channels ({op.attr('data_layout')}) do not divide into "
        f"{groups} groups",
    )
    _check_vector(op, "Scale", channels)
    _check_vector(op, "Bias", channels)
    op.set("Y", like=x)
    op.set("Mean", (x.shape[0], groups), x.dtype)
    op.set("Variance", (x.shape[0], groups), x.dtype)


def _group_size(channels: int, groups: int) -> int:
    """Channels of a group; the last one has what is left."""
    return -(-channels // groups)


group_norm = op(
    "group_norm",
    ins=[In("X"), In("Scale", dispensable=True), In("Bias", dispensable=True)],
    outs=[
        Out("Y"),
        Out("Mean", intermediate=True),
        Out("Variance", intermediate=True),
    ],
    attrs=[
        Attr("epsilon", float, 1e-5),
        Attr("groups", int),
        Attr("data_layout", str, "NCHW"),
    ],
    infer=_infer_group_norm,
    grad=grad_op(needs=["Y", "Scale", "Bias", "Variance"], to=["X", "Scale", "Bias"]),
)


def _nchw(x: Any, layout: str) -> Any:
    return x.transpose(0, 3, 1, 2) if layout == "NHWC" else x


def _restored(xp: Any, images: Any, layout: str) -> Any:
    """The inverse of `_nchw`, as an array of its own."""
    if layout != "NHWC":
        return images
    return xp.ascontiguousarray(images.transpose(0, 2, 3, 1))


def _parts(channels: int, groups: int) -> list[tuple[slice, slice]]:
    """(channels, groups) of each stretch of groups of one size."""
    if channels % groups == 0:
        return [(slice(None), slice(None))]
    edge = (groups - 1) * _group_size(channels, groups)
    return [
        (slice(0, edge), slice(0, groups - 1)),
        (slice(edge, None), slice(groups - 1, None)),
    ]


def _grouped(images: Any, groups: int) -> Any:
    """(n, groups, channels of a group, rest)."""
    n, channels = images.shape[:2]
    rest = math.prod(images.shape[2:])
    return images.reshape(n, groups, channels // groups, rest)


def _normalize(
    xp: Any, images: Any, scale: Any, bias: Any, epsilon: float, groups: int
) -> tuple[Any, Any, Any]:
    """group_norm of (n, channels, height, width) in groups of one size."""
    flat = _grouped(images, groups)
    count = flat.shape[2] * flat.shape[3]
    mean = flat.sum((2, 3)) / count
    y = flat - mean[:, :, None, None]
    variance = xp.einsum("ngci,ngci->ng", y, y) / count
    y *= ((variance + epsilon) ** -0.5)[:, :, None, None]
    if scale is not None:
        y *= scale.reshape(1, groups, -1, 1)
    if bias is not None:
        y += bias.reshape(1, groups, -1, 1)
    return y.reshape(images.shape), mean, variance


@group_norm.kernel
def _(
    xp: Any,
    x: Any,
    scale: Any,
    bias: Any,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> Any:
    images = _nchw(x, data_layout)
    done = []
    for at, of in _parts(images.shape[1], groups):
        a, b = (None if v is None else v[at] for v in (scale, bias))
        count = len(range(groups)[of])
        done.append(_normalize(xp, images[:, at], a, b, epsilon, count))
    if len(done) == 1:
        y, mean, variance = done[0]
    else:
        y, mean, variance = (xp.concatenate(parts, 1) for parts in zip(*done))
    return _restored(xp, y, data_layout), mean, variance


def _denormalize(
    xp: Any,
    y: Any,
    scale: Any,
    bias: Any,
    variance: Any,
    d_y: Any,
    epsilon: float,
    groups: int,
) -> tuple[Any, Any, Any]:
    """The gradients (of X, Scale, Bias) in groups of one size.

    X is not at hand: (Y - Bias) / Scale is the normalized X, and where Scale is 0
    the quotient counts as 0 (as in the reference).
    """
    normal, d_flat = _grouped(y, groups), _grouped(d_y, groups)
    count = normal.shape[2] * normal.shape[3]
    wide = (1, groups, -1, 1)
    if bias is not None:
        normal = normal - bias.reshape(wide)
    if scale is not None:
        some = scale != 0
        reciprocal = some / xp.where(some, scale, 1)
        normal = normal * reciprocal.astype(scale.dtype).reshape(wide)
    d_scale = xp.einsum("ngci,ngci->gc", d_flat, normal).reshape(-1)
    d_x = d_flat * scale.reshape(wide) if scale is not None else d_flat.copy()
    slope = xp.einsum("ngci,ngci->ng", d_x, normal) / count
    shift = d_x.sum((2, 3)) / count
    d_x -= normal * slope[:, :, None, None]
    d_x -= shift[:, :, None, None]
    d_x *= ((variance + epsilon) ** -0.5)[:, :, None, None]
    return d_x.reshape(y.shape), d_scale, d_flat.sum((0, 3)).reshape(-1)


@group_norm.grad_kernel
def _(
    xp: Any,
    y: Any,
    scale: Any,
    bias: Any,
    variance: Any,
    d_y: Any,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> Any:
    images, d_images = _nchw(y, data_layout), _nchw(d_y, data_layout)
    done = []
    for at, of in _parts(images.shape[1], groups):
        a, b = (None if v is None else v[at] for v in (scale, bias))
        part, spread, d_part = images[:, at], variance[:, of], d_images[:, at]
        count = len(range(groups)[of])
        done.append(_denormalize(xp, part, a, b, spread, d_part, epsilon, count))
    d_x, d_scale, d_bias = done[0]
    if len(done) == 2:
        d_x = xp.concatenate((d_x, done[1][0]), 1)
        d_scale = xp.concatenate((d_scale, done[1][1]))
        d_bias = xp.concatenate((d_bias, done[1][2]))
    return (
        _restored(xp, d_x, data_layout),
        None if scale is None else d_scale,
        None if bias is None else d_bias,
    )


def _infer_instance_norm(op: InferContext) -> None:
    check_epsilon(op)
    x = op.input("X")
    op.check(2 <= len(x.shape) <= 5, f"X needs 2 to 5 dimensions, got shape {x.shape}")
    _check_vector(op, "Scale", x.shape[1])
    _check_vector(op, "Bias", x.shape[1])
    op.set("Y", like=x)
    rows = known_product(x.shape[:2])
    op.set("SavedMean", (rows,), x.dtype)
    op.set("SavedVariance", (rows,), x.dtype)


instance_norm = op(
    "instance_norm",
    ins=[In("X"), In("Scale"), In("Bias")],
    outs=[
        Out("Y"),
        Out("SavedMean", intermediate=True),
        Out("SavedVariance", intermediate=True),
    ],
    attrs=[Attr("epsilon", float, 1e-5)],
    infer=_infer_instance_norm,
    grad=grad_op(
        needs=["X", "Scale", "SavedMean", "SavedVariance"], to=["X", "Scale", "Bias"]
    ),
)


@instance_norm.kernel
def _(xp: Any, x: Any, scale: Any, bias: Any, *, epsilon: float) -> Any:
    n, channels = x.shape[:2]
    flat = x.reshape(n, channels, math.prod(x.shape[2:]))
    count = flat.shape[2]
    mean = flat.sum(2) / count
    y = flat - mean[:, :, None]
    variance = xp.einsum("nci,nci->nc", y, y) / count
    inverse = (variance + epsilon) ** -0.5
    y *= (inverse * scale)[:, :, None]
    y += bias[:, None]
    return y.reshape(x.shape), mean.reshape(-1), inverse.reshape(-1)


@instance_norm.grad_kernel
def _(xp: Any, x: Any, scale: Any, mean: Any, inverse: Any, d_y: Any) -> Any:
    n, channels = x.shape[:2]
    flat = x.reshape(n, channels, math.prod(x.shape[2:]))
    d_flat = d_y.reshape(flat.shape)
    count = flat.shape[2]
    inverse = inverse.reshape(n, channels)
    normal = flat - mean.reshape(n, channels, 1)
    normal *= inverse[:, :, None]
    sums = d_flat.sum(2)
    slopes = xp.einsum("nci,nci->nc", d_flat, normal)
    normal *= (slopes / count)[:, :, None]
    d_x = d_flat - normal
    d_x -= (sums / count)[:, :, None]
    d_x *= (inverse * scale)[:, :, None]
    return d_x.reshape(x.shape), slopes.sum(0), sums.sum(0)
