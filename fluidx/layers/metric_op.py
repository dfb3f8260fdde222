"""Metrics that the program itself computes. Python-side ones: `fluidx.metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, INTEGERS, check_dtype, one_of
from fluidx.layers.nn import topk

__all__ = ["accuracy", "auc", "chunk_eval", "mean_iou"]


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

    >>> import fluidx as fluid, numpy as np
    >>> scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], "float32")
    >>> scores = fluid.layers.assign(scores)
    >>> label = fluid.layers.assign(np.array([[1], [1], [1]], "int64"))
    >>> best = fluid.layers.accuracy(scores, label)
    >>> two = fluid.layers.accuracy(scores, label, k=2)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[best, two])
    >>> [round(float(v[0]), 4) for v in made]  # 2 of 3; all among the two best
    [0.6667, 1.0]
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

    >>> import fluidx as fluid, numpy as np
    >>> scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]], "float32")
    >>> label = fluid.layers.assign(np.array([[1], [0], [0]], "int64"))
    >>> whole, _, _ = fluid.layers.auc(fluid.layers.assign(scores), label)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> exe.run(fetch_list=[whole])[0].tolist()  # the one "yes" has the best score
    [1.0]
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

    >>> import fluidx as fluid, numpy as np
    >>> found = fluid.layers.assign(np.array([0, 0, 1, 1], "int32"))
    >>> true = fluid.layers.assign(np.array([0, 1, 1, 1], "int32"))
    >>> mean, wrong, right = fluid.layers.mean_iou(found, true, num_classes=2)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[mean, wrong, right])
    >>> round(float(made[0][0]), 4), made[2].tolist()  # (1/2 + 2/3) / 2
    (0.5833, [1, 2])
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


def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, Variable, Variable, Variable, Variable, Variable]:
    """Precision, recall and F1 of the chunks in a tagger's labels, and their counts.

    input, label: int64 of one shape, found and true labels ``type * tags + tag``;
    ``num_chunk_types * tags`` means "outside". With a LoD of one level, or padded
    [N, T] (or [N, T, 1]) with seq_length [N]. chunk_scheme: "IOB", "IOE", "IOBES" or
    "plain" (every stretch of one type is a chunk). excluded_chunk_types: types that do
    not count. Returns three float32 and three int64 (found, true, right chunks) of
    shape [1]. TypeError for other dtypes, ValueError for other schemes and, in the
    run, for labels out of range. Mirrors ``fluid.layers.chunk_eval``.

    >>> import fluidx as fluid
    >>> found = fluid.data("chunk_found", [None, 1], "int64", lod_level=1)
    >>> true = fluid.data("chunk_true", [None, 1], "int64", lod_level=1)
    >>> [str(v.dtype) for v in fluid.layers.chunk_eval(found, true, "IOB", 3)][2:4]
    ['VarType.FP32', 'VarType.INT64']
    """
    check_dtype(input, "input", "chunk_eval", (VarType.INT64,))
    check_dtype(label, "label", "chunk_eval", (VarType.INT64,))
    schemes = ("IOB", "IOE", "IOBES", "plain")
    one_of(chunk_scheme, "chunk_scheme", "chunk_eval", schemes)
    helper = LayerHelper("chunk_eval")
    counts = ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    scores = ("Precision", "Recall", "F1-Score")
    made = {
        slot: helper.create_variable_for_type_inference(
            VarType.INT64 if slot in counts else VarType.FP32
        )
        for slot in scores + counts
    }
    inputs = {"Inference": input, "Label": label}
    if seq_length is not None:
        inputs["SeqLength"] = seq_length
    attrs = {
        "num_chunk_types": num_chunk_types,
        "chunk_scheme": chunk_scheme,
        "excluded_chunk_types": list(excluded_chunk_types or ()),
    }
    helper.append_op("chunk_eval", inputs, made, attrs)
    precision, recall, f1, found, true, right = made.values()
    return precision, recall, f1, found, true, right
