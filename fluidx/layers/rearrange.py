"""The same elements in other places, or several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    check_variable,
    check_variables,
    emit,
    int_list,
    is_integer,
    pair,
)
from fluidx.layers.manipulation import reshape

__all__ = [
    "expand_as",
    "flip",
    "maxout",
    "meshgrid",
    "pixel_shuffle",
    "roll",
    "shuffle_channel",
    "space_to_depth",
    "temporal_shift",
    "unfold",
]


def _positive(value: Any, arg: str, layer: str) -> int:
    if not is_integer(value) or value < 1:
        raise TypeError(f"{layer}: {arg} must be a positive integer, got {value!r}")
    return int(value)


def expand_as(
    x: Variable, target_tensor: Variable, name: str | None = None
) -> Variable:
    """x repeated along each dimension until it has the target's shape.

    Its sizes must divide the target's. Mirrors ``fluid.layers.expand_as``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("as_x", [1, 2]), fluid.data("as_y", [None, 4])
    >>> fluid.layers.expand_as(x, y).shape
    (-1, 4)
    """
    return emit("expand_as", {"X": x, "target_tensor": target_tensor}, name=name)


def flip(input: Variable, dims: Sequence[int], name: str | None = None) -> Variable:
    """input with the order along `dims` turned round. Mirrors ``fluid.layers.flip``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.flip(x, [1])
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """
    if not isinstance(dims, (list, tuple)):
        raise TypeError(f"flip: dims must be a list, got {dims!r}")
    check_variable(input, "input", "flip")
    helper = LayerHelper("flip", name=name)
    if name is None:
        made = helper.create_variable_for_type_inference(input.dtype)
    else:
        made = helper.create_variable(name=name, dtype=input.dtype)
    attrs = {"dims": int_list(dims, "dims", "flip")}
    helper.append_op("flip", {"X": input}, {"Out": made}, attrs)
    return made


def roll(input: Variable, shifts: Any, dims: Any = None) -> Variable:
    """input shifted along `dims`; what leaves at the end comes back at the start.

    shifts, dims: an integer or a list each. Without dims the flattened tensor is
    shifted. Mirrors ``fluid.layers.roll``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> y = fluid.layers.roll(x, 1, dims=0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [3.0, 1.0, 2.0]
    """
    check_variable(input, "input", "roll")
    helper = LayerHelper("roll")
    shape = list(input.shape)
    steps = int_list(shifts, "shifts", "roll")
    axes = [0] if dims is None else int_list(dims, "dims", "roll")
    if len(steps) != len(axes):
        raise ValueError(f"roll: {len(steps)} shifts for {len(axes)} dims")
    source = reshape(input, [-1, 1]) if dims is None else input
    made = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"dims": axes, "shifts": steps}
    helper.append_op("roll", {"X": source}, {"Out": made}, attrs)
    return reshape(made, shape, inplace=True)


def meshgrid(input: Any, name: str | None = None) -> list[Variable]:
    """From k vectors, k tensors over their grid: the i-th varies along axis i only.

    Mirrors ``fluid.layers.meshgrid``.

    >>> import fluidx as fluid
    >>> x, y = fluid.data("mesh_x", [2]), fluid.data("mesh_y", [3])
    >>> [v.shape for v in fluid.layers.meshgrid([x, y])]
    [(2, 3), (2, 3)]
    """
    if not isinstance(input, (list, tuple)):
        raise TypeError(f"meshgrid: input must be a list of Variables, got {input!r}")
    many = check_variables(input, "input", "meshgrid")
    helper = LayerHelper("meshgrid", name=name)
    made = [helper.create_variable_for_type_inference(v.dtype) for v in many]
    helper.append_op("meshgrid", {"X": many}, {"Out": made})
    return made


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """[N, C, H, W] to [N, C * b * b, H / b, W / b], in Darknet's reorg order.

    b * b must divide C, and b both H and W. Mirrors ``fluid.layers.space_to_depth``.

    >>> import fluidx as fluid
    >>> x = fluid.data("depth_x", [None, 4, 6, 8])
    >>> fluid.layers.space_to_depth(x, 2).shape
    (-1, 16, 3, 4)
    """
    attrs = {"blocksize": _positive(blocksize, "blocksize", "space_to_depth")}
    return emit("space_to_depth", {"X": x}, attrs, name=name)


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """[N, C * r * r, H, W] to [N, C, H * r, W * r]; r is the upscale_factor.

    Shi et al. (2016). Mirrors ``fluid.layers.pixel_shuffle``.

    >>> import fluidx as fluid
    >>> x = fluid.data("pixel_x", [None, 9, 4, 4])
    >>> fluid.layers.pixel_shuffle(x, 3).shape
    (-1, 1, 12, 12)
    """
    factor = _positive(upscale_factor, "upscale_factor", "pixel_shuffle")
    return emit("pixel_shuffle", {"X": x}, {"upscale_factor": factor})


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Channels [N, C, H, W] of `group` groups by turns. Zhang et al. (2017).

    Its gradient puts them back; the reference's does so only where C is group * group.
    Mirrors ``fluid.layers.shuffle_channel``.

    >>> import fluidx as fluid
    >>> x = fluid.data("shuffle_x", [None, 6, 4, 4])
    >>> fluid.layers.shuffle_channel(x, group=2).shape
    (-1, 6, 4, 4)
    """
    attrs = {"group": _positive(group, "group", "shuffle_channel")}
    return emit("shuffle_channel", {"X": x}, attrs, name=name)


def temporal_shift(
    x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None
) -> Variable:
    """Mixes the frames of videos [N * seg_num, C, H, W]. Lin et al. (2018).

    The first C * shift_ratio channels come from the frame before, as many further
    ones from the frame after. Mirrors ``fluid.layers.temporal_shift``.

    >>> import fluidx as fluid
    >>> x = fluid.data("temporal_x", [None, 8, 4, 4])
    >>> fluid.layers.temporal_shift(x, seg_num=2).shape
    (-1, 8, 4, 4)
    """
    if not is_integer(seg_num):
        raise TypeError(f"temporal_shift: seg_num must be an integer, got {seg_num!r}")
    attrs = {"seg_num": seg_num, "shift_ratio": shift_ratio}
    return emit("temporal_shift", {"X": x}, attrs, name=name)


def unfold(
    x: Variable,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Variable:
    """The windows of images [N, C, H, W] as columns [N, C * kh * kw, L] (im2col).

    paddings: one number, two (height, width) or four (top, left, bottom, right).
    Mirrors ``fluid.layers.unfold``.

    >>> import fluidx as fluid
    >>> x = fluid.data("unfold_x", [None, 3, 8, 8])
    >>> fluid.layers.unfold(x, [3, 3], paddings=1).shape
    (-1, 27, 64)
    """
    check_variable(x, "x", "unfold")
    borders = int_list(paddings, "paddings", "unfold")
    if len(borders) not in (1, 2, 4):
        raise ValueError(
            f"unfold: paddings must be 1, 2 or 4 integers, got {paddings!r}"
        )
    borders *= 4 // len(borders)
    attrs = {
        "kernel_sizes": pair(kernel_sizes, "kernel_sizes", "unfold"),
        "strides": pair(strides, "strides", "unfold"),
        "paddings": borders,
        "dilations": pair(dilations, "dilations", "unfold"),
    }
    return emit("unfold", {"X": x}, attrs, name=name, slot="Y")


def maxout(
    x: Variable, groups: int, name: str | None = None, axis: int = 1
) -> Variable:
    """The largest of each `groups` neighbouring channels, dimension 1 or -1.

    Goodfellow et al. (2013). Mirrors ``fluid.layers.maxout``.

    >>> import fluidx as fluid
    >>> x = fluid.data("maxout_x", [None, 6, 4, 4])
    >>> fluid.layers.maxout(x, groups=3).shape
    (-1, 2, 4, 4)
    """
    if axis not in (1, -1, 3):
        raise ValueError(f"maxout: axis must be 1, 3 or -1, got {axis!r}")
    attrs = {"groups": groups, "axis": 3 if axis == -1 else axis}
    return emit("maxout", {"X": x}, attrs, name=name)
