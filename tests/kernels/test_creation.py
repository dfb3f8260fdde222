"""Constants, ranges, shapes and copies."""

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from oracle_cases import oracle_suite

from fluidx.kernels import SelectedRows

X = normal(3, 4)
BATCH = {"shape": [7, 2], "value": 2.0}
CASES = [
    OpCase(
        "fill_constant",
        {},
        {"shape": [2, 3], "value": 1.5},
        {"Out": np.full((2, 3), 1.5)},
    ),
    OpCase(
        "fill_constant",
        {"ShapeTensor": np.array([3, 1])},
        {"shape": [-1, -1], "value": 1.5},
        {"Out": np.full((3, 1), 1.5)},
        "shape tensor",
    ),
    OpCase(
        "fill_constant",
        {"ShapeTensorList": [np.array([3]), np.array([2])]},
        {"shape": [-1, 2], "str_value": "7", "dtype": 3},
        {"Out": np.full((3, 2), 7)},
        "shape list",
    ),
    OpCase(
        "fill_constant",
        {"ValueTensor": np.array([2.5])},
        {"shape": [2], "value": 1.0},
        {"Out": np.full(2, 2.5)},
        "value tensor",
    ),
    OpCase(
        "fill_constant_batch_size_like",
        {"Input": X},
        {**BATCH, "input_dim_idx": 1},
        {"Out": np.full((4, 2), 2.0)},
    ),
    OpCase("fill_zeros_like", {"X": X}, {}, {"Out": np.zeros((3, 4))}),
    OpCase("fill_zeros_like2", {"X": X}, {"dtype": 3}, {"Out": np.zeros((3, 4))}),
    OpCase("fill_any_like", {"X": X}, {"value": 2.5}, {"Out": np.full((3, 4), 2.5)}),
    OpCase("assign", {"X": X}, {}, lambda i, a: {"Out": i["X"]}),
    OpCase(
        "assign_value",
        {},
        {"dtype": 2, "shape": [2, 1], "int32_values": [4, 5]},
        {"Out": np.array([[4], [5]])},
    ),
    OpCase("shape", {"Input": X}, {}, {"Out": np.array([3, 4])}),
    OpCase(
        "range",
        {"Start": np.array([1]), "End": np.array([8]), "Step": np.array([3])},
        {},
        {"Out": np.array([1, 4, 7])},
    ),
]
test_values = suite(CASES)

test_oracle = oracle_suite(
    "creation",
    {
        # the reference reads these words as 0
        "fill_constant 5 2.0 inf": {"Out": np.float32([np.inf, np.inf])},
        "fill_constant 5 2.0 -inf": {"Out": np.float32([-np.inf, -np.inf])},
        "fill_constant 5 2.0 nan": {"Out": np.float32([np.nan, np.nan])},
        "fill_constant 0 0.0 True": {"Out": np.array([True, True])},
        # the reference returns no tensor at all
        "range empty": {"Out": np.empty(0, np.int32)},
    },
)


def test_copies_do_not_share():
    x = SelectedRows(np.array([1]), np.ones((1, 2)), 3)
    got = run_op("assign", {"X": x}, {})["Out"]
    assert not np.shares_memory(got.value, x.value)
    assert not np.shares_memory(got.rows, x.rows)
    zeros = run_op("fill_zeros_like", {"X": x}, {})["Out"]
    assert zeros.rows.tolist() == [1]
    assert zeros.to_dense().sum() == 0


def test_bad_values_are_named():
    with pytest.raises(ValueError, match="str_value 'one' is not a number"):
        run_op("fill_constant", {}, {"shape": [1], "str_value": "one"})
    with pytest.raises(TypeError, match=r"assign_value: holds no values of .*FP64"):
        run_op("assign_value", {}, {"dtype": 6, "shape": [1], "fp32_values": [1.0]})
    ends = {"Start": np.array([5]), "End": np.array([1]), "Step": np.array([1])}
    with pytest.raises(ValueError, match="range: no way from 5 to 1 in steps of 1"):
        run_op("range", ends, {})
