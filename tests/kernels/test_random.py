"""Random ops: distributions, bounds, seeds, dtypes, shapes."""

import math

import numpy as np
import pytest
from opcase import OpCase, TestContext, run_op, suite

from fluidx import kernels

LIKE = {"Input": np.zeros((5, 6))}
SHAPES = {"shape": [3, 4], "seed": 3}
CASES = [
    OpCase("uniform_random", {}, SHAPES),
    OpCase("gaussian_random", {}, SHAPES),
    OpCase("truncated_gaussian_random", {}, SHAPES),
    OpCase(
        "uniform_random", {"ShapeTensor": np.array([2, 5])}, {"shape": [-1, -1]}, None
    ),
    OpCase(
        "gaussian_random",
        {"ShapeTensorList": [np.array([2]), np.array([5])]},
        {"shape": [-1, 5], "dtype": 6},
    ),
    OpCase("uniform_random_batch_size_like", LIKE, {"shape": [-1, 2], "dtype": 6}),
    OpCase("gaussian_random_batch_size_like", LIKE, {"shape": [-1, 2]}),
]
test_values = suite(CASES)
KINDS = {4: np.float16, 5: np.float32, 6: np.float64}


def draw(op, count=200_000, **attrs):
    return run_op(op, {}, {"shape": [count], **attrs})["Out"]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "op", ["uniform_random", "gaussian_random", "truncated_gaussian_random"]
)
def test_dtype_and_seed(op, dtype):
    one = draw(op, 100, dtype=dtype, seed=5)
    assert one.dtype == KINDS[dtype]
    np.testing.assert_array_equal(one, draw(op, 100, dtype=dtype, seed=5))
    assert (one != draw(op, 100, dtype=dtype, seed=6)).any()


@pytest.mark.parametrize(
    "op", ["uniform_random", "gaussian_random", "truncated_gaussian_random"]
)
def test_seed_zero_goes_on(op):
    kernel = kernels.find(op)
    context = TestContext()
    attrs = {**kernel.defaults, "shape": [50], "ctx": context}
    given = {k: attrs[k] for k in kernel.keywords}
    inputs = [None] * len(kernel.ins)
    assert (kernel.run(np, *inputs, **given) != kernel.run(np, *inputs, **given)).any()


def test_uniform_fills_its_range():
    x = draw("uniform_random", min=-3.0, max=5.0)
    assert x.min() >= -3
    assert x.max() < 5
    counts = np.histogram(x, 8, (-3, 5))[0] / x.size
    # 25000 expected in each bin, standard deviation 148
    np.testing.assert_allclose(counts, 1 / 8, atol=5 * 148 / x.size)


def test_normal_moments():
    x = draw("gaussian_random", mean=2.0, std=3.0).astype(float)
    z = (x - 2) / 3
    n = x.size
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs((z**2).mean() - 1) < 5 * math.sqrt(2 / n)
    assert abs((z**4).mean() - 3) < 5 * math.sqrt(96 / n)


def test_truncated_normal_is_the_conditional_distribution():
    x = draw("truncated_gaussian_random", mean=1.0, std=2.0).astype(float)
    z = (x - 1) / 2
    assert abs(z).max() <= 2 + 1e-6
    inside = math.erf(2 / math.sqrt(2))
    for edge in (-1.5, -1.0, -0.3, 0.0, 0.5, 1.2, 1.9):
        below = 0.5 * (math.erf(edge / math.sqrt(2)) + inside) / inside
        assert abs((z < edge).mean() - below) < 5 * math.sqrt(0.25 / z.size)


def test_diagonal():
    # positions that the reference fills: 0 and diag_step + 1 further each
    attrs = {"shape": [4, 3], "diag_val": 9.0, "min": 0.0}
    for count, step, wanted in ((3, 0, [0, 1, 2]), (2, 2, [0, 3]), (2, 3, [0, 4])):
        got = run_op(
            "uniform_random", {}, {**attrs, "diag_num": count, "diag_step": step}
        )["Out"]
        assert np.flatnonzero(got == 9).tolist() == wanted
