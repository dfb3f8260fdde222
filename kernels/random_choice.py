"""Random integers and choices: randint, randperm, sampling_id, random_crop.

See `random` for what a seed means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .context import RunContext
from .creation import SHAPE_INPUTS, infer_shape_attr, run_time_shape
from .dtypes import VarType, to_numpy
from .infer import InferContext
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_SEED = Attr("seed", int, 0)
_DTYPE = Attr("dtype", int, int(VarType.INT64))


def _infer_randint(op: InferContext) -> None:
    low, high = op.attr("low"), op.attr("high")
    op.check(low < high, f"low {low} is not below high {high}")
    if op.has("ShapeTensorList") and not op.attr("shape"):
        shape = [-1] * len(op.inputs("ShapeTensorList"))
        op.set("Out", shape, VarType(op.attr("dtype")))
    else:
        infer_shape_attr(op)


randint = op(
    "randint",
    ins=SHAPE_INPUTS,
    outs=[Out("Out")],
    attrs=[
        _DTYPE,
        Attr("high", int),
        Attr("low", int),
        _SEED,
        Attr("shape", AttrType.LONGS, []),
    ],
    infer=_infer_randint,
    grad=None,
    random=True,
    lod=None,
)


@randint.kernel
def _(
    xp: Any,
    tensor: Any,
    parts: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    low: int,
    high: int,
    seed: int,
    dtype: int,
) -> Any:
    """Integers in [low, high), each as likely."""
    sizes = run_time_shape(tensor, parts, shape)
    return ctx.generator(seed).integers(low, high, sizes, to_numpy(dtype))


def _infer_randperm(op: InferContext) -> None:
    n = op.attr("n")
    op.check(n > 0, f"n is {n}, not positive")
    op.set("Out", (n,), VarType(op.attr("dtype")))


randperm = op(
    "randperm",
    outs=[Out("Out")],
    attrs=[_DTYPE, Attr("n", int), _SEED],
    infer=_infer_randperm,
    grad=None,
    random=True,
    lod=None,
)


@randperm.kernel
def _(xp: Any, *, ctx: RunContext, n: int, seed: int, dtype: int) -> Any:
    """0, ..., n - 1 in random order."""
    # CuPy's generators do not permute
    order = ctx.host_generator(seed).permutation(n)
    return xp.asarray(order.astype(to_numpy(dtype)))


def _infer_sampling_id(op: InferContext) -> None:
    x = op.shape("X")
    op.check(len(x) == 2, f"X has shape {x}, not (n, classes)")
    low, high = op.attr("min"), op.attr("max")
    op.check(0 <= low < high, f"min {low} and max {high} are not 0 <= min < max")
    op.set("Out", x[:1], VarType.INT64)


sampling_id = op(
    "sampling_id",
    ins=[In("X", no_grad=True)],
    outs=[Out("Out")],
    attrs=[Attr("max", float, 1.0), Attr("min", float, 0.0), _SEED],
    infer=_infer_sampling_id,
    grad=None,
    random=True,
    lod=None,
)


@sampling_id.kernel
def _(xp: Any, x: Any, *, ctx: RunContext, seed: int, min: float, max: float) -> Any:
    """Row by row a class, as likely as the row says.

    It is the first whose probability together with those before it passes a number
    drawn from [min, max); the last one, where none does.
    """
    draws = ctx.generator(seed).random((x.shape[0], 1)) * (max - min) + min
    passed = xp.cumsum(x, 1, "f8") > draws
    passed[:, -1] = True
    return passed.argmax(axis=1)


# --- random_crop -------------------------------------------------------------------


def _infer_random_crop(op: InferContext) -> None:
    x, shape = op.input("X"), list(op.attr("shape"))
    rest = len(x.shape) - len(shape)
    op.check(
        bool(shape) and rest >= 1,
        f"shape {shape} must have fewer dimensions than X {x.shape}",
    )
    op.check(
        all(n < 0 or 0 < size <= n for size, n in zip(shape, x.shape[rest:])),
        f"shape {shape} does not fit into X {x.shape}",
    )
    op.set("Out", (*x.shape[:rest], *shape), x.dtype)


random_crop = op(
    "random_crop",
    ins=[In("X", no_grad=True), In("Seed", no_grad=True)],
    outs=[Out("Out"), Out("SeedOut", intermediate=True)],
    attrs=[Attr("shape", AttrType.INTS), Attr("startup_seed", int, 0)],
    infer=_infer_random_crop,
    grad=None,
    random=True,
    lod=None,
    unset=["Seed"],
)


@random_crop.kernel
def _(
    xp: Any,
    x: Any,
    seed: Any,
    *,
    ctx: RunContext,
    shape: Sequence[int],
    startup_seed: int,
) -> Any:
    """A window of `shape` from the last axes of each instance, each at its own place.

    SeedOut is the seed of the next run; Seed is empty in the first one, which starts
    from startup_seed (0: from the program's generator).
    """
    rest = x.ndim - len(shape)
    tail = x.shape[rest:]
    if any(size > n for size, n in zip(shape, tail)):
        raise ValueError(f"random_crop: {list(shape)} does not fit into {x.shape}")
    start = startup_seed if seed is None or not seed.size else int(seed.reshape(-1)[0])
    generator = ctx.host_generator(start % 2**63)
    flat = x.reshape([-1, *tail])
    room = [n - size + 1 for n, size in zip(tail, shape)]
    offsets = generator.integers(0, room, (len(flat), len(shape)))
    places: list[Any] = [np.arange(len(flat)).reshape([-1] + [1] * len(shape))]
    for i, size in enumerate(shape):
        across = [1] * len(shape)
        across[i] = size
        first = offsets[:, i].reshape([-1] + [1] * len(shape))
        places.append(first + np.arange(size).reshape([1, *across]))
    out = flat[tuple(xp.asarray(p) for p in places)]
    following = generator.integers(1, 2**31, 1)
    return out.reshape([*x.shape[:rest], *shape]), xp.asarray(following)
