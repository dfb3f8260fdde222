"""Elementwise, compare and logical ops as the reference runs them."""

import os

import numpy as np
from oracle_ops import case, record

F = np.float32


def r(*shape, seed=0, dtype="float32"):
    return np.round(np.random.RandomState(seed).randn(*shape), 2).astype(dtype)


def ints(*values, dtype="int32"):
    return np.array(values, dtype)


cases = []
axis_rules = [
    ((2, 3, 4), (3,), 1),
    ((2, 3, 4), (3, 4), 1),
    ((2, 3, 4), (4,), -1),
    ((2, 3, 4), (3, 1), 1),
    ((2, 3, 4), (2, 3, 1), 0),
    ((2, 3, 4), (2, 1, 4), -1),
    ((2, 3, 4), (2, 1, 4), 0),
    ((2, 3, 4), (1,), -1),
    ((2, 3, 4), (1,), 0),
    ((2, 3, 4), (2, 3), 0),
    ((2, 3, 4), (2,), 0),
    ((2, 3, 4), (2, 1), 0),
    ((2, 3, 4), (1, 3), 0),
    ((2, 3, 1), (2, 3, 4), -1),
    ((2, 1, 4), (2, 3, 1), -1),
    ((3,), (2, 3, 4), 1),
    ((4,), (2, 3, 4), -1),
    ((3, 4), (2, 3, 4), -1),
    ((2, 3), (2, 3, 4), 0),
    ((1,), (5,), -1),
    ((5,), (1,), -1),
    ((2, 3), (3, 1, 1), 1),
    ((2, 3), (2, 3, 1, 1), 0),
    ((2, 3, 4), (5,), -1),
    ((2, 3, 4), (3,), -1),
]
for op in ("add", "mul", "max"):
    for x, y, axis in axis_rules:
        name = f"{op} {x} {y} axis {axis:d}"
        inputs = {"X": r(*x, seed=1), "Y": r(*y, seed=2) + F(0.005)}
        cases.append(
            case(name, "elementwise_" + op, inputs, {"axis": axis}, grad=["X", "Y"])
        )
signs_x = [7, -7, 7, -7, 6, -6, 0, 1]
signs_y = [2, 2, -2, -2, 3, 3, 5, -3]
for op in ("div", "mod", "floordiv", "pow", "max", "min", "sub"):
    for dtype in ("int32", "int64", "float32"):
        x, y = np.array(signs_x, dtype), np.array(signs_y, dtype)
        if op == "pow":
            x, y = (
                np.array([2, 3, -2, 5, 0, 1, 3, 7], dtype),
                np.array([3, 0, 3, 2, 2, 9, 10, 13], dtype),
            )
        cases.append(case(f"signs {op} {dtype}", "elementwise_" + op, {"X": x, "Y": y}))
frac = {"X": np.array([5.5, -5.5, 5.5, -5.5, 1e-3], F), "Y": F([2, 2, -2, -2, 3])}
for op in ("mod", "floordiv"):
    cases.append(case("fraction " + op, "elementwise_" + op, frac))
zero = {"X": F([1, -1, 0]), "Y": F([0, 0, 0])}
cases.append(case("div by zero", "elementwise_div", zero))
for op in ("mod", "floordiv"):
    zero_int = {"X": ints(1), "Y": ints(0)}
    cases.append(case(f"int {op} by zero", "elementwise_" + op, zero_int))
nan = np.nan
with_nan = {"X": F([1, nan, 1, nan, 2, 2]), "Y": F([nan, 1, 1, nan, 1, 3])}
for op in ("max", "min"):
    cases.append(case(f"nan {op}", "elementwise_" + op, with_nan, grad=["X", "Y"]))
tie = {"X": F([1, 2, 3]), "Y": F([1, 3, 2])}
for op in ("max", "min"):
    cases.append(case(f"tie {op}", "elementwise_" + op, tie, grad=["X", "Y"]))
power = {"X": F([2, 0.5, 3, 1]), "Y": F([3, -1, 0, 0.5])}
cases.append(case("pow grad", "elementwise_pow", power, grad=["X", "Y"]))
power = {"X": r(2, 3) + F(5), "Y": r(3)}
cases.append(case("pow grad bias", "elementwise_pow", power, grad=["X", "Y"]))
for op in ("sub", "min"):
    inputs = {"X": r(2, 3, 4), "Y": r(3, seed=3)}
    cases.append(
        case(f"{op} bias", "elementwise_" + op, inputs, {"axis": 1}, grad=["X", "Y"])
    )
for x, y in (("float32", "float64"), ("int32", "float32"), ("int64", "int32")):
    inputs = {"X": np.array([1, 2], x), "Y": np.array([3, 4], y)}
    cases.append(case(f"mixed {x} {y}", "elementwise_add", inputs))
for declared in (
    ((-1, 3), (3,)),
    ((-1, 3), (-1, 1)),
    ((-1, 1), (1, 3)),
    ((1, 3), (-1, 3)),
):
    inputs = {"X": r(2, declared[0][1]), "Y": r(*[abs(d) for d in declared[1]])}
    if declared[1][0] == -1:
        inputs["Y"] = r(2, declared[1][1])
    if declared[0][0] == 1:
        inputs["X"] = r(1, 3)
    cases.append(
        case(
            f"declared {declared[0]} {declared[1]}",
            "elementwise_add",
            inputs,
            declared={"X": declared[0], "Y": declared[1]},
        )
    )
compares = (
    "less_than",
    "less_equal",
    "greater_than",
    "greater_equal",
    "equal",
    "not_equal",
)
for op in compares:
    inputs = {"X": F([1, 2, 3, nan]), "Y": F([2, 2, 2, nan])}
    cases.append(case(op, op, inputs))
    inputs = {"X": ints(1, 2, 3, dtype="int64"), "Y": ints(2, 2, 2, dtype="int64")}
    cases.append(case(op + " int64", op, inputs))
compare_axis = [
    ((2, 3, 4), (3,), 1),
    ((2, 3, 4), (4,), -1),
    ((2, 3), (2, 3, 4), 0),
    ((2, 3), (1,), -1),
    ((2, 3), (3,), -1),
    ((1,), (1,), -1),
]
for op in ("less_than", "equal", "greater_than"):
    for x, y, axis in compare_axis:
        inputs = {"X": np.round(r(*x, seed=1)), "Y": np.round(r(*y, seed=2))}
        cases.append(case(f"{op} {x} {y} axis {axis:d}", op, inputs, {"axis": axis}))
inputs = {"X": np.array([True, False]), "Y": np.array([True, True])}
cases.append(case("equal bool", "equal", inputs))
cases.append(
    case("equal close", "equal", {"X": F([1, 1]), "Y": F([1 + 1e-7, 1 + 1e-6])})
)
t = np.array([True, True, False, False])
f = np.array([True, False, True, False])
for op in ("logical_and", "logical_or", "logical_xor"):
    cases.append(case(op, op, {"X": t, "Y": f}))
cases.append(case("logical_not", "logical_not", {"X": t}))
cases.append(
    case(
        "logical_and broadcast", "logical_and", {"X": np.ones((2, 2), bool), "Y": t[:2]}
    )
)
cases.append(
    case("logical_and ints", "logical_and", {"X": ints(2, 0), "Y": ints(1, 1)})
)
for op in ("isfinite", "isinf", "isnan"):
    for name, values in (
        ("plain", [1, 2]),
        ("inf", [1, np.inf]),
        ("nan", [nan, 1]),
        ("both", [nan, np.inf]),
    ):
        cases.append(case(f"{op} {name}", op, {"X": F(values)}))
    cases.append(case(op + " ints", op, {"X": ints(1, 2)}))
cases.append(case("is_empty no", "is_empty", {"X": F([1, 2])}))
cases.append(case("is_empty matrix", "is_empty", {"X": r(2, 3)}))

here = os.path.dirname(os.path.abspath(__file__))
record(os.path.join(here, "elementwise.json"), cases)
