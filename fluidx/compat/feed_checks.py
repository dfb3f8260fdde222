"""Checks of what is fed, under the names that ``fluid.executor`` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import as_dtype, is_floating, to_numpy
from fluidx.tensor import LoDTensor

__all__ = [
    "check_feed_shape_type",
    "dimension_is_compatible_with",
    "dtype_is_compatible_with",
    "dtype_is_floating",
]


def dtype_is_floating(dtype: Any) -> bool:
    """Whether an element type, or the name of one, is of floating numbers."""
    return is_floating(as_dtype(dtype))


def dtype_is_compatible_with(first: Any, second: Any) -> bool:
    """Whether two element types, or names of such, are the same."""
    return as_dtype(first) == as_dtype(second)


def dimension_is_compatible_with(
    first: Sequence[int | None], second: Sequence[int | None]
) -> bool:
    """Whether two shapes go together: a size that is negative or None is any size."""
    if len(first) != len(second):
        return False
    pairs = zip(first, second)
    return all(a is None or b is None or a < 0 or b < 0 or a == b for a, b in pairs)


def check_feed_shape_type(var: Variable, feed: LoDTensor, num_places: int = 1) -> bool:
    """True if a tensor can be fed to a variable, one part to each of num_places.

    Variables of `layers.data` take any shape and dtype. ValueError: it does not fit.
    """
    if not var.need_check_feed:
        return True
    shape = list(feed.shape())
    if num_places > 1 and shape:
        shape[0] = -(-shape[0] // num_places)
    if not dimension_is_compatible_with(shape, var.shape):
        raise ValueError(
            f"The fed Variable {var.name!r} should have dimensions = {len(var.shape)}, "
            f"shape = {tuple(var.shape)}, but received fed shape {shape} on each device"
        )
    if not dtype_is_compatible_with(feed._dtype(), var.dtype):
        raise ValueError(
            f"The data type of fed Variable {var.name!r} must be "
            f"'{to_numpy(var.dtype)}', but received '{to_numpy(feed._dtype())}'"
        )
    return True
