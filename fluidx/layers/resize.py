"""Resizing of images and volumes by interpolation."""

from __future__ import annotations

from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    check_dtype,
    has_variable,
    is_integer,
    is_number,
    one_of,
    plain_or_variable,
    shape_tensors,
)

__all__ = [
    "image_resize",
    "image_resize_short",
    "interpolate",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
]

_TYPES = {"BILINEAR": "bilinear", "NEAREST": "nearest", "TRILINEAR": "trilinear"}
_SIZES = ("out_d", "out_h", "out_w")


def image_resize(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Images of another size: [N, C, H, W] (or "NHWC") to [N, C, *out_shape].

    resample: "BILINEAR", "NEAREST", or "TRILINEAR" for [N, C, D, H, W] (with
    data_format "NCDHW" or "NDHWC"). out_shape: integers or Variables of shape [1], or
    one Variable; else scale: a number or a Variable of shape [1]. actual_shape: a
    Variable that goes before both. align_corners: the centres of the corner pixels
    stay where they are. Without it pixel i comes from (i + 0.5) * ratio - 0.5 for
    align_mode 0, from i * ratio for 1. Mirrors ``fluid.layers.image_resize``.

    >>> import fluidx as fluid
    >>> image = fluid.data("resize_in", [None, 3, 6, 9])
    >>> fluid.layers.image_resize(image, [12, 12]).shape
    (-1, 3, 12, 12)
    >>> fluid.layers.image_resize(image, scale=0.5, resample="NEAREST").shape
    (-1, 3, 3, 4)
    """
    layer = "image_resize"
    check_dtype(input, "input", layer, FLOATS)
    method = _TYPES[one_of(resample, "resample", layer, tuple(_TYPES))]
    dims = _checked_dims(input, method, data_format)
    if not isinstance(align_corners, bool):
        raise TypeError(f"{layer}: align_corners must be a bool, got {align_corners!r}")
    one_of(align_mode, "align_mode", layer, (0, 1))
    if out_shape is None and scale is None:
        raise ValueError(f"{layer}: give out_shape or scale")
    type = f"{method}_interp"
    helper = LayerHelper(type, name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = dict.fromkeys(_SIZES, -1)
    attrs |= {
        "interp_method": method,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if data_format in ("NHWC", "NDHWC") else "NCHW",
    }
    if out_shape is not None:
        _give_size(helper, inputs, attrs, out_shape, dims)
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    elif not is_number(scale):
        raise TypeError(f"{layer}: scale must be a number or a Variable, got {scale!r}")
    elif scale <= 0:
        raise ValueError(f"{layer}: scale must be positive, got {scale!r}")
    else:
        attrs["scale"] = as_number(scale, "scale", "image_resize")
    if isinstance(actual_shape, Variable):
        actual_shape.stop_gradient = True
        inputs["OutSize"] = actual_shape
    elif actual_shape is not None:
        raise TypeError(
            f"{layer}: actual_shape must be a Variable, got {actual_shape!r}"
        )
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, inputs, {"Out": made}, attrs)
    return made


def _checked_dims(input: Variable, method: str, data_format: str) -> int:
    """How many spatial dimensions there are; rank, method and format go together."""
    dims = 3 if method == "trilinear" else 2
    if len(input.shape) != dims + 2:
        raise ValueError(
            f"image_resize: input must have {dims + 2} dimensions for {method}, "
            f"{input.name} has shape {list(input.shape)}"
        )
    formats = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    one_of(data_format, "data_format", "image_resize", formats)
    return dims


def _give_size(
    helper: LayerHelper,
    inputs: dict[str, Any],
    attrs: dict[str, Any],
    out_shape: Any,
    dims: int,
) -> None:
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        inputs["OutSize"] = out_shape
        return
    if not isinstance(out_shape, (list, tuple)):
        raise TypeError(
            f"image_resize: out_shape must be a list, a tuple or a Variable, got "
            f"{out_shape!r}"
        )
    if len(out_shape) != dims:
        raise ValueError(
            f"image_resize: out_shape needs {dims} sizes, got {list(out_shape)}"
        )
    plain = plain_or_variable(out_shape, "out_shape", "image_resize")
    if has_variable(out_shape):
        inputs["SizeTensor"] = shape_tensors(helper, out_shape)
    attrs.update(zip(_SIZES[-dims:], plain))


# at first a name of image_resize only, later the usual one
interpolate = image_resize


def resize_bilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """`image_resize` by linear interpolation in height and width.

    Mirrors ``fluid.layers.resize_bilinear``.

    >>> import fluidx as fluid
    >>> image = fluid.data("bilinear_in", [None, 3, 6, 9])
    >>> fluid.layers.resize_bilinear(image, [12, 12], align_corners=False).shape
    (-1, 3, 12, 12)
    """
    return image_resize(
        input,
        out_shape,
        scale,
        name,
        "BILINEAR",
        actual_shape,
        align_corners,
        align_mode,
        data_format,
    )


def resize_trilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCDHW",
) -> Variable:
    """`image_resize` of volumes by linear interpolation in all three directions.

    Mirrors ``fluid.layers.resize_trilinear``.

    >>> import fluidx as fluid
    >>> video = fluid.data("trilinear_in", [None, 3, 4, 6, 9])
    >>> fluid.layers.resize_trilinear(video, scale=2).shape
    (-1, 3, 8, 12, 18)
    """
    return image_resize(
        input,
        out_shape,
        scale,
        name,
        "TRILINEAR",
        actual_shape,
        align_corners,
        align_mode,
        data_format,
    )


def resize_nearest(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """`image_resize` that takes the nearest pixel.

    With align_corners positions are rounded, else cut off. Mirrors
    ``fluid.layers.resize_nearest``.

    >>> import fluidx as fluid
    >>> image = fluid.data("nearest_in", [None, 3, 6, 9])
    >>> fluid.layers.resize_nearest(image, scale=2).shape
    (-1, 3, 12, 18)
    """
    return image_resize(
        input,
        out_shape,
        scale,
        name,
        "NEAREST",
        actual_shape,
        align_corners,
        1,
        data_format,
    )


def image_resize_short(
    input: Variable, out_short_len: int, resample: str = "BILINEAR"
) -> Variable:
    """`image_resize` of [N, C, H, W] that keeps the proportions.

    out_short_len: what the shorter side becomes; height and width must be known.
    Mirrors ``fluid.layers.image_resize_short``.

    >>> import fluidx as fluid
    >>> image = fluid.data("short_in", [None, 3, 6, 9])
    >>> fluid.layers.image_resize_short(image, 4).shape
    (-1, 3, 4, 6)
    """
    check_dtype(input, "input", "image_resize_short", FLOATS)
    if len(input.shape) != 4 or min(input.shape[2:]) < 1:
        raise ValueError(
            "image_resize_short: input must have 4 dimensions and a known height and "
            f"width, {input.name} has shape {list(input.shape)}"
        )
    if not is_integer(out_short_len) or out_short_len < 1:
        raise ValueError(
            "image_resize_short: out_short_len must be a positive integer, got "
            f"{out_short_len!r}"
        )
    size = [int(n) for n in input.shape[2:]]
    short = size.index(min(size))
    ratio = as_number(out_short_len, "out_short_len", "image_resize_short") / float(
        size[short]
    )
    size[1 - short] = int(float(size[1 - short]) * ratio + 0.5)
    size[short] = int(out_short_len)
    return image_resize(input, size, resample=resample)
