"""`im2sequence`: the windows of images as sequences, for recognition of text lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .grad import GRAD, grad_op
from .infer import InferContext
from .lod import host, joined, ranges
from .registry import op
from .schema import Attr, AttrType, In, Out
from .window import inside, plan_axis

__all__: list[str] = []


def _sizes(shape: Sequence[int], attrs: Any) -> tuple[int, int]:
    """How many windows there are down and across; paddings: top, left, bottom,
    right."""
    pads, made = attrs["paddings"], []
    for i in range(2):
        around = (pads[i], pads[i + 2])
        kernel, stride = attrs["kernels"][i], attrs["strides"][i]
        made.append(plan_axis(shape[2 + i], kernel, stride, 1, around, "EXPLICIT").out)
    return made[0], made[1]


def _infer(op: InferContext) -> None:
    x = op.input("X")
    op.check(len(x.shape) == 4, f"X has shape {x.shape}, not (n, c, h, w)")
    for key, count, low in (("kernels", 2, 1), ("strides", 2, 1), ("paddings", 4, 0)):
        values = list(op.attr(key))
        op.check(
            len(values) == count and min(values) >= low,
            f"{key} must be {count} numbers of at least {low}, got {values}",
        )
    op.check(
        all(n == -1 or n > 0 for n in _sizes(x.shape, op.attrs)),
        f"no window of {list(op.attr('kernels'))} fits into X {x.shape} with paddings "
        f"{list(op.attr('paddings'))}",
    )
    width = x.shape[1] * op.attr("kernels")[0] * op.attr("kernels")[1]
    # the number of rows is not known: the reference infers that of images
    op.set("Out", (x.shape[0], width if x.shape[1] > 0 else -1), x.dtype, 1)


im2sequence = op(
    "im2sequence",
    ins=[In("X"), In("Y", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("kernels", AttrType.INTS),
        Attr("strides", AttrType.INTS, [1, 1]),
        Attr("paddings", AttrType.INTS, [0, 0, 0, 0]),
        Attr("out_stride", AttrType.INTS, [1, 1]),
    ],
    infer=_infer,
    grad=grad_op(needs=["X"], shape_only=["X"]),
    makes_lod=True,
)


def _counts(x: Any, y: Any, attrs: Any) -> Any:
    """(images, 2): the windows of each image down and across.

    y: (images, 2), what the heights and widths were before `out_stride` shrank them.
    As in the reference, a single image counts whole, whatever y says.
    """
    if y is None or len(x) == 1:
        return np.tile(np.array(_sizes(x.shape, attrs), "i8"), (len(x), 1))
    real = host(y)
    if real.shape != (len(x), 2):
        raise ValueError(
            f"im2sequence: Y must be a height and a width for each of {len(x)} images, "
            f"its shape is {tuple(real.shape)}"
        )
    stride, pads = np.array(attrs["out_stride"]), np.array(attrs["paddings"])
    shrunk = -(-real.astype("i8") // stride)
    room = shrunk + pads[:2] + pads[2:] - np.array(attrs["kernels"])
    counts = room // np.array(attrs["strides"]) + 1
    if counts.size and counts.min() < 1:
        image = int(np.flatnonzero((counts < 1).any(axis=1))[0])
        raise ValueError(
            f"im2sequence: no window of {list(attrs['kernels'])} fits into image "
            f"{image}, of size {shrunk[image].tolist()}"
        )
    return counts


@im2sequence.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """A sequence for each image, row by row of its windows."""
    counts = _counts(values["X"], values.get("Y"), attrs)
    return {"Out": [joined(counts[:, 0] * counts[:, 1])]}


def _taps(x: Any, attrs: Any, high: int, wide: int) -> Iterator[tuple[Any, Any]]:
    """For each element of the window: its places in (n, high, wide, c, i, j) windows
    and in the images."""
    (top, left), (down, across) = attrs["paddings"][:2], attrs["strides"]
    for i in range(attrs["kernels"][0]):
        rows_out, rows_in = inside(i - top, down, high, x.shape[2])
        for j in range(attrs["kernels"][1]):
            columns_out, columns_in = inside(j - left, across, wide, x.shape[3])
            place = (slice(None), rows_out, columns_out, slice(None), i, j)
            yield place, (slice(None), slice(None), rows_in, columns_in)


@im2sequence.kernel
def _(
    xp: Any,
    x: Any,
    y: Any,
    *,
    kernels: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    out_stride: Sequence[int],
) -> Any:
    """Out (windows, c * kernel): what lies beside the image is zero."""
    attrs = {"kernels": kernels, "strides": strides, "paddings": paddings}
    counts = _counts(x, y, {**attrs, "out_stride": out_stride})
    high, wide = (int(n) for n in counts.max(axis=0, initial=0))
    out = xp.zeros((len(x), high, wide, x.shape[1], *kernels), x.dtype)
    for place, source in _taps(x, attrs, high, wide):
        out[place] = x[source].transpose(0, 2, 3, 1)
    out = out.reshape(len(x) * high * wide, -1)
    if (counts == (high, wide)).all():
        return out
    lines = ranges(np.arange(len(x)) * high, counts[:, 0])
    lengths = np.repeat(counts[:, 1], counts[:, 0])
    return out.take(xp.asarray(ranges(lines * wide, lengths)), axis=0)


@im2sequence.grad_kernel
def _(
    xp: Any,
    x: Any,
    d: Any,
    *,
    kernels: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
) -> Any:
    attrs = {"kernels": kernels, "strides": strides, "paddings": paddings}
    high, wide = _sizes(x.shape, attrs)
    if len(d) != len(x) * high * wide:
        raise ValueError(
            f"im2sequence_grad: {len(d)} windows came in Out{GRAD}, the images have "
            f"{len(x)} x {high} x {wide}; there is no gradient with sizes of images (Y)"
        )
    d = d.reshape(len(x), high, wide, x.shape[1], *kernels)
    d_x = xp.zeros(x.shape, d.dtype)
    for place, source in _taps(x, attrs, high, wide):
        d_x[source] += d[place].transpose(0, 3, 1, 2)
    return d_x
