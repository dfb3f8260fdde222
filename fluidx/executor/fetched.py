"""What a fetch of one element is: an array that still converts to a number.

Fluid losses have shape (1,), and 1.x scripts write ``float(loss)`` and ``"%f" % loss``.
NumPy 2.4 refuses that for arrays of any dimension; a fetched array allows it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidx.ir import Block
from fluidx.ir.errors import EnforceNotMet
from fluidx.tensor import LoDTensor, Scope, global_scope

__all__ = [
    "OneElement",
    "as_fetched",
    "as_numpy",
    "fetch_var",
    "has_feed_operators",
    "has_fetch_operators",
]


class OneElement(np.ndarray[Any, Any]):
    """An array of one element that `float`, `int`, `round` and formats take.

    What arithmetic makes of it does too, while it has one element: scripts add losses
    up, and print their mean.

    >>> loss = as_fetched(np.array([0.25], "float32"))
    >>> float(loss), f"{loss:.3f}", "%.1f" % loss, loss
    (0.25, '0.250', '0.2', array([0.25], dtype=float32))
    >>> "%.2f" % ((0.0 + loss + loss) / 2), type(loss * np.ones(2)) is np.ndarray
    ('0.25', True)
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"an array of {self.dtype} is no index")
        return int(self.item())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:
        return array[()] if return_scalar else as_fetched(array.view(np.ndarray))


def as_fetched(array: Any) -> Any:
    """An array of one element as `OneElement`; any other as it is."""
    if array.size == 1 and array.ndim and array.__class__ is np.ndarray:
        return array.view(OneElement)
    return array


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
