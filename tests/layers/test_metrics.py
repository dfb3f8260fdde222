"""Python-side metrics against the reference's values and plain definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidx import metrics
from fluidx.average import WeightedAverage

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
GOLDEN = json.loads((ORACLE / "metrics_values.json").read_text())


def batches() -> Iterator[tuple[Any, Any]]:
    random = np.random.RandomState(3)
    for size in (7, 20):
        yes = random.rand(size)
        labels = (random.rand(size) < yes).astype("int64")
        yield np.stack([1 - yes, yes], 1), labels.reshape(-1, 1)


@pytest.mark.parametrize(("key", "thresholds"), [("auc", 4095), ("auc_coarse", 20)])
def test_auc(key: str, thresholds: int) -> None:
    metric = metrics.Auc("auc", num_thresholds=thresholds)
    for scores, labels in batches():
        metric.update(scores, labels)
    assert metric.eval() == pytest.approx(GOLDEN[key], abs=1e-12)
    metric.reset()
    assert metric.eval() == 0.0


def test_auc_counts_pairs() -> None:
    scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])
    labels = np.array([0, 0, 1, 1])
    metric = metrics.Auc("auc")
    metric.update(scores, labels)
    assert metric.eval() == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("key", "metric"),
    [("precision", metrics.Precision()), ("recall", metrics.Recall())],
)
def test_precision_and_recall(key: str, metric: Any) -> None:
    metric.reset()
    for scores, labels in batches():
        metric.update(scores[:, 1:], labels)
    assert metric.eval() == pytest.approx(GOLDEN[key])


def test_edit_distance() -> None:
    metric = metrics.EditDistance("edit")
    with pytest.raises(ValueError, match="no sequence was counted"):
        metric.eval()
    metric.update(np.array([[0.0], [2.0], [1.0]]), 3)
    metric.update(np.array([[0.0], [0.5]]), np.array([2]))
    assert metric.eval() == pytest.approx(GOLDEN["edit"])


def test_chunks() -> None:
    metric = metrics.ChunkEvaluator()
    assert metric.eval() == (0.0, 0.0, 0.0)
    metric.update(10, 12, 7)
    metric.update(np.array([4]), np.array([3]), np.array([2]))
    assert metric.eval() == pytest.approx(GOLDEN["chunk"])


def test_accuracy() -> None:
    metric = metrics.Accuracy("train")
    with pytest.raises(ValueError, match="nothing was counted"):
        metric.eval()
    metric.update(np.array([0.25]), 8)
    metric.update(0.75, 24)
    assert metric.eval() == GOLDEN["accuracy"]
    assert str(metric) == "train"
    assert metric.get_config()["states"] == {"value": 20.0, "weight": 32.0}
    with pytest.raises(ValueError, match="weight must not be negative"):
        metric.update(1.0, -1)


def test_composite_feeds_all() -> None:
    both = metrics.CompositeMetric()
    both.add_metric(metrics.Precision())
    both.add_metric(metrics.Recall())
    for scores, labels in batches():
        both.update(scores[:, 1], labels)
    expected = [GOLDEN["precision"], GOLDEN["recall"]]
    assert both.eval() == pytest.approx(expected)
    both.reset()
    assert both.eval() == [0.0, 0.0]
    with pytest.raises(ValueError, match="expected a MetricBase"):
        both.add_metric(3)  # type: ignore[arg-type]


def test_bad_batches() -> None:
    with pytest.raises(TypeError, match="Precision: preds must be a numpy array"):
        metrics.Precision().update([0.1], np.array([1]))
    with pytest.raises(ValueError, match="2 predictions, but 1 labels"):
        metrics.Recall().update(np.array([0.1, 0.2]), np.array([1]))
    with pytest.raises(ValueError, match=r"must be probabilities in \[0, 1\]"):
        metrics.Auc("a").update(np.array([[0.0, 1.5]]), np.array([1]))


def test_weighted_average() -> None:
    mean = WeightedAverage()
    with pytest.raises(ValueError, match="nothing to average"):
        mean.eval()
    mean.add(np.array([1.0, 2.0]), 2)
    mean.add(np.array([3.0, 4.0]), 6)
    assert mean.eval().tolist() == GOLDEN["average"]
    mean.reset()
    mean.add(3, 2)
    assert mean.eval() == 3.0
    with pytest.raises(ValueError, match="value must be a number"):
        mean.add("a", 1)
