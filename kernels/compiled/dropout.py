"""Compiled dropout: zeroing and scaling in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.kernels import compiled
from fluidx.kernels.dropout import draw_seed, kept, scale_kept
from fluidx.kernels.threads import share

from .functions import loops, own

__all__ = ["dropout", "dropout_grad"]


@loops
def _masked(x: Any, mask: Any, scale: Any, out: Any) -> None:
    zero = x.dtype.type(0)
    for i in range(len(x)):
        out[i] = x[i] * (scale if mask[i] else zero)


def _fits(x: Any) -> bool:
    return x.size >= compiled.SMALLEST and x.dtype.char in "fd" and x.flags.c_contiguous


def _scaled(x: Any, mask: Any, scale: float, out: Any) -> Any:
    if out is None or not _fits(out) or out.shape != x.shape or out.dtype != x.dtype:
        out = np.empty(x.shape, x.dtype)
    flat, into, stays = x.reshape(-1), out.reshape(-1), mask.reshape(-1)
    factor = x.dtype.type(scale)
    share(
        x.size,
        x.size,
        lambda a, b: _masked(flat[a:b], stays[a:b], factor, into[a:b]),
    )
    return out


def dropout(
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
    if is_test or not _fits(x):
        return own("dropout")(
            xp,
            x,
            seed_tensor,
            dropout_prob=dropout_prob,
            is_test=is_test,
            fix_seed=fix_seed,
            seed=seed,
            dropout_implementation=dropout_implementation,
            ctx=ctx,
            out=out,
        )
    generator = ctx.generator(draw_seed(seed_tensor, fix_seed, seed))
    mask = kept(xp, generator, x.shape, dropout_prob).view("uint8")
    scale = scale_kept(dropout_prob, dropout_implementation)
    return _scaled(x, mask, scale, out), mask


def dropout_grad(
    xp: Any,
    mask: Any,
    d_out: Any,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
) -> Any:
    if is_test or not _fits(d_out) or not mask.flags.c_contiguous:
        return own("dropout_grad")(
            xp,
            mask,
            d_out,
            dropout_prob=dropout_prob,
            is_test=is_test,
            dropout_implementation=dropout_implementation,
        )
    scale = scale_kept(dropout_prob, dropout_implementation)
    return _scaled(d_out, mask, scale, None)
