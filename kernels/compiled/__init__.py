"""Compiled kernels (extra ``fast``, numba): where NumPy alone cannot get there.

An op's kernel in its family's module is what the op is, on every device. A few ops
spend most of their time in bytes that NumPy must move more than once; for those,
`COMPILED` names a second kernel with the same calling rule, which the host's plans
take where numba is installed (``FLUIDX_COMPILED=0`` in the environment: never). One
is here only where `benchmarks.kernels` measured it faster, and it hands on what it
was not written for (dtypes, forms, small inputs) to the op's own kernel.

Nothing here is imported before an array is large enough to be worth the second that
numba takes to load (`WORTH`): small networks never see it. The first run of a kernel
compiles it (a second, Winograd's convolution eight) and keeps the result beside the
module, or in the user's cache folder where that cannot be written. (numba looks at the
age of the module alone: who changes what several of them use, as `vectors` and `lanes`,
removes ``__pycache__`` here.)
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "BATCHES",
    "COMPILED",
    "SMALLEST",
    "WORTH",
    "available",
    "batch_lazily",
    "compiled_batch",
    "compiled_kernel",
    "lazily",
]

#: elements below which a call costs more than it saves
SMALLEST = 4096

#: elements from which loading numba is worth it
WORTH = 1 << 16

#: op type -> (module here, function in it)
COMPILED: dict[str, tuple[str, str]] = {
    "batch_norm": ("norm", "batch_norm"),
    "batch_norm_grad": ("norm", "batch_norm_grad"),
    "conv2d": ("conv", "conv2d"),
    "conv2d_grad": ("conv", "conv2d_grad"),
    "depthwise_conv2d": ("conv", "conv2d"),
    "depthwise_conv2d_grad": ("conv", "conv2d_grad"),
    "dropout": ("dropout", "dropout"),
    "dropout_grad": ("dropout", "dropout_grad"),
    "gelu": ("activation", "gelu"),
    "gelu_grad": ("activation", "gelu_grad"),
    "layer_norm": ("norm", "layer_norm"),
    "layer_norm_grad": ("norm", "layer_norm_grad"),
    "leaky_relu_grad": ("activation", "leaky_relu_grad"),
    "relu_grad": ("activation", "relu_grad"),
    "sigmoid": ("activation", "sigmoid"),
    "softmax": ("softmax", "softmax"),
    "softmax_grad": ("softmax", "softmax_grad"),
    "softmax_with_cross_entropy": ("softmax", "softmax_with_cross_entropy"),
    "swish": ("activation", "swish"),
    "swish_grad": ("activation", "swish_grad"),
    "pool2d": ("pool", "pool2d"),
    "pool2d_grad": ("pool", "pool2d_grad"),
    "pool3d": ("pool", "pool2d"),
    "pool3d_grad": ("pool", "pool2d_grad"),
    "conv2d_transpose": ("conv", "conv2d_transpose"),
    "conv2d_transpose_grad": ("conv", "conv2d_transpose_grad"),
    "conv3d": ("conv3d", "conv3d"),
}
#: the same for batch kernels: batch group -> (module here, function in it)
BATCHES: dict[str, tuple[str, str]] = {
    "adam": ("optimize", "adam"),
    "momentum": ("optimize", "momentum"),
    "sgd": ("optimize", "sgd"),
}


@functools.cache
def available() -> bool:
    """Whether numba is there and nobody said no."""
    if os.environ.get("FLUIDX_COMPILED", "1") == "0":
        return False
    return importlib.util.find_spec("numba") is not None


def compiled_kernel(type: str) -> Callable[..., Any] | None:
    """The compiled kernel of an op type, if it has one and numba is there."""
    return _found(COMPILED.get(type))


def compiled_batch(group: str) -> Callable[..., Any] | None:
    """The compiled batch kernel of a batch group, likewise."""
    return _found(BATCHES.get(group))


def lazily(own: Callable[..., Any], type: str) -> Callable[..., Any]:
    """An op's kernel: its own, and the compiled one as soon as numba is worth it."""
    place = COMPILED.get(type)
    if place is None or not available():
        return own
    fast: Callable[..., Any] | None = None

    def call(xp: Any, first: Any, *others: Any, **keywords: Any) -> Any:
        nonlocal fast
        if fast is None:
            if not _loaded and getattr(first, "size", 0) < WORTH:
                return own(xp, first, *others, **keywords)
            fast = _found(place) or own
        return fast(xp, first, *others, **keywords)

    return call


def batch_lazily(own: Callable[..., Any], group: str) -> Callable[..., Any]:
    """The same for a batch kernel."""
    place = BATCHES.get(group)
    if place is None or not available():
        return own
    fast: Callable[..., Any] | None = None

    def call(xp: Any, ctx: Any, calls: Any) -> Any:
        nonlocal fast
        if fast is None:
            # the first input of an update is the parameter
            if not _loaded and sum(c.inputs[0].size for c in calls) < WORTH:
                return own(xp, ctx, calls)
            fast = _found(place) or own
        return fast(xp, ctx, calls)

    return call


#: places that were imported
_loaded: set[str] = set()


def _found(place: tuple[str, str] | None) -> Callable[..., Any] | None:
    if place is None or not available() or not _usable():
        return None
    found = getattr(importlib.import_module(f"{__name__}.{place[0]}"), place[1])
    _loaded.add(place[0])
    return found  # type: ignore[no-any-return]


@functools.cache
def _usable() -> bool:
    """Whether this numba can be imported, beside this NumPy; says so once if not."""
    try:
        importlib.import_module("numba")
    except Exception as error:
        warnings.warn(
            f"kernels run uncompiled, numba cannot be imported: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True
