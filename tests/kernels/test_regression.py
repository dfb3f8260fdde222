"""huber_loss, log_loss, smooth_l1_loss, squared_l2_distance, cos_sim."""

from __future__ import annotations

import numpy as np
from opcase import OpCase, normal, suite, uniform
from replay_oracle import oracle_suite

X, Y = normal(4, 3), normal(4, 3, seed=1)
INSIDE, OUTSIDE = uniform(4, 3, seed=2), uniform(4, 3, seed=3)


def _huber(x: dict, attrs: dict) -> dict:
    r, delta = x["Y"] - x["X"], attrs["delta"]
    near = np.abs(r) <= delta
    out = np.where(near, 0.5 * r * r, delta * (np.abs(r) - 0.5 * delta))
    return {"Residual": r, "Out": out}


def _log_loss(x: dict, attrs: dict) -> dict:
    p, z, e = x["Predicted"], x["Labels"], attrs["epsilon"]
    return {"Loss": -z * np.log(p + e) - (1 - z) * np.log(1 - p + e)}


def _smooth_l1(x: dict, attrs: dict) -> dict:
    d = (x["X"] - x["Y"]) * x.get("InsideWeight", 1)
    s = attrs["sigma"] ** 2
    f = np.where(np.abs(d) < 1 / s, 0.5 * s * d * d, np.abs(d) - 0.5 / s)
    f = f * x.get("OutsideWeight", 1)
    return {"Diff": d, "Out": f.reshape(len(d), -1).sum(1, keepdims=True)}


def _distance(x: dict, attrs: dict) -> dict:
    d = (x["X"] - x["Y"]).reshape(len(x["X"]), -1)
    return {"sub_result": d, "Out": (d * d).sum(1, keepdims=True)}


def _cosine(x: dict, attrs: dict) -> dict:
    p, q = x["X"], x["Y"]
    up = (p * q).sum(1, keepdims=True)
    down = np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1)
    return {"Out": up / down[:, None]}


PAIR = {"X": X, "Y": Y}
WEIGHTED = {**PAIR, "InsideWeight": INSIDE, "OutsideWeight": OUTSIDE}
CASES = [
    OpCase("huber_loss", PAIR, {"delta": 0.7}, _huber),
    OpCase(
        "log_loss",
        {"Predicted": uniform(5, 1, low=0.1, high=0.9), "Labels": uniform(5, 1)},
        {"epsilon": 1e-4},
        _log_loss,
    ),
    OpCase("smooth_l1_loss", PAIR, {"sigma": 1.5}, _smooth_l1),
    OpCase("smooth_l1_loss", WEIGHTED, {}, _smooth_l1, "weighted"),
    OpCase(
        "smooth_l1_loss",
        {"X": normal(2, 3, 2), "Y": normal(2, 3, 2, seed=1)},
        {},
        _smooth_l1,
        "deep",
    ),
    OpCase("squared_l2_distance", PAIR, {}, _distance),
    OpCase("squared_l2_distance", {"X": X, "Y": Y[:1]}, {}, _distance, "one-row"),
    OpCase(
        "squared_l2_distance",
        {"X": normal(2, 3, 2), "Y": normal(2, 3, 2, seed=1)},
        {},
        _distance,
        "deep",
    ),
    OpCase("cos_sim", PAIR, {}, _cosine, weights=["Out"], atol=1e-7),
    OpCase("cos_sim", {"X": X, "Y": Y[:1]}, {}, _cosine, "one-row", weights=["Out"]),
]
test_regression = suite(CASES)
test_against_reference = oracle_suite("loss_ops", *{case.op for case in CASES})
