"""Wrong arguments of optimizers and of clipping: what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fluidx as fluid

O = fluid.optimizer  # noqa: E741
Case = tuple[Callable[[], Any], type[Exception], str]


def _loss() -> Any:
    x = fluid.data("x", [None, 13])
    return fluid.layers.mean(fluid.layers.fc(x, 1))


CASES: dict[str, Case] = {
    "beta1": (
        lambda: O.Adam(0.1, beta1="a").minimize(_loss()),
        ValueError,
        "AdamOptimizer: start of beta1_pow_acc must be a number, got 'a'",
    ),
    "adamax": (
        lambda: O.Adamax(0.1, beta1="a"),
        ValueError,
        "AdamaxOptimizer: beta1 must be a number, got 'a'",
    ),
    "rho": (
        lambda: O.RMSProp(0.1, rho=None),
        TypeError,
        "RMSPropOptimizer: rho must be a number, got None",
    ),
    "momentum": (
        lambda: O.LarsMomentum(0.1, None),
        TypeError,
        "LarsMomentumOptimizer: momentum must be a number, got None",
    ),
    "l1": (
        lambda: O.Ftrl(0.1, l1="x"),
        ValueError,
        "FtrlOptimizer: l1 must be a number, got 'x'",
    ),
    "window": (
        lambda: O.ModelAverage("a"),
        ValueError,
        "ModelAverage: average_window_rate must be a number, got 'a'",
    ),
    "pairs": (
        lambda: O.SGD(0.1).apply_gradients(3),
        TypeError,
        r"SGDOptimizer.apply_gradients takes a list of \(parameter, gradient\), got 3",
    ),
    "a rate of many elements": (
        lambda: O.SGD(fluid.data("x", [None, 13])),
        ValueError,
        r"SGDOptimizer: learning_rate must have one element, x has shape \[-1, 13\]",
    ),
    "clip by value": (
        lambda: fluid.clip.GradientClipByValue("a"),
        ValueError,
        "GradientClipByValue: max must be a number, got 'a'",
    ),
    "clip by norm": (
        lambda: fluid.clip.GradientClipByGlobalNorm(None),
        TypeError,
        "GradientClipByGlobalNorm: clip_norm must be a number, got None",
    ),
    "error clip": (
        lambda: fluid.clip.ErrorClipByValue(1.0, "a"),
        ValueError,
        "ErrorClipByValue: min must be a number, got 'a'",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case: Case) -> None:
    call, kind, said = case
    with pytest.raises(kind, match=said):
        call()
