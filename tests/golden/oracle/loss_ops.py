"""What the reference makes of the losses, metrics, cos_sim and sequence_pool."""

import os

import numpy as np
from array_ops import case, count, rows
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0, 0.5, 0.5]], "float32")
SOFT = np.array([[0.5, 0.5, 1.0], [0, 1, 0], [0.2, 0.2, 0.1]], "float32")
LOGITS = np.array([[2, 0, -2], [20, 0, -1], [1, 2, 3]], "float32")


def label(*values):
    return np.array(values, "int64").reshape(-1, 1)


def array(*values):
    return np.array(values, "float32")


def cross_entropies():
    d_y = {"Y": count(3, 1)}
    for chosen, ignore in (
        ((1, 1, 2), -100),
        ((1, 1, 0), -100),
        ((1, -100, 2), -100),
        ((1, 1, 2), 1),
        ((1, 5, 2), -100),
    ):
        x = {"X": P, "Label": label(*chosen)}
        attrs = {"ignore_index": ignore}
        yield case("cross_entropy", x, attrs, ["Y"], grads=d_y)
        two = ["Y", "XShape", "MatchX"]
        yield case("cross_entropy2", x, attrs, two, grads=d_y)
    x = {"X": P, "Label": SOFT}
    yield case("cross_entropy", x, {"soft_label": True}, ["Y"], grads=d_y)
    for shape in ((1, 3, 1), (1, 3)):
        x = {"X": P.reshape(1, 3, 3), "Label": label(1, 0, 2).reshape(shape)}
        yield case("cross_entropy", x, {}, ["Y"])
    x = {"X": rows(P), "Label": label(1, 0, 2)}
    yield case("cross_entropy", x, {}, ["Y"])


def softmax_losses():
    op, two = "softmax_with_cross_entropy", ["Softmax", "Loss"]
    d_loss = {"Loss": count(3, 1)}
    for chosen in ((2, 1, 0), (0, 0, 0)):
        x = {"Logits": LOGITS, "Label": label(*chosen)}
        yield case(op, x, {}, two, grads=d_loss)
    # loss only: for an ignored row the reference's CPU gradient keeps the softmax
    x = {"Logits": P, "Label": label(2, -100, 0)}
    yield case(op, x, {}, two)
    x = {"Logits": P, "Label": label(2, 1, 0)}
    yield case(op, x, {"ignore_index": 1}, two)
    x = {"Logits": P, "Label": label(2, 5, 0)}
    yield case(op, x, {}, two)
    x = {"Logits": P, "Label": SOFT}
    yield case(op, x, {"soft_label": True}, two, grads=d_loss)
    for axis in (1, -2):
        x = {
            "Logits": P.reshape(1, 3, 3),
            "Label": label(2, 1, 0).reshape(1, 1, 3),
        }
        yield case(op, x, {"axis": axis}, two, grads={"Loss": count(1, 1, 3)})
    x = {"Logits": rows(P), "Label": label(2, 1, 0)}
    yield case(op, x, {}, two)


def other_losses():
    x = {"X": LOGITS, "Label": array([0, 1, 0.3], [-100, 1, 0], [1, 1, 0])}
    op = "sigmoid_cross_entropy_with_logits"
    for normalize in (False, True):
        attrs = {"normalize": normalize}
        yield case(op, x, attrs, ["Out"], grads={"Out": count(3, 3)})
    x = {"X": count(4, 1), "Y": array([1.5], [4], [2.9], [4])}
    two = ["Residual", "Out"]
    for delta in (1.0, 0.3):
        yield case("huber_loss", x, {"delta": delta}, two, grads={"Out": count(4, 1)})
    x = {"X": rows(count(4, 1)), "Y": count(4, 1)}
    yield case("huber_loss", x, {"delta": 1.0}, two)
    x = {"Predicted": rows(P[:, :1]), "Labels": array([1], [0], [1])}
    yield case("log_loss", x, {"epsilon": 1e-4}, ["Loss"], grads={"Loss": count(3, 1)})
    x = {"X": count(2, 2), "Y": array([1.2, 3], [3, 1])}
    weights = {"InsideWeight": count(2, 2) / 2, "OutsideWeight": count(2, 2) / 3}
    for given in (x, dict(x, **weights)):
        yield case(
            "smooth_l1_loss",
            given,
            {"sigma": 2.0},
            ["Diff", "Out"],
            grads={"Out": count(2, 1)},
        )
    two = ["sub_result", "Out"]
    for shape in ((1, 2), (2, 2)):
        x = {"X": count(2, 2), "Y": np.ones(shape, "float32")}
        d_out = {"Out": count(2, 1)}
        yield case("squared_l2_distance", x, {}, two, grads=d_out)


def similarities():
    three = ["Out", "XNorm", "YNorm"]
    for shape in ((1, 2), (2, 2)):
        x = {"X": count(2, 2), "Y": np.ones(shape, "float32")}
        yield case("cos_sim", x, {}, three, grads={"Out": count(2, 1)})
    x = {"X": 0 * count(2, 2), "Y": np.ones((1, 2), "float32")}
    yield case("cos_sim", x, {}, three)


def pools():
    data = array([1, 5], [3, 2], [-1, 4], [7, 7], [0, 7])
    two = ["Out", "MaxIndex"]
    for kind in ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"):
        for lod in ([[0, 2, 2, 5]], [[0, 2, 5]], [[0, 1, 3], [0, 2, 3, 5]]):
            x = {"X": {"data": data, "lod": lod}}
            d_out = {"Out": count(5, 2)[: len(lod[-1]) - 1]}
            attrs = {"pooltype": kind, "pad_value": 9.0}
            yield case("sequence_pool", x, attrs, two, grads=d_out)
    x = {"X": {"data": data, "lod": [[0, 2, 5]]}}
    unknown = {"X": [-1, 2]}
    yield case("sequence_pool", x, {}, two, shapes=unknown, run=False)


def metrics():
    three = ["Accuracy", "Correct", "Total"]
    x = {
        "Out": count(3, 2),
        "Indices": np.arange(1, 7).reshape(3, 2),
        "Label": label(2, 0, 5),
    }
    yield case("accuracy", x, {}, three)
    chance = array([0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2], [0.05, 0.95])
    x = {"Predict": chance, "Label": label(0, 1, 1, 1, 0)}
    same = {"StatPosOut": "StatPos", "StatNegOut": "StatNeg"}
    three = ["AUC", "StatPosOut", "StatNegOut"]
    zero = np.zeros((1, 10), "int64")
    before = np.arange(10).reshape(1, 10)
    for curve in ("ROC", "PR"):
        for pos, neg in ((zero, zero), (before, before[:, ::-1].copy())):
            given = dict(x, StatPos=pos, StatNeg=neg)
            attrs = {"curve": curve, "num_thresholds": 9, "slide_steps": 0}
            yield case("auc", given, attrs, three, inplace=same)


if __name__ == "__main__":
    every = (cross_entropies, softmax_losses, other_losses)
    every += (similarities, pools, metrics)
    cases = [c for family in every for c in family()]
    record(cases, os.path.join(HERE, "loss_ops.json"))
