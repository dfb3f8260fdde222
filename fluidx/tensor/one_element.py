"""What a fetch of one element is: an array that still converts to a number.

Fluid losses have shape (1,), and 1.x scripts write ``float(loss)`` and ``"%f" % loss``.
NumPy 2.4 refuses that for arrays of any dimension; a fetched array allows it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["OneElement", "as_fetched"]


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
