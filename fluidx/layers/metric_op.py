"""Metrics that the program itself computes. Python-side ones: `fluidx.metrics`."""

from __future__ import annotations

from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, INTEGERS, check_dtype, one_of
from fluidx.layers.nn import topk

__all__ = ["accuracy", "auc", "mean_iou"]


def accuracy(
    input: Variable,
    label: Variable,
    k: Any = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """The share of samples whose label is among the k best: a float32 of shape [1].

    input: scores [N, classes]. label: int64 [N, 1]. correct, total: variables that
    take the counts. Mirrors ``fluid.layers.accuracy``.
    """
    check_dtype(input, "input", "accuracy", FLOATS)
    check_dtype(label, "label", "accuracy", INTEGERS)
    helper = LayerHelper("accuracy")
    values, indices = topk(input, k)
    made = helper.create_variable_for_type_inference(VarType.FP32)
    if correct is None:
        correct = helper.create_variable_for_type_inference(VarType.INT32)
    if total is None:
        total = helper.create_variable_for_type_inference(VarType.INT32)
    helper.append_op(
        "accuracy",
        {"Out": values, "Indices": indices, "Label": label},
        {"Accuracy": made, "Correct": correct, "Total": total},
    )
    return made


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """Area under the curve, of all batches so far and of the last `slide_steps`.

    input: [N, 2], the second column the probability of "yes". label: int64 [N, 1].
    curve: only "ROC" is computed, as in the reference. Returns (global, of the
    batches, [four persistable counters]). Mirrors ``fluid.layers.auc``.
    """
    check_dtype(input, "input", "auc", FLOATS)
    check_dtype(label, "label", "auc", INTEGERS)
    one_of(curve, "curve", "auc", ("ROC", "PR"))
    helper = LayerHelper("auc")
    whole = helper.create_variable_for_type_inference(VarType.FP64)
    recent = helper.create_variable_for_type_inference(VarType.FP64)
    buckets = num_thresholds + 1
    window = [(1 + slide_steps) * buckets + 1]
    shapes = (window, window, [1, buckets], [1, buckets])
    counters = [
        helper.create_global_variable(persistable=True, dtype=VarType.INT64, shape=s)
        for s in shapes
    ]
    for counter in counters:
        helper.set_variable_initializer(counter, Constant(0.0, force_cpu=False))
    for out, (positive, negative), steps in (
        (recent, counters[:2], slide_steps),
        (whole, counters[2:], 0),
    ):
        helper.append_op(
            "auc",
            {
                "Predict": input,
                "Label": label,
                "StatPos": positive,
                "StatNeg": negative,
            },
            {"AUC": out, "StatPosOut": positive, "StatNegOut": negative},
            {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return whole, recent, counters


def mean_iou(
    input: Variable, label: Variable, num_classes: int
) -> tuple[Variable, Variable, Variable]:
    """Intersection over union of two segmentations, averaged over the classes.

    input, label: integer tensors of one shape. Returns the mean [1] and, for each
    class, the counts of wrong and of right places. Mirrors ``fluid.layers.mean_iou``.

    >>> import fluidx as fluid
    >>> found = fluid.data("iou_found", [None, 64, 64], "int32")
    >>> true = fluid.data("iou_true", [None, 64, 64], "int32")
    >>> [v.shape for v in fluid.layers.mean_iou(found, true, num_classes=5)]
    [(1,), (5,), (5,)]
    """
    check_dtype(input, "input", "mean_iou", INTEGERS)
    check_dtype(label, "label", "mean_iou", INTEGERS)
    helper = LayerHelper("mean_iou")
    made = {
        slot: helper.create_variable_for_type_inference(dtype)
        for slot, dtype in (
            ("OutMeanIou", VarType.FP32),
            ("OutWrong", VarType.INT32),
            ("OutCorrect", VarType.INT32),
        )
    }
    inputs = {"Predictions": input, "Labels": label}
    helper.append_op("mean_iou", inputs, made, {"num_classes": num_classes})
    mean, wrong, correct = made.values()
    return mean, wrong, correct
