"""`WeightedAverage`: a mean that grows with the batches (``fluid.average``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidx.tensor.one_element import as_fetched

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """Mean of values with weights. Mirrors ``fluid.average.WeightedAverage``.

    >>> mean = WeightedAverage()
    >>> mean.add(value=2.0, weight=1)
    >>> mean.add(value=4.0, weight=3)
    >>> mean.eval()
    3.5
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self.numerator: Any = None
        self.denominator: Any = None

    def add(self, value: Any, weight: Any) -> None:
        """value: a number or an array; weight: a number. ValueError for others."""
        known = (int, float, np.number, np.ndarray)
        if not isinstance(value, known) or isinstance(value, bool):
            raise ValueError(f"value must be a number or an array, got {value!r:.60}")
        one = isinstance(weight, np.ndarray) and weight.size == 1
        if isinstance(weight, bool) or not (
            one or isinstance(weight, (int, float, np.number))
        ):
            raise ValueError(f"weight must be a number, got {weight!r:.60}")
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:
        """The mean; ValueError before any value was added."""
        if self.numerator is None:
            raise ValueError("nothing to average yet: call add first")
        mean = self.numerator / self.denominator
        return as_fetched(mean) if isinstance(mean, np.ndarray) else mean
