"""Compiled kernels (extra ``fast``, numba): where NumPy alone cannot get there.

An op's kernel in its family's module is what the op is, on every device. A few ops
spend most of their time in bytes that NumPy must move more than once; for those,
`COMPILED` names a second kernel with the same calling rule, which the host's plans
take where numba is installed (``FLUIDX_COMPILED=0`` in the environment: never). One
is here only where `benchmarks.kernels` measured it faster, and it hands on what it
was not written for (dtypes, forms, small inputs) to the op's own kernel.

Nothing here is imported before a plan has such an op. The first run of a kernel
compiles it (about a second) and keeps the result beside the module, or in the user's
cache folder where that cannot be written. (numba looks at the age of the module alone:
who changes what several of them use, as `vectors`, removes ``__pycache__`` here.)
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
    "available",
    "compiled_batch",
    "compiled_kernel",
]

#: elements below which a call costs more than it saves
SMALLEST = 4096

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


def _found(place: tuple[str, str] | None) -> Callable[..., Any] | None:
    if place is None or not available() or not _usable():
        return None
    found = getattr(importlib.import_module(f"{__name__}.{place[0]}"), place[1])
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
