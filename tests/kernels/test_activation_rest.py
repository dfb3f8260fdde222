"""erf, selu, mish and label_smooth: values by definition, gradients by differences."""

from __future__ import annotations

import math

import numpy as np
from opcase import OpCase, normal, suite, uniform

from fluidx import kernels

SPREAD = np.array([[-7.3, -3.7, -1.2, -0.7, -0.23], [0.31, 0.8, 1.7, 2.2, 8.4]])
ERF = np.vectorize(math.erf, otypes=[float])
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772


def selu(x, scale, alpha):
    return scale * np.where(x > 0, x, alpha * (np.exp(x) - 1))


def mish(x, threshold):
    soft = np.where(x > threshold, x, np.log1p(np.exp(np.minimum(x, threshold))))
    return x * np.tanh(np.where(x < -threshold, np.exp(x), soft))


CASES = [
    OpCase("mish", {"X": SPREAD}, {}, lambda x, a: {"Out": mish(x["X"], 20.0)}),
    # gradients beyond a low threshold are those of the middle, not of the pieces
    OpCase(
        "mish",
        {"X": SPREAD},
        {"threshold": 1.5},
        lambda x, a: {"Out": mish(x["X"], 1.5)},
        "threshold",
        grad=(),
    ),
    OpCase("erf", {"X": SPREAD}, {}, lambda x, a: {"Out": ERF(x["X"])}),
    OpCase("selu", {"X": SPREAD}, {}, lambda x, a: {"Out": selu(x["X"], SCALE, ALPHA)}),
    OpCase(
        "selu",
        {"X": SPREAD},
        {"scale": 1.1, "alpha": 1.6},
        lambda x, a: {"Out": selu(x["X"], 1.1, 1.6)},
        "constants",
    ),
    OpCase(
        "label_smooth",
        {"X": uniform(3, 5)},
        {"epsilon": 0.1},
        lambda x, a: {"Out": 0.9 * x["X"] + 0.1 / 5},
    ),
    OpCase(
        "label_smooth",
        {"X": normal(2, 3, 5), "PriorDist": uniform(1, 5)},
        {"epsilon": 0.2},
        lambda x, a: {"Out": 0.8 * x["X"] + 0.2 * x["PriorDist"]},
        "prior",
    ),
]
test_activation_rest = suite(CASES)


def test_mish_takes_the_gradient_of_the_middle_beyond_its_threshold() -> None:
    """Values of the reference, threshold 1."""
    x = np.array([-30, -3, -0.5, 0, 0.7, 3, 40], "float32")
    kernel = kernels.find("mish_grad").run
    assert kernel is not None
    grad = kernel(np, x, np.ones_like(x), threshold=1.0)
    wanted = [-2.71371e-12, -0.0955975, 0.2895106, 0.6, 0.9687948, 1.0231792, 1.0]
    np.testing.assert_allclose(grad, wanted, rtol=1e-5)
