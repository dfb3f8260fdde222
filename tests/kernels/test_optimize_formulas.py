"""Update ops against the formulae of their papers, in float64 over five steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite, uniform

Arrays = dict[str, np.ndarray]
RATE = 0.1


def _lars(s: Arrays, g: Any, a: Any, t: int) -> None:
    p, decay = s["Param"], a["lars_weight_decay"]
    size = np.linalg.norm(p)
    trust = a["lars_coeff"] * size / (np.linalg.norm(g) + decay * size)
    s["Velocity"] = a["mu"] * s["Velocity"] + RATE * trust * (g + decay * p)
    s["Param"] = p - s["Velocity"]


def _decayed(s: Arrays, g: Any, a: Any, t: int) -> None:
    s["Moment"] = a["decay"] * s["Moment"] + (1 - a["decay"]) * g**2
    s["Param"] = s["Param"] - RATE * g / (np.sqrt(s["Moment"]) + a["epsilon"])


def _adamax(s: Arrays, g: Any, a: Any, t: int) -> None:
    s["Moment"] = a["beta1"] * s["Moment"] + (1 - a["beta1"]) * g
    s["InfNorm"] = np.maximum(a["beta2"] * s["InfNorm"] + a["epsilon"], np.abs(g))
    rate = RATE / (1 - a["beta1"] ** t)
    s["Param"] = s["Param"] - rate * s["Moment"] / s["InfNorm"]
    s["Beta1Pow"] = s["Beta1Pow"] * a["beta1"]


def _rmsprop(s: Arrays, g: Any, a: Any, t: int) -> None:
    rest = 1 - a["decay"]
    s["MeanSquare"] = a["decay"] * s["MeanSquare"] + rest * g**2
    spread = s["MeanSquare"]
    if a["centered"]:
        s["MeanGrad"] = a["decay"] * s["MeanGrad"] + rest * g
        spread = spread - s["MeanGrad"] ** 2
    step = RATE * g / np.sqrt(spread + a["epsilon"])
    s["Moment"] = a["momentum"] * s["Moment"] + step
    s["Param"] = s["Param"] - s["Moment"]


def _ftrl(s: Arrays, g: Any, a: Any, t: int) -> None:
    n, power = s["SquaredAccumulator"], -a["lr_power"]
    sigma = ((n + g**2) ** power - n**power) / RATE
    z = s["LinearAccumulator"] + g - sigma * s["Param"]
    n = n + g**2
    below = n**power / RATE + 2 * a["l2"]
    kept = np.abs(z) > a["l1"]
    s["Param"] = np.where(kept, (np.sign(z) * a["l1"] - z) / below, 0)
    s["SquaredAccumulator"], s["LinearAccumulator"] = n, z


def _lamb(s: Arrays, g: Any, a: Any, t: int) -> None:
    s["Moment1"] = a["beta1"] * s["Moment1"] + (1 - a["beta1"]) * g
    s["Moment2"] = a["beta2"] * s["Moment2"] + (1 - a["beta2"]) * g**2
    step = s["Moment1"] / (np.sqrt(s["Moment2"]) + a["epsilon"])
    step = step + a["weight_decay"] * s["Param"]
    trust = np.linalg.norm(s["Param"]) / np.linalg.norm(step)
    s["Param"] = s["Param"] - RATE * trust * step


def _proximal(s: Arrays, g: Any, a: Any, t: int) -> None:
    p = s["Param"] - RATE * g
    shrunk = np.maximum(np.abs(p) - RATE * a["l1"], 0)
    s["Param"] = np.sign(p) * shrunk / (1 + RATE * a["l2"])


Formula = Callable[[Arrays, Any, Any, int], None]
#: op, formula, states that start at zero, attributes
CASES: list[tuple[str, Formula, list[str], dict[str, Any]]] = [
    (
        "lars_momentum",
        _lars,
        ["Velocity"],
        {"mu": 0.5, "lars_coeff": 0.25, "lars_weight_decay": 0.125},
    ),
    ("decayed_adagrad", _decayed, ["Moment"], {"decay": 0.75, "epsilon": 1e-3}),
    (
        "adamax",
        _adamax,
        ["Moment", "InfNorm"],
        {"beta1": 0.75, "beta2": 0.875, "epsilon": 1e-3},
    ),
    (
        "rmsprop",
        _rmsprop,
        ["MeanSquare", "MeanGrad", "Moment"],
        {"decay": 0.75, "momentum": 0.5, "epsilon": 1e-3, "centered": False},
    ),
    (
        "rmsprop",
        _rmsprop,
        ["MeanSquare", "MeanGrad", "Moment"],
        {"decay": 0.75, "momentum": 0.5, "epsilon": 1e-3, "centered": True},
    ),
    (
        "ftrl",
        _ftrl,
        ["SquaredAccumulator", "LinearAccumulator"],
        {"l1": 0.25, "l2": 0.125, "lr_power": -0.5},
    ),
    (
        "ftrl",
        _ftrl,
        ["SquaredAccumulator", "LinearAccumulator"],
        {"l1": 0.0, "l2": 0.5, "lr_power": -0.75},
    ),
    (
        "lamb",
        _lamb,
        ["Moment1", "Moment2"],
        {"beta1": 0.75, "beta2": 0.875, "epsilon": 1e-3, "weight_decay": 0.125},
    ),
    ("proximal_gd", _proximal, [], {"l1": 0.5, "l2": 0.25}),
]


@pytest.mark.parametrize(("op", "formula", "states", "attrs"), CASES)
def test_five_steps(op: str, formula: Formula, states: list[str], attrs: Any) -> None:
    rng = np.random.default_rng(6)
    given = {"Param": rng.standard_normal((5, 3)), "LearningRate": np.array([RATE])}
    given |= {s: np.zeros((5, 3)) for s in states}
    for power, beta in (("Beta1Pow", "beta1"), ("Beta2Pow", "beta2")):
        if beta in attrs:
            given[power] = np.array([attrs[beta]])
    wanted = {k: v.copy() for k, v in given.items()}
    for t in range(1, 6):
        grad = rng.standard_normal((5, 3))
        slots = {k: v for k, v in given.items() if k != "Beta2Pow" or op == "lamb"}
        run_op(op, {**slots, "Grad": grad.copy()}, attrs)
        formula(wanted, grad, attrs, t)
        if op == "adamax":  # the program scales it behind the op
            given["Beta1Pow"] = given["Beta1Pow"] * attrs["beta1"]
        for slot in ("Param", *states):
            np.testing.assert_allclose(
                given[slot], wanted[slot], 1e-7, 1e-9, err_msg=f"{slot} after {t}"
            )


# ---------------------------------------------------------------- single calls

_OUTS = {
    "SquaredAccumulator": "SquaredAccumOut",
    "LinearAccumulator": "LinearAccumOut",
}


def _one_step(
    op: str, formula: Formula, states: list[str], attrs: dict[str, Any], **more: Any
) -> OpCase:
    """A case of one update from states that are not zero."""
    inputs = {
        "Param": normal(4, 3, seed=1),
        "Grad": normal(4, 3, seed=2),
        "LearningRate": np.array([RATE]),
        # a running mean's square stays below the mean square
        **{s: uniform(4, 3, low=1.0, high=2.0, seed=3) for s in states},
        **more,
    }
    if "MeanGrad" in inputs:
        inputs["MeanGrad"] = inputs["MeanGrad"] / 8

    def expected(given: Arrays, every: dict[str, Any]) -> Arrays:
        after = dict(given)
        formula(after, after.pop("Grad"), every, 1)
        outs = ["Param", *states]
        return {_OUTS.get(s, f"{s}Out"): after[s] for s in outs}

    return OpCase(op, inputs, attrs, expected)


def _adadelta(s: Arrays, g: Any, a: Any, t: int) -> None:
    """The step is taken with the new average of squared steps, as the reference."""
    rho, epsilon = a["rho"], a["epsilon"]
    s["AvgSquaredGrad"] = rho * s["AvgSquaredGrad"] + (1 - rho) * g**2
    below = s["AvgSquaredGrad"] + epsilon
    squared = (s["AvgSquaredUpdate"] + epsilon) / below * g**2
    s["AvgSquaredUpdate"] = rho * s["AvgSquaredUpdate"] + (1 - rho) * squared
    s["Param"] = s["Param"] - np.sqrt((s["AvgSquaredUpdate"] + epsilon) / below) * g


def _proximal_adagrad(s: Arrays, g: Any, a: Any, t: int) -> None:
    s["Moment"] = s["Moment"] + g**2
    _proximal(s, g / np.sqrt(s["Moment"]), a, t)


def _dpsgd(s: Arrays, g: Any, a: Any, t: int) -> None:
    s["Param"] = s["Param"] - RATE * g / max(np.linalg.norm(g) / a["clip"], 1)


POWERS = {"Beta1Pow": np.array([0.75]), "Beta2Pow": np.array([0.875])}
STEP = {"current_step": np.array([5.0]), "nranks": np.array([2.0])}


def _dgc(given: Arrays, every: dict[str, Any]) -> Arrays:
    grad = given["Grad"] / 2
    moved = given["Param"] - RATE * grad
    return {"Grad_out": grad, "ParamOut": moved, "VelocityOut": given["Velocity"]}


def _dgc_before(given: Arrays, every: dict[str, Any]) -> Arrays:
    grad = given["Grad"] / 2
    velocity = every["mu"] * given["Velocity"] + grad
    step = grad + every["mu"] * velocity if every["use_nesterov"] else velocity
    moved = given["Param"] - RATE * step
    return {"Grad_out": grad, "ParamOut": moved, "VelocityOut": velocity}


def _clipped(given: Arrays, every: dict[str, Any]) -> Arrays:
    return {"Out": given["X"] * every["max_norm"] / np.linalg.norm(given["X"])}


DGC = {
    "Param": normal(4, 3, seed=1),
    "Grad": normal(4, 3, seed=2),
    "Velocity": normal(4, 3, seed=3),
    "LearningRate": np.array([RATE]),
    **STEP,
}
SUMS = {f"in_sum_{i}": normal(4, 3, seed=i) for i in (1, 2, 3)}
COUNTS = {
    "in_num_accumulates": np.array([2]),
    "in_old_num_accumulates": np.array([4]),
    "in_num_updates": np.array([6]),
}


def _window_closes(given: Arrays, every: dict[str, Any]) -> Arrays:
    total = given["in_sum_1"] + given["in_sum_2"] + given["param"]
    zero = np.zeros((4, 3))
    return {
        "out_sum_1": zero,
        "out_sum_2": zero,
        "out_sum_3": total,
        "out_num_accumulates": np.array([0]),
        "out_old_num_accumulates": np.array([3]),
        "out_num_updates": np.array([7]),
    }


test_single_calls = suite(
    [
        *(
            _one_step(
                op,
                formula,
                states,
                attrs,
                **{
                    k: v
                    for k, v in POWERS.items()
                    if op == "lamb" or (op == "adamax" and k == "Beta1Pow")
                },
            )
            for op, formula, states, attrs in CASES
        ),
        _one_step(
            "adadelta",
            _adadelta,
            ["AvgSquaredGrad", "AvgSquaredUpdate"],
            {"rho": 0.75, "epsilon": 0.125},
        ),
        _one_step(
            "proximal_adagrad", _proximal_adagrad, ["Moment"], {"l1": 0.5, "l2": 0.25}
        ),
        _one_step("dpsgd", _dpsgd, [], {"clip": 0.5, "sigma": 0.0}),
        OpCase("dgc_momentum", DGC, {"mu": 0.5, "rampup_begin_step": 5.0}, _dgc),
        OpCase("dgc_momentum", DGC, {"mu": 0.5, "rampup_begin_step": 6.0}, _dgc_before),
        OpCase(
            "dgc_momentum",
            DGC,
            {"mu": 0.5, "rampup_begin_step": 6.0, "use_nesterov": True},
            _dgc_before,
        ),
        OpCase(
            "dgc_clip_by_norm",
            {"X": normal(4, 3), "current_step": np.array([5.0])},
            {"max_norm": 0.5, "rampup_begin_step": 5.0},
            _clipped,
        ),
        OpCase(
            "average_accumulates",
            {"param": normal(4, 3), **SUMS, **COUNTS},
            {
                "average_window": 0.5,
                "min_average_window": 3,
                "max_average_window": 20,
            },
            _window_closes,
        ),
    ]
)
