"""What all convolutions share: attributes, sizes and inference, for 2 and 3 axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .infer import InferContext, InferRule
from .schema import Attr, AttrType
from .window import Axis, Fail, channels_last, explicit_pads, plan_axis

__all__ = [
    "CUDNN",
    "FUSED",
    "axes",
    "infer_conv",
    "infer_transpose",
    "transposed_axes",
    "window_attrs",
]

# of no meaning here: what every convolution has, and what is for fused ones
CUDNN = (
    Attr("use_cudnn", bool, False),
    Attr("use_mkldnn", bool, False),
    Attr("workspace_size_MB", int, 512),
)
FUSED = (
    Attr("is_test", bool, False),
    Attr("fuse_relu", bool, False),
    Attr("fuse_activation", str, ""),
    Attr("fuse_alpha", float, 0.0),
    Attr("fuse_beta", float, 0.0),
)
_NAMES = {2: ("height", "width"), 3: ("depth", "height", "width")}


def window_attrs(dims: int, data_format: str) -> tuple[Attr, ...]:
    """The attributes that say which windows are read."""
    return (
        Attr("strides", AttrType.INTS, [1] * dims),
        Attr("paddings", AttrType.INTS, [0] * dims),
        Attr("padding_algorithm", str, "EXPLICIT"),
        Attr("dilations", AttrType.INTS, [1] * dims),
        Attr("groups", int, 1),
        Attr("data_format", str, data_format),
    )


def _raise(message: str) -> None:
    raise ValueError(message)


def axes(
    size: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    fail: Fail = _raise,
    **other: Any,
) -> list[Axis]:
    """The axes of a convolution over an input of this size."""
    pads = explicit_pads(paddings, fail, len(size))
    return [
        plan_axis(
            size[i], kernel[i], strides[i], dilations[i], pads[i], padding_algorithm
        )
        for i in range(len(size))
    ]


def transposed_axes(
    size: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    dilations: Sequence[int],
    output_size: Sequence[int],
    fail: Fail = _raise,
    **other: Any,
) -> list[Axis]:
    """The axes of the convolution whose input gradient a transposed convolution is.

    size: of the transposed convolution's input, so `out` of the axes. An
    ``output_size`` may exceed the natural one by less than a stride.
    """
    pads = explicit_pads(paddings, fail, len(size))
    made = []
    for i in range(len(size)):
        dilation = 1 if padding_algorithm == "SAME" else dilations[i]
        a = plan_axis(
            size[i], kernel[i], strides[i], dilation, pads[i], padding_algorithm
        )
        natural = (size[i] - 1) * a.stride + dilation * (a.kernel - 1) + 1
        natural -= a.before + a.after
        whole = natural if size[i] >= 0 else -1
        if len(output_size) and whole >= 0:
            whole = int(output_size[i])
            if not natural <= whole < natural + a.stride:
                fail(
                    f"output_size {list(output_size)}: dimension {i} must be at least "
                    f"{natural} and less than {natural + a.stride}"
                )
        made.append(a._replace(size=whole, dilation=dilation, out=size[i]))
    return made


def _window(op: InferContext, *names: str) -> dict[str, Any]:
    every = ("strides", "paddings", "padding_algorithm", "dilations", *names)
    return {name: op.attr(name) for name in every}


def _checked(
    op: InferContext, dims: int, format_dims: int
) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """(channels last?, input with channels first, filter), with all but channels
    checked."""
    for name in ("strides", "dilations"):
        value = op.attr(name)
        op.check(
            len(value) == dims and min(value) > 0,
            f"{name} needs {dims} positive numbers, got {list(value)}",
        )
    op.check(op.attr("groups") > 0, f"groups must be positive, got {op.attr('groups')}")
    shape, weight = op.shape("Input"), op.shape("Filter")
    rank = dims + 2
    op.check(len(shape) == rank, f"Input needs {rank} dimensions, got shape {shape}")
    op.check(len(weight) == rank, f"Filter needs {rank} dimensions, got shape {weight}")
    last = channels_last(op.attr("data_format"), op.fail, format_dims)
    if last:
        shape = (shape[0], shape[-1], *shape[1:-1])
    return last, shape, weight


def _set_output(
    op: InferContext, last: bool, n: int, channels: int, size: Iterable[int]
) -> None:
    shape = (n, *size, channels) if last else (n, channels, *size)
    op.set("Output", shape, like=op.input("Input"))


def infer_conv(dims: int) -> InferRule:
    """Inference of a convolution over so many axes."""

    def infer(op: InferContext) -> None:
        last, (n, channels, *size), weight = _checked(op, dims, dims)
        groups = op.attr("groups")
        op.check(
            channels < 0 or weight[1] < 0 or channels == weight[1] * groups,
            f"Input has {channels} channels ({op.attr('data_format')}), but Filter "
            f"{weight} in {groups} groups takes {weight[1] * groups}",
        )
        op.check(
            weight[0] % groups == 0,
            f"{weight[0]} filters do not divide into {groups} groups",
        )
        made = axes(size, weight[2:], fail=op.fail, **_window(op))
        for name, a in zip(_NAMES[dims], made):
            op.check(
                a.size < 0 or a.out > 0,
                f"a kernel of {a.kernel} (dilation {a.dilation}) does not fit "
                f"{name} {a.size} with padding {a.before} and {a.after}",
            )
        _set_output(op, last, n, weight[0], (a.out for a in made))

    return infer


def infer_transpose(dims: int) -> InferRule:
    """Inference of a transposed one. Its data format has the names of images."""

    def infer(op: InferContext) -> None:
        last, (n, channels, *size), weight = _checked(op, dims, 2)
        op.check(
            channels < 0 or channels == weight[0],
            f"Input has {channels} channels ({op.attr('data_format')}), but Filter "
            f"{weight} takes {weight[0]}",
        )
        wanted = op.attr("output_size")
        op.check(
            len(wanted) in (0, dims),
            f"output_size needs {dims} numbers, got {wanted}",
        )
        window = _window(op, "output_size")
        made = transposed_axes(size, weight[2:], fail=op.fail, **window)
        filters = weight[1] * op.attr("groups")
        _set_output(op, last, n, filters, (a.size for a in made))

    return infer
