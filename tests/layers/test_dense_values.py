"""Values and gradients of layers that make, move, pick and print, by the Executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidx as fluid

layers = fluid.layers


def _run(made: Any, **feed: Any) -> Any:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=made if isinstance(made, list) else [made])


def _leaf(name: str, shape: list[int]) -> Any:
    x = fluid.data(name, shape)
    x.stop_gradient = False
    return x


X = np.arange(12, dtype="f4").reshape(3, 4)


def test_roll_and_its_gradient_through_the_flattened_tensor() -> None:
    x = _leaf("x", [3, 4])
    made = layers.roll(x, 5)
    weights = layers.assign(X)
    (grad,) = fluid.gradients([layers.reduce_sum(made * weights)], [x])
    got, slope = _run([made, grad], x=X)
    np.testing.assert_array_equal(got, np.roll(X, 5))
    np.testing.assert_array_equal(slope, np.roll(X, -5))


def test_roll_takes_one_unknown_size() -> None:
    made = layers.roll(fluid.data("x", [None, 4]), 1, 0)
    np.testing.assert_array_equal(_run(made, x=X)[0], np.roll(X, 1, 0))


def test_crops_and_pads_by_variables() -> None:
    x = _leaf("x", [3, 4])
    rows = layers.fill_constant([1], "int32", 2)
    part = layers.crop_tensor(x, [rows, -1], [1, rows])
    sides = layers.assign(np.array([1, 0, 0, 2], "int32"))
    image = layers.pad2d(layers.reshape(part, [1, 1, 2, 2]), sides, pad_value=9.0)
    (grad,) = fluid.gradients([layers.reduce_sum(image * image)], [x])
    got, slope = _run([image, grad], x=X)
    wanted = np.pad(X[1:, 2:], [(1, 0), (0, 2)], constant_values=9)
    np.testing.assert_array_equal(got[0, 0], wanted)
    inside = np.zeros_like(X)
    inside[1:, 2:] = 2 * X[1:, 2:]
    np.testing.assert_array_equal(slope, inside)


def test_sizes_that_depend_on_the_data() -> None:
    x = fluid.data("x", [None], "int64")
    distinct, index, count = layers.unique_with_counts(x)
    places = layers.where(layers.greater_than(x, layers.zeros_like(x)))
    again = layers.gather(distinct, index)
    values = np.array([3, -1, 3, 0, -1, 3])
    got = _run([distinct, count, again, places], x=values)
    assert [v.tolist() for v in got[:2]] == [[3, -1, 0], [3, 2, 1]]
    np.testing.assert_array_equal(got[2], values)
    assert got[3].tolist() == [[0], [2], [5]]


def test_nonzero_as_a_tuple_is_numpy_s() -> None:
    x = fluid.data("x", [2, 2, 3])
    value = np.zeros((2, 2, 3), "f4")
    value[0, 1, 2] = value[1, 0, 0] = 1
    got = _run(list(layers.nonzero(x, as_tuple=True)), x=value)
    for mine, theirs in zip(got, np.nonzero(value)):
        assert mine.reshape(-1).tolist() == theirs.tolist()


def test_meshgrid_passes_gradients_to_each_vector() -> None:
    x, y = _leaf("x", [2]), _leaf("y", [3])
    a, b = layers.meshgrid([x, y])
    grads = fluid.gradients([layers.reduce_sum(a * b)], [x, y])
    vx, vy = np.array([2, 3], "f4"), np.array([1, 5, 7], "f4")
    got = _run([*grads], x=vx, y=vy)
    assert [g.tolist() for g in got] == [[13.0, 13.0], [5.0, 5.0, 5.0]]


def test_one_output_of_meshgrid_is_enough() -> None:
    x, y = _leaf("x", [2]), _leaf("y", [3])
    a, _ = layers.meshgrid([x, y])
    (grad,) = fluid.gradients([layers.reduce_sum(a)], [x])
    vx, vy = np.ones(2, "f4"), np.ones(3, "f4")
    assert _run(grad, x=vx, y=vy)[0].tolist() == [3.0, 3.0]


def test_a_crop_starts_anew_in_each_run_and_repeats_with_its_seed() -> None:
    x = fluid.data("x", [None, 9, 9])
    made = layers.random_crop(x, [4, 4], seed=11)
    value = np.arange(162, dtype="f4").reshape(2, 9, 9)

    def three() -> list[Any]:
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            return [exe.run(feed={"x": value}, fetch_list=[made])[0] for _ in range(3)]

    first, again = three(), three()
    np.testing.assert_array_equal(first, again)
    assert len({tuple(v[:, 0, 0]) for v in first}) > 1


def test_a_gaussian_s_entropy_and_divergence() -> None:
    def make(loc: list[float], variances: list[float]) -> Any:
        scale = np.diag(np.array(variances, "f4"))
        where = layers.assign(np.array(loc, "f4"))
        return layers.MultivariateNormalDiag(where, layers.assign(scale))

    one, other = make([0.5, -1.0], [0.5, 2.0]), make([0.0, 1.0], [1.0, 4.0])
    entropy, gap = _run([one.entropy(), one.kl_divergence(other)])
    wanted = 0.5 * (2 * (1 + np.log(2 * np.pi)) + np.log(0.5 * 2.0))
    np.testing.assert_allclose(entropy, [wanted], 1e-6)
    parts = 0.5 / 1 + 2 / 4 + 0.5**2 / 1 + 2**2 / 4 - 2 + np.log(4.0 / 1.0)
    np.testing.assert_allclose(gap, [0.5 * parts], 1e-6)


# ------------------------------------------------ Print, py_func


def test_print_writes_values_and_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    x = _leaf("x", [2, 2])
    seen = layers.Print(x, message="look", summarize=3)
    (grad,) = fluid.gradients([layers.reduce_sum(seen * 2.0)], [x])
    _run(grad, x=X[:2, :2])
    assert capsys.readouterr().out.splitlines() == [
        "look",
        "Tensor[x]",
        "  shape: [2, 2]",
        "  dtype: float32",
        "  data: [0.0, 1.0, 4.0, ...]",
        "look",
        f"Tensor[{seen.name}@GRAD]",
        "  shape: [2, 2]",
        "  dtype: float32",
        "  data: [2.0, 2.0, 2.0, ...]",
    ]


@pytest.mark.parametrize(
    ("phase", "times"), [("forward", 1), ("backward", 1), ("both", 2)]
)
def test_print_knows_its_phase(
    phase: str, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    x = _leaf("x", [2])
    seen = layers.Print(x, message="here", print_phase=phase)
    (grad,) = fluid.gradients([layers.reduce_sum(seen)], [x])
    _run(grad, x=X[0, :2])
    assert capsys.readouterr().out.count("here") == times


def test_print_stops_after_the_first_runs(capsys: pytest.CaptureFixture[str]) -> None:
    x = fluid.data("x", [2])
    made = layers.Print(x, first_n=2, message="here", print_tensor_lod=False)
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(4):
        exe.run(feed={"x": X[0, :2]}, fetch_list=[made])
    assert capsys.readouterr().out.count("here") == 2


def test_print_is_not_dropped_where_nobody_looks_at_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = fluid.data("x", [2])
    layers.Print(x, message="here")
    _run(x + 1.0, x=X[0, :2])
    assert "here" in capsys.readouterr().out


def _out(name: str, shape: list[int], dtype: str = "float32") -> Any:
    block = fluid.default_main_program().current_block()
    return block.create_var(name=name, dtype=dtype, shape=shape)


def test_py_func_computes_forward_and_backward() -> None:
    x, y = _leaf("x", [2]), _leaf("y", [2])
    product, total = _out("product", [2]), _out("total", [1])
    seen: list[int] = []

    def forward(a: Any, b: Any) -> Any:
        return a * b, (a + b).sum(keepdims=True)

    def backward(*given: Any) -> Any:
        seen.append(len(given))
        a, b, d_product, d_total = given
        return d_product * b + d_total, d_product * a + d_total

    made = layers.py_func(forward, [x, y], [product, total], backward, [product, total])
    assert made[0] is product
    target = layers.reduce_sum(product) + 10.0 * total
    grads = fluid.gradients([target], [x, y])
    a, b = np.array([2, 3], "f4"), np.array([5, 7], "f4")
    got = _run([product, total, *grads], x=a, y=b)
    assert [g.tolist() for g in got] == [[10, 21], [17], [15, 17], [12, 13]]
    assert seen == [4]


def test_py_func_without_outputs_runs_for_its_effect() -> None:
    seen: list[Any] = []
    x = fluid.data("x", [2])
    layers.py_func(lambda a: seen.append(a.tolist()), x, None)
    _run(x + 1.0, x=X[0, :2])
    assert seen == [[0.0, 1.0]]


def test_py_func_without_inputs() -> None:
    made = layers.py_func(lambda: np.ones(3, "f4"), None, _out("made", [3]))
    assert _run(made)[0].tolist() == [1.0, 1.0, 1.0]


def test_py_func_counts_what_comes_back() -> None:
    x = fluid.data("x", [2])
    made = layers.py_func(lambda a: (a, a), x, _out("made", [2]))
    with pytest.raises(Exception, match="returned 2 values for 1 outputs"):
        _run(made, x=X[0, :2])


# ------------------------------------------------ wrong arguments

CASES: dict[str, tuple[Any, type[Exception], str]] = {
    "dist": (
        lambda x: layers.dist(x, x, "2"),
        TypeError,
        "dist: p must be a number, got '2'",
    ),
    "eye": (lambda x: layers.eye(2.5), TypeError, "eye: num_rows must be an integer"),
    "eye batch": (
        lambda x: layers.eye(2, batch_shape=[0]),
        TypeError,
        "eye: batch_shape must be positive",
    ),
    "tril": (lambda x: layers.tril(x, 0.5), TypeError, "tril: diagonal must be"),
    "flip": (
        lambda x: layers.flip(x, 0),
        TypeError,
        "flip: dims must be a list, got 0",
    ),
    "roll": (lambda x: layers.roll(x, [1, 2], 0), ValueError, "2 shifts for 1 dims"),
    "meshgrid": (lambda x: layers.meshgrid(x), TypeError, "meshgrid: input must be"),
    "unfold": (
        lambda x: layers.unfold(x, 2, paddings=[1, 2, 3]),
        ValueError,
        "unfold: paddings must be 1, 2 or 4 integers",
    ),
    "maxout": (lambda x: layers.maxout(x, 2, axis=2), ValueError, "must be 1, 3 or -1"),
    "space_to_depth": (
        lambda x: layers.space_to_depth(x, 0),
        TypeError,
        "space_to_depth: blocksize must be a positive integer, got 0",
    ),
    "pad2d mode": (lambda x: layers.pad2d(x, mode="wrap"), ValueError, "mode must be"),
    "crop": (lambda x: layers.crop(x), TypeError, "crop: shape must be a list"),
    "crop_tensor": (
        lambda x: layers.crop_tensor(x, [2, 0]),
        ValueError,
        "crop_tensor: sizes must be positive or -1",
    ),
    "crop_tensor offsets": (
        lambda x: layers.crop_tensor(x, [2, 2], [-1, 0]),
        ValueError,
        "offsets must not be negative",
    ),
    "gather_nd": (
        lambda x: layers.gather_nd(x, x),
        TypeError,
        "gather_nd: index .* must be of INT32, INT64, got FP32",
    ),
    "scatter_nd_add": (
        lambda x: layers.scatter_nd_add(
            x, fluid.data("i", [3, 1], "int64"), fluid.data("u", [3, 4], "float64")
        ),
        ValueError,
        "scatter_nd_add: ref is FP32, updates is FP64",
    ),
    "multiplex": (
        lambda x: layers.multiplex([x], x),
        ValueError,
        "multiplex: inputs must be a list of two at least",
    ),
    "unique": (
        lambda x: layers.unique(x, "float32"),
        ValueError,
        "dtype must be one of",
    ),
    "shard_index": (
        lambda x: layers.shard_index(fluid.data("i", [3, 1], "int64"), 8, 2, 2),
        ValueError,
        r"shard_id 2 is not in \[0, 2\)",
    ),
    "randint": (
        lambda x: layers.randint(5, 5),
        ValueError,
        "low 5 is not below high 5",
    ),
    "randint shape": (
        lambda x: layers.randint(5, shape=3),
        TypeError,
        "randint: shape must be a list or a Variable, got 3",
    ),
    "randperm": (lambda x: layers.randperm(0), ValueError, "n must be a positive"),
    "random_crop": (
        lambda x: layers.random_crop(x, [2], seed="1"),
        TypeError,
        "seed must be an integer or a Variable",
    ),
    "print": (
        lambda x: layers.Print(x, print_phase="never"),
        ValueError,
        "Print: print_phase must be one of",
    ),
    "py_func": (
        lambda x: layers.py_func(3, x, None),
        TypeError,
        "py_func: func must be a function, got 3",
    ),
    "py_func shape": (
        lambda x: layers.py_func(abs, x, _out("made", [])),
        ValueError,
        "py_func: give the output made its shape",
    ),
    "py_func skip": (
        lambda x: layers.py_func(abs, x, None, abs, fluid.data("z", [1])),
        ValueError,
        r"\['z'\] are neither in x nor in out",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_arguments(name: str) -> None:
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call(fluid.data("x", [3, 4]))
