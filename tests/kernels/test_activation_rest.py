"""erf, selu and label_smooth: values by definition, gradients by differences."""

from __future__ import annotations

import math

import numpy as np
from opcase import OpCase, normal, suite, uniform

SPREAD = np.array([[-7.3, -3.7, -1.2, -0.7, -0.23], [0.31, 0.8, 1.7, 2.2, 8.4]])
ERF = np.vectorize(math.erf, otypes=[float])
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772


def selu(x, scale, alpha):
    return scale * np.where(x > 0, x, alpha * (np.exp(x) - 1))


CASES = [
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
