"""dropout: zero random elements while training.

``downgrade_in_infer`` keeps the others as they are and scales by 1 - p at test
time; ``upscale_in_train`` divides the others by 1 - p and does nothing at test time.
"""

from __future__ import annotations

from typing import Any

from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .registry import op
from .schema import Attr, In, Out

__all__ = ["dropout"]

_IMPLEMENTATIONS = ("downgrade_in_infer", "upscale_in_train")
# a fixed seed 0 is a seed like any other, but `RunContext.generator` means the
# program's own generator by 0
_FIXED_ZERO = 0x5EED


def _infer(op: InferContext) -> None:
    p = op.attr("dropout_prob")
    op.check(0.0 <= p <= 1.0, f"dropout_prob must be in [0, 1], got {p}")
    how = op.attr("dropout_implementation")
    op.check(
        how in _IMPLEMENTATIONS,
        f"dropout_implementation must be one of {_IMPLEMENTATIONS}, got {how!r}",
    )
    x = op.input("X")
    op.set("Out", like=x)
    if not op.attr("is_test"):
        op.set("Mask", x.shape, VarType.UINT8)


dropout = op(
    "dropout",
    ins=[In("X"), In("Seed", dispensable=True, no_grad=True)],
    outs=[Out("Out"), Out("Mask", intermediate=True)],
    attrs=[
        Attr("dropout_prob", float, 0.5),
        Attr("is_test", bool, False),
        Attr("fix_seed", bool, False),
        Attr("seed", int, 0),
        Attr("dropout_implementation", str, "downgrade_in_infer"),
    ],
    infer=_infer,
    grad=grad_op(needs=["Mask"]),
    random=True,
    overwrites="X",
)


def _scale_kept(p: float, how: str) -> float:
    """What elements that were kept are multiplied by; 0 where none can be."""
    if how != "upscale_in_train":
        return 1.0
    return 0.0 if p >= 1.0 else 1.0 / (1.0 - p)


def _at_test(xp: Any, x: Any, p: float, how: str, out: Any) -> Any:
    return xp.multiply(x, 1.0 if how == "upscale_in_train" else 1.0 - p, out=out)


@dropout.kernel
def _(
    xp: Any,
    x: Any,
    seed_tensor: Any,
    *,
    dropout_prob: float,
    is_test: bool,
    fix_seed: bool,
    seed: int,
    dropout_implementation: str,
    ctx: Any,
    out: Any,
) -> Any:
    if is_test:
        return _at_test(xp, x, dropout_prob, dropout_implementation, out), None
    if seed_tensor is not None:
        draw = (int(seed_tensor.reshape(-1)[0]) & 0xFFFFFFFF) or _FIXED_ZERO
    else:
        draw = (seed & 0xFFFFFFFF or _FIXED_ZERO) if fix_seed else 0
    kept = ctx.generator(draw).random(x.shape, dtype="float32") >= dropout_prob
    mask = kept.view("uint8")
    scale = _scale_kept(dropout_prob, dropout_implementation)
    result = xp.multiply(x, mask, out=out, dtype=x.dtype)
    if scale != 1.0:
        result *= scale
    return result, mask


@dropout.grad_kernel
def _(
    xp: Any,
    mask: Any,
    d_out: Any,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
) -> Any:
    # the reference refuses this case; the rule is plain, so it is followed
    if is_test:
        return _at_test(xp, d_out, dropout_prob, dropout_implementation, None)
    result = xp.multiply(d_out, mask, dtype=d_out.dtype)
    scale = _scale_kept(dropout_prob, dropout_implementation)
    if scale != 1.0:
        result *= scale
    return result
