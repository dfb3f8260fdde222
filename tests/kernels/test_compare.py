"""Comparisons, logic and whole-tensor predicates."""

import numpy as np
import pytest
from opcase import OpCase, integers, run_op, suite

X = integers(3, 4, high=4, seed=1)
Y = integers(3, 4, high=4, seed=2)
P = integers(3, 4, high=2, seed=3).astype(bool)
Q = integers(3, 4, high=2, seed=4).astype(bool)
COMPARE = {
    "less_than": np.less,
    "less_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}


def cases():
    made = []
    for op, f in COMPARE.items():
        made += [
            OpCase(op, {"X": X, "Y": Y}, {}, {"Out": f(X, Y)}),
            OpCase(op, {"X": X * 0.5, "Y": Y * 0.5}, {}, {"Out": f(X, Y)}, "floats"),
            OpCase(
                op,
                {"X": X, "Y": Y[0, :3]},
                {"axis": 0},
                {"Out": f(X, Y[0, :3].reshape(3, 1))},
                "axis0",
            ),
            OpCase(op, {"X": X, "Y": Y[0]}, {}, {"Out": f(X, Y[0])}, "row"),
        ]
    for op in ("logical_and", "logical_or", "logical_xor"):
        made.append(OpCase(op, {"X": P, "Y": Q}, {}, {"Out": getattr(np, op)(P, Q)}))
    made.append(OpCase("logical_not", {"X": P}, {}, {"Out": ~P}))
    odd = np.array([1.0, np.nan, np.inf])
    for op, one, two in (
        ("isfinite", True, False),
        ("isinf", False, True),
        ("isnan", False, True),
    ):
        made.append(OpCase(op, {"X": odd[:1]}, {}, {"Out": np.array([one])}, "plain"))
        made.append(OpCase(op, {"X": odd}, {}, {"Out": np.array([two])}, "odd"))
    made.append(OpCase("is_empty", {"X": X}, {}, {"Out": np.array([False])}))
    none = np.empty((0, 3))
    made.append(OpCase("is_empty", {"X": none}, {}, {"Out": np.array([True])}, "yes"))
    return made


CASES = cases()
test_values = suite(CASES)


@pytest.mark.parametrize("op", COMPARE)
def test_results_are_bool_and_not_a_number_equals_nothing(op):
    x = {"X": np.array([np.nan, 1.0]), "Y": np.array([np.nan, 1.0])}
    got = run_op(op, x, {})["Out"]
    assert got.dtype == bool
    assert got.tolist() == [op == "not_equal", op[-5:] == "equal" and op[:3] != "not"]


def test_mixed_dtypes_are_refused():
    with pytest.raises(TypeError, match="less_than: X is int64 but Y is float64"):
        run_op("less_than", {"X": X, "Y": X * 1.0}, {})
