"""Prices of houses around Boston: 13 features each.

A sample is (13 features, price), float64. Features are centred and divided by their
range; the first 80% of the rows are for training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import common

__all__ = ["fetch", "load_data", "test", "train"]

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
feature_names = [
    *("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE"),
    *("DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"),
]

Reader = Callable[[], Iterator[Any]]


def load_data(
    filename: str, feature_num: int = 14, ratio: float = 0.8
) -> tuple[Any, Any]:
    """(training rows, test rows) of a file of numbers, scaled."""
    with open(filename) as file:
        rows = np.array(file.read().split(), np.float64).reshape(-1, feature_num)
    features = rows[:, :-1]
    spread = features.max(axis=0) - features.min(axis=0)
    rows[:, :-1] = (features - features.mean(axis=0)) / spread
    cut = int(len(rows) * ratio)
    return rows[:cut], rows[cut:]


def _reader(part: int) -> Reader:
    rows = load_data(common.download(URL, "uci_housing", MD5))[part]

    def read() -> Iterator[Any]:
        for row in rows:
            yield row[:-1], row[-1:]

    return read


def train() -> Reader:
    """The reader of the training rows."""
    return _reader(0)


def test() -> Reader:
    """The reader of the test rows."""
    return _reader(1)


def fetch() -> None:
    """Download the file."""
    common.download(URL, "uci_housing", MD5)
