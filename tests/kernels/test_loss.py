"""Cross entropies with hard and soft labels."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite, uniform
from replay_oracle import oracle_suite

LABEL = integers(4, 1, high=5)
IGNORED = np.array([[2], [-100], [4], [-100]])
SOFT = np.exp(normal(4, 5, seed=9))
SOFT /= SOFT.sum(1, keepdims=True)
P = uniform(4, 5, low=0.1)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _taken(x: np.ndarray, label: np.ndarray, axis: int, ignore: int) -> np.ndarray:
    safe = np.where(label == ignore, 0, label)
    picked = np.take_along_axis(x, safe, axis)
    return np.where(label == ignore, 0, -picked)


def _cross_entropy(x: dict, attrs: dict) -> dict:
    label = x["Label"]
    if attrs.get("soft_label"):
        return {"Y": -(label * np.log(x["X"])).sum(-1, keepdims=True)}
    return {"Y": _taken(np.log(x["X"]), label, -1, attrs["ignore_index"])}


def _softmax_loss(x: dict, attrs: dict) -> dict:
    axis = attrs["axis"]
    logs = _log_softmax(x["Logits"], axis)
    if attrs["soft_label"]:
        loss = -(x["Label"] * logs).sum(axis, keepdims=True)
    else:
        loss = _taken(logs, x["Label"], axis, attrs["ignore_index"])
    return {"Softmax": np.exp(logs), "Loss": loss}


def _sigmoid_loss(x: dict, attrs: dict) -> dict:
    z, p = x["Label"], 1 / (1 + np.exp(-x["X"]))
    out = -z * np.log(p) - (1 - z) * np.log(1 - p)
    out[z == attrs["ignore_index"]] = 0
    if attrs["normalize"]:
        out /= (z != attrs["ignore_index"]).sum()
    return {"Out": out}


BINARY = np.array([[0.0, 1.0, 0.3], [-100, 1, 0], [1, 0.5, -100]])
SOFTMAX = "softmax_with_cross_entropy"
CASES = [
    OpCase("cross_entropy", {"X": P, "Label": LABEL}, {}, _cross_entropy),
    OpCase("cross_entropy", {"X": P, "Label": IGNORED}, {}, _cross_entropy, "ignored"),
    OpCase(
        "cross_entropy",
        {"X": P, "Label": LABEL.astype("i4")},
        {"ignore_index": int(LABEL[0, 0])},
        _cross_entropy,
        "class-ignored",
    ),
    OpCase(
        "cross_entropy",
        {"X": P, "Label": SOFT},
        {"soft_label": True},
        _cross_entropy,
        "soft",
    ),
    OpCase(
        "cross_entropy",
        {"X": uniform(2, 3, 4, low=0.1), "Label": integers(2, 3, 1, high=4)},
        {},
        _cross_entropy,
        "deep",
    ),
    OpCase(
        "cross_entropy2", {"X": P, "Label": LABEL}, {}, _cross_entropy, weights=["Y"]
    ),
    OpCase(
        "cross_entropy2",
        {"X": P, "Label": IGNORED},
        {},
        _cross_entropy,
        "ignored",
        weights=["Y"],
    ),
    OpCase(SOFTMAX, {"Logits": normal(4, 5), "Label": LABEL}, {}, _softmax_loss),
    OpCase(
        SOFTMAX,
        {"Logits": normal(4, 5), "Label": IGNORED},
        {},
        _softmax_loss,
        "ignored",
    ),
    OpCase(
        SOFTMAX,
        {"Logits": normal(4, 5), "Label": SOFT},
        {"soft_label": True},
        _softmax_loss,
        "soft",
    ),
    OpCase(
        SOFTMAX,
        {"Logits": normal(2, 5, 3), "Label": integers(2, 1, 3, high=5)},
        {"axis": 1, "numeric_stable_mode": False},
        _softmax_loss,
        "axis",
    ),
    OpCase(
        "sigmoid_cross_entropy_with_logits",
        {"X": normal(3, 3), "Label": BINARY},
        {},
        _sigmoid_loss,
    ),
    OpCase(
        "sigmoid_cross_entropy_with_logits",
        {"X": normal(3, 3), "Label": BINARY},
        {"normalize": True},
        _sigmoid_loss,
        "normalize",
    ),
]
test_loss = suite(CASES)
test_against_reference = oracle_suite("loss_ops", *{case.op for case in CASES})


def test_large_logits_do_not_overflow() -> None:
    x = np.array([[1000.0, 0.0, -1000.0]])
    loss = run_op(SOFTMAX, {"Logits": x, "Label": np.array([[2]])}, {})["Loss"]
    # the reference's CPU kernel cuts exponents off at -64, and so its losses
    assert loss.tolist() == [[64.0]]
    out = run_op(
        "sigmoid_cross_entropy_with_logits",
        {"X": np.array([[800.0, -800.0]]), "Label": np.array([[0.0, 1.0]])},
        {},
    )["Out"]
    assert out.tolist() == [[800.0, 800.0]]


def test_gradient_of_an_ignored_row_is_zero() -> None:
    # the reference's CPU kernel gives the softmax here, though the loss is 0
    grad = run_op(
        SOFTMAX + "_grad",
        {
            "Softmax": np.full((2, 2), 0.5),
            "Label": np.array([[-100], [1]]),
            "Loss@GRAD": np.array([[3.0], [4.0]]),
        },
        {},
    )["Logits@GRAD"]
    assert grad.tolist() == [[0.0, 0.0], [2.0, -2.0]]


def test_gradient_may_overwrite_the_softmax() -> None:
    from fluidx import kernels

    definition = kernels.find(SOFTMAX + "_grad")
    assert definition.overwrites == "Softmax"
    assert definition.run is not None
    softmax = np.array([[0.25, 0.75]])
    label, d_loss = np.array([[0]]), np.array([[2.0]])
    attrs = {"soft_label": False, "ignore_index": -100, "axis": -1}
    got = definition.run(np, softmax, label, d_loss, out=softmax, **attrs)
    assert got is softmax
    assert got.tolist() == [[-1.5, 1.5]]


def test_everything_ignored_gives_zero_when_normalized() -> None:
    label = np.full((2, 2), -100.0)
    x = {"X": normal(2, 2), "Label": label}
    op = "sigmoid_cross_entropy_with_logits"
    assert not run_op(op, x, {"normalize": True})["Out"].any()


@pytest.mark.parametrize(("op", "slot"), [("cross_entropy", "X"), (SOFTMAX, "Logits")])
@pytest.mark.parametrize("wrong", [5, -7])
def test_a_label_outside_the_classes_is_named(op: str, slot: str, wrong: int) -> None:
    label = np.array([[0], [wrong], [-100], [1]])
    with pytest.raises(IndexError, match=rf"{op}: label .*{wrong} is not in \[0, 5\)"):
        run_op(op, {slot: P, "Label": label}, {})
