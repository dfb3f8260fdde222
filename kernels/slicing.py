"""concat, split and slice.

split and slice return views; so does the gradient of concat.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from .grad import GradContext, OpSpec, grad_op
from .infer import InferContext, Shape
from .manipulation import numbers
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__ = ["axis_in"]


def axis_in(op: InferContext, axis: int, rank: int) -> int:
    op.check(-rank <= axis < rank, f"axis {axis} is not one of {rank} axes")
    return axis + rank if axis < 0 else axis


def _cut(x: Any, axis: int, sizes: Sequence[int]) -> list[Any]:
    """Views of consecutive pieces of x along an axis."""
    before = (slice(None),) * (axis + x.ndim if axis < 0 else axis)
    ends = list(accumulate(sizes))
    return [x[before + (slice(e - n, e),)] for n, e in zip(sizes, ends)]


# --- concat, split ------------------------------------------------------------


def _infer_concat(op: InferContext) -> None:
    metas = op.inputs("X")
    op.check(bool(metas), "needs input X")
    first = metas[0]
    rank = len(first.shape)
    if op.has("AxisTensor"):
        op.set("Out", [-1] * rank, like=first)
        return
    axis = axis_in(op, op.attr("axis"), rank)
    out = list(first.shape)
    for meta in metas[1:]:
        op.check(
            len(meta.shape) == rank, f"ranks differ: {first.shape} and {meta.shape}"
        )
        for i, size in enumerate(meta.shape):
            if i == axis:
                out[i] = -1 if -1 in (out[i], size) else out[i] + size
                continue
            op.check(
                -1 in (out[i], size) or out[i] == size,
                f"{first.shape} and {meta.shape} differ outside axis {axis}",
            )
            out[i] = size if out[i] == -1 else out[i]
    op.set("Out", out, like=first)


concat = op(
    "concat",
    ins=[In("X", duplicable=True), In("AxisTensor", False, True, True)],
    outs=[Out("Out")],
    attrs=[
        Attr("axis", int, 0),
        Attr("use_mkldnn", bool, False),
        Attr("use_quantizer", bool, False),
    ],
    infer=_infer_concat,
    grad=grad_op(needs=["X", "AxisTensor"], shape_only=["X"], view=True),
)


@concat.kernel
def _(xp: Any, xs: Any, given: Any, *, axis: int) -> Any:
    return xp.concatenate(xs, axis if given is None else int(given.reshape(-1)[0]))


@concat.grad_kernel
def _(xp: Any, d_out: Any, xs: Any, given: Any, *, axis: int) -> Any:
    axis = axis if given is None else int(given.reshape(-1)[0])
    return _cut(d_out, axis, [x.shape[axis] for x in xs])


@concat.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """Along axis 0 the parts' sequences follow each other; else the first part's stay.

    Where a part has none, the first one's LoD stays in any case, as in the reference.
    """
    parts, axis = lod["X"], attrs["axis"]
    if values.get("AxisTensor") is not None:
        axis = int(values["AxisTensor"].reshape(-1)[0])
    if axis % values["X"][0].ndim or not all(parts):
        return {"Out": parts[0]}
    levels = [len(part) for part in parts]
    if len(set(levels)) != 1:
        raise ValueError(f"concat: the inputs have {levels} levels of sequences")
    made: list[list[int]] = [[0] for _ in parts[0]]
    for part in parts:
        for level, offsets in zip(made, part):
            last = level[-1]
            level.extend(last + end for end in offsets[1:])
    return {"Out": made}


def _sections(op_name: str, size: int, num: int, sections: Sequence[int]) -> Any:
    """Sizes of the pieces of a split."""
    if not sections:
        if num <= 0 or size % num:
            raise ValueError(f"{op_name}: cannot split {size} into {num} equal pieces")
        return [size // num] * num
    if -1 not in sections:
        if sum(sections) != size:
            raise ValueError(
                f"{op_name}: sections {list(sections)} do not add up to {size}"
            )
        return sections
    rest = size - sum(s for s in sections if s != -1)
    if rest < 0 or list(sections).count(-1) > 1:
        raise ValueError(f"{op_name}: sections {list(sections)} do not fit {size}")
    return [rest if s == -1 else s for s in sections]


def _infer_split(op: InferContext) -> None:
    x = op.input("X")
    count, rank = op.out_counts["Out"], len(x.shape)
    if op.has("AxisTensor"):
        op.set("Out", [-1] * rank, x.dtype)
        return
    axis = axis_in(op, op.attr("axis"), rank)
    sections, num = list(op.attr("sections")), op.attr("num")
    op.check(
        count == (len(sections) or num),
        f"makes {len(sections) or num} pieces for {count} outputs",
    )
    if op.has("SectionsTensorList"):
        # the attribute has -1 where a tensor tells the size
        sizes = sections or [-1] * count
    elif x.shape[axis] < 0:
        sizes = sections or [-1] * num
    else:
        try:
            sizes = _sections("split", x.shape[axis], num, sections)
        except ValueError as error:
            op.fail(str(error))
    metas = []
    for size in sizes:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        op.set("Out", shape, x.dtype, x.lod_level if axis else 0)
        metas.append(op.outs["Out"][0])
    op.set_each("Out", metas)


def _grad_split(op: GradContext) -> list[OpSpec]:
    """Splitting is undone by `concat`."""
    inputs = {"X": op.output_grad("Out")}
    if op.input("AxisTensor"):
        inputs["AxisTensor"] = op.input("AxisTensor")
    return [OpSpec("concat", inputs, {"Out": op.input_grad("X")}, dict(op.attrs))]


split = op(
    "split",
    ins=[
        In("X"),
        In("AxisTensor", False, True, True),
        In("SectionsTensorList", True, True, True),
    ],
    outs=[Out("Out", duplicable=True)],
    attrs=[
        Attr("axis", int, 0),
        Attr("num", int, 0),
        Attr("sections", AttrType.INTS, []),
    ],
    infer=_infer_split,
    grad=_grad_split,
    view=True,
)


@split.kernel
def _(
    xp: Any, x: Any, given: Any, tensors: Any, *, axis: int, num: int, sections: Any
) -> Any:
    if given is not None:
        axis = int(given.reshape(-1)[0])
    if tensors:
        sections = numbers(tensors, None)
    return _cut(x, axis, _sections("split", x.shape[axis], num, sections))


@split.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return {"Out": lod["X"]} if attrs["axis"] % values["X"].ndim else {}


# --- slice --------------------------------------------------------------------


def _slice_size(size: int, start: int, end: int) -> int:
    """How many elements are left of `size`; negative places count from the end."""
    return len(range(*slice(start, end).indices(size)))


def _infer_slice(op: InferContext) -> None:
    x = op.input("Input")
    out = list(x.shape)
    axes = [axis_in(op, a, len(out)) for a in op.attr("axes")]
    starts, ends = op.attr("starts"), op.attr("ends")
    flags = op.attr("infer_flags") or [1] * len(axes)
    unknown = op.has("StartsTensor") or op.has("EndsTensor")
    unknown = unknown or len(starts) < len(axes) or len(ends) < len(axes)
    for i, axis in enumerate(axes):
        if unknown or flags[i] == -1:
            out[axis] = -1
        elif out[axis] >= 0:
            left = _slice_size(out[axis], starts[i], ends[i])
            op.check(
                left > 0,
                f"{starts[i]}:{ends[i]} leaves nothing of axis {axis} of {x.shape}",
            )
            out[axis] = left
    gone = {axis_in(op, a, len(out)) for a in op.attr("decrease_axis")}
    for a in gone:
        op.check(out[a] in (1, -1), f"decrease_axis {a} has size {out[a]}, not 1")
    if gone:
        out = [d for i, d in enumerate(out) if i not in gone] or [1]
    keeps = bool(out) and out[0] == x.shape[0]
    op.set("Out", out, x.dtype, x.lod_level if keeps else 0)


def _slices(
    shape: Shape, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> tuple[slice, ...]:
    out = [slice(None)] * len(shape)
    for axis, start, end in zip(axes, starts, ends):
        out[axis] = slice(start, end)
    return tuple(out)


def _without(shape: Shape, gone: Sequence[int]) -> list[int]:
    rank = len(shape)
    dropped = {a % rank for a in gone}
    return [d for i, d in enumerate(shape) if i not in dropped] or [1]


_slice_tensors = (
    In("StartsTensor", False, True, True),
    In("EndsTensor", False, True, True),
    In("StartsTensorList", True, True, True),
    In("EndsTensorList", True, True, True),
)
slice_ = op(
    "slice",
    ins=[In("Input"), *_slice_tensors],
    outs=[Out("Out")],
    attrs=[
        Attr("axes", AttrType.INTS),
        Attr("starts", AttrType.INTS, []),
        Attr("ends", AttrType.INTS, []),
        Attr("infer_flags", AttrType.INTS, []),
        Attr("decrease_axis", AttrType.INTS, []),
    ],
    infer=_infer_slice,
    grad=grad_op(
        needs=["Input", *(s.name for s in _slice_tensors)], shape_only=["Input"]
    ),
    view=True,
)


@slice_.kernel
def _(
    xp: Any,
    x: Any,
    start: Any,
    end: Any,
    start_list: Any,
    end_list: Any,
    *,
    axes: Any,
    starts: Any,
    ends: Any,
    decrease_axis: Any,
) -> Any:
    starts = numbers(start_list, start) or starts
    ends = numbers(end_list, end) or ends
    out = x[_slices(x.shape, axes, starts, ends)]
    return out.reshape(_without(out.shape, decrease_axis)) if decrease_axis else out


@slice_.grad_kernel
def _(
    xp: Any,
    x: Any,
    start: Any,
    end: Any,
    start_list: Any,
    end_list: Any,
    d_out: Any,
    *,
    axes: Any,
    starts: Any,
    ends: Any,
) -> Any:
    starts = numbers(start_list, start) or starts
    ends = numbers(end_list, end) or ends
    d_x = xp.zeros(x.shape, d_out.dtype)
    place = d_x[_slices(x.shape, axes, starts, ends)]
    place[...] = d_out.reshape(place.shape)
    return d_x


@slice_.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    cut = any(a % values["Input"].ndim == 0 for a in attrs["axes"])
    return {} if cut else {"Out": lod["Input"]}
