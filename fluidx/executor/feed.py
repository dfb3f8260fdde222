"""Checking and converting what a user feeds, before anything runs."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidx.ir import Block, Variable
from fluidx.ir.errors import FeedError
from fluidx.kernels import SelectedRows, VarType, as_dtype, to_numpy
from fluidx.tensor import LoDTensor

from .cuda import to_host

__all__ = ["prepare", "split_lod", "without_unknown"]


def without_unknown(block: Block, feed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The feed without what the program lacks, because it was pruned away, say.

    Warns of it, as the reference does. FeedError: it is near to a name that is not fed.
    """
    for name in feed:
        if name not in block.vars:
            break
    else:
        return feed
    for name in feed.keys() - block.vars.keys():
        if not isinstance(name, str):
            raise TypeError(f"feed: names are strings, got {name!r:.60}")
        said = _unknown(block, name)
        unfed = [
            v.name for v in block.vars.values() if v.is_data and v.name not in feed
        ]
        if difflib.get_close_matches(name, unfed, 1):
            raise FeedError(said)
        warnings.warn(f"{said}; it is left out", stacklevel=3)
    return {name: value for name, value in feed.items() if name in block.vars}


def split_lod(feed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The LoD of each fed LoDTensor that has one; None if there is none."""
    lods = {
        name: value.lod()
        for name, value in feed.items()
        if isinstance(value, LoDTensor) and value._cell.lod
    }
    return lods or None


def prepare(block: Block, feed: Mapping[str, Any], xp: Any) -> dict[str, Any]:
    """Arrays for a plan. FeedError: wrong rank, size or dtype."""
    ready: dict[str, Any] = {}
    for name, value in feed.items():
        var = block.vars[name]
        array = _array(var, value)
        if array.__class__ is not SelectedRows:
            _check(var, array)
            if xp is not np:
                array = xp.asarray(array)
            elif array.__class__ is not np.ndarray:
                array = to_host(array)
        ready[name] = array
    return ready


def _unknown(block: Block, name: str) -> str:
    known = [v.name for v in block.vars.values() if v.is_data]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"feed: the program has no variable {name!r}; it takes {sorted(known)}{hint}"


def _array(var: Variable, value: Any) -> Any:
    if value.__class__ is np.ndarray:
        return value
    if isinstance(value, LoDTensor):
        if value.value is None:
            raise FeedError(f"feed {var.name}: the LoDTensor holds no value")
        return value.value
    if isinstance(value, SelectedRows) or hasattr(value, "__cuda_array_interface__"):
        return value
    if isinstance(value, (list, tuple, int, float, bool)):
        try:
            return np.array(value, to_numpy(var.dtype))
        except (ValueError, TypeError) as error:
            raise FeedError(
                f"feed {var.name}: cannot make an array of {var.dtype} from it: {error}"
            ) from None
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _check(var: Variable, array: Any) -> None:
    if array.dtype != to_numpy(var.dtype):
        came = array.dtype
        raise FeedError(
            f"feed {var.name}: expected dtype {to_numpy(var.dtype)}, came {came}"
            + ("" if _known(came) else " (which fluidx does not know)")
        )
    # layers.data is taken as it comes: kernels flatten what they can
    if not var.need_check_feed:
        return
    shape, came_shape = var.shape, array.shape
    if len(shape) != len(came_shape):
        raise FeedError(
            f"feed {var.name}: expected {len(shape)} dimensions {_shown(shape)}, "
            f"came {len(came_shape)} {list(came_shape)}"
        )
    for position, (want, got) in enumerate(zip(shape, came_shape)):
        if position == 0 and var.lod_level:
            continue  # the rows of all sequences
        if want >= 0 and want != got:
            raise FeedError(
                f"feed {var.name}: dimension {position} must be {want} "
                f"(declared {_shown(shape)}), came {list(came_shape)}"
            )


def _known(dtype: Any) -> bool:
    try:
        return as_dtype(dtype) in VarType.__members__.values()
    except TypeError:
        return False


def _shown(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join("any" if d < 0 else str(d) for d in shape) + "]"
