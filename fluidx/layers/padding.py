"""Borders added to tensors, and cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_variable,
    emit,
    has_variable,
    int_list,
    one_of,
    plain_or_variable,
    shape_tensors,
)

__all__ = ["crop", "crop_tensor", "pad", "pad2d", "pad_constant_like"]


def pad(
    x: Variable,
    paddings: Sequence[int],
    pad_value: float = 0.0,
    name: str | None = None,
) -> Variable:
    """x with elements of `pad_value` around it.

    paddings: before and after the first dimension, then the second, and so on.
    Mirrors ``fluid.layers.pad``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.pad(x, paddings=[0, 1, 1, 0], pad_value=9.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[9.0, 1.0, 2.0], [9.0, 9.0, 9.0]]
    """
    attrs = {"paddings": int_list(paddings, "paddings", "pad"), "pad_value": pad_value}
    return emit("pad", {"X": x}, attrs, name=name)


def pad_constant_like(
    x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """y filled up at the ends to the shape of x. ``fluid.layers.pad_constant_like``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("like_x", [4, 5]), fluid.data("like_y", [2, 5])
    >>> fluid.layers.pad_constant_like(x, y).shape
    (4, 5)
    """
    inputs = {"X": x, "Y": y}
    attrs = {"pad_value": as_number(pad_value, "pad_value", "pad_constant_like")}
    return emit("pad_constant_like", inputs, attrs, name=name)


def pad2d(
    input: Variable,
    paddings: Any = [0, 0, 0, 0],  # noqa: B006
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Images with a border.

    paddings: top, bottom, left, right, or an int32 Variable of them. mode: "constant"
    (pad_value), "reflect" (mirrored at the outermost elements) or "edge" (those
    repeated). Mirrors ``fluid.layers.pad2d``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[[[1, 2]]]], "float32"))
    >>> y = fluid.layers.pad2d(x, paddings=[0, 0, 1, 1], mode="edge")
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[[[1.0, 1.0, 2.0, 2.0]]]]
    """
    one_of(mode, "mode", "pad2d", ("constant", "reflect", "edge"))
    one_of(data_format, "data_format", "pad2d", ("NCHW", "NHWC"))
    attrs = {"mode": mode, "pad_value": pad_value, "data_format": data_format}
    inputs: dict[str, Any] = {"X": input}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
        attrs["paddings"] = []
    else:
        attrs["paddings"] = int_list(paddings, "paddings", "pad2d")
    return emit("pad2d", inputs, attrs, name=name)


def crop(
    x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None
) -> Variable:
    """The part of x of this shape, from `offsets` (0) on.

    shape: a list, -1 reaching to the end, or a Variable whose shape it is. offsets: a
    list or an int32 Variable. Mirrors ``fluid.layers.crop``.

    >>> import fluidx as fluid
    >>> x = fluid.data("crop_x", [3, 5])
    >>> fluid.layers.crop(x, shape=[2, 2], offsets=[0, 1]).shape
    (2, 2)
    """
    check_variable(x, "x", "crop")
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    elif isinstance(shape, (list, tuple)):
        attrs["shape"] = int_list(shape, "shape", "crop")
    else:
        raise TypeError(f"crop: shape must be a list or a Variable, got {shape!r}")
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    elif offsets is None:
        attrs["offsets"] = [0] * len(x.shape)
    else:
        attrs["offsets"] = int_list(offsets, "offsets", "crop")
    return emit("crop", inputs, attrs, name=name)


def crop_tensor(
    x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None
) -> Variable:
    """The part of x of this shape, from `offsets` (0) on.

    shape, offsets: lists that may hold Variables of shape [1], or int32 Variables;
    a size of -1 reaches to the end. Mirrors ``fluid.layers.crop_tensor``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> y = fluid.layers.crop_tensor(x, shape=[1, 2], offsets=[1, 1])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[5.0, 6.0]]
    """
    check_variable(x, "x", "crop_tensor")
    helper = LayerHelper("crop_tensor", name=name)
    made = helper.create_variable_for_type_inference(x.dtype)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    _offsets(helper, x, offsets, inputs, attrs)
    _sizes(helper, shape, inputs, attrs)
    helper.append_op("crop_tensor", inputs, {"Out": made}, attrs)
    return made


def _offsets(
    helper: LayerHelper, x: Variable, offsets: Any, inputs: Any, attrs: Any
) -> None:
    """Put where a crop begins into its op."""
    if offsets is None:
        attrs["offsets"] = [0] * len(x.shape)
    elif isinstance(offsets, Variable):
        offsets.stop_gradient = True
        inputs["Offsets"] = offsets
        attrs["offsets"] = [-1] * len(x.shape)
    elif isinstance(offsets, (list, tuple)):
        plain = plain_or_variable(offsets, "offsets", "crop_tensor")
        for start, given in zip(plain, offsets):
            if start < 0 and not isinstance(given, Variable):
                raise ValueError(
                    f"crop_tensor: offsets must not be negative, got {offsets!r}"
                )
        attrs["offsets"] = plain
        if has_variable(offsets):
            inputs["OffsetsTensor"] = shape_tensors(helper, offsets)
    else:
        raise TypeError(
            f"crop_tensor: offsets must be a list or a Variable, got {offsets!r}"
        )


def _sizes(helper: LayerHelper, shape: Any, inputs: Any, attrs: Any) -> None:
    """Put the shape of a crop into its op: 0 where a Variable tells the size."""
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
        return
    if not isinstance(shape, (list, tuple)):
        raise TypeError(
            f"crop_tensor: shape must be a list or a Variable, got {shape!r}"
        )
    plain = plain_or_variable(shape, "shape", "crop_tensor")
    for i, given in enumerate(shape):
        if isinstance(given, Variable):
            plain[i] = 0
        elif plain[i] < -1 or plain[i] == 0:
            raise ValueError(
                f"crop_tensor: sizes must be positive or -1, got {list(shape)!r}"
            )
    attrs["shape"] = plain
    if has_variable(shape):
        inputs["ShapeTensor"] = shape_tensors(helper, shape)
