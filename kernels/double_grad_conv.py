"""Gradients of the gradients of conv2d, conv3d and instance_norm."""

from __future__ import annotations

from typing import Any

from . import conv, conv3d, norm_group
from .double_grad import second_order
from .grad import GRAD
from .registry import OpDef, declared

__all__: list[str] = []

# imported so that their ops are declared
_FAMILIES = (conv, conv3d, norm_group)

# --- convolutions --------------------------------------------------------------------

_GEOMETRY = (
    "strides",
    "paddings",
    "padding_algorithm",
    "dilations",
    "groups",
    "data_format",
)


def _convolution(type: str, spare: int) -> None:
    """spare: how many further inputs the op has, of which none is given."""
    made = second_order(
        type,
        {"Input": "Input", "Filter": "Filter", "DOutput": "Output" + GRAD},
        {"DDInput": "Input" + GRAD, "DDFilter": "Filter" + GRAD},
        {
            "DDOutput": ("Output" + GRAD, "DOutput"),
            "DFilter": ("Filter", "Filter"),
            "DInput": ("Input", "Input"),
        },
        {"DFilter": "DDInput", "DInput": "DDFilter"},
    )
    first = declared(type)
    _convolution_kernel(made, first, (None,) * spare)


def _convolution_kernel(made: OpDef, first: OpDef, absent: tuple[None, ...]) -> None:
    back = first.grad_def
    unwanted = (False,) * (len(back.outs) - 2)
    without_bias = (None,) * (len(back.ins) - 3)

    def forward(xp: Any, x: Any, w: Any, how: dict[str, Any]) -> Any:
        return first.run(xp, x, w, *absent, **how)  # type: ignore[misc]

    def backward(
        xp: Any, x: Any, w: Any, d: Any, which: tuple[bool, bool], how: dict[str, Any]
    ) -> Any:
        wants = (*which, *unwanted)
        return back.run(xp, x, w, *without_bias, d, wants=wants, **how)  # type: ignore[misc]

    @made.kernel
    def _(
        xp: Any,
        x: Any,
        w: Any,
        d: Any,
        dd_x: Any,
        dd_w: Any,
        *,
        strides: Any,
        paddings: Any,
        padding_algorithm: str,
        dilations: Any,
        groups: int,
        data_format: str,
    ) -> Any:
        values = (strides, paddings, padding_algorithm, dilations, groups, data_format)
        how = dict(zip(_GEOMETRY, values))
        g_x, g_w, dd = xp.zeros_like(x), xp.zeros_like(w), xp.zeros_like(d)
        if dd_x is not None:
            dd += forward(xp, dd_x, w, how)
            g_w = backward(xp, dd_x, w, d, (False, True), how)[1]
        if dd_w is not None:
            dd += forward(xp, x, dd_w, how)
            g_x = backward(xp, x, dd_w, d, (True, False), how)[0]
        return dd, g_w, g_x


_convolution("conv2d", 2)
_convolution("conv3d", len(declared("conv3d").ins) - 2)

# --- instance_norm -------------------------------------------------------------------

instance_norm_grad_grad = second_order(
    "instance_norm",
    {
        "X": "X",
        "Scale": "Scale",
        "SavedMean": "SavedMean",
        "SavedVariance": "SavedVariance",
        "DY": "Y" + GRAD,
    },
    {"DDX": "X" + GRAD, "DDScale": "Scale" + GRAD, "DDBias": "Bias" + GRAD},
    {
        "DDY": ("Y" + GRAD, "X"),
        "DScale": ("Scale", "Scale"),
        "DX": ("X", "X"),
    },
)


def _centred(v: Any, normal: Any) -> Any:
    """v without its mean and its part along the normalised values."""
    along = (v * normal).mean(2, keepdims=True)
    return v - v.mean(2, keepdims=True) - normal * along


def _per_channel(v: Any) -> Any:
    return v.reshape(1, -1, 1)


@instance_norm_grad_grad.kernel
def _(
    xp: Any,
    x: Any,
    scale: Any,
    mean: Any,
    inverse: Any,
    d: Any,
    dd_x: Any,
    dd_scale: Any,
    dd_bias: Any,
) -> Any:
    """With n = (x - mean) i, i = 1 / deviation and P v = v - mean(v) - n mean(v n):
    dX = scale i P d, dScale = sum(d n), dBias = sum(d); P is symmetric, and the
    gradient of n goes to x as i P."""
    shape = (*x.shape[:2], -1)
    i = inverse.reshape(*x.shape[:2], 1)
    normal = (x.reshape(shape) - mean.reshape(i.shape)) * i
    d_ = d.reshape(shape)
    gain = _per_channel(scale)
    d_normal = xp.zeros_like(normal)
    d_x, dd = xp.zeros_like(normal), xp.zeros_like(normal)
    d_scale = xp.zeros_like(scale)
    if dd_x is not None:
        v = dd_x.reshape(shape)
        part = _centred(d_, normal)
        count = normal.shape[2]
        d_scale = (v * part * i).sum((0, 2))
        dd += gain * i * _centred(v, normal)
        along_d = (d_ * normal).mean(2, keepdims=True)
        along_v = (v * normal).mean(2, keepdims=True)
        d_normal -= gain * i * (along_d * v + along_v * d_)
        # what the change of i itself gives
        total = (v * part).sum(2, keepdims=True)
        d_x -= gain * total * i * i * normal / count
    if dd_scale is not None:
        weight = _per_channel(dd_scale)
        dd += weight * normal
        d_normal += weight * d_
    if dd_bias is not None:
        dd += _per_channel(dd_bias)
    d_x += i * _centred(d_normal, normal)
    return dd.reshape(x.shape), d_scale, d_x.reshape(x.shape)
