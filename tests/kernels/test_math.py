"""sum, scale, mean, cast, clip and norms: dense, sparse, their gradients, oracle."""

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from oracle_cases import oracle_suite

from fluidx import kernels
from fluidx.kernels import (
    EMPTY,
    GradContext,
    InferContext,
    InferError,
    Meta,
    SelectedRows,
    VarType,
)

X = normal(3, 4)
ROWS = SelectedRows(np.array([2, 0, 2]), normal(3, 4, seed=1), 5)
OTHER = SelectedRows(np.array([4, 2]), normal(2, 4, seed=2), 5)
TALL = normal(5, 4, seed=3)
WHOLE = integers(3, 4, high=9) - 4
CASES = [
    OpCase("sum", {"X": [X, X + 1]}, {}, lambda i, a: {"Out": i["X"][0] + i["X"][1]}),
    OpCase("sum", {"X": [X]}, {}, lambda i, a: {"Out": i["X"][0]}, "one"),
    OpCase("sum", {"X": [X, X, X]}, {}, lambda i, a: {"Out": sum(i["X"])}, "three"),
    OpCase("sum", {"X": [WHOLE, WHOLE]}, {}, {"Out": 2 * WHOLE}, "integers"),
    OpCase(
        "sum",
        {"X": [ROWS, OTHER]},
        {},
        lambda i, a: {"Out": i["X"][0].to_dense() + i["X"][1].to_dense()},
        "sparse",
        grad=(),
        infer=False,
    ),
    OpCase(
        "sum",
        {"X": [ROWS, TALL, OTHER]},
        {},
        lambda i, a: {"Out": i["X"][1] + sum(i["X"][k].to_dense() for k in (0, 2))},
        "mixed",
        grad=(),
    ),
    OpCase("scale", {"X": X}, {"scale": 2.5}, lambda i, a: {"Out": 2.5 * i["X"]}),
    OpCase(
        "scale",
        {"X": X},
        {"scale": -2.0, "bias": 0.5},
        lambda i, a: {"Out": 0.5 - 2 * i["X"]},
        "bias",
    ),
    OpCase(
        "scale",
        {"X": X},
        {"scale": -2.0, "bias": 0.5, "bias_after_scale": False},
        lambda i, a: {"Out": -2 * (i["X"] + 0.5)},
        "bias first",
    ),
    OpCase(
        "scale",
        {"X": X, "ScaleTensor": np.array([3.0])},
        {"bias": 1.0},
        lambda i, a: {"Out": 3 * i["X"] + 1},
        "tensor",
    ),
    OpCase(
        "scale",
        {"X": ROWS},
        {"scale": 0.5},
        lambda i, a: {"Out": 0.5 * i["X"].to_dense()},
        "sparse",
        grad=(),
        infer=False,
    ),
    OpCase("mean", {"X": X}, {}, lambda i, a: {"Out": i["X"].mean().reshape(1)}),
    OpCase("minus", {"X": X, "Y": X**2}, {}, lambda i, a: {"Out": i["X"] - i["Y"]}),
    OpCase("sign", {"X": X}, {}, lambda i, a: {"Out": np.sign(i["X"])}),
    OpCase(
        "increment",
        {"X": np.array([1.5])},
        {"step": 2.0},
        {"Out": np.array([3.5])},
        grad=(),
    ),
    OpCase(
        "pow",
        {"X": abs(X) + 0.1},
        {"factor": 2.5},
        lambda i, a: {"Out": i["X"] ** 2.5},
    ),
    OpCase(
        "pow",
        {"X": X, "FactorTensor": np.array([2.0])},
        {"factor": 3.0},
        lambda i, a: {"Out": i["X"] ** 2},
        "tensor",
    ),
    OpCase(
        "cast",
        {"X": X * 3},
        {"in_dtype": 5, "out_dtype": 3},
        {"Out": np.trunc(X * 3)},
        grad=(),
    ),
    OpCase(
        "cast",
        {"X": X},
        {"in_dtype": 6, "out_dtype": 6},
        lambda i, a: {"Out": i["X"]},
        "float64",
    ),
    OpCase(
        "clip",
        {"X": X},
        {"min": -0.5, "max": 0.7},
        lambda i, a: {"Out": np.clip(i["X"], -0.5, 0.7)},
    ),
    OpCase(
        "clip",
        {"X": X, "Min": np.array([-0.1]), "Max": np.array([0.2])},
        {"min": -0.5, "max": 0.7},
        lambda i, a: {"Out": np.clip(i["X"], -0.1, 0.2)},
        "tensors",
    ),
    OpCase(
        "clip",
        {"X": ROWS},
        {"min": -0.5, "max": 0.7},
        lambda i, a: {"Out": np.clip(i["X"].to_dense(), -0.5, 0.7)},
        "sparse",
        grad=(),
        infer=False,
    ),
    OpCase(
        "clip_by_norm",
        {"X": X},
        {"max_norm": 0.5},
        lambda i, a: {"Out": i["X"] * 0.5 / np.linalg.norm(i["X"])},
    ),
    OpCase(
        "clip_by_norm",
        {"X": X},
        {"max_norm": 50.0},
        lambda i, a: {"Out": i["X"]},
        "below",
    ),
    OpCase(
        "clip_by_norm",
        {"X": ROWS},
        {"max_norm": 0.5},
        lambda i, a: {
            "Out": i["X"].to_dense() * 0.5 / np.linalg.norm(i["X"].to_dense())
        },
        "sparse",
        infer=False,
    ),
    OpCase(
        "l1_norm",
        {"X": X},
        {},
        lambda i, a: {"Out": np.abs(i["X"]).sum().reshape(1)},
    ),
    OpCase(
        "squared_l2_norm",
        {"X": X},
        {},
        lambda i, a: {"Out": (i["X"] ** 2).sum().reshape(1)},
    ),
    OpCase(
        "squared_l2_norm",
        {"X": ROWS},
        {},
        lambda i, a: {"Out": (i["X"].to_dense() ** 2).sum().reshape(1)},
        "sparse",
        grad=(),
    ),
]
test_values = suite(CASES)

test_oracle = oracle_suite(
    "math",
    {
        # the reference divides zero by zero
        "clip_by_norm zero": {"Out": np.float32([0, 0])},
        # a NaN has no sign; the reference says 0
        "sign": {"Out": np.float32([-1, 0, 1, np.nan, 0])},
    },
    rtol=5e-6,
    atol=2e-6,
)


def specs(op, inputs, no_grad=frozenset(), **attrs):
    definition = kernels.find(op)
    return [
        (s.type, s.inputs, s.outputs, s.attrs)
        for s in definition.grad_specs(
            GradContext(op, inputs, {"Out": ["o"]}, attrs, frozenset(no_grad))
        )
    ]


def test_gradients_that_are_other_ops():
    d = {"X": ["o@GRAD"]}
    full = {"scale": 2.0, "bias": 0.0, "bias_after_scale": True}
    assert specs("sum", {"X": ["a", "b"]}) == [
        ("scale", d, {"Out": ["a@GRAD"]}, {"scale": 1.0}),
        ("scale", d, {"Out": ["b@GRAD"]}, {"scale": 1.0}),
    ]
    assert specs("sum", {"X": ["a", "b"]}, {"a"}) == [
        ("scale", d, {"Out": ["b@GRAD"]}, {"scale": 1.0})
    ]
    assert specs("minus", {"X": ["a"], "Y": ["b"]}) == [
        ("scale", d, {"Out": ["a@GRAD"]}, {"scale": 1.0}),
        ("scale", d, {"Out": ["b@GRAD"]}, {"scale": -1.0}),
    ]
    assert specs("sign", {"X": ["a"]}) == [
        ("scale", d, {"Out": ["a@GRAD"]}, {"scale": 0.0})
    ]
    assert specs("scale", {"X": ["a"]}, scale=2.0, bias=1.0) == [
        ("scale", d, {"Out": ["a@GRAD"]}, full)
    ]
    assert specs("scale", {"X": ["a"], "ScaleTensor": ["s"]}, scale=2.0) == [
        ("scale", {**d, "ScaleTensor": ["s"]}, {"Out": ["a@GRAD"]}, full)
    ]
    assert specs("cast", {"X": ["a"]}, in_dtype=5, out_dtype=6) == [
        ("cast", d, {"Out": ["a@GRAD"]}, {"in_dtype": 6, "out_dtype": 5})
    ]
    assert specs("assign", {"X": ["a"]}) == [("assign", d, {"Out": ["a@GRAD"]}, {})]
    assert specs("increment", {"X": ["a"]}, step=2.0) == [
        ("increment", {"X": ["o"]}, {"Out": ["a"]}, {"step": -2.0})
    ]
    assert specs("assign", {"X": ["a"]}, {"a"})[0][2] == {"Out": [EMPTY]}


def infer(op, metas, **attrs):
    definition = kernels.find(op)
    context = InferContext(
        op, {"X": metas}, {**definition.defaults, **attrs}, {"Out": 1}
    )
    definition.infer(context)
    return context.outs["Out"][0]


def test_inference_of_sparse_and_unknown_sizes():
    sparse = Meta((5, 4), VarType.FP32, 0, VarType.SELECTED_ROWS)
    dense = Meta((-1, 4), VarType.FP32, 1)
    assert infer("sum", [sparse, sparse]) == sparse
    assert infer("sum", [sparse, dense]) == dense
    assert infer("sum", [dense, Meta((7, 4))]).shape == (7, 4)
    assert infer("scale", [sparse], scale=2.0) == sparse
    assert infer("scale", [dense]) == dense
    assert infer("mean", [dense]) == Meta((1,), VarType.FP32)
    to = infer("cast", [dense], in_dtype=5, out_dtype=3)
    assert to == Meta((-1, 4), VarType.INT64, 1)


def test_sparse_sums_are_joined_not_merged():
    got = run_op("sum", {"X": [ROWS, OTHER]}, {})["Out"]
    assert got.rows.tolist() == [2, 0, 2, 4, 2]
    assert not np.shares_memory(got.value, ROWS.value)
    single = run_op("sum", {"X": [ROWS, None]}, {})["Out"]
    assert not np.shares_memory(single.value, ROWS.value)
    taller = SelectedRows(OTHER.rows, OTHER.value, 9)
    with pytest.raises(ValueError, match=r"sum: sparse inputs of different heights"):
        run_op("sum", {"X": [ROWS, taller]}, {})


def test_sum_skips_absent_inputs():
    got = run_op("sum", {"X": [None, X, None, X]}, {})["Out"]
    np.testing.assert_array_equal(got, 2 * X)
    assert run_op("sum", {"X": [None, X]}, {})["Out"] is not X
    with pytest.raises(ValueError, match="sum: none of its inputs holds a value"):
        run_op("sum", {"X": [None, None]}, {})


def test_sum_into_its_first_input():
    kernel = kernels.find("sum").run
    x, y = np.float32([1, 2]), np.float32([10, 20])
    assert kernel(np, [x, y, y], out=x) is x
    np.testing.assert_array_equal(x, [21, 42])
    x = np.float32([1, 2])
    got = kernel(np, [x, y, x], out=x)
    np.testing.assert_array_equal(got, [12, 24])
    x = np.float32([1, 2])
    np.testing.assert_array_equal(kernel(np, [x, x], out=x), [2, 4])


def test_scale_may_work_in_place():
    kernel = kernels.find("scale").run
    x = np.float32([1, 2])
    attrs = {"scale": 3.0, "bias": 1.0, "bias_after_scale": False}
    got = kernel(np, x, None, **attrs, out=x)
    assert got is x
    np.testing.assert_array_equal(x, [6, 9])
    y = np.float32([1, 2])
    assert kernel(np, y, None, **attrs, out=None) is not y
    np.testing.assert_array_equal(y, [1, 2])


def test_cast_keeps_rows_and_wraps_integers():
    got = run_op("cast", {"X": ROWS}, {"in_dtype": 6, "out_dtype": 5})["Out"]
    assert got.value.dtype == np.float32
    assert got.rows is ROWS.rows


@pytest.mark.parametrize("shape", [(1,), (20, 1), (65536,), (300, 300)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mean_of_small_and_large(shape, dtype):
    x = (normal(*shape) + 2).astype(dtype)
    got = run_op("mean", {"X": x}, {})["Out"]
    assert got.shape == (1,)
    assert got.dtype == dtype
    rtol = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(got[0], x.astype(float).mean(), rtol)


def test_mean_of_integers_is_refused():
    with pytest.raises(InferError, match=r"mean: takes floats, X is VarType\.INT64"):
        infer("mean", [Meta((3,), VarType.INT64)])
