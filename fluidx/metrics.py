"""Metrics kept in Python, fed with what `Executor.run` fetched (``fluid.metrics``).

Each has ``update(...)`` for one batch, ``eval()`` for the value so far and ``reset()``;
only `DetectionMAP` lets the program count.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fluidx.detection_metrics import DetectionMAP
from fluidx.tensor.one_element import as_fetched

__all__ = [
    "Accuracy",
    "Auc",
    "ChunkEvaluator",
    "CompositeMetric",
    "DetectionMAP",
    "EditDistance",
    "MetricBase",
    "Precision",
    "Recall",
]


class MetricBase:
    """Base of all metrics: its public attributes are its state.

    name: shown to people. Mirrors ``fluid.metrics.MetricBase``.

    >>> class Largest(MetricBase):
    ...     def __init__(self):
    ...         super().__init__("largest")
    ...         self.found = 0.0
    ...     def update(self, preds, labels=None):
    ...         self.found = max(self.found, float(preds.max()))
    ...     def eval(self):
    ...         return self.found
    >>> metric = Largest()
    >>> metric.update(np.array([1.0, 3.0]))
    >>> metric.eval()
    3.0
    >>> metric.reset()
    >>> metric.get_config()
    {'name': 'largest', 'states': {'found': 0.0}}
    """

    def __init__(self, name: str | None) -> None:
        self._name = self.__class__.__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def _states(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}

    def reset(self) -> None:
        """Forget all batches: numbers and arrays become zeros, the rest None."""
        for key, value in self._states().items():
            if isinstance(value, (int, float)):
                fresh: Any = type(value)(0)
            elif isinstance(value, np.ndarray):
                fresh = np.zeros_like(value)
            else:
                fresh = None
            setattr(self, key, fresh)

    def get_config(self) -> dict[str, Any]:
        """Name and a copy of the state."""
        return {"name": self._name, "states": copy.deepcopy(self._states())}

    def update(self, preds: Any, labels: Any) -> None:
        """Take in one batch; each metric has its own arguments."""
        raise NotImplementedError(f"{self._name} has no update")

    def eval(self) -> Any:
        raise NotImplementedError(f"{self._name} has no eval")


def _array(value: Any, arg: str, owner: MetricBase) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{owner}: {arg} must be a numpy array, got {value!r:.60}")
    return value


def _amount(value: Any, arg: str, owner: MetricBase) -> Any:
    """A number as it is; an array of one, which sums then are too, as [1]."""
    if isinstance(value, np.ndarray) and value.size == 1:
        return as_fetched(value.reshape(1))
    known = (int, float, np.integer, np.floating)
    if not isinstance(value, known) or isinstance(value, bool):
        raise TypeError(f"{owner}: {arg} must be a number, got {value!r:.60}")
    return value


class CompositeMetric(MetricBase):
    """Several metrics fed with the same batches.

    Mirrors ``fluid.metrics.CompositeMetric``.

    >>> both = CompositeMetric()
    >>> both.add_metric(Precision())
    >>> both.add_metric(Recall())
    >>> both.update(np.array([[0.9], [0.2]]), np.array([[1], [1]]))
    >>> both.eval()
    [1.0, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def add_metric(self, metric: MetricBase) -> None:
        if not isinstance(metric, MetricBase):
            raise ValueError(f"{self}: expected a MetricBase, got {metric!r:.60}")
        self._metrics.append(metric)

    def update(self, preds: Any, labels: Any) -> None:
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        return [metric.eval() for metric in self._metrics]

    def reset(self) -> None:
        for metric in self._metrics:
            metric.reset()


class _Hits(MetricBase):
    """Counts of a yes / no classifier; a prediction counts rounded."""

    _wrong: str

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0

    def update(self, preds: Any, labels: Any) -> None:
        """preds: probabilities of "yes", [N] or [N, 1]; labels: 0 or 1, as many."""
        given = np.rint(_array(preds, "preds", self)).astype(np.int64).reshape(-1)
        wanted = _array(labels, "labels", self).astype(np.int64).reshape(-1)
        if given.shape != wanted.shape:
            raise ValueError(
                f"{self}: {given.size} predictions, but {wanted.size} labels"
            )
        self.tp += int(((given == 1) & (wanted == 1)).sum())
        self._count(given, wanted)

    def _count(self, given: Any, wanted: Any) -> None:
        raise NotImplementedError


class Precision(_Hits):
    """The share of "yes" predictions that are right. ``fluid.metrics.Precision``.

    >>> metric = Precision()
    >>> metric.update(np.array([[0.9], [0.8], [0.1]]), np.array([[1], [0], [1]]))
    >>> metric.eval()
    0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.fp = 0

    def _count(self, given: Any, wanted: Any) -> None:
        self.fp += int(((given == 1) & (wanted != 1)).sum())

    def eval(self) -> float:
        total = self.tp + self.fp
        return self.tp / total if total else 0.0


class Recall(_Hits):
    """The share of true "yes" that was found. Mirrors ``fluid.metrics.Recall``.

    >>> metric = Recall()
    >>> metric.update(np.array([[0.9], [0.8], [0.1]]), np.array([[1], [0], [1]]))
    >>> metric.eval()
    0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.fn = 0

    def _count(self, given: Any, wanted: Any) -> None:
        self.fn += int(((given != 1) & (wanted == 1)).sum())

    def eval(self) -> float:
        total = self.tp + self.fn
        return self.tp / total if total else 0.0


class Accuracy(MetricBase):
    """Weighted mean of the accuracies of batches. ``fluid.metrics.Accuracy``.

    An array [1] if a value or weight was one, as what was fetched is.

    >>> metric = Accuracy()
    >>> metric.update(0.5, 10)
    >>> metric.update(0.8, 20)
    >>> round(metric.eval(), 6)
    0.7
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Any = 0.0
        self.weight: Any = 0.0

    def update(self, value: Any, weight: Any) -> None:
        """value: accuracy of a batch; weight: its size."""
        amount = _amount(weight, "weight", self)
        if amount < 0:
            raise ValueError(f"{self}: weight must not be negative, got {weight!r}")
        self.value += _amount(value, "value", self) * amount
        self.weight += amount

    def eval(self) -> Any:
        if self.weight == 0:
            raise ValueError(f"{self}: nothing was counted yet; call update first")
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of found chunks. ``fluid.metrics.ChunkEvaluator``.

    >>> metric = ChunkEvaluator()
    >>> metric.update(10, 8, 4)
    >>> metric.eval()[:2]
    (0.4, 0.5)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks: Any = 0
        self.num_label_chunks: Any = 0
        self.num_correct_chunks: Any = 0

    def update(  # type: ignore[override]
        self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any
    ) -> None:
        """Counts of a batch: chunks found, chunks there, chunks found right."""
        found = _amount(num_infer_chunks, "num_infer_chunks", self)
        there = _amount(num_label_chunks, "num_label_chunks", self)
        right = _amount(num_correct_chunks, "num_correct_chunks", self)
        self.num_infer_chunks += found
        self.num_label_chunks += there
        self.num_correct_chunks += right

    def eval(self) -> tuple[Any, Any, Any]:
        """Numbers, or arrays [1] if counts were; 0.0 where nothing was counted."""
        right = self.num_correct_chunks
        found, there = self.num_infer_chunks, self.num_label_chunks
        precision = right / found if found else 0.0
        recall = right / there if there else 0.0
        total = precision + recall
        return precision, recall, 2 * precision * recall / total if right else 0.0


class EditDistance(MetricBase):
    """Mean edit distance and share of wrong sequences. ``metrics.EditDistance``.

    >>> metric = EditDistance("distance")
    >>> metric.update(np.array([[0.0], [2.0]]), 2)
    >>> metric.eval()
    (1.0, 0.5)
    """

    def __init__(self, name: str | None) -> None:
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num: Any = 0
        self.instance_error: Any = 0

    def update(self, distances: Any, seq_num: Any) -> None:
        """distances: of a batch, [N, 1]; seq_num: N."""
        given = _array(distances, "distances", self)
        count = _amount(seq_num, "seq_num", self)
        self.seq_num += count
        self.instance_error += count - int((given == 0).sum())
        self.total_distance += float(given.sum())

    def eval(self) -> tuple[Any, Any]:
        """(mean distance, share of sequences that are not right); as `Accuracy`'s."""
        if self.seq_num == 0:
            raise ValueError(f"{self}: no sequence was counted yet; call update first")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class Auc(MetricBase):
    """Area under the ROC curve, from counts in buckets. ``fluid.metrics.Auc``.

    num_thresholds: buckets are num_thresholds + 1.

    >>> metric = Auc("auc")
    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> metric.update(scores, np.array([[0], [1]]))
    >>> metric.eval()
    1.0
    """

    def __init__(
        self, name: str | None, curve: str = "ROC", num_thresholds: int = 4095
    ) -> None:
        super().__init__(name)
        if num_thresholds < 1:
            raise ValueError(f"{self}: num_thresholds must be positive")
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._positive = np.zeros(num_thresholds + 1)
        self._negative = np.zeros(num_thresholds + 1)

    def update(self, preds: Any, labels: Any) -> None:
        """preds: [N, 2], the second column the probability of "yes"; labels: 0 or 1."""
        scores = _array(preds, "preds", self)
        wanted = _array(labels, "labels", self).reshape(-1).astype(bool)
        if scores.ndim != 2 or len(scores) != len(wanted):
            raise ValueError(
                f"{self}: preds {list(scores.shape)} do not fit {len(wanted)} labels"
            )
        yes = scores[:, -1]
        if len(yes) and not (yes.min() >= 0 and yes.max() <= 1):
            raise ValueError(f"{self}: preds must be probabilities in [0, 1]")
        buckets = (yes * self._num_thresholds).astype(np.int64)
        size = self._num_thresholds + 1
        self._positive += np.bincount(buckets[wanted], minlength=size)
        self._negative += np.bincount(buckets[~wanted], minlength=size)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def eval(self) -> float:
        # from the highest threshold down: how many are called "yes" so far
        positive = np.concatenate([[0.0], np.cumsum(self._positive[::-1])])
        negative = np.concatenate([[0.0], np.cumsum(self._negative[::-1])])
        total = positive[-1] * negative[-1]
        if total == 0:
            return 0.0
        steps = np.diff(negative) * (positive[1:] + positive[:-1]) / 2.0
        return float(steps.sum() / total)

    def reset(self) -> None:
        self._positive[:] = 0
        self._negative[:] = 0
