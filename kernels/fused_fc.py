"""`fc`: product, bias and relu in one op, as the reference's inference passes leave it.

``AnalysisPredictor.SaveOptimModel`` of the reference writes it. padding_weights: W has
four more rows and columns, which do not count.
"""

from __future__ import annotations

from typing import Any

from .infer import InferContext, known_product
from .linear import matrix
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_PAD = 4


def _infer(op: InferContext) -> None:
    x, w = op.input("Input"), op.input("W")
    split, activation = op.attr("in_num_col_dims"), op.attr("activation_type")
    op.check(len(w.shape) == 2, f"W must be a matrix, got {w.shape}")
    op.check(
        0 < split < len(x.shape),
        f"in_num_col_dims {split} must split Input of shape {x.shape} in two",
    )
    op.check(
        activation in ("", "relu"),
        f"activation_type is 'relu' or nothing, got {activation!r}",
    )
    rows, width = w.shape
    if op.attr("padding_weights"):
        rows, width = (size - _PAD if size >= 0 else -1 for size in w.shape)
    inner = known_product(x.shape[split:])
    op.check(
        inner == rows or -1 in (inner, rows),
        f"Input {x.shape} has {inner} columns but W has {rows} rows",
    )
    if op.inputs("Bias"):
        bias = op.input("Bias").shape
        known = width >= 0 and all(size >= 0 for size in bias)
        op.check(
            not known or bias in ((width,), (1, width)),
            f"Bias of shape {bias} does not go with {width} columns of W",
        )
    else:
        op.check(not activation, "relu needs a Bias")
    op.set("Out", (*x.shape[:split], width), like=x)


fc = op(
    "fc",
    ins=[In("Input"), In("W"), In("Bias", dispensable=True)],
    outs=[Out("Out")],
    attrs=[
        Attr("in_num_col_dims", int, 1),
        Attr("activation_type", str, ""),
        Attr("padding_weights", bool, False),
        Attr("use_mkldnn", bool, False),
        Attr("use_quantizer", bool, False),
        Attr("force_fp32_output", bool, False),
        Attr("Scale_in", float, 1.0),
        Attr("Scale_weights", AttrType.FLOATS, [1.0]),
        Attr("Scale_out", float, 1.0),
        Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", bool, True),
    ],
    infer=_infer,
    grad=None,
)


@fc.kernel
def _(
    xp: Any,
    x: Any,
    w: Any,
    bias: Any,
    *,
    in_num_col_dims: int,
    activation_type: str,
    padding_weights: bool,
) -> Any:
    if padding_weights:
        w = w[:-_PAD, :-_PAD]
    z = xp.dot(matrix(x, in_num_col_dims), w)
    if bias is not None:
        z += bias.reshape(-1)
        if activation_type:
            xp.maximum(z, 0, out=z)
    return z if x.ndim == 2 else z.reshape(*x.shape[:in_num_col_dims], w.shape[1])
