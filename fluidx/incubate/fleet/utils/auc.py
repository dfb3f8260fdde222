"""Numbers about predictions, from counts of clicks per predicted probability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["area", "bucket_error"]

_MAX_SPAN = 0.01
_BOUND = 0.05


def area(positive: Any, negative: Any) -> float:
    """The area under the ROC curve; 0.5 where one kind is missing.

    positive, negative: counts of samples by bucket of predicted probability.
    """
    up = np.cumsum(np.asarray(positive, np.float64)[::-1])
    right = np.cumsum(np.asarray(negative, np.float64)[::-1])
    if not up[-1] or not right[-1]:
        return 0.5
    before = np.concatenate([[0.0], up[:-1]])
    steps = np.diff(right, prepend=0.0)
    return float((steps * (before + up)).sum() / 2 / (up[-1] * right[-1]))


def bucket_error(positive: Any, negative: Any) -> float:
    """How far predicted from actual click rates are, over groups of buckets.

    Neighbouring buckets are put together until the predicted rate of a group is known
    to 5 %, or it spans more than 0.01; groups that stay too small do not count.
    """
    clicks = np.asarray(positive, np.float64)
    shows = clicks + np.asarray(negative, np.float64)
    buckets = len(clicks)
    first: float | None = None
    shown = rates = clicked = 0.0
    wrong = counted = 0.0
    for at in range(buckets):
        rate = at / buckets
        if first is None or abs(rate - first) > _MAX_SPAN:
            first, shown, rates, clicked = rate, 0.0, 0.0, 0.0
        shown += shows[at]
        rates += rate * shows[at]
        clicked += clicks[at]
        if not shown or not rates:
            continue
        predicted = rates / shown
        if math.sqrt(max(0.0, 1 - predicted) / (predicted * shown)) < _BOUND:
            wrong += abs(clicked / shown / predicted - 1) * shown
            counted += shown
            first = None
    return wrong / counted if counted else 0.0
