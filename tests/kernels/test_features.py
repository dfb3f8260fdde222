"""Products of inputs, positions, click models, data_norm, spectral_norm, mean_iou."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite, uniform
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def bilinear(x: Any, a: Any) -> Any:
    out = np.einsum("ni,kij,nj->nk", x["X"], x["Weight"], x["Y"])
    return {"Out": out + x["Bias"] if "Bias" in x else out}


def position(x: Any, a: Any) -> Any:
    out = x["X"] * a["alpha"]
    length, width = out.shape[-2:]
    half = width // 2
    for p in range(length):
        for k in range(half):
            angle = p / 10000 ** (k / (half - 1) if half > 1 else 1)
            out[..., p, k] += a["beta"] * np.sin(angle)
            out[..., p, half + k] += a["beta"] * np.cos(angle)
    return {"Out": out}


def fsp(x: Any, a: Any) -> Any:
    pixels = x["X"].shape[2] * x["X"].shape[3]
    return {"Out": np.einsum("nahw,nbhw->nab", x["X"], x["Y"]) / pixels}


def focus(x: Any, a: Any) -> Any:
    """The greedy choice, as it is described: by falling value."""
    front = np.moveaxis(x["X"], a["axis"], 1)
    out = np.zeros(front.shape)
    for n in range(len(front)):
        for i in a["indexes"]:
            plane = front[n, i]
            rows: set[int] = set()
            columns: set[int] = set()
            for place in np.argsort(-plane, axis=None, kind="stable"):
                row, column = divmod(int(place), plane.shape[1])
                if row not in rows and column not in columns:
                    rows.add(row)
                    columns.add(column)
                    out[n, :, row, column] = 1
    return {"Out": np.moveaxis(out, 1, a["axis"])}


def cvm(x: Any, a: Any) -> Any:
    if not a["use_cvm"]:
        return {"Y": x["X"][:, 2:]}
    y = x["X"].copy()
    y[:, 0] = np.log(x["X"][:, 0] + 1)
    y[:, 1] = np.log((x["X"][:, 1] + 1) / (x["X"][:, 0] + 1))
    return {"Y": y}


def data_norm(x: Any, a: Any) -> Any:
    means = x["BatchSum"] / x["BatchSize"]
    scales = np.sqrt(x["BatchSize"] / x["BatchSquareSum"])
    y = (x["X"] - means) * scales
    if a["enable_scale_and_shift"]:
        y = y * x["scale_w"] + x["bias"]
    if a["slot_dim"] > 0:
        for n, first in np.ndindex(len(y), y.shape[1] // a["slot_dim"]):
            start = first * a["slot_dim"]
            if x["X"][n, start] == 0:
                y[n, start : start + a["slot_dim"]] = 0
    return {"Y": y, "Means": means, "Scales": scales}


def spectral(x: Any, a: Any) -> Any:
    weight, u, v = x["Weight"], x["U"], x["V"]
    matrix = np.moveaxis(weight, a["dim"], 0).reshape(len(u), -1)
    for _ in range(a["power_iters"]):
        v = matrix.T @ u
        v = v / np.linalg.norm(v)
        u = matrix @ v
        u = u / np.linalg.norm(u)
    return {"Out": weight / (u @ matrix @ v)}


def iou(x: Any, a: Any) -> Any:
    guess, truth = x["Predictions"].reshape(-1), x["Labels"].reshape(-1)
    wrong = sum(x.get("InWrongs", []), np.zeros(a["num_classes"], int))
    right = sum(x.get("InCorrects", []), np.zeros(a["num_classes"], int))
    for p, t in zip(guess, truth):
        if p == t:
            right[p] += 1
        else:
            wrong[p] += 1
            wrong[t] += 1
    seen = wrong + right > 0
    mean = np.mean(right[seen] / (wrong + right)[seen]) if seen.any() else 0.0
    mean = mean + sum(float(m[0]) for m in x.get("InMeanIou", []))
    return {"OutMeanIou": np.array([mean]), "OutWrong": wrong, "OutCorrect": right}


PRODUCT = {
    "X": normal(3, 4),
    "Y": normal(3, 2, seed=1),
    "Weight": normal(5, 4, 2, seed=2),
}
IMAGES = {"X": normal(2, 3, 4, 2), "Y": normal(2, 5, 4, 2, seed=1)}
SEEN = {"X": uniform(3, 6, high=9), "CVM": uniform(3, 2, high=9, seed=1)}
DATA = {
    "X": normal(4, 6),
    "BatchSize": uniform(6, low=50, high=90),
    "BatchSum": normal(6, seed=1) * 9,
    "BatchSquareSum": uniform(6, low=40, high=90, seed=2),
}
SHIFTED = {**DATA, "scale_w": normal(6, seed=3), "bias": normal(6, seed=4)}
SLOTS = {
    **DATA,
    "X": normal(4, 6) * np.array([[0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1]] * 2),
}
WEIGHT = {"Weight": normal(3, 4), "U": normal(3, seed=1), "V": normal(4, seed=2)}
DEEP = {"Weight": normal(2, 3, 2, 2), "U": normal(3, seed=1), "V": normal(8, seed=2)}
SEGMENTS = {
    "Predictions": integers(4, 5, high=4),
    "Labels": integers(4, 5, high=4, seed=1),
}


def norm(name: str, inputs: Any, **attrs: Any) -> OpCase:
    # its gradients are no derivatives: see the recorded cases
    return OpCase("data_norm", inputs, attrs, data_norm, name, grad=())


CASES = [
    OpCase("bilinear_tensor_product", PRODUCT, {}, bilinear),
    OpCase(
        "bilinear_tensor_product",
        {**PRODUCT, "Bias": normal(1, 5, seed=3)},
        {},
        bilinear,
        "bias",
    ),
    OpCase(
        "bilinear_tensor_product",
        {**PRODUCT, "X": normal(0, 4), "Y": normal(0, 2)},
        {},
        bilinear,
        "empty",
    ),
    OpCase(
        "add_position_encoding",
        {"X": normal(2, 3, 6)},
        {"alpha": 0.5, "beta": 2.0},
        position,
    ),
    OpCase("add_position_encoding", {"X": normal(2, 5, 2)}, {}, position, "narrow"),
    OpCase("add_position_encoding", {"X": normal(0, 5, 4)}, {}, position, "empty"),
    OpCase("fsp", IMAGES, {}, fsp),
    OpCase(
        "similarity_focus",
        {"X": normal(2, 3, 4, 5)},
        {"axis": 1, "indexes": [0]},
        focus,
    ),
    OpCase(
        "similarity_focus",
        {"X": normal(2, 3, 4, 5)},
        {"axis": 2, "indexes": [3, 1]},
        focus,
        "two",
    ),
    OpCase(
        "similarity_focus",
        {"X": normal(2, 3, 4, 5)},
        {"axis": 3, "indexes": [4]},
        focus,
        "last",
    ),
    OpCase("cvm", SEEN, {"use_cvm": True}, cvm, grad=()),
    OpCase("cvm", SEEN, {"use_cvm": False}, cvm, "without", grad=()),
    norm("plain", DATA),
    norm("shifted", SHIFTED, enable_scale_and_shift=True),
    norm("slots", SLOTS, slot_dim=3),
    OpCase("spectral_norm", WEIGHT, {"power_iters": 0}, spectral, "no rounds"),
    # with rounds the vectors depend on the weight, which the gradient leaves out
    OpCase("spectral_norm", WEIGHT, {"power_iters": 3}, spectral, grad=()),
    OpCase(
        "spectral_norm", DEEP, {"dim": 1, "power_iters": 2}, spectral, "deep", grad=()
    ),
    OpCase("spectral_norm", DEEP, {"dim": 1, "power_iters": 0}, spectral, "deep"),
    OpCase("mean_iou", SEGMENTS, {"num_classes": 4}, iou),
    OpCase("mean_iou", SEGMENTS, {"num_classes": 6}, iou, "more classes"),
    OpCase(
        "mean_iou",
        {
            **SEGMENTS,
            "InWrongs": [integers(4, high=9, seed=3).astype("int32")],
            "InCorrects": [integers(4, high=9, seed=s).astype("int32") for s in (4, 5)],
            "InMeanIou": [np.array([0.25], "float32")],
        },
        {"num_classes": 4},
        iou,
        "streamed",
    ),
]
test_features = suite(CASES)
test_as_the_reference = oracle_suite(
    "pair_ops",
    "bilinear_tensor_product",
    "add_position_encoding",
    "fsp",
    "similarity_focus",
    "cvm",
    "mean_iou",
    "data_norm",
    "spectral_norm",
)


def test_gradient_of_spectral_norm_at_its_fixed_point() -> None:
    """Once u and v are singular vectors, holding them fixed changes nothing."""
    weight = normal(3, 4)
    left, _, right = np.linalg.svd(weight)
    inputs = {"Weight": weight, "U": left[:, 0], "V": right[0]}
    d_out = normal(3, 4, seed=9)
    given = {**inputs, "Out@GRAD": d_out}
    got = run_op("spectral_norm_grad", given, {"power_iters": 2})["Weight@GRAD"]

    def total(w: Any) -> float:
        return float((w / np.linalg.svd(w)[1][0] * d_out).sum())

    for place in np.ndindex(3, 4):
        step = np.zeros((3, 4))
        step[place] = 1e-5
        slope = (total(weight + step) - total(weight - step)) / 2e-5
        assert got[place] == pytest.approx(slope, abs=1e-7)


def test_an_empty_segmentation() -> None:
    empty = np.zeros(0, "int32")
    outs = run_op(
        "mean_iou", {"Predictions": empty, "Labels": empty}, {"num_classes": 2}
    )
    assert np.isnan(outs["OutMeanIou"]).tolist() == [True]  # as in the reference
    assert outs["OutWrong"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("type", "shapes", "attrs", "said"),
    [
        (
            "bilinear_tensor_product",
            {"X": (3, 4), "Y": (3, 2), "Weight": (5, 2, 4)},
            {},
            "go together",
        ),
        ("add_position_encoding", {"X": (2, 3, 5)}, {}, "odd"),
        ("add_position_encoding", {"X": (6,)}, {}, "needs shape"),
        ("fsp", {"X": (2, 3, 4, 4), "Y": (2, 3, 4, 5)}, {}, "same n, h and w"),
        ("similarity_focus", {"X": (2, 3, 4, 4)}, {"axis": 0, "indexes": [0]}, "axis"),
        (
            "similarity_focus",
            {"X": (2, 3, 4, 4)},
            {"axis": 1, "indexes": [3]},
            "index 3",
        ),
        ("cvm", {"X": (2, 2), "CVM": (2, 2)}, {}, "2 . width"),
        (
            "mean_iou",
            {"Predictions": (2, 3), "Labels": (3, 2)},
            {"num_classes": 2},
            "differ",
        ),
        (
            "data_norm",
            {"X": (4, 6), "BatchSize": (5,), "BatchSum": (6,), "BatchSquareSum": (6,)},
            {},
            "BatchSize",
        ),
        ("spectral_norm", {"Weight": (3, 4), "U": (3,), "V": (3,)}, {}, "V needs"),
        ("spectral_norm", {"Weight": (3, 4), "U": (3,), "V": (4,)}, {"dim": 2}, "dim"),
    ],
)
def test_refusals(type: str, shapes: Any, attrs: Any, said: str) -> None:
    definition = kernels.find(type)
    metas = {slot: [Meta(shape)] for slot, shape in shapes.items()}
    every = {**definition.defaults, **attrs}
    context = InferContext(type, metas, every, {s.name: 1 for s in definition.outs})
    with pytest.raises(InferError, match=said):
        definition.infer(context)
