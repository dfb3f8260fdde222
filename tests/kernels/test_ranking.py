"""Losses that rank, cluster or compare distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite, uniform
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def bpr(x: Any, a: Any) -> Any:
    score, label = x["X"], x["Label"]
    loss = np.zeros(label.shape)
    for at in np.ndindex(*label.shape[:-1]):
        own = label[at][0]
        others = [j for j in range(score.shape[-1]) if j != own]
        each = [-np.log(sigmoid(score[at][own] - score[at][j])) for j in others]
        loss[at] = np.mean(each)
    return {"Y": loss}


def margin_rank(x: Any, a: Any) -> Any:
    out = np.maximum(0, a["margin"] - x["Label"] * (x["X1"] - x["X2"]))
    return {"Out": out, "Activated": (out > 0) * 1.0}


def rank(x: Any, a: Any) -> Any:
    p = sigmoid(x["Left"] - x["Right"])
    return {"Out": -x["Label"] * np.log(p) - (1 - x["Label"]) * np.log(1 - p)}


def center(x: Any, a: Any) -> Any:
    centers, label = x["Centers"].copy(), x["Label"].reshape(-1)
    diff = x["X"] - centers[label]
    if a["need_update"]:
        for k in range(len(centers)):
            mine = diff[label == k]
            centers[k] += x["CenterUpdateRate"][0] * mine.sum(0) / (1 + len(mine))
    loss = 0.5 * (diff**2).sum(1, keepdims=True)
    return {"CentersOut": centers, "SampleCenterDiff": diff, "Loss": loss}


def kldiv(x: Any, a: Any) -> Any:
    target = x["Target"]
    each = np.zeros(target.shape)
    on = target > 0
    each[on] = target[on] * (np.log(target[on]) - x["X"][on])
    how = a["reduction"]
    if how == "none":
        return {"Loss": each}
    by = {"sum": 1, "mean": each.size, "batchmean": len(each)}[how]
    return {"Loss": np.array([each.sum() / by])}


def focal(x: Any, a: Any) -> Any:
    score, label = x["X"], x["Label"]
    out = np.zeros(score.shape)
    for i, c in np.ndindex(*score.shape):
        p = sigmoid(score[i, c])
        if label[i, 0] == c + 1:
            out[i, c] = -a["alpha"] * (1 - p) ** a["gamma"] * np.log(p)
        elif label[i, 0] != -1:
            out[i, c] = -(1 - a["alpha"]) * p ** a["gamma"] * np.log(1 - p)
    return {"Out": out / max(x["FgNum"][0], 1)}


def teacher(x: Any, a: Any) -> Any:
    def cost(score: Any, target: Any) -> Any:
        return np.log(1 + np.exp(score)) - score * target

    out = np.zeros(x["X"].shape)
    for i in range(len(out)):
        score, label = x["X"][i, 0], x["Label"][i, 0]
        out[i] = cost(score, 1.0 if label >= 1 or -1 <= label < 0 else 0.0)
        if label >= 0:
            out[i] += cost(score, label - 1 if label >= 1 else label)
    return {"Y": out}


X, LABEL = normal(5, 4), integers(5, 1, high=4)
SIGN = np.where(normal(5, 1, seed=7) > 0, 1.0, -1.0)
PAIR = {"X1": normal(5, 1), "X2": normal(5, 1, seed=1), "Label": SIGN}
RANK = {"Label": uniform(5, 1), "Left": normal(5, 1), "Right": normal(5, 1, seed=1)}
CENTER = {
    "X": X,
    "Label": np.array([[1], [0], [1], [2], [1]]),
    "Centers": normal(4, 4, seed=2),
    "CenterUpdateRate": np.array([0.3]),
}
LOGS = {"X": np.log(uniform(4, 3, low=0.1)), "Target": uniform(4, 3, low=0.1, seed=1)}
FOCAL = {
    "X": normal(6, 3),
    "Label": np.array([[0], [1], [2], [3], [-1], [2]], "int32"),
    "FgNum": np.array([4], "int32"),
}
SCORES = {
    "X": normal(6, 1) * 2,
    "Label": np.array([[-2.0], [-1.5], [-1], [0.0], [0.25], [1.75]]),
}


def logs(how: str) -> OpCase:
    return OpCase("kldiv_loss", LOGS, {"reduction": how}, kldiv, how)


CASES = [
    OpCase("bpr_loss", {"X": X, "Label": LABEL}, {}, bpr),
    OpCase(
        "bpr_loss",
        {"X": normal(2, 3, 4), "Label": integers(2, 3, 1, high=4)},
        {},
        bpr,
        "deep",
    ),
    OpCase("bpr_loss", {"X": normal(0, 4), "Label": LABEL[:0]}, {}, bpr, "empty"),
    OpCase("margin_rank_loss", PAIR, {"margin": 0.5}, margin_rank),
    OpCase("margin_rank_loss", PAIR, {}, margin_rank, "no margin"),
    OpCase("rank_loss", RANK, {}, rank),
    OpCase(
        "center_loss",
        CENTER,
        {"cluster_num": 4, "need_update": True},
        center,
        # a second call sees moved centres: the gradient is checked below
        grad=(),
    ),
    OpCase(
        "center_loss",
        CENTER,
        {"cluster_num": 4, "need_update": False},
        center,
        "fixed",
        weights=["Loss"],
    ),
    logs("none"),
    logs("mean"),
    logs("sum"),
    logs("batchmean"),
    OpCase(
        "kldiv_loss",
        {"X": normal(3, 2), "Target": np.array([[0.0, 1], [-1, 0.5], [2, 0]])},
        {"reduction": "none"},
        kldiv,
        "no target",
    ),
    OpCase("sigmoid_focal_loss", FOCAL, {}, focal),
    OpCase("sigmoid_focal_loss", FOCAL, {"gamma": 1.3, "alpha": 0.6}, focal, "other"),
    OpCase(
        "sigmoid_focal_loss",
        {**FOCAL, "FgNum": np.array([0], "int32")},
        {},
        focal,
        "none found",
    ),
    OpCase("teacher_student_sigmoid_loss", SCORES, {}, teacher),
]
test_ranking = suite(CASES)
test_as_the_reference = oracle_suite(
    "pair_ops",
    "bpr_loss",
    "margin_rank_loss",
    "rank_loss",
    "center_loss",
    "kldiv_loss",
    "sigmoid_focal_loss",
    "teacher_student_sigmoid_loss",
)


def test_gradient_of_center_loss() -> None:
    attrs = {"cluster_num": 4, "need_update": True}
    given = {k: v.copy() for k, v in CENTER.items()}
    outs = run_op("center_loss", given, attrs)
    inputs = {
        "X": X,
        "SampleCenterDiff": outs["SampleCenterDiff"],
        "Loss@GRAD": np.full((5, 1), 2.0),
    }
    got = run_op("center_loss_grad", inputs, attrs)["X@GRAD"]
    np.testing.assert_allclose(got, 2 * (X - CENTER["Centers"][[1, 0, 1, 2, 1]]))


@pytest.mark.parametrize("size", [60.0, 700.0])
def test_large_scores_stay_finite(size: float) -> None:
    x = np.array([[size], [-size]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        outs = run_op(
            "rank_loss",
            {"Label": np.array([[0.0], [0.0]]), "Left": x, "Right": np.zeros((2, 1))},
            {},
        )
        np.testing.assert_allclose(outs["Out"], [[size], [0]], atol=1e-20)
        label = np.array([[0], [1]])
        both = np.array([[size, 0], [size, 0]])
        y = run_op("bpr_loss", {"X": both, "Label": label}, {})["Y"]
        np.testing.assert_allclose(y, [[0], [size]], atol=1e-12)


def test_no_gradient_outside_of_the_bounds() -> None:
    inputs = {
        "X": np.array([[20.0], [-20.0], [0.0]]),
        "Label": np.zeros((3, 1)),
        "Y@GRAD": np.ones((3, 1)),
    }
    got = run_op("teacher_student_sigmoid_loss_grad", inputs, {})["X@GRAD"]
    assert got.tolist() == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "said"),
    [
        ("bpr_loss", {"X": (5, 4), "Label": (4, 1)}, {}, "last dimension"),
        ("bpr_loss", {"X": (5, 4), "Label": (5, 4)}, {}, "end with 1"),
        (
            "margin_rank_loss",
            {"X1": (5, 1), "X2": (4, 1), "Label": (5, 1)},
            {},
            "differ in shape",
        ),
        (
            "margin_rank_loss",
            {"X1": (5, 2), "X2": (5, 2), "Label": (5, 2)},
            {},
            "not .n, 1",
        ),
        (
            "center_loss",
            {"X": (5, 4), "Label": (5, 1), "Centers": (3, 2), "CenterUpdateRate": (1,)},
            {},
            "not as wide",
        ),
        ("kldiv_loss", {"X": (5, 4), "Target": (5, 3)}, {}, "differ in shape"),
        ("kldiv_loss", {"X": (5, 4), "Target": (5, 4)}, {"reduction": "max"}, "'max'"),
        (
            "sigmoid_focal_loss",
            {"X": (5, 4), "Label": (5, 1), "FgNum": (2,)},
            {},
            "FgNum",
        ),
        (
            "teacher_student_sigmoid_loss",
            {"X": (5, 2), "Label": (5, 1)},
            {},
            "not .n, 1",
        ),
    ],
)
def test_refusals(type: str, shapes: Any, attrs: Any, said: str) -> None:
    definition = kernels.find(type)
    metas = {slot: [Meta(shape)] for slot, shape in shapes.items()}
    every = {**definition.defaults, **attrs}
    context = InferContext(type, metas, every, {s.name: 1 for s in definition.outs})
    with pytest.raises(InferError, match=said):
        definition.infer(context)
