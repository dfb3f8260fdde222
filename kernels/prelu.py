"""prelu: leaky rectification with learnt slopes.

He et al., "Delving Deep into Rectifiers" (2015).
"""

from __future__ import annotations

from typing import Any

from .arrays import sum_to
from .grad import grad_op
from .infer import InferContext, known_product
from .registry import op
from .schema import Attr, In, Out

__all__ = ["prelu"]


def _infer(op: InferContext) -> None:
    x, alpha, mode = op.input("X"), op.shape("Alpha"), op.attr("mode")
    op.check(
        mode in ("all", "channel", "element"),
        f"mode must be all, channel or element, not {mode!r}",
    )
    op.check(len(x.shape) >= 2 or mode == "all", f"X {x.shape} has no channels")
    wanted = {
        "all": 1,
        "channel": x.shape[1] if len(x.shape) > 1 else 1,
        "element": known_product(x.shape[1:]),
    }[mode]
    size = known_product(alpha)
    op.check(
        -1 in (wanted, size) or wanted == size,
        f"Alpha {alpha} needs {wanted} elements in mode {mode} for X {x.shape}",
    )
    op.set("Out", like=x)


prelu = op(
    "prelu",
    ins=[In("X"), In("Alpha")],
    outs=[Out("Out")],
    attrs=[Attr("mode", str, "all")],
    infer=_infer,
    grad=grad_op(needs=["X", "Alpha"]),
)


def _laid(x: Any, alpha: Any, mode: str) -> tuple[int, ...]:
    """The shape that the slopes take beside x."""
    shape: tuple[int, ...] = x.shape
    if mode == "all":
        return (1,) * len(shape)
    if mode == "channel":
        return (1, shape[1], *(1,) * (len(shape) - 2))
    return (1, *shape[1:])


@prelu.kernel
def _(xp: Any, x: Any, alpha: Any, *, mode: str) -> Any:
    slopes = alpha.reshape(_laid(x, alpha, mode))
    return xp.where(x > 0, x, x * slopes)


@prelu.grad_kernel
def _(
    xp: Any, x: Any, alpha: Any, d_out: Any, *, mode: str, wants: tuple[bool, ...]
) -> Any:
    laid = _laid(x, alpha, mode)
    d_x = d_alpha = None
    if wants[0]:
        d_x = xp.where(x > 0, d_out, d_out * alpha.reshape(laid))
    if wants[1]:
        each = xp.minimum(x, 0)
        each *= d_out
        d_alpha = sum_to(xp, each, laid).reshape(alpha.shape)
    return d_x, d_alpha
