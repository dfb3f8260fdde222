"""Reductions: axes, kept sizes, integers, gradients."""

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from oracle_cases import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta

FUNCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}
X = normal(2, 3, 4, seed=6)
AXES = [
    ({"dim": [0]}, 0),
    ({"dim": [1]}, 1),
    ({"dim": [-1], "keep_dim": True}, -1),
    ({"dim": [0, 2]}, (0, 2)),
    ({"dim": [-2, 0], "keep_dim": True}, (0, 1)),
    ({"dim": [1, -1]}, (1, 2)),
    ({"dim": [0, 1, 2]}, None),
    ({"reduce_all": True}, None),
    ({"reduce_all": True, "keep_dim": True}, None),
]


def cases():
    made = []
    for op, f in FUNCTIONS.items():
        for attrs, axis in AXES:

            def expected(i, a, f=f, axis=axis):
                y = f(i["X"], axis=axis, keepdims=a["keep_dim"])
                return {"Out": np.reshape(y, np.shape(y) or (1,))}

            name = "".join(f"{k}{v}" for k, v in attrs.items())
            made.append(OpCase("reduce_" + op, {"X": X}, attrs, expected, name))
        made.append(
            OpCase(
                "reduce_" + op,
                {"X": normal(4)},
                {},
                lambda i, a, f=f: {"Out": f(i["X"]).reshape(1)},
                "vector",
            )
        )
    for op, f in (("all", np.all), ("any", np.any)):
        x = integers(3, 4, high=2).astype(bool)
        made.append(
            OpCase("reduce_" + op, {"X": x}, {"dim": [1]}, {"Out": f(x, axis=1)})
        )
        made.append(
            OpCase(
                "reduce_" + op,
                {"X": x},
                {"reduce_all": True},
                {"Out": f(x).reshape(1)},
                "whole",
            )
        )
    zeros = np.array([[0.0, 2, 3], [0, 0, 4], [1, 2, 3]])
    made.append(
        OpCase(
            "reduce_prod",
            {"X": zeros},
            {"dim": [1]},
            {"Out": np.array([0.0, 0, 6])},
            "with zeros",
        )
    )
    return made


CASES = cases()
test_values = suite(CASES)


def oracle_differences():
    """Where the reference is wrong or undefined.

    All axes given one by one: it returns the first value. A NaN: its max and min
    lose it. A zero in a product: its gradient is 0 / 0.
    """
    x = np.float32([1.76, 0.4, 0.98, 2.24, 1.87, -0.98])
    x = np.concatenate([x, np.float32([0.95, -0.15, -0.1, 0.41, 0.14, 1.45])])
    whole = {op: f(x).reshape(1) for op, f in FUNCTIONS.items()}
    everywhere = {
        "max": lambda g, d: (x == x.max()).reshape(2, 3, 2) * d,
        "min": lambda g, d: (x == x.min()).reshape(2, 3, 2) * d,
        "prod": lambda g, d: (x.prod() / x).reshape(2, 3, 2) * d,
    }
    differ = {}
    for op in FUNCTIONS:
        differ[f"reduce_{op} [0, 1, 2] 00"] = {"Out": whole[op]}
        if op in everywhere:
            differ[f"reduce_{op} [0, 1, 2] 00"]["X@GRAD"] = everywhere[op]
    nan = np.float32([np.nan, np.nan])
    differ["reduce_max nan"] = differ["reduce_min nan"] = {"Out": nan}
    differ["reduce_prod zero"] = {
        "X@GRAD": lambda g, d: [[2 * d[0], 0], [4 * d[1], 3 * d[1]]]
    }
    differ["reduce_sum [0] 11"] = {"X@GRAD": lambda g, d: np.full((2, 3, 2), d[0])}
    return differ


test_oracle = oracle_suite("reduce", oracle_differences(), rtol=5e-6)


def test_float32_sums_stay_float32_and_accurate():
    x = normal(700, 50).astype(np.float32)
    for dim, axis in (([0], 0), ([1], 1)):
        got = run_op("reduce_sum", {"X": x}, {"dim": dim})["Out"]
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, x.astype(float).sum(axis), 1e-4, 1e-4)


def test_mean_of_float16_does_not_overflow():
    x = np.full((40, 3000), 100, np.float16)
    got = run_op("reduce_mean", {"X": x}, {"dim": [1]})["Out"]
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.full(40, 100))


def test_bad_axis_is_named():
    definition = kernels.find("reduce_sum")
    context = InferContext(
        "reduce_sum",
        {"X": [Meta((2, 3))]},
        {**definition.defaults, "dim": [2]},
        {"Out": 1},
    )
    with pytest.raises(InferError, match=r"reduce_sum: dim \[2\] is out of range"):
        definition.infer(context)


def test_lod_goes_along_unless_rows_are_reduced():
    rule = kernels.find("reduce_sum").lod_rule
    assert rule is not None
    lod, values = {"X": [[0, 1, 2]]}, {"X": X}
    attrs = kernels.find("reduce_sum").defaults
    assert rule(lod, values, {**attrs, "dim": [-1]}) == {"Out": [[0, 1, 2]]}
    assert rule(lod, values, {**attrs, "dim": [0]}) == {}
