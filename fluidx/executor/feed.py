"""Checking and converting what a user feeds, before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidx.ir import Block, Variable
from fluidx.ir.errors import FeedError
from fluidx.kernels import SelectedRows, VarType, as_dtype, to_numpy
from fluidx.tensor import LoDTensor

__all__ = ["prepare", "split_lod"]


def split_lod(feed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The LoD of each fed LoDTensor that has one; None if there is none."""
    lods = {
        name: value.lod()
        for name, value in feed.items()
        if isinstance(value, LoDTensor) and value._cell.lod
    }
    return lods or None


def prepare(block: Block, feed: Mapping[str, Any], xp: Any) -> dict[str, Any]:
    """Arrays for a plan. FeedError: unknown name, wrong rank, size or dtype."""
    ready: dict[str, Any] = {}
    for name, value in feed.items():
        var = block.vars.get(name)
        if var is None:
            raise FeedError(_unknown(block, name))
        array = _array(var, value)
        if array.__class__ is not SelectedRows:
            _check(var, array)
            if xp is not np:
                array = xp.asarray(array)
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
    if not var.need_check_feed or var.lod_level:
        return
    shape, came_shape = var.shape, array.shape
    if len(shape) != len(came_shape):
        raise FeedError(
            f"feed {var.name}: expected {len(shape)} dimensions {_shown(shape)}, "
            f"came {len(came_shape)} {list(came_shape)}"
        )
    for position, (want, got) in enumerate(zip(shape, came_shape)):
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
