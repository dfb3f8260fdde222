"""Arithmetic of whole tensors: sum, scale, mean, sign, increment, pow, cast.

sum, scale and cast also take `SelectedRows`, since server programs add up and
average sparse gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .arrays import add_rows, fit, kept
from .dtypes import VarType, is_floating, to_numpy
from .grad import EMPTY, GradContext, OpSpec, grad_op
from .infer import InferContext, same_as
from .registry import op
from .schema import Attr, In, Out
from .selected_rows import SelectedRows
from .tensor_array import TensorArray, add_values
from .unary import MKLDNN

__all__: list[str] = []


def _scaled(op: GradContext, slot: str, factor: float) -> list[OpSpec]:
    """Gradients of a slot's variables: the incoming one times a factor."""
    return [
        OpSpec("scale", {"X": op.output_grad("Out")}, {"Out": [n]}, {"scale": factor})
        for n in op.input_grad(slot)
        if n != EMPTY
    ]


# --- sum ---------------------------------------------------------------------------


def _infer_sum(op: InferContext) -> None:
    metas = op.inputs("X")
    op.check(bool(metas), "needs input X")
    dense = [m for m in metas if m.kind is not VarType.SELECTED_ROWS]
    if not dense:
        op.set("Out", like=metas[0])
        return
    shape = dense[0].shape
    for other in dense[1:]:
        if len(other.shape) != len(shape):
            # () stands for an unknown shape too
            op.check(
                not (other.shape and shape) or other.kind is not VarType.LOD_TENSOR,
                f"X of shapes {shape} and {other.shape} cannot be added up",
            )
        else:
            shape = tuple(q if p < 0 else p for p, q in zip(shape, other.shape))
    op.set("Out", shape, like=dense[0])


def _sum_grad(op: GradContext) -> Sequence[OpSpec]:
    return _scaled(op, "X", 1.0)


sum_ = op(
    "sum",
    ins=[In("X", duplicable=True)],
    outs=[Out("Out")],
    attrs=MKLDNN,
    infer=_infer_sum,
    grad=_sum_grad,
    overwrites="X",
)


# what `sum` takes besides arrays of one kind
_KINDS = (SelectedRows, list, TensorArray, type(None))


@sum_.kernel
def _(xp: Any, xs: list[Any], *, out: Any = None) -> Any:
    """Absent (None) inputs count as zero; one dense input makes the sum dense."""
    if len(xs) == 2:
        x, y = xs
        if x.__class__ is y.__class__ and x.__class__ not in _KINDS:
            return xp.add(x, y, out=fit(out, x))
    sparse = [x for x in xs if x.__class__ is SelectedRows]
    dense = [x for x in xs if x is not None and x.__class__ is not SelectedRows]
    if not dense:
        return _joined(xp, sparse)
    if isinstance(dense[0], list):
        return _array_sum(xp, dense)
    # `out` is the first input's array; it may be there a second time
    if out is not dense[0] or any(x is out for x in dense[1:]):
        dense[0] = dense[0].copy()
    total = dense[0]
    for x in dense[1:]:
        total += x
    for x in sparse:
        add_rows(xp, total, x)
    return total


def _array_sum(xp: Any, arrays: list[list[Any]]) -> list[Any]:
    """Sum of arrays of tensors, element by element."""
    total: list[Any] = TensorArray()
    for array in arrays:
        total = add_values(xp, total, array)
    return total


def _joined(xp: Any, parts: list[Any]) -> SelectedRows:
    """Sum of sparse tensors: their rows one after the other, not merged."""
    if not parts:
        raise ValueError("sum: none of its inputs holds a value")
    if len(parts) == 1:
        return SelectedRows(parts[0].rows, parts[0].value.copy(), parts[0].height)
    heights = {p.height for p in parts}
    if len(heights) > 1:
        raise ValueError(f"sum: sparse inputs of different heights {sorted(heights)}")
    rows = xp.concatenate([p.rows for p in parts])
    return SelectedRows(rows, xp.concatenate([p.value for p in parts]), parts[0].height)


# --- scale -------------------------------------------------------------------------


def _scale_grad(op: GradContext) -> Sequence[OpSpec]:
    inputs = {"X": op.output_grad("Out")}
    if op.input("ScaleTensor"):
        inputs["ScaleTensor"] = op.input("ScaleTensor")
    attrs = {"scale": op.attrs.get("scale", 1.0), "bias": 0.0, "bias_after_scale": True}
    return [OpSpec("scale", inputs, {"Out": op.input_grad("X")}, attrs)]


scale_ = op(
    "scale",
    ins=[In("X"), In("ScaleTensor", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("bias", float, 0.0),
        Attr("bias_after_scale", bool, True),
        Attr("scale", float, 1.0),
    ],
    infer=same_as("X"),
    grad=_scale_grad,
    overwrites="X",
)


@scale_.kernel
def _(
    xp: Any,
    x: Any,
    factor: Any,
    *,
    scale: float,
    bias: float,
    bias_after_scale: bool,
    out: Any = None,
) -> Any:
    """scale * X + bias, or scale * (X + bias); factors become X's dtype first."""
    if x.__class__ is SelectedRows:
        return replace(x, value=_scale(xp, x.value, factor, scale, bias, True, None))
    return _scale(xp, x, factor, scale, bias, bias_after_scale, fit(out, x))


def _scale(
    xp: Any,
    x: Any,
    factor: Any,
    scale: Any,
    bias: float,
    bias_after_scale: bool,
    out: Any,
) -> Any:
    if x.dtype.kind != "f":
        scale, bias = int(scale), int(bias)
    if factor is not None:
        scale = factor.astype(x.dtype)
    if not bias_after_scale and bias:
        x = out = xp.add(x, bias, out=out)
        bias = 0
    y = xp.multiply(x, scale, out=out)
    if bias:
        y += bias
    return y


# --- mean, minus, sign, increment ----------------------------------------------------


def _infer_mean(op: InferContext) -> None:
    x = op.input("X")
    op.check(is_floating(x.dtype), f"takes floats, X is {x.dtype}")
    op.set("Out", (1,), x.dtype)


mean = op(
    "mean",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=_infer_mean,
    grad=grad_op(needs=["X"], shape_only=["X"]),
    lod=None,
)


@mean.kernel
def _(xp: Any, x: Any) -> Any:
    count = x.size
    if (
        0 < count <= 65536 and x.itemsize > 2
    ):  # one product; of float32 (20, 1) 1.3 microseconds, not 2.5
        return xp.dot(x.reshape(1, count), kept(xp, 1.0 / count, count, x.dtype))
    if not count:
        return xp.full(1, xp.nan, x.dtype)
    return x.mean(keepdims=True).reshape(1)


@mean.grad_kernel
def _(xp: Any, x: Any, d: Any) -> Any:
    g = xp.empty(x.shape, x.dtype)
    g[...] = d / x.size
    return g


def _minus_grad(op: GradContext) -> Sequence[OpSpec]:
    return _scaled(op, "X", 1.0) + _scaled(op, "Y", -1.0)


minus = op(
    "minus",
    ins=[In("X"), In("Y")],
    outs=[Out("Out")],
    infer=same_as("X"),
    grad=_minus_grad,
)


@minus.kernel
def _(xp: Any, x: Any, y: Any) -> Any:
    return x - y


def _sign_grad(op: GradContext) -> Sequence[OpSpec]:
    return _scaled(op, "X", 0.0)


sign = op(
    "sign",
    ins=[In("X")],
    outs=[Out("Out")],
    infer=same_as("X"),
    grad=_sign_grad,
    overwrites="X",
)


@sign.kernel
def _(xp: Any, x: Any, *, out: Any = None) -> Any:
    return xp.sign(x, out=fit(out, x))


def _increment_grad(op: GradContext) -> Sequence[OpSpec]:
    """Counts back, so that the backward of a loop sees each step's counter."""
    step = -op.attrs.get("step", 1.0)
    return [
        OpSpec(
            "increment", {"X": op.output("Out")}, {"Out": op.input("X")}, {"step": step}
        )
    ]


def _infer_increment(op: InferContext) -> None:
    shape = op.shape("X")
    op.check(
        all(d in (1, -1) for d in shape), f"X must have one element, got shape {shape}"
    )
    op.set("Out", like=op.input("X"))


increment = op(
    "increment",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("step", float, 1.0)],
    infer=_infer_increment,
    grad=_increment_grad,
    overwrites="X",
)


@increment.kernel
def _(xp: Any, x: Any, *, step: float, out: Any = None) -> Any:
    if x.dtype.kind != "f":
        step = int(step)
    return xp.add(x, step, out=fit(out, x))


# --- pow ---------------------------------------------------------------------------

pow_ = op(
    "pow",
    ins=[In("X"), In("FactorTensor", dispensable=True, no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("factor", float, 1.0)],
    infer=same_as("X"),
    grad=grad_op(needs=["X", "FactorTensor"]),
)


@pow_.kernel
def _(xp: Any, x: Any, exponent: Any, *, factor: float) -> Any:
    """X to the power of FactorTensor (one value) or of the attribute."""
    n = factor if exponent is None else exponent
    if x.dtype.kind in "iu":  # the reference cuts the exponent off, not the power
        n = int(n)
    return (x**n).astype(x.dtype, copy=False)


@pow_.grad_kernel
def _(xp: Any, x: Any, exponent: Any, d: Any, *, factor: float) -> Any:
    n = factor if exponent is None else exponent
    return d * n * x ** (n - 1)


# --- cast --------------------------------------------------------------------------


def _infer_cast(op: InferContext) -> None:
    op.set("Out", dtype=VarType(op.attr("out_dtype")), like=op.input("X"))


def _cast_grad(op: GradContext) -> Sequence[OpSpec]:
    back = {"in_dtype": op.attrs["out_dtype"], "out_dtype": op.attrs["in_dtype"]}
    return [
        OpSpec("cast", {"X": op.output_grad("Out")}, {"Out": op.input_grad("X")}, back)
    ]


cast = op(
    "cast",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("in_dtype", int), Attr("out_dtype", int)],
    infer=_infer_cast,
    grad=_cast_grad,
)


@cast.kernel
def _(xp: Any, x: Any, *, out_dtype: int) -> Any:
    """Floats lose their fraction; what does not fit wraps around, as in C."""
    dtype = to_numpy(out_dtype)
    if x.__class__ is SelectedRows:
        return replace(x, value=_as_type(x.value, dtype))
    return _as_type(x, dtype)


def _as_type(x: Any, dtype: Any) -> Any:
    if dtype.kind == "u" and x.dtype.kind == "f":
        # a negative float has no defined unsigned value: go through int64
        x = x.astype("int64")
    return x.astype(dtype)
