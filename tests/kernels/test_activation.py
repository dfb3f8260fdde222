"""Activations and plain functions of one tensor: arithmetic, gradients, oracle."""

import math

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite, uniform
from oracle_cases import oracle_suite

from fluidx import kernels
from fluidx.kernels.erf import erf


def f(op, expected, x=None, name="", grad_tol=1e-6, **attrs):
    """A case of an op of X: expected(x, **attrs)."""
    x = spread if x is None else x
    return OpCase(
        op,
        {"X": x},
        attrs,
        lambda i, a: {"Out": expected(i["X"])},
        name=name,
        grad_tol=grad_tol,
    )


# no value near a kink of any of the functions
spread = np.array([[-7.3, -3.7, -1.2, -0.7, -0.23], [0.31, 0.8, 1.7, 2.2, 8.4]])
positive = uniform(3, 4, low=0.2, high=3.0)
inside = uniform(3, 4, low=-0.9, high=0.9)
sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
softplus = lambda x: np.log(1 + np.exp(x))  # noqa: E731
phi = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[float])


def softmax_of(x, axis):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


CASES = [
    f("exp", np.exp, inside),
    f("log", np.log, positive),
    f("log1p", np.log1p, positive),
    f("sqrt", np.sqrt, positive),
    f("rsqrt", lambda x: x**-0.5, positive),
    f("square", lambda x: x**2),
    f("abs", np.abs),
    f("ceil", np.ceil),
    f("floor", np.floor),
    f("round", np.round),
    f("reciprocal", lambda x: 1 / x, positive),
    f("sin", np.sin),
    f("cos", np.cos),
    f("asin", np.arcsin, inside),
    f("acos", np.arccos, inside),
    f("atan", np.arctan),
    f("tanh", np.tanh),
    f("tanh_shrink", lambda x: x - np.tanh(x)),
    f("sigmoid", sigmoid),
    f("logsigmoid", lambda x: np.log(sigmoid(x))),
    f("softplus", softplus),
    f("softsign", lambda x: x / (1 + abs(x))),
    f("relu", lambda x: np.where(x > 0, x, 0)),
    f("relu6", lambda x: np.clip(x, 0, 6)),
    f("relu6", lambda x: np.clip(x, 0, 2), threshold=2.0, name="two"),
    f("leaky_relu", lambda x: np.where(x > 0, x, 0.02 * x)),
    f("leaky_relu", lambda x: np.where(x > 0, x, 0.3 * x), alpha=0.3),
    f("brelu", lambda x: np.clip(x, -1, 2), t_min=-1.0, t_max=2.0),
    f("thresholded_relu", lambda x: x * (x > 1.0)),
    f("hard_shrink", lambda x: x * (abs(x) > 0.5)),
    f("softshrink", lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
    f(
        "softshrink",
        lambda x: np.sign(x) * np.maximum(abs(x) - 1.5, 0),
        name="wide",
        **{"lambda": 1.5},
    ),
    f("hard_sigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    f("hard_swish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    f("swish", lambda x: x * sigmoid(x)),
    f("swish", lambda x: x * sigmoid(2 * x), beta=2.0),
    f("elu", lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    f("elu", lambda x: np.where(x > 0, x, 0.3 * (np.exp(x) - 1)), alpha=0.3),
    f("soft_relu", softplus),
    f("stanh", lambda x: 1.7159 * np.tanh(0.67 * x)),
    f("gelu", lambda x: x * phi(x)),
    f(
        "gelu",
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        approximate=True,
        name="approximate",
    ),
    f("softmax", lambda x: softmax_of(x, -1), normal(3, 5)),
    f("softmax", lambda x: softmax_of(x, 1), normal(2, 3, 4), axis=1, name="axis1"),
    f("softmax", lambda x: softmax_of(x, 0), normal(2, 3, 4), axis=-3, name="axis-3"),
]
test_values = suite(CASES)

ROUND_REST = np.array([-2.0, -2.0, -0.0, 0.0, 2.0, 2.0])
test_oracle = oracle_suite(
    "activation",
    {
        # the reference rounds halves to even, save for the rest of a SIMD register
        "round half": {"Out": ROUND_REST},
        "round double": {"Out": ROUND_REST[[0, 3, 5]]},
        # the reference multiplies by exp(x) there and gets 0 * inf
        "elu 0.7": {"X@GRAD": lambda g, d: np.where(np.isnan(g), d, g)},
    },
    rtol=5e-6,
)


def test_erf_is_exact_to_rounding():
    x = np.concatenate([np.linspace(-7, 7, 4001), [0.0, 0.5, -0.5, 1e-300, 30.0]])
    wanted = np.array([math.erf(v) for v in x])
    assert np.abs(erf(np, x) - wanted).max() < 4e-16
    single = x.astype(np.float32)
    wanted = np.array([math.erf(v) for v in single.astype(float)])
    got = erf(np, single)
    assert got.dtype == np.float32
    assert np.abs(got - wanted).max() < 2e-7


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extreme_inputs_stay_finite(dtype):
    x = {"X": np.array([-30000, -100, 0, 100, 30000], dtype)}
    for op, wanted in (
        ("sigmoid", [0, 0, 0.5, 1, 1]),
        ("tanh", [-1, -1, 0, 1, 1]),
        ("softmax", [0, 0, 0, 0, 1]),
        ("swish", [0, 0, 0, 100, 30000]),
        ("softplus", [0, 0, math.log(2), 100, 30000]),
        ("logsigmoid", [-30000, -100, -math.log(2), 0, 0]),
        ("elu", [-1, -1, 0, 100, 30000]),
        ("gelu", [0, 0, 0, 100, 30000]),
    ):
        got = run_op(op, x, {})["Out"]
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, 1e-3, 1e-4 if dtype != "float16" else 1)


def test_softmax_is_never_zero():
    """A loss on it stays finite, as under the reference, which printed these."""
    x = np.array([[0, -70, -200], [0, -63, -1e4], [-np.inf, 0, 1]], "float32")
    least, other = 1.6038109389511792e-28, 4.359610133382778e-28
    wanted = [[1, least, least], [1, other, least], [1.17247979e-28, 0.26894, 0.73106]]
    np.testing.assert_allclose(run_op("softmax", {"X": x}, {})["Out"], wanted, 1e-4)
    label = np.array([[2], [1], [0]])
    got = run_op("softmax_with_cross_entropy", {"Logits": x, "Label": label}, {})
    np.testing.assert_allclose(got["Softmax"], wanted, 1e-4)
    np.testing.assert_allclose(got["Loss"], [[64], [63], [64.31326]], 1e-6)


def test_out_is_used_only_where_it_fits():
    kernel = kernels.find("relu").run
    x = np.array([-1.0, 2.0], np.float32)
    for wrong in (np.empty(3, np.float32), np.empty(2, np.float64)):
        got = kernel(np, x, out=wrong)
        assert got is not wrong
        np.testing.assert_array_equal(got, [0, 2])
    assert kernel(np, x, out=x) is x
    np.testing.assert_array_equal(x, [0, 2])


@pytest.mark.parametrize("shape", [(5,), (2000,), (128, 200), (40, 1000), (90000,)])
def test_relu_of_all_sizes(shape):
    x = normal(*shape).astype(np.float32)
    x.reshape(-1)[:3] = np.nan, -np.inf, np.inf
    got = run_op("relu", {"X": x}, {})["Out"]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.maximum(x, 0))
    turned = run_op("relu", {"X": x.T}, {})["Out"]
    np.testing.assert_array_equal(turned, got.T)
