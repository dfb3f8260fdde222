"""Ops that change a tensor's shape or the order of its axes, not its values.

reshape, transpose, squeeze, unsqueeze and flatten return views. Their second
editions (`reshape2`, ...) have an output ``XShape`` of shape (0, *x.shape): it
holds no element and exists so that the gradient op knows x's shape without x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .grad import GRAD, grad_op
from .infer import InferContext, InferRule, Shape, known_product
from .registry import OpDef, op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_X = In("X")
_QUANTIZER = Attr("use_quantizer", bool, False)
_OUT2 = (Out("Out"), Out("XShape", intermediate=True))


def set_with_shape(op: InferContext, shape: Sequence[int]) -> None:
    """Out gets this shape, XShape (0, *x.shape).

    LoD goes on to Out where the first axis keeps its size, as in the reference.
    """
    x = op.input("X")
    keeps = bool(shape) and bool(x.shape) and shape[0] == x.shape[0]
    level = x.lod_level if keeps else 0
    op.set("Out", shape, x.dtype, level)
    if op.wants("XShape"):
        op.set("XShape", (0, *x.shape), x.dtype, x.lod_level)


def x_shape(xp: Any, x: Any) -> Any:
    """An array without elements that carries x's shape."""
    return xp.empty((0, *x.shape), x.dtype)


def same_rows(shape_of: Callable[[Any, dict[str, Any]], Any]) -> Callable[..., Any]:
    """LoD rule: Out has X's LoD where the first axis keeps its size."""

    def rule(
        lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]
    ) -> dict[str, Any]:
        x = values["X"]
        out = shape_of(x, attrs)
        return {"Out": lod["X"]} if out and out[0] == x.shape[0] else {}

    return rule


def _pair(
    name: str,
    ins: Sequence[In],
    attrs: Sequence[Attr],
    infer: InferRule,
    forward: Callable[..., Any],
    extra2: Sequence[Attr] = (),
) -> tuple[OpDef, OpDef]:
    """Both editions of a reshaping op; each gradient is a reshape to x's shape."""
    one = op(
        name,
        ins=ins,
        outs=[Out("Out")],
        attrs=attrs,
        infer=infer,
        grad=grad_op(needs=["X"], shape_only=["X"], view=True),
        view=True,
    )
    two = op(
        name + "2",
        ins=ins,
        outs=_OUT2,
        attrs=[*attrs, *extra2],
        infer=infer,
        grad=grad_op(needs=["XShape"], shape_only=["XShape"], view=True),
        view=True,
    )
    one.kernel(forward)
    one.grad_kernel(lambda xp, d_out, x: d_out.reshape(x.shape))
    two.grad_kernel(lambda xp, d_out, shape: d_out.reshape(shape.shape[1:]))
    two.grad_def.infer = infer_from_x_shape
    return one, two


def infer_from_x_shape(op: InferContext) -> None:
    """X@GRAD has the shape that XShape carries."""
    x = op.input("XShape")
    op.set("X" + GRAD, x.shape[1:], x.dtype, x.lod_level)


def numbers(tensors: Sequence[Any] | None, tensor: Any) -> list[int] | None:
    """Integers given as a list of one-element tensors, or as one tensor."""
    if tensors:
        return [int(t.reshape(-1)[0]) for t in tensors]
    if tensor is not None:
        return [int(v) for v in tensor.reshape(-1).tolist()]
    return None


# --- reshape ------------------------------------------------------------------


def _infer_reshape(op: InferContext) -> None:
    x = op.shape("X")
    shape = [int(d) for d in op.attr("shape")]
    if op.has("ShapeTensor"):
        # sizes that only the run knows stand as -1 in the attribute
        shape = shape or [-1] * len(op.inputs("ShapeTensor"))
        set_with_shape(op, [d if d > 0 else -1 for d in shape])
        return
    if op.has("Shape") and not shape:
        count = op.shape("Shape")
        set_with_shape(op, [-1] * (count[0] if count else 1))
        return
    op.check(bool(shape), "needs a shape")
    set_with_shape(op, reshaped(op, x, shape))


def reshaped(op: InferContext, x: Shape, shape: Sequence[int]) -> list[int]:
    """`shape` with its 0 (copy that size of x) and -1 (the rest) worked out."""
    op.check(
        shape.count(-1) <= 1 and min(shape) >= -1,
        f"shape {list(shape)} may hold one -1, zeros and sizes",
    )
    out = []
    for i, size in enumerate(shape):
        if size == 0:
            op.check(i < len(x), f"shape {list(shape)}: no axis {i} to copy in {x}")
        out.append(x[i] if size == 0 else size)
    total = known_product(x)
    if -1 in shape:
        rest = known_product([d for i, d in enumerate(out) if shape[i] != -1])
        if total >= 0 and rest > 0:
            op.check(total % rest == 0, f"cannot give {x} the shape {list(shape)}")
            out[shape.index(-1)] = total // rest
    elif total >= 0 and -1 not in out:
        op.check(total == known_product(out), f"cannot give {x} the shape {out}")
    return out


def _reshape(xp: Any, x: Any, given: Any, tensors: Any, *, shape: Sequence[int]) -> Any:
    if tensors or given is not None:
        shape = numbers(tensors, given) or shape
    if 0 in shape:
        shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    try:
        return x.reshape(shape)
    except ValueError:
        raise ValueError(
            f"reshape: cannot give {tuple(x.shape)} the shape {tuple(shape)}"
        ) from None


reshape, reshape2 = _pair(
    "reshape",
    [_X, In("Shape", False, True, True), In("ShapeTensor", True, True, True)],
    [Attr("shape", AttrType.INTS, [])],
    _infer_reshape,
    _reshape,
    [_QUANTIZER],
)


@reshape2.kernel
def _(xp: Any, x: Any, given: Any, tensors: Any, *, shape: Any) -> Any:
    return _reshape(xp, x, given, tensors, shape=shape), x_shape(xp, x)


def _shape_of_reshape(x: Any, attrs: dict[str, Any]) -> Any:
    return _reshape(None, x, None, None, shape=attrs["shape"]).shape


# --- squeeze, unsqueeze, flatten ----------------------------------------------


def squeezed(shape: Shape, axes: Sequence[int]) -> list[int]:
    """Sizes of 1 go, all of them or those of `axes`, which must be 1 (or unknown)."""
    if not axes:
        return [d for d in shape if d != 1]
    rank = len(shape)
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"squeeze: no axis {a} in {tuple(shape)}")
        if shape[a] not in (1, -1):
            raise ValueError(f"squeeze: axis {a} of {tuple(shape)} is not of size 1")
    gone = {a % rank for a in axes}
    return [d for i, d in enumerate(shape) if i not in gone]


def _infer_squeeze(op: InferContext) -> None:
    try:
        set_with_shape(op, squeezed(op.shape("X"), op.attr("axes")))
    except ValueError as error:
        op.fail(str(error))


def _squeeze(xp: Any, x: Any, *, axes: Sequence[int]) -> Any:
    return x.reshape(squeezed(x.shape, axes))


squeeze, squeeze2 = _pair(
    "squeeze", [_X], [Attr("axes", AttrType.INTS, [])], _infer_squeeze, _squeeze
)


@squeeze2.kernel
def _(xp: Any, x: Any, *, axes: Any) -> Any:
    return x.reshape(squeezed(x.shape, axes)), x_shape(xp, x)


def unsqueezed(shape: Shape, axes: Sequence[int]) -> list[int]:
    """A 1 is put in at each of `axes` in turn, as places in the result so far."""
    out = list(shape)
    for a in axes:
        place = a + len(out) + 1 if a < 0 else a
        if not 0 <= place <= len(out):
            raise ValueError(f"unsqueeze: no axis {a} to put into {tuple(out)}")
        out.insert(place, 1)
    return out


def _infer_unsqueeze(op: InferContext) -> None:
    shape = op.shape("X")
    if op.has("AxesTensorList"):
        set_with_shape(op, [-1] * (len(shape) + len(op.inputs("AxesTensorList"))))
    elif op.has("AxesTensor"):
        count = op.shape("AxesTensor")
        set_with_shape(op, [-1] * (len(shape) + (count[0] if count else 1)))
    else:
        try:
            set_with_shape(op, unsqueezed(shape, op.attr("axes")))
        except ValueError as error:
            op.fail(str(error))


def _unsqueeze(
    xp: Any, x: Any, given: Any, tensors: Any, *, axes: Sequence[int]
) -> Any:
    if tensors or given is not None:
        axes = numbers(tensors, given) or axes
    return x.reshape(unsqueezed(x.shape, axes))


unsqueeze, unsqueeze2 = _pair(
    "unsqueeze",
    [_X, In("AxesTensor", False, True, True), In("AxesTensorList", True, True, True)],
    [Attr("axes", AttrType.INTS, [])],
    _infer_unsqueeze,
    _unsqueeze,
)


@unsqueeze2.kernel
def _(xp: Any, x: Any, given: Any, tensors: Any, *, axes: Any) -> Any:
    return _unsqueeze(xp, x, given, tensors, axes=axes), x_shape(xp, x)


def flattened(shape: Shape, axis: int) -> list[int]:
    """Two sizes: the axes before `axis` and the others."""
    return [known_product(shape[:axis]), known_product(shape[axis:])]


def _infer_flatten(op: InferContext) -> None:
    shape, axis = op.shape("X"), op.attr("axis")
    op.check(0 <= axis <= len(shape), f"axis {axis} is not in 0..{len(shape)}")
    set_with_shape(op, flattened(shape, axis))


def _flatten(xp: Any, x: Any, *, axis: int) -> Any:
    return x.reshape(flattened(x.shape, axis))


flatten, flatten2 = _pair(
    "flatten", [_X], [Attr("axis", int, 1)], _infer_flatten, _flatten
)


@flatten2.kernel
def _(xp: Any, x: Any, *, axis: Any) -> Any:
    return x.reshape(flattened(x.shape, axis)), x_shape(xp, x)


for _one, _shape_of in (
    (reshape, _shape_of_reshape),
    (squeeze, lambda x, attrs: squeezed(x.shape, attrs["axes"])),
    (unsqueeze, lambda x, attrs: unsqueezed(x.shape, attrs["axes"])),
    (flatten, lambda x, attrs: flattened(x.shape, attrs["axis"])),
):
    _one.lod_kernel(same_rows(_shape_of))
for _two, _one in (
    (reshape2, reshape),
    (squeeze2, squeeze),
    (unsqueeze2, unsqueeze),
    (flatten2, flatten),
):
    _two.lod_rule = _one.lod_rule


# --- transpose ----------------------------------------------------------------

_TRANSPOSE_ATTRS = (
    Attr("axis", AttrType.INTS),
    Attr("data_format", str, "AnyLayout"),
    Attr("use_mkldnn", bool, False),
    _QUANTIZER,
)


def _infer_transpose(op: InferContext) -> None:
    shape, axis = op.shape("X"), op.attr("axis")
    op.check(
        sorted(axis) == list(range(len(shape))),
        f"axis {list(axis)} is no order of the {len(shape)} axes of {shape}",
    )
    x = op.input("X")
    op.set("Out", [shape[a] for a in axis], x.dtype)
    if op.wants("XShape"):
        op.set("XShape", (0, *shape), x.dtype, x.lod_level)


def _inverse(axis: Sequence[int]) -> list[int]:
    back = [0] * len(axis)
    for i, a in enumerate(axis):
        back[a] = i
    return back


transpose = op(
    "transpose",
    ins=[_X],
    outs=[Out("Out")],
    attrs=_TRANSPOSE_ATTRS,
    infer=_infer_transpose,
    grad=grad_op(needs=["X", "Out"], shape_only=["X", "Out"], view=True),
    view=True,
    lod=None,
)


@transpose.kernel
def _(xp: Any, x: Any, *, axis: Any) -> Any:
    return x.transpose(axis)


@transpose.grad_kernel
def _(xp: Any, d_out: Any, x: Any, out: Any, *, axis: Any) -> Any:
    return d_out.transpose(_inverse(axis))


transpose2 = op(
    "transpose2",
    ins=[_X],
    outs=_OUT2,
    attrs=_TRANSPOSE_ATTRS,
    infer=_infer_transpose,
    grad=grad_op(needs=["XShape"], shape_only=["XShape"], view=True),
    view=True,
    lod=None,
)


@transpose2.kernel
def _(xp: Any, x: Any, *, axis: Any) -> Any:
    return x.transpose(axis), x_shape(xp, x)


@transpose2.grad_kernel
def _(xp: Any, d_out: Any, shape: Any, *, axis: Any) -> Any:
    return d_out.transpose(_inverse(axis))


transpose2.grad_def.infer = infer_from_x_shape
