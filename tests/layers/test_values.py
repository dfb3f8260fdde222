"""What operators, indexing and composed layers compute, run by the Executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid

layers = fluid.layers
X = np.random.RandomState(5).uniform(-2, 2, (7, 4, 6)).astype("float32")
I = np.arange(-5, 7).reshape(3, 4).astype("int64")  # noqa: E741


def _run(made: Any, **feed: Any) -> Any:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=made if isinstance(made, list) else [made])


INDICES = [
    0,
    -1,
    slice(1, 3),
    (slice(None), 1, slice(2, None)),
    (..., 2),
    slice(None, None, -1),
    slice(5, None, -2),
    slice(-1, 1, -1),
    (slice(None, None, 3), slice(1, 3), -1),
    (1, slice(None, None, 2), slice(None, None, -1)),
    (slice(None, None, -1), slice(None, None, 2)),
    (0, slice(None, None, -1)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpy_s(index: Any) -> None:
    x: Any = fluid.data("x", [7, 4, 6])
    (got,) = _run(x[index], x=X)
    np.testing.assert_array_equal(got, X[index])


def test_indexing_by_variables() -> None:
    x: Any = fluid.data("x", [7, 4, 6])
    two = layers.fill_constant([1], "int32", 2)
    got = _run([x[two], x[two:, 1], x[1, two], x[:two, :, two]], x=X)
    for value, expected in zip(got, [X[2], X[2:, 1], X[1, 2], X[:2, :, 2]]):
        np.testing.assert_array_equal(value, expected)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "x + 1": lambda x: x + 1,
    "1 + x": lambda x: 1 + x,
    "x - 0.5": lambda x: x - 0.5,
    "2 - x": lambda x: 2 - x,
    "x * 3": lambda x: x * 3,
    "x / 4": lambda x: x / 4,
    "2 / x": lambda x: 2 / x,
    "x ** 2": lambda x: x**2,
    "2 ** x": lambda x: 2.0**x,
    "-x": lambda x: -x,
    "x % 0.7": lambda x: x % np.float32(0.7),
    "x * x - x / x": lambda x: x * x - x / x,
    "x < 0.5": lambda x: x < 0.5,
    "x >= x": lambda x: x >= x,
    "x == x": lambda x: x == x,
    "x != 1": lambda x: x != 1,
    "cast": lambda x: x.astype("float64") + 1,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_are_numpy_s(name: str) -> None:
    operation = OPERATIONS[name]
    x: Any = fluid.data("x", [None, 4, 6])
    (got,) = _run(operation(x), x=X)
    expected = operation(X)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=2e-6)


INTEGER_OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "i + 2": lambda i: i + 2,
    "i * 3": lambda i: i * 3,
    "1 - i": lambda i: 1 - i,
    "i == 3": lambda i: i == 3,
    "i ** 2": lambda i: i**2,
}


@pytest.mark.parametrize("name", INTEGER_OPERATIONS)
def test_integer_operators_are_numpy_s(name: str) -> None:
    operation = INTEGER_OPERATIONS[name]
    i: Any = fluid.data("i", [None, 4], "int64")
    (got,) = _run(operation(i), i=I)
    np.testing.assert_array_equal(got, operation(I))


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def test_log_softmax_and_logsumexp() -> None:
    x = fluid.data("x", [7, 4, 6])
    got = _run([layers.log_softmax(x, 1), layers.logsumexp(x, [1, 2])], x=X)
    np.testing.assert_allclose(got[0], np.log(_softmax(X, 1)), rtol=1e-5)
    np.testing.assert_allclose(got[1], np.log(np.exp(X).sum((1, 2))), rtol=1e-5)


def test_clamp_addcmul_full_arange() -> None:
    x = fluid.data("x", [7, 4, 6])
    made = [
        layers.clamp(x, min=0.0),
        layers.clamp(x, max=0.0),
        layers.addcmul(x, x, x, 0.5),
        layers.full([2], 3, dtype="int64"),
        layers.arange(1, 9, 3),
    ]
    expected = [
        np.maximum(X, 0),
        np.minimum(X, 0),
        X + X * X * np.float32(0.5),
        [3, 3],
        [1, 4, 7],
    ]
    for value, wanted in zip(_run(made, x=X), expected):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


def test_dice_loss() -> None:
    prob = fluid.data("p", [None, 3])
    label = fluid.data("l", [None, 1], "int64")
    p = _softmax(X[0, :, :3])
    wanted = np.eye(3)[[0, 2, 1, 2]]
    (got,) = _run(layers.dice_loss(prob, label), p=p, l=np.array([[0], [2], [1], [2]]))
    size = p.sum(1) + wanted.sum(1)
    each = 1 - 2 * (p * wanted).sum(1) / (size + 1e-5)
    np.testing.assert_allclose(got, [each.mean()], rtol=1e-5)


def test_npair_loss() -> None:
    anchor, positive = fluid.data("a", [4, 6]), fluid.data("p", [4, 6])
    labels = layers.data("l", [4], append_batch_size=False)
    loss = layers.npair_loss(anchor, positive, labels, 0.1)
    a, p = X[0], X[1]
    numbers = np.array([1, 2, 1, 3], "float32")
    (got,) = _run(loss, a=a, p=p, l=numbers)
    same = (numbers[:, None] == numbers).astype(float)
    same /= same.sum(1, keepdims=True)
    each = -(same * np.log(_softmax(a.astype(float) @ p.T))).sum(1, keepdims=True)
    cost = (same * each).sum(0).mean()
    penalty = 0.25 * 0.1 * ((a**2).sum(1).mean() + (p**2).sum(1).mean())
    np.testing.assert_allclose(got, [cost + penalty], rtol=1e-5)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention(heads: int) -> None:
    q = fluid.data("q", [2, 4, 6])
    out = fluid.nets.scaled_dot_product_attention(q, q, q, heads)
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    got = _run([out, *names], q=X[:2])
    parts = [X[:2].astype(float)] * 3
    if heads > 1:
        weights = got[1:]
        parts = [parts[0] @ weights[2 * i] + weights[2 * i + 1] for i in range(3)]
    cut = [p.reshape(2, 4, heads, -1).transpose(0, 2, 1, 3) for p in parts]
    scores = cut[0] @ cut[1].transpose(0, 1, 3, 2) / np.sqrt(6 / heads)
    expected = (_softmax(scores) @ cut[2]).transpose(0, 2, 1, 3).reshape(2, 4, 6)
    np.testing.assert_allclose(got[0], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_weight_norm_starts_as_the_plain_weight(dim: int | None) -> None:
    """g starts as |v|, so that the normalised weight is v itself."""
    x = fluid.data("x", [None, 6])
    attr = fluid.WeightNormParamAttr(dim=dim, name="w")
    out = layers.fc(x, 3, param_attr=attr, bias_attr=False)
    got, direction, length = _run([out, "w_v", "w_g"], x=X[0])
    np.testing.assert_allclose(got, X[0] @ direction, rtol=1e-4, atol=1e-5)
    axis = {None: None, 0: 1, 1: 0}[dim]
    norm = np.sqrt((direction**2).sum(axis=axis))
    np.testing.assert_allclose(length.reshape(-1), np.ravel(norm), rtol=1e-5)


RATES: dict[str, tuple[Callable[[], Any], Callable[[int], float]]] = {
    "exponential": (
        lambda: layers.exponential_decay(0.1, 4, 0.5),
        lambda s: 0.1 * 0.5 ** (s / 4),
    ),
    "staircase": (
        lambda: layers.exponential_decay(0.1, 2, 0.5, staircase=True),
        lambda s: 0.1 * 0.5 ** (s // 2),
    ),
    "natural": (
        lambda: layers.natural_exp_decay(0.1, 4, 0.5),
        lambda s: 0.1 * np.exp(-0.5 * s / 4),
    ),
    "inverse": (
        lambda: layers.inverse_time_decay(0.1, 4, 0.5),
        lambda s: 0.1 / (1 + 0.5 * s / 4),
    ),
    "noam": (
        lambda: layers.noam_decay(64, 3, 2.0),
        lambda s: 2.0 * 64**-0.5 * min((s + 1) ** -0.5, (s + 1) * 3**-1.5),
    ),
    "cosine": (
        lambda: layers.cosine_decay(0.1, 2, 4),
        lambda s: 0.05 * (np.cos((s // 2) * np.pi / 4) + 1),
    ),
    "polynomial": (
        lambda: layers.polynomial_decay(0.1, 3, 0.01, 2.0),
        lambda s: 0.09 * (1 - min(s, 3) / 3) ** 2 + 0.01,
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_learning_rate_schedules(name: str) -> None:
    build, formula = RATES[name]
    rate = build()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    got = [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(6)]
    np.testing.assert_allclose(got, [formula(s) for s in range(6)], rtol=1e-5)


def test_step_counter_counts() -> None:
    counter = layers.autoincreased_step_counter("@mine@", begin=5, step=2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    seen = [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)]
    assert seen == [6, 8, 10]


def test_distribution_values() -> None:
    low, high = fluid.data("low", [None, 2]), fluid.data("high", [None, 2])
    value = fluid.data("value", [None, 2])
    uniform, normal = layers.Uniform(low, high), layers.Normal(low, high)
    other = layers.Normal(value, high)
    made = [
        uniform.entropy(),
        uniform.log_prob(value),
        normal.entropy(),
        normal.log_prob(value),
        normal.kl_divergence(other),
    ]
    a = np.array([[0.0, 1.0], [-1.0, 2.0]], "float32")
    b = np.array([[2.0, 1.5], [3.0, 4.0]], "float32")
    v = np.array([[1.0, 1.2], [0.5, 2.5]], "float32")
    expected = [
        np.log(b - a),
        -np.log(b - a),
        0.5 * np.log(2 * np.pi * np.e * b**2),
        -((v - a) ** 2) / (2 * b**2) - np.log(b * np.sqrt(2 * np.pi)),
        (a - v) ** 2 / (2 * b**2),
    ]
    for got, wanted in zip(_run(made, low=a, high=b, value=v), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_distribution_samples() -> None:
    uniform, normal = layers.Uniform(2.0, 3.0), layers.Normal([0.0, 5.0], [1.0, 2.0])
    low = fluid.data("low", [None, 1])
    batch = layers.Uniform(low, low + 1)  # type: ignore[operator]
    made = [
        uniform.sample([2000], seed=3),
        normal.sample([2000], seed=4),
        batch.sample([1000], seed=5),
    ]
    a = np.array([[0.0], [10.0]], "float32")
    one, two, three = _run(made, low=a)
    assert one.shape == (2000,)
    assert one.min() >= 2.0
    assert one.max() < 3.0
    assert abs(one.mean() - 2.5) < 0.03
    assert two.shape == (2000, 2)
    np.testing.assert_allclose(two.mean(0), [0.0, 5.0], atol=0.15)
    np.testing.assert_allclose(two.std(0), [1.0, 2.0], atol=0.15)
    assert three.shape == (1000, 2, 1)


def test_categorical() -> None:
    p, q = fluid.data("p", [None, 6]), fluid.data("q", [None, 6])
    mine, other = layers.Categorical(p), layers.Categorical(q)
    a, b = _softmax(X[0]), _softmax(X[1])
    got = _run([mine.entropy(), mine.kl_divergence(other)], p=X[0], q=X[1])
    entropy = -(a * np.log(a)).sum(-1, keepdims=True)
    divergence = (a * np.log(a / b)).sum(-1, keepdims=True)
    np.testing.assert_allclose(got[0], entropy, rtol=1e-5)
    np.testing.assert_allclose(got[1], divergence, rtol=1e-4)


def test_bad_distributions() -> None:
    with pytest.raises(ValueError, match="either all parameters are Variables or none"):
        layers.Normal(0.0, fluid.data("x", [1]))
    with pytest.raises(TypeError, match="a parameter is a number, a list"):
        layers.Uniform("a", 1.0)
    with pytest.raises(TypeError, match="expected a Normal, got 3"):
        layers.Normal(0.0, 1.0).kl_divergence(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="Uniform has no kl_divergence"):
        layers.Uniform(0.0, 1.0).kl_divergence(3)
