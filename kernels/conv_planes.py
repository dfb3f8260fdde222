"""Convolution of volumes as a convolution of planes.

The taps in depth are laid side by side as channels; the rest is a convolution of
images (`conv_gemm`) with one image per output plane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import conv_gemm
from .scratch import scratch
from .window import Axis

__all__ = [
    "Volume",
    "channels_first",
    "convolve",
    "filter_grad",
    "new_volume",
    "spread",
]


class Volume(NamedTuple):
    """A resolved convolution: groups, and the three axes of its window."""

    groups: int
    z: Axis
    y: Axis
    x: Axis

    @property
    def planes(self) -> conv_gemm.Geometry:
        """The convolution of each plane."""
        return conv_gemm.Geometry(self.groups, self.y, self.x)


def channels_first(x: Any, last: bool) -> Any:
    """A volume array as a (n, channels, depth, height, width) view."""
    return x.transpose(0, 4, 1, 2, 3) if last else x


def new_volume(
    xp: Any, shape: tuple[int, ...], dtype: Any, last: bool
) -> tuple[Any, Any]:
    """A fresh array in its data format, and a view of it with channels first."""
    n, c, *size = shape
    made = xp.empty((n, *size, c) if last else shape, dtype)
    return made, channels_first(made, last)


def _matrix(weight: Any) -> Any:
    """The filter of the planes: (filters, kd * channels, kh, kw)."""
    f, c, kd, kh, kw = weight.shape
    return weight.transpose(0, 2, 1, 3, 4).reshape(f, kd * c, kh, kw)


def _split(x: Any, g: Volume) -> Any:
    """(n, depth, groups, channels of a group, height, width) view."""
    n, c, *size = x.shape
    return x.reshape(n, g.groups, c // g.groups, *size).transpose(0, 3, 1, 2, 4, 5)


def _planes(xp: Any, x: Any, g: Volume) -> Any:
    """One image per output plane: (n * planes, groups * kd * channels, h, w)."""
    source = _split(x, g)
    n, _, groups, channels, h, w = source.shape
    shape = (n, g.z.out, groups, g.z.kernel, channels, h, w)
    planes = scratch(xp, "planes", shape, x.dtype)
    for tap in range(g.z.kernel):
        windows, there = g.z.inside(tap)
        planes[:, : windows.start, :, tap] = 0
        planes[:, windows.stop :, :, tap] = 0
        planes[:, windows, :, tap] = source[:, there]
    return planes.reshape(n * g.z.out, groups * g.z.kernel * channels, h, w)


def _images(xp: Any, d: Any) -> Any:
    """(n, filters, depth, h, w) as images (n * depth, filters, h, w)."""
    n, f, depth, h, w = d.shape
    images = scratch(xp, "volume", (n, depth, f, h, w), d.dtype)
    images[...] = d.transpose(0, 2, 1, 3, 4)
    return images.reshape(n * depth, f, h, w)


def convolve(xp: Any, x: Any, weight: Any, g: Volume, out: Any) -> None:
    n, f, depth, h, w = out.shape
    flat = scratch(xp, "volume", (n * depth, f, h, w), out.dtype)
    conv_gemm.forward(xp, _planes(xp, x, g), _matrix(weight), g.planes, flat)
    out[...] = flat.reshape(n, depth, f, h, w).transpose(0, 2, 1, 3, 4)


def spread(xp: Any, d: Any, weight: Any, g: Volume, out: Any) -> None:
    """The gradient of a convolution's input, into `out`."""
    n, c, _, h, w = out.shape
    per_group = c // g.groups
    shape = (n, g.z.out, g.groups, g.z.kernel, per_group, h, w)
    planes = scratch(xp, "planes", shape, out.dtype)
    flat = planes.reshape(n * g.z.out, g.z.kernel * c, h, w)
    conv_gemm.grad_input(xp, _images(xp, d), _matrix(weight), g.planes, flat)
    out[...] = 0
    into = _split(out, g)
    for tap in range(g.z.kernel):
        windows, there = g.z.inside(tap)
        into[:, there] += planes[:, windows, :, tap]


def filter_grad(xp: Any, x: Any, d: Any, weight: Any, g: Volume) -> Any:
    f, c, kd, kh, kw = weight.shape
    d_matrix = conv_gemm.grad_filter(xp, _planes(xp, x, g), _images(xp, d), g.planes)
    return xp.ascontiguousarray(
        d_matrix.reshape(f, kd, c, kh, kw).transpose(0, 2, 1, 3, 4)
    )
