"""Elementwise ops: the axis rule, integer rules, gradients, buffer reuse, oracle."""

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite, uniform
from oracle_cases import infer, load, oracle_suite

from fluidx import kernels
from fluidx.kernels import InferError, SelectedRows

FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
}
# shape of X, shape of Y, axis, Y's shape as numpy takes it (X's where Y is longer)
LAYOUTS = [
    ((3, 4), (3, 4), -1, (3, 4)),
    ((3, 4), (4,), -1, (4,)),
    ((3, 4), (4,), 1, (4,)),
    ((3, 4), (3,), 0, (3, 1)),
    ((2, 3, 4), (3,), 1, (1, 3, 1)),
    ((2, 3, 4), (3, 4), 1, (3, 4)),
    ((2, 3, 4), (2, 3), 0, (2, 3, 1)),
    ((2, 3, 4), (3, 1), 1, (3, 1)),
    ((2, 3, 4), (2, 1, 4), -1, (2, 1, 4)),
    ((2, 3, 4), (1,), -1, (1,)),
    ((2, 3, 2, 2), (3,), 1, (1, 3, 1, 1)),
    ((2, 3, 2, 2), (3, 2), 1, (1, 3, 2, 1)),
]


def cases():
    made = []
    for op, function in FUNCTIONS.items():
        for x, y, axis, laid in LAYOUTS:

            def expected(i, a, function=function, laid=laid):
                return {"Out": function(i["X"], i["Y"].reshape(laid))}

            name = f"{x}{y}{axis}"
            low = 0.3 if op in ("div", "pow") else -2.0
            inputs = {
                "X": uniform(*x, low=low, high=2.0, seed=1),
                "Y": uniform(*y, low=low, high=2.0, seed=2),
            }
            full = "elementwise_" + op
            made.append(OpCase(full, inputs, {"axis": axis}, expected, name))
        # X shorter than Y
        inputs = {"X": uniform(3, low=0.5, high=2.0), "Y": normal(2, 3, 4) + 5}
        made.append(
            OpCase(
                "elementwise_" + op,
                inputs,
                {"axis": 1},
                lambda i, a, function=function: {
                    "Out": function(i["X"].reshape(1, 3, 1), i["Y"])
                },
                "short X",
            )
        )
    whole = {"X": integers(3, 4, high=20), "Y": integers(4, high=5) + 1}
    for op, function in (("mod", np.fmod), ("floordiv", np.floor_divide)):
        made.append(
            OpCase(
                "elementwise_" + op,
                whole,
                expected=lambda i, a, f=function: {"Out": f(i["X"], i["Y"])},
            )
        )
    real = {"X": normal(3, 4) * 5, "Y": np.array([0.7, -0.7, 1.3, -1.3])}
    made.append(
        OpCase(
            "elementwise_mod",
            real,
            expected=lambda i, a: {"Out": i["X"] - i["Y"] * np.floor(i["X"] / i["Y"])},
            name="floats",
            rtol=1e-4,
        )
    )
    return made


CASES = cases()
test_values = suite(CASES)

NAN = np.nan
# compare, logical and predicate ops included
test_oracle = oracle_suite(
    "elementwise",
    {
        # a NaN of either operand is passed on; the reference loses X's
        "nan max": {"Out": np.float32([NAN, NAN, 1, NAN, 2, 3])},
        "nan min": {"Out": np.float32([NAN, NAN, 1, NAN, 1, 2])},
        # the reference goes through double and saturates, where int32 wraps around
        "signs pow int32": {
            "Out": np.int32([8, 1, -8, 25, 0, 1, 59049, 96889010407 % 2**32 - 2**32])
        },
    },
)


@pytest.mark.parametrize(
    "name", ["add (2, 3, 4) (5,) axis -1", "add (2, 3, 4) (3,) axis -1"]
)
def test_shapes_that_do_not_go_together(name):
    (record,) = [r for r in load("elementwise") if r["name"] == name]
    inputs = {k: np.empty(v["shape"], v["dtype"]) for k, v in record["inputs"].items()}
    with pytest.raises(InferError, match=r"elementwise_add: shapes .* do not go tog"):
        infer(record, inputs)


def test_mixed_dtypes_are_refused():
    x = {"X": np.ones(2, np.float32), "Y": np.ones(2)}
    with pytest.raises(TypeError, match="elementwise_add: X is float32 but Y is flo"):
        run_op("elementwise_add", x, {})
    floats = {"X": np.ones(2), "Y": np.ones(2)}
    with pytest.raises(TypeError, match="floordiv: takes integers, X is float64"):
        run_op("elementwise_floordiv", floats, {})


def test_sparse_times_factor():
    x = SelectedRows(np.array([1, 1]), np.ones((2, 3), np.float32), 4)
    got = run_op("elementwise_mul", {"X": x, "Y": np.float32([0.5])}, {})["Out"]
    assert got.value.dtype == np.float32
    np.testing.assert_array_equal(got.to_dense()[1], [1, 1, 1])


def test_result_goes_into_x_only_where_it_has_its_shape():
    kernel = kernels.find("elementwise_add").run
    x, y = np.ones((2, 3), np.float32), np.float32([1, 2, 3])
    assert kernel(np, x, y, axis=-1, out=x) is x
    np.testing.assert_array_equal(x, [[2, 3, 4]] * 2)
    row = np.ones((1, 3), np.float32)
    taller = np.ones((2, 3), np.float32)
    got = kernel(np, row, taller, axis=-1, out=row)
    assert got.shape == (2, 3)
    np.testing.assert_array_equal(row, [[1, 1, 1]])


@pytest.mark.parametrize("op", ["add", "sub"])
def test_a_dead_gradient_is_handed_on_and_a_live_one_copied(op):
    kernel = kernels.find(f"elementwise_{op}_grad").run
    x, d = np.zeros((2, 3)), normal(2, 3)
    kept = d.copy()
    gx, gy = kernel(np, x, x, d, axis=-1, wants=(True, True), out=None)
    assert not np.shares_memory(gx, d)
    assert not np.shares_memory(gy, d)
    gx, gy = kernel(np, x, x, d, axis=-1, wants=(True, True), out=d)
    assert gx is d
    assert not np.shares_memory(gy, d)
    np.testing.assert_array_equal(gx, kept)
    np.testing.assert_array_equal(gy, kept if op == "add" else -kept)
    gx, gy = kernel(np, x, x, d, axis=-1, wants=(False, True), out=None)
    assert gx is None
    assert not np.shares_memory(gy, d)


def test_bias_gradient_sums_in_float32():
    d = normal(300, 7).astype(np.float32)
    x, y = np.zeros((300, 7), np.float32), np.zeros(7, np.float32)
    kernel = kernels.find("elementwise_add_grad").run
    _, gy = kernel(np, x, y, d, axis=1, wants=(False, True), out=None)
    assert gy.dtype == np.float32
    np.testing.assert_allclose(gy, d.astype(float).sum(0), 1e-4, 1e-4)
