"""Random tensors: uniform, normal, truncated normal.

Draws come from ``ctx.generator(seed)``: seed 0 goes on with the program's own
generator, any other gives the same numbers in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .context import RunContext
from .creation import (
    SHAPE_INPUTS,
    batch_like_shape,
    infer_batch_like,
    infer_shape_attr,
    run_time_shape,
)
from .dtypes import to_numpy
from .registry import op
from .schema import Attr, AttrType, In, Out
from .unary import MKLDNN

__all__: list[str] = []

_DTYPE = Attr("dtype", int, 5)
_SEED = Attr("seed", int, 0)
_NORMAL = (Attr("mean", float, 0.0), Attr("std", float, 1.0))
_UNIFORM = (
    Attr("diag_num", int, 0),
    Attr("diag_step", int, 0),
    Attr("diag_val", float, 1.0),
    Attr("max", float, 1.0),
    Attr("min", float, -1.0),
)
_LIKE = (
    Attr("input_dim_idx", int, 0),
    Attr("output_dim_idx", int, 0),
    Attr("shape", AttrType.INTS),
)


def _draw_dtype(dtype: Any) -> Any:
    """Generators draw float32 and float64; others are cast from float32."""
    return dtype if dtype.itemsize >= 4 else to_numpy(5)


def _uniform(
    generator: Any, sizes: Sequence[int], low: float, high: float, kind: int
) -> Any:
    """Evenly spread over [low, high)."""
    dtype = to_numpy(kind)
    values = generator.random(tuple(sizes), dtype=_draw_dtype(dtype))
    values *= high - low
    values += low
    return values.astype(dtype, copy=False)


def _gaussian(
    generator: Any, sizes: Sequence[int], mean: float, std: float, kind: int
) -> Any:
    dtype = to_numpy(kind)
    values = generator.standard_normal(tuple(sizes), dtype=_draw_dtype(dtype))
    values *= std
    values += mean
    return values.astype(dtype, copy=False)


def _fill_diagonal(
    xp: Any, values: Any, diag_num: int, diag_step: int, diag_val: float
) -> Any:
    """Set flat positions 0, diag_step + 1, 2 (diag_step + 1), ... to diag_val."""
    if diag_num > 0:
        values.reshape(-1)[xp.arange(diag_num) * (diag_step + 1)] = diag_val
    return values


def _truncated(generator: Any, sizes: Sequence[int], dtype: Any) -> Any:
    """Standard normal values within two standard deviations, by rejection.

    Values outside (one in 22) are drawn again, which leaves the distribution exact.
    """
    values = generator.standard_normal(tuple(sizes), dtype=dtype)
    flat = values.reshape(-1)
    outside = abs(flat) > 2.0
    while outside.any():
        again = generator.standard_normal(int(outside.sum()), dtype=dtype)
        flat[outside] = again
        outside = abs(flat) > 2.0
    return values


uniform_random = op(
    "uniform_random",
    ins=SHAPE_INPUTS,
    outs=[Out("Out")],
    attrs=[*_UNIFORM, _DTYPE, _SEED, Attr("shape", AttrType.LONGS, [])],
    infer=infer_shape_attr,
    grad=None,
    random=True,
    lod=None,
)


@uniform_random.kernel
def _(
    xp: Any,
    tensor: Any,
    parts: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    dtype: int,
    seed: int,
    min: float,
    max: float,
    diag_num: int,
    diag_step: int,
    diag_val: float,
) -> Any:
    sizes = run_time_shape(tensor, parts, shape)
    values = _uniform(ctx.generator(seed), sizes, min, max, dtype)
    return _fill_diagonal(xp, values, diag_num, diag_step, diag_val)


uniform_random_batch_size_like = op(
    "uniform_random_batch_size_like",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    attrs=[*_UNIFORM, _DTYPE, _SEED, *_LIKE],
    infer=infer_batch_like,
    grad=None,
    random=True,
    lod=None,
)


@uniform_random_batch_size_like.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    input_dim_idx: int,
    output_dim_idx: int,
    dtype: int,
    seed: int,
    min: float,
    max: float,
    diag_num: int,
    diag_step: int,
    diag_val: float,
) -> Any:
    sizes = batch_like_shape(x.shape, shape, input_dim_idx, output_dim_idx)
    values = _uniform(ctx.generator(seed), sizes, min, max, dtype)
    return _fill_diagonal(xp, values, diag_num, diag_step, diag_val)


gaussian_random = op(
    "gaussian_random",
    ins=SHAPE_INPUTS,
    outs=[Out("Out")],
    attrs=[*_NORMAL, _DTYPE, _SEED, Attr("shape", AttrType.LONGS, []), *MKLDNN],
    infer=infer_shape_attr,
    grad=None,
    random=True,
    lod=None,
)


@gaussian_random.kernel
def _(
    xp: Any,
    tensor: Any,
    parts: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    dtype: int,
    seed: int,
    mean: float,
    std: float,
) -> Any:
    sizes = run_time_shape(tensor, parts, shape)
    return _gaussian(ctx.generator(seed), sizes, mean, std, dtype)


gaussian_random_batch_size_like = op(
    "gaussian_random_batch_size_like",
    ins=[In("Input", no_grad=True)],
    outs=[Out("Out")],
    attrs=[*_NORMAL, _DTYPE, _SEED, *_LIKE],
    infer=infer_batch_like,
    grad=None,
    random=True,
    lod=None,
)


@gaussian_random_batch_size_like.kernel
def _(
    xp: Any,
    x: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    input_dim_idx: int,
    output_dim_idx: int,
    dtype: int,
    seed: int,
    mean: float,
    std: float,
) -> Any:
    sizes = batch_like_shape(x.shape, shape, input_dim_idx, output_dim_idx)
    return _gaussian(ctx.generator(seed), sizes, mean, std, dtype)


truncated_gaussian_random = op(
    "truncated_gaussian_random",
    outs=[Out("Out")],
    attrs=[*_NORMAL, _DTYPE, _SEED, Attr("shape", AttrType.INTS)],
    infer=infer_shape_attr,
    grad=None,
    random=True,
    lod=None,
)


@truncated_gaussian_random.kernel
def _(
    xp: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    dtype: int,
    seed: int,
    mean: float,
    std: float,
) -> Any:
    """Normal values of which those beyond two standard deviations are redrawn."""
    kind = to_numpy(dtype)
    values = _truncated(ctx.generator(seed), shape, _draw_dtype(kind))
    values *= std
    values += mean
    return values.astype(kind, copy=False)
