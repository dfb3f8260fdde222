"""Runs under the reference: metric values for fixed batches, as metrics_values.json."""

import json
import os

import numpy as np
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))


def batches():
    random = np.random.RandomState(3)
    for size in (7, 20):
        yes = random.rand(size)
        labels = (random.rand(size) < yes).astype("int64")
        yield np.stack([1 - yes, yes], 1), labels.reshape(-1, 1)


def main():
    made = {}
    metrics = fluid.metrics
    for name, metric in (
        ("auc", metrics.Auc("auc")),
        ("auc_coarse", metrics.Auc("auc", num_thresholds=20)),
    ):
        for scores, labels in batches():
            metric.update(scores, labels)
        made[name] = float(metric.eval())
    for name, metric in (
        ("precision", metrics.Precision()),
        ("recall", metrics.Recall()),
    ):
        for scores, labels in batches():
            metric.update(scores[:, 1:], labels)
        made[name] = float(metric.eval())
    edit = metrics.EditDistance("edit")
    edit.update(np.array([[0.0], [2.0], [1.0]]), 3)
    edit.update(np.array([[0.0], [0.5]]), 2)
    made["edit"] = [float(v) for v in edit.eval()]
    chunk = metrics.ChunkEvaluator()
    chunk.update(10, 12, 7)
    chunk.update(4, 3, 2)
    made["chunk"] = [float(v) for v in chunk.eval()]
    accuracy = metrics.Accuracy()
    accuracy.update(0.25, 8)
    accuracy.update(0.75, 24)
    made["accuracy"] = float(accuracy.eval())
    average = fluid.average.WeightedAverage()
    average.add(np.array([1.0, 2.0]), 2)
    average.add(np.array([3.0, 4.0]), 6)
    made["average"] = [float(v) for v in average.eval()]
    with open(os.path.join(HERE, "metrics_values.json"), "w") as f:
        json.dump(made, f, sort_keys=True, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
