"""Compiled convolutions of images, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.kernels import compiled, conv_winograd
from fluidx.kernels.conv import WINDOW, add_bias
from fluidx.kernels.conv_gemm import Geometry, flipped, is_pointwise
from fluidx.kernels.conv_transpose import TRANSPOSED
from fluidx.kernels.conv_window import axes, transposed_axes
from fluidx.kernels.registry import declared, takes

from . import depthwise, direct, lowered, winograd
from .lowered import FLAT
from .planes import layout

__all__ = [
    "conv2d",
    "conv2d_grad",
    "conv2d_transpose",
    "conv2d_transpose_grad",
    "fits",
    "rest",
]


# Windows of an image from which on a product per image is wide enough. Measured for
# 8x256x7x7 and 256 filters 3x3: 9.6 ms image by image, 7.5 in `conv_gemm`'s blocks;
# for 8x128x14x14 and 128 filters 7.2 and 7.4.
_PRODUCT = 128


def fits(window: dict[str, Any], x: Any, *others: Any) -> bool:
    """Whether these are contiguous float32 images, and not too few."""
    return (
        x.size >= max(compiled.SMALLEST, 1)
        and window["data_format"] not in ("NHWC", "NDHWC")
        and all(a.dtype == np.float32 and a.flags.c_contiguous for a in (x, *others))
    )


def _is_depthwise(weight: Any, channels: int, groups: int) -> bool:
    return bool(groups == len(weight) == channels > 1)


def _is_lowered(images: Any, filters: int, g: Geometry) -> bool:
    """Whether the package has no better way."""
    return not (is_pointwise(g) or conv_winograd.pays(np, images, filters, *g))


def _forward(images: Any, weight: Any, g: Geometry) -> Any:
    """The convolution, or None for the op's own kernel."""
    plan = layout(g.y, g.x)
    if plan is None:
        return None
    if _is_depthwise(weight, images.shape[1], g.groups):
        return depthwise.forward(images, weight, plan)
    shape = len(images), len(weight), g.y.out, g.x.out
    if winograd.pays(images, len(weight), *g):
        out = np.empty(shape, np.float32)
        winograd.convolve(images, weight, g.y, g.x, out)
        return out
    if direct.pays(images.shape[1], *g):
        out = np.empty(shape, np.float32)
        direct.convolve(images[:, :, None], weight, FLAT, g.y, g.x, out)
        return out
    few = g.y.out * g.x.out < _PRODUCT
    if few or not _is_lowered(images, len(weight), g):
        return None
    out = np.empty(shape, np.float32)
    into = out.reshape(*out.shape[:2], 1, -1)
    matrix = weight.reshape(g.groups, len(weight) // g.groups, -1)
    lowered.convolve(images[:, :, None], matrix, FLAT, plan, into)
    return out


def _grad_input(given: Any, weight: Any, g: Geometry) -> Any:
    """The gradient of the images, or None."""
    larger = g.y.size * g.x.size > 1.3 * g.y.out * g.x.out  # see `conv_gemm`
    if g.y.stride == g.x.stride == 1:
        if larger and not _is_depthwise(weight, g.groups * weight.shape[1], g.groups):
            return None
        turned, back = flipped(np, weight, g)
        return _forward(given, turned, back)
    plan = layout(g.y, g.x)
    if plan is None:
        return None
    channels = weight.shape[1] * g.groups
    out = np.empty((len(given), channels, g.y.size, g.x.size), np.float32)
    matrix = weight.reshape(g.groups, len(weight) // g.groups, -1)
    rows = given.reshape(*given.shape[:2], 1, -1)
    lowered.scatter(rows, matrix, plan, out.reshape(*out.shape[:2], -1))
    return out


def _grad_filter(images: Any, given: Any, weight: Any, g: Geometry) -> Any:
    """The gradient of the filter, or None."""
    if winograd.pays(images, len(weight), *g):
        return winograd.filter_grad(images, given, g.y, g.x)
    plan = layout(g.y, g.x)
    if plan is None or not _is_lowered(images, len(weight), g):
        return None
    rows = given.reshape(*given.shape[:2], 1, -1)
    made = lowered.filter_grad(images[:, :, None], rows, g.groups, FLAT, plan)
    return made.reshape(weight.shape)


@takes(WINDOW)
def conv2d(
    xp: Any, x: Any, weight: Any, bias: Any, residual: Any, **window: Any
) -> Any:
    """conv2d and depthwise_conv2d."""
    if fits(window, x, weight):
        g = Geometry(window["groups"], *axes(x.shape[2:], weight.shape[2:], **window))
        out = _forward(x, weight, g)
        if out is not None:
            return add_bias(xp, out, bias)
    run: Any = declared("conv2d").run
    return run(xp, x, weight, bias, residual, **window)


@takes(WINDOW)
def conv2d_grad(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    **window: Any,
) -> Any:
    """conv2d_grad and depthwise_conv2d_grad."""
    dx = dw = None
    if fits(window, x, weight, d_out):
        g = Geometry(window["groups"], *axes(x.shape[2:], weight.shape[2:], **window))
        plan = layout(g.y, g.x)
        if plan is not None and _is_depthwise(weight, x.shape[1], g.groups):
            dx, dw = depthwise.backward(x, weight, d_out, plan, wants)
        else:
            dx = _grad_input(d_out, weight, g) if wants[0] else None
            dw = _grad_filter(x, d_out, weight, g) if wants[1] else None
    run: Any = declared("conv2d_grad").run
    return rest(run, wants, (dx, dw), xp, x, weight, bias, d_out, window)


def rest(
    run: Any, wants: tuple[bool, ...], made: tuple[Any, Any], *given: Any
) -> tuple[Any, ...]:
    """The op's own kernel does what is wanted and not made."""
    *inputs, window = given
    whole = (*made, *(None,) * (len(wants) - 2))
    left = tuple(want and m is None for want, m in zip(wants, whole))
    others = run(*inputs, wants=left, **window) if any(left) else whole
    return tuple(o if m is None else m for m, o in zip(whole, others))


@takes(TRANSPOSED)
def conv2d_transpose(xp: Any, x: Any, weight: Any, bias: Any, **window: Any) -> Any:
    """conv2d_transpose: the gradient of a convolution's input."""
    if fits(window, x, weight):
        made = transposed_axes(x.shape[2:], weight.shape[2:], **window)
        out = _grad_input(x, weight, Geometry(window["groups"], *made))
        if out is not None:
            return add_bias(xp, out, bias)
    run: Any = declared("conv2d_transpose").run
    return run(xp, x, weight, bias, **window)


@takes(TRANSPOSED)
def conv2d_transpose_grad(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    **window: Any,
) -> Any:
    """conv2d_transpose_grad: the convolution, and its filter's gradient."""
    dx = dw = None
    if fits(window, x, weight, d_out):
        made = transposed_axes(x.shape[2:], weight.shape[2:], **window)
        g = Geometry(window["groups"], *made)
        dx = _forward(d_out, weight, g) if wants[0] else None
        dw = _grad_filter(d_out, x, weight, g) if wants[1] else None
    run: Any = declared("conv2d_transpose_grad").run
    return rest(run, wants, (dx, dw), xp, x, weight, bias, d_out, window)
