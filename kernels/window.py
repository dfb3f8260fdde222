"""Sliding windows over images: the geometry that convolution and pooling share.

Everything here is arithmetic on sizes; -1 stands for a size that is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Axis", "channels_last", "explicit_pads", "plan_axis", "axis_pads"]

Fail = Callable[[str], object]


class Axis(NamedTuple):
    """One direction of a sliding window.

    size: of the input. kernel, stride, dilation, before and after (padding): as
    resolved. out: number of windows. Window o reads input o * stride - before +
    i * dilation for i in range(kernel), where that is inside.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    def first(self, tap: int) -> int:
        """The input position that tap `tap` of window 0 reads (may be outside)."""
        return tap * self.dilation - self.before

    def inside(self, tap: int) -> tuple[slice, slice]:
        """Windows whose tap `tap` is inside the input, and what they read there."""
        return inside(self.first(tap), self.stride, self.out, self.size)


@lru_cache(maxsize=4096)
def inside(first: int, every: int, count: int, size: int) -> tuple[slice, slice]:
    """Of the positions first + every * k, k < count: those in [0, size).

    Returns the slice of k and the slice of positions.

    >>> inside(-1, 2, 3, 4)
    (slice(1, 3, None), slice(1, 4, 2))
    """
    low = min(max(0, -(first // every)), count)
    high = max(low, min(count, -((first - size) // every)))
    start = max(first + low * every, 0)
    stop = start + (high - low - 1) * every + 1 if high > low else start
    return slice(low, high), slice(start, stop, every)


def channels_last(layout: str, fail: Fail, dims: int = 2) -> bool:
    """Whether a data format keeps channels in the last dimension."""
    first, last = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    if layout in (first, "AnyLayout"):
        return False
    if layout == last:
        return True
    fail(f"data format must be {first} or {last}, not {layout!r}")
    return False


def explicit_pads(
    paddings: Sequence[int], fail: Fail, dims: int = 2
) -> list[tuple[int, int]]:
    """(before, after) of each axis, from one or two numbers per axis."""
    pads = [int(p) for p in paddings]
    if len(pads) == dims:
        return [(p, p) for p in pads]
    if len(pads) != 2 * dims:
        fail(f"paddings needs {dims} or {2 * dims} numbers, got {list(paddings)}")
    return list(zip(pads[::2], pads[1::2]))


def axis_pads(
    size: int, kernel: int, stride: int, pads: tuple[int, int], algorithm: str
) -> tuple[int, int]:
    """Padding before and after one axis under a ``padding_algorithm``.

    SAME: as many windows as ceil(size / stride), the odd element after.
    """
    if algorithm == "VALID":
        return 0, 0
    if algorithm == "SAME":
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        return total // 2, total - total // 2
    return pads


@lru_cache(maxsize=4096)
def plan_axis(
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    algorithm: str,
    ceil: bool = False,
) -> Axis:
    """One resolved axis; `out` is -1 for an unknown size, <= 0 if nothing fits."""
    if algorithm == "SAME":
        dilation = 1  # mirrors UpdatePaddingAndDilation: SAME drops dilations
    before, after = axis_pads(max(size, 0), kernel, stride, pads, algorithm)
    span = size + before + after - (dilation * (kernel - 1) + 1)
    out = (span + (stride - 1 if ceil else 0)) // stride + 1
    return Axis(size, kernel, stride, dilation, before, after, -1 if size < 0 else out)
