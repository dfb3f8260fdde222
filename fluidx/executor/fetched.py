"""What was fetched: of which form, and what the scope still holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidx.ir import Block
from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import LoDTensor, Scope, global_scope
from fluidx.tensor.one_element import OneElement, as_fetched

__all__ = [
    "OneElement",
    "as_fetched",
    "as_numpy",
    "fetch_var",
    "has_feed_operators",
    "has_fetch_operators",
]


def as_numpy(tensor: Any) -> Any:
    """A `LoDTensor` as an array, a list of them as a list (``executor.as_numpy``).

    RuntimeError: it has a LoD, which an array cannot keep. TypeError: no tensor.
    """
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(t) for t in tensor]
    if not isinstance(tensor, LoDTensor):
        raise TypeError(f"as_numpy takes a LoDTensor, got {type(tensor).__name__}")
    if tensor.lod():
        raise RuntimeError(
            "as_numpy: a tensor with LoD cannot become a plain array; run with "
            "return_numpy=False and read its lod()"
        )
    return np.array(tensor)


def fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """What a variable of a scope holds (``executor._fetch_var``).

    EnforceNotMet: there is none of that name; only persistable ones stay.
    """
    found = (scope or global_scope()).find_var(name)
    if found is None:
        raise EnforceNotMet(
            f"the scope has no variable {name!r}; only persistable variables stay in "
            "it after a run"
        )
    tensor = found.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor


def has_feed_operators(
    block: Block, feed_targets: Mapping[str, Any], feed_holder_name: str
) -> bool:
    """Whether a block has feed ops. EnforceNotMet: they feed other variables."""
    fed = {
        op.output("Out")[0]
        for op in block.ops
        if op.type == "feed" and op.input("X") == [feed_holder_name]
    }
    return _fits("feed", fed, set(feed_targets))


def has_fetch_operators(
    block: Block, fetch_targets: Iterable[Any], fetch_holder_name: str
) -> bool:
    """Whether a block has fetch ops. EnforceNotMet: they fetch other variables."""
    fetched = {
        op.input("X")[0]
        for op in block.ops
        if op.type == "fetch" and op.output("Out") == [fetch_holder_name]
    }
    wanted = {getattr(target, "name", target) for target in fetch_targets}
    return _fits("fetch", fetched, wanted)


def _fits(what: str, found: set[str], wanted: set[str]) -> bool:
    if found and found != wanted:
        raise EnforceNotMet(
            f"the program's {what} ops are for {sorted(found)}, not {sorted(wanted)}"
        )
    return bool(found)
