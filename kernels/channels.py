"""Elements moved between channels, space and time of images: space_to_depth,
pixel_shuffle, shuffle_channel, temporal_shift, unfold; and maxout.

Images are (N, C, H, W).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .grad import GRAD, grad_op
from .infer import InferContext, Shape, same_as
from .registry import op
from .schema import Attr, AttrType, In, Out
from .window import Axis, plan_axis

__all__: list[str] = []


def _images(op: InferContext) -> Shape:
    shape = op.shape("X")
    op.check(len(shape) == 4, f"X has shape {shape}, not four dimensions")
    return shape


def _parts(op: InferContext, what: str, size: int, parts: int) -> int:
    """size / parts; -1 for an unknown size."""
    op.check(size < 0 or size % parts == 0, f"{what} {size} is no multiple of {parts}")
    return -1 if size < 0 else size // parts


def _times(size: int, factor: int) -> int:
    return -1 if size < 0 else size * factor


# --- space_to_depth, pixel_shuffle, shuffle_channel --------------------------------


def _infer_space_to_depth(op: InferContext) -> None:
    n, c, h, w = _images(op)
    block = op.attr("blocksize")
    op.check(block > 1, f"blocksize is {block}, not above 1")
    _parts(op, "the number of channels", c, block * block)
    shape = (
        n,
        _times(c, block * block),
        _parts(op, "the height", h, block),
        _parts(op, "the width", w, block),
    )
    op.set("Out", shape, like=op.input("X"))


space_to_depth = op(
    "space_to_depth",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("blocksize", AttrType.LONG, 2)],
    infer=_infer_space_to_depth,
    grad=grad_op(needs=["X"], shape_only=["X"]),
)


@space_to_depth.kernel
def _(xp: Any, x: Any, *, blocksize: int) -> Any:
    """Darknet's reorg: X is read as blocks of channels that become pixels, and the
    result is cut into rows of a (C * b * b, H / b, W / b) image."""
    n, c, h, w = x.shape
    b = blocksize
    image = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return image.reshape(n, c * b * b, h // b, w // b)


@space_to_depth.grad_kernel
def _(xp: Any, x: Any, d: Any, *, blocksize: int) -> Any:
    n, c, h, w = x.shape
    b = blocksize
    image = d.reshape(n, c // (b * b), h, b, w, b)
    return image.transpose(0, 3, 5, 1, 2, 4).reshape(x.shape)


def _infer_pixel_shuffle(op: InferContext) -> None:
    n, c, h, w = _images(op)
    factor = op.attr("upscale_factor")
    op.check(factor >= 1, f"upscale_factor is {factor}, not positive")
    channels = _parts(op, "the number of channels", c, factor * factor)
    shape = (n, channels, _times(h, factor), _times(w, factor))
    op.set("Out", shape, op.input("X").dtype)


pixel_shuffle = op(
    "pixel_shuffle",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("upscale_factor", int, 1)],
    infer=_infer_pixel_shuffle,
    grad=grad_op(),
    lod=None,
)


@pixel_shuffle.kernel
def _(xp: Any, x: Any, *, upscale_factor: int) -> Any:
    """(N, C r r, H, W) to (N, C, H r, W r). Shi et al. (2016)."""
    n, c, h, w = x.shape
    r = upscale_factor
    split = x.reshape(n, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    out = split.reshape(n, c // (r * r), h * r, w * r)
    return out.copy() if r == 1 else out


@pixel_shuffle.grad_kernel
def _(xp: Any, d: Any, *, upscale_factor: int) -> Any:
    n, c, h, w = d.shape
    r = upscale_factor
    split = d.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    out = split.reshape(n, c * r * r, h // r, w // r)
    return out.copy() if r == 1 else out


def _infer_pixel_shuffle_grad(op: InferContext) -> None:
    d = op.input("Out" + GRAD)
    n, c, h, w = d.shape
    r = op.attr("upscale_factor")
    shape = (n, _times(c, r * r), -1 if h < 0 else h // r, -1 if w < 0 else w // r)
    op.set("X" + GRAD, shape, d.dtype)


pixel_shuffle.grad_def.infer = _infer_pixel_shuffle_grad


def _infer_shuffle_channel(op: InferContext) -> None:
    shape, group = _images(op), op.attr("group")
    op.check(group >= 1, f"group is {group}, not positive")
    _parts(op, "the number of channels", shape[1], group)
    op.set("Out", shape, op.input("X").dtype)


shuffle_channel = op(
    "shuffle_channel",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("group", int, 1)],
    infer=_infer_shuffle_channel,
    grad=grad_op(),
    lod=None,
)
shuffle_channel.grad_def.infer = same_as("Out" + GRAD, "X" + GRAD)


def _shuffle(x: Any, rows: int, columns: int) -> Any:
    """Channels written row by row and read column by column."""
    n, c, h, w = x.shape
    out = x.reshape(n, rows, columns, h, w).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    return out.copy() if 1 in (rows, columns) else out


@shuffle_channel.kernel
def _(xp: Any, x: Any, *, group: int) -> Any:
    """Channels of the groups by turns. Zhang et al. (2017)."""
    return _shuffle(x, group, x.shape[1] // group)


@shuffle_channel.grad_kernel
def _(xp: Any, d: Any, *, group: int) -> Any:
    """The channels back in their places (the reference shuffles them once more, which
    is the gradient only where group * group channels come in)."""
    return _shuffle(d, d.shape[1] // group, group)


# --- temporal_shift ----------------------------------------------------------------


def _infer_temporal_shift(op: InferContext) -> None:
    shape, ratio = _images(op), op.attr("shift_ratio")
    frames = op.attr("seg_num")
    op.check(frames > 0, f"seg_num is {frames}, not positive")
    op.check(0 < ratio < 0.5, f"shift_ratio is {ratio}, not in (0, 0.5)")
    _parts(op, "the batch size", shape[0], frames)
    op.set("Out", like=op.input("X"))


temporal_shift = op(
    "temporal_shift",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("seg_num", int), Attr("shift_ratio", float, 0.25)],
    infer=_infer_temporal_shift,
    grad=grad_op(),
)
temporal_shift.grad_def.infer = same_as("Out" + GRAD, "X" + GRAD)


def _shift(xp: Any, x: Any, frames: int, ratio: float, way: int) -> Any:
    """The first channels a frame later, the next ones a frame earlier (way 1)."""
    n, c, h, w = x.shape
    # in float32, as the reference cuts them
    share = np.float32(ratio)
    first, second = int(c * share), int(c * 2 * share)
    source = x.reshape(n // frames, frames, c, h, w)
    out = xp.zeros(source.shape, x.dtype)
    later, earlier = slice(0, first), slice(first, second)
    if way < 0:
        later, earlier = earlier, later
    out[:, 1:, later] = source[:, :-1, later]
    out[:, :-1, earlier] = source[:, 1:, earlier]
    out[:, :, second:] = source[:, :, second:]
    return out.reshape(x.shape)


@temporal_shift.kernel
def _(xp: Any, x: Any, *, seg_num: int, shift_ratio: float) -> Any:
    """Mixes frames of videos; N is videos times seg_num frames. Lin et al. (2018)."""
    if x.shape[0] % seg_num:
        raise ValueError(
            f"temporal_shift: batch size {x.shape[0]} is no multiple of {seg_num}"
        )
    return _shift(xp, x, seg_num, shift_ratio, 1)


@temporal_shift.grad_kernel
def _(xp: Any, d: Any, *, seg_num: int, shift_ratio: float) -> Any:
    return _shift(xp, d, seg_num, shift_ratio, -1)


# --- unfold ------------------------------------------------------------------------


def _axes(
    shape: Shape, kernel: Any, strides: Any, pads: Any, dilations: Any
) -> tuple[Axis, Axis]:
    """The window over height and over width; paddings: top, left, bottom, right."""
    made = [
        plan_axis(
            shape[2 + i],
            kernel[i],
            strides[i],
            dilations[i],
            (pads[i], pads[i + 2]),
            "EXPLICIT",
        )
        for i in range(2)
    ]
    return made[0], made[1]


def _infer_unfold(op: InferContext) -> None:
    shape = _images(op)
    keys = ("kernel_sizes", "strides", "paddings", "dilations")
    kernel, strides, pads, dilations = (list(op.attr(k)) for k in keys)
    for key, values, count in zip(
        keys, (kernel, strides, pads, dilations), (2, 2, 4, 2)
    ):
        low = 0 if key == "paddings" else 1
        op.check(
            len(values) == count and min(values) >= low,
            f"{key} must be {count} numbers of at least {low}, got {values}",
        )
    high, wide = _axes(shape, kernel, strides, pads, dilations)
    for axis in (high, wide):
        op.check(
            axis.out == -1 or axis.out > 0,
            f"no window of {kernel} fits into X {shape} with paddings {pads}",
        )
    count = -1 if -1 in (high.out, wide.out) else high.out * wide.out
    op.set(
        "Y",
        (shape[0], _times(shape[1], kernel[0] * kernel[1]), count),
        op.input("X").dtype,
    )


unfold = op(
    "unfold",
    ins=[In("X")],
    outs=[Out("Y")],
    attrs=[
        Attr("dilations", AttrType.INTS),
        Attr("kernel_sizes", AttrType.INTS),
        Attr("paddings", AttrType.INTS),
        Attr("strides", AttrType.INTS),
    ],
    infer=_infer_unfold,
    grad=grad_op(needs=["X"], shape_only=["X"]),
    lod=None,
)


def _taps(high: Axis, wide: Axis) -> Any:
    """For each element of the window: its number, and where it lies in the columns
    and in the image."""
    for i in range(high.kernel):
        rows_out, rows_in = high.inside(i)
        for j in range(wide.kernel):
            columns_out, columns_in = wide.inside(j)
            place = (..., i, j, rows_out, columns_out)
            yield place, (..., rows_in, columns_in)


@unfold.kernel
def _(
    xp: Any,
    x: Any,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    """im2col: column l holds the window at place l, channel by channel."""
    n, c = x.shape[:2]
    high, wide = _axes(x.shape, kernel_sizes, strides, paddings, dilations)
    out = xp.zeros((n, c, high.kernel, wide.kernel, high.out, wide.out), x.dtype)
    for place, source in _taps(high, wide):
        out[place] = x[source]
    return out.reshape(n, c * high.kernel * wide.kernel, high.out * wide.out)


@unfold.grad_kernel
def _(
    xp: Any,
    x: Any,
    d: Any,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> Any:
    n, c = x.shape[:2]
    high, wide = _axes(x.shape, kernel_sizes, strides, paddings, dilations)
    d = d.reshape(n, c, high.kernel, wide.kernel, high.out, wide.out)
    d_x = xp.zeros(x.shape, d.dtype)
    for place, source in _taps(high, wide):
        d_x[source] += d[place]
    return d_x


# --- maxout ------------------------------------------------------------------------


def _infer_maxout(op: InferContext) -> None:
    shape, groups = list(_images(op)), op.attr("groups")
    axis = op.attr("axis")
    op.check(axis in (1, 3, -1), f"axis is {axis}, not 1, 3 or -1")
    op.check(groups > 1, f"groups is {groups}, not above 1")
    shape[axis] = _parts(op, "the number of channels", shape[axis], groups)
    op.set("Out", shape, op.input("X").dtype)


maxout = op(
    "maxout",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("axis", int, 1), Attr("groups", int)],
    infer=_infer_maxout,
    grad=grad_op(needs=["X", "Out"], shape_only=["Out"]),
    lod=None,
)


def _grouped(x: Any, groups: int, axis: int) -> Any:
    """x with its channels in groups of neighbours, along the axis after `axis`."""
    shape = list(x.shape)
    shape[axis : axis + 1] = [shape[axis] // groups, groups]
    return x.reshape(shape)


@maxout.kernel
def _(xp: Any, x: Any, *, groups: int, axis: int) -> Any:
    """The largest of each group of channels. Goodfellow et al. (2013)."""
    axis %= 4
    return _grouped(x, groups, axis).max(axis=axis + 1)


@maxout.grad_kernel
def _(xp: Any, x: Any, out: Any, d: Any, *, groups: int, axis: int) -> Any:
    """Of equal ones the first gets the gradient."""
    axis %= 4
    first = xp.expand_dims(_grouped(x, groups, axis).argmax(axis=axis + 1), axis + 1)
    number = xp.arange(groups).reshape([-1] + [1] * (3 - axis))
    return (xp.expand_dims(d, axis + 1) * (first == number)).reshape(x.shape)
