"""Creation, math, reduction and activation ops as the reference runs them."""

import os

import numpy as np
from oracle_ops import case, record

F = np.float32
nan, inf = np.nan, np.inf


def r(*shape, seed=0, dtype="float32"):
    return np.round(np.random.RandomState(seed).randn(*shape), 2).astype(dtype)


creation = []
for dtype, value, text in (
    (5, 1.5, ""),
    (5, 0.0, "0.1"),
    (6, 0.0, "0.1"),
    (5, 2.0, "inf"),
    (5, 2.0, "-inf"),
    (5, 2.0, "nan"),
    (3, 2.7, ""),
    (3, 0.0, "123456789012345"),
    (2, -2.7, ""),
    (2, 0.0, "7.9"),
    (0, 1.0, ""),
    (0, 0.0, "True"),
    (5, 1.0, "1e-3"),
):
    attrs = {"shape": [2], "dtype": dtype, "value": value, "str_value": text}
    name = f"fill_constant {dtype:d} {value} {text}"
    creation.append(case(name, "fill_constant", {}, attrs))
shape_attrs = {"shape": [2, 3], "dtype": 5, "value": 1.0, "str_value": ""}
i32 = lambda *v: np.array(v, "int32")  # noqa: E731
creation += [
    case(
        "fill_constant ShapeTensor",
        "fill_constant",
        {"ShapeTensor": i32(4, 1)},
        shape_attrs,
    ),
    case(
        "fill_constant ShapeTensorList",
        "fill_constant",
        {"ShapeTensorList": [i32(4), i32(2)]},
        dict(shape_attrs, shape=[-1, 2]),
    ),
    case(
        "fill_constant ValueTensor",
        "fill_constant",
        {"ValueTensor": np.array([2.5], F)},
        shape_attrs,
    ),
]
for di, do in ((0, 0), (1, 0), (0, 1), (1, 1)):
    attrs = {
        "shape": [7, 8],
        "dtype": 5,
        "value": 3.0,
        "input_dim_idx": di,
        "output_dim_idx": do,
    }
    creation.append(
        case(
            f"like {di:d} {do:d}",
            "fill_constant_batch_size_like",
            {"Input": r(4, 5)},
            attrs,
        )
    )
creation += [
    case(
        "like declared",
        "fill_constant_batch_size_like",
        {"Input": r(4, 5)},
        {"shape": [-1, 8], "dtype": 3, "value": 3.0},
        declared={"Input": (-1, 5)},
    ),
    case("fill_any_like", "fill_any_like", {"X": r(2, 2)}, {"value": 2.5, "dtype": -1}),
    case(
        "fill_any_like int", "fill_any_like", {"X": r(2, 2)}, {"value": 2.5, "dtype": 3}
    ),
    case("fill_zeros_like", "fill_zeros_like", {"X": r(2, 2)}),
    case("shape", "shape", {"Input": r(2, 5)}),
    case(
        "assign_value fp32",
        "assign_value",
        {},
        {"shape": [2], "dtype": 5, "fp32_values": [0.1, 2.0]},
    ),
    case(
        "assign_value int64",
        "assign_value",
        {},
        {"shape": [1, 2], "dtype": 3, "int64_values": [1, 2]},
    ),
    case(
        "assign_value bool",
        "assign_value",
        {},
        {"shape": [2], "dtype": 0, "bool_values": [0, 1]},
    ),
    case("range int", "range", {"Start": i32(2), "End": i32(11), "Step": i32(3)}),
    case("range down", "range", {"Start": i32(5), "End": i32(0), "Step": i32(-2)}),
    case("range float", "range", {"Start": F([0]), "End": F([1]), "Step": F([0.3])}),
    case("range empty", "range", {"Start": i32(5), "End": i32(5), "Step": i32(1)}),
    case("range wrong way", "range", {"Start": i32(5), "End": i32(1), "Step": i32(1)}),
]
for src, dst, values in (
    ("float32", 20, [-1.7, 1.7, 255, 0.2]),
    ("float32", 0, [-1.7, 0.0, 0.2, nan]),
    ("float32", 3, [-1.7, 1.7, 2.5, -2.5]),
    ("float32", 2, [-1.7, 1.7, 2.5, -2.5]),
    ("int64", 20, [-1, 256, 300]),
    ("int64", 0, [-1, 0, 2]),
    ("bool", 5, [True, False]),
    ("float32", 4, [0.1, 1e-8, 65504]),
    ("float64", 5, [0.1, 1e-50]),
):
    codes = {"float32": 5, "int64": 3, "bool": 0, "float64": 6}
    attrs = {"in_dtype": codes[src], "out_dtype": dst}
    creation.append(
        case(f"cast {src} {dst:d}", "cast", {"X": np.array(values, src)}, attrs)
    )
mathops = [
    case("mean", "mean", {"X": r(2, 3)}, grad=["X"]),
    case("mean one", "mean", {"X": r(1)}, grad=["X"]),
    case("sum two", "sum", {"X": [r(2, 3), r(2, 3, seed=1)]}),
    case("sum one", "sum", {"X": [r(2, 3)]}),
    case("sum int", "sum", {"X": [i32(1, 2), i32(3, 4)]}),
    case("scale", "scale", {"X": r(2, 3)}, {"scale": 2.0, "bias": 1.5}, grad=["X"]),
    case(
        "scale before",
        "scale",
        {"X": r(2, 3)},
        {"scale": 2.0, "bias": 1.5, "bias_after_scale": False},
        grad=["X"],
    ),
    case("scale int", "scale", {"X": i32(1, 2, -3)}, {"scale": 1.5, "bias": 0.6}),
    case(
        "scale int64", "scale", {"X": np.array([10, -3])}, {"scale": 2.0, "bias": -1.0}
    ),
    case(
        "scale tensor",
        "scale",
        {"X": r(2, 3), "ScaleTensor": F([3])},
        {"scale": 2.0, "bias": 1.5},
    ),
    case("increment", "increment", {"X": F([1.5])}, {"step": 2.0}),
    case("increment int", "increment", {"X": np.array([1])}, {"step": 2.7}),
    case("minus", "minus", {"X": r(2, 3), "Y": r(2, 3, seed=1)}, grad=["X", "Y"]),
    case("sign", "sign", {"X": F([-2, 0, 3, nan, -0.0])}),
    case("sign grad", "sign", {"X": F([-2, 0, 3])}, grad=["X"]),
    case(
        "clip",
        "clip",
        {"X": F([-2, -1, 0, 1, 2, nan])},
        {"min": -1.0, "max": 1.0},
        grad=["X"],
    ),
    case(
        "clip tensors",
        "clip",
        {"X": F([-2, -1, 0, 1, 2]), "Min": F([-1.5]), "Max": F([0.5])},
        {"min": -1.0, "max": 1.0},
        grad=["X"],
    ),
    case("clip_by_norm at", "clip_by_norm", {"X": F([3, 4])}, {"max_norm": 5.0}),
    case("clip_by_norm above", "clip_by_norm", {"X": F([3, 4])}, {"max_norm": 1.0}),
    case("clip_by_norm below", "clip_by_norm", {"X": F([3, 4])}, {"max_norm": 6.0}),
    case("clip_by_norm zero", "clip_by_norm", {"X": F([0, 0])}, {"max_norm": 1.0}),
    case("squared_l2_norm", "squared_l2_norm", {"X": r(2, 3)}, grad=["X"]),
    case(
        "mul 3d",
        "mul",
        {"X": r(2, 3, 4), "Y": r(12, 2)},
        {"x_num_col_dims": 1},
        grad=["X", "Y"],
    ),
    case(
        "mul cols 2",
        "mul",
        {"X": r(2, 3, 4), "Y": r(4, 5)},
        {"x_num_col_dims": 2},
        grad=["X", "Y"],
    ),
    case(
        "mul y 2",
        "mul",
        {"X": r(2, 12), "Y": r(3, 4, 2, 2)},
        {"y_num_col_dims": 2},
        grad=["X", "Y"],
    ),
    case(
        "mul declared",
        "mul",
        {"X": r(2, 3, 4), "Y": r(4, 5)},
        {"x_num_col_dims": 2},
        declared={"X": (-1, -1, 4)},
    ),
]
for x, y, tx, ty, alpha in (
    ((3,), (3,), False, False, 1.0),
    ((3,), (3,), True, False, 1.0),
    ((3,), (3,), False, True, 1.0),
    ((3,), (2,), True, True, 1.0),
    ((2, 3), (3,), False, False, 2.0),
    ((3, 2), (3,), True, False, 1.0),
    ((3,), (3, 2), False, False, 1.0),
    ((3,), (2, 3), False, True, 1.0),
    ((2, 3), (3, 4), False, False, 0.5),
    ((3, 2), (4, 3), True, True, 0.5),
    ((5, 2, 3), (3, 4), False, False, 1.0),
    ((5, 3, 2), (3, 4), True, False, 1.0),
    ((5, 2, 3), (4, 3), False, True, 1.0),
    ((2, 3), (5, 3, 4), False, False, 1.0),
    ((5, 2, 3), (5, 3, 4), False, False, 1.0),
    ((5, 3, 2), (5, 4, 3), True, True, 3.0),
    ((2, 5, 2, 3), (2, 5, 3, 4), False, False, 1.0),
    ((2, 5, 2, 3), (5, 3, 4), False, False, 1.0),
    ((1, 2, 3), (5, 3, 4), False, False, 1.0),
    ((5, 2, 3), (3,), False, False, 1.0),
    ((3,), (5, 3, 4), False, False, 1.0),
):
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": alpha}
    name = f"matmul {x} {y} {tx:d}{ty:d}"
    mathops.append(
        case(name, "matmul", {"X": r(*x), "Y": r(*y, seed=1)}, attrs, grad=["X", "Y"])
    )
for x, y in (((-1, 3), (3, 4)), ((-1, 2, 3), (3, 4)), ((-1, 2, 3), (-1, 3, 4))):
    inputs = {"X": r(5, *x[1:]), "Y": r(*[5 if d < 0 else d for d in y])}
    mathops.append(
        case(
            f"matmul declared {x} {y}",
            "matmul",
            inputs,
            declared={"X": x, "Y": y},
        )
    )
reduces = []
for op in ("sum", "mean", "max", "min", "prod"):
    for dim, keep, every in (
        ([0], False, False),
        ([-1], False, False),
        ([1], True, False),
        ([0, -1], False, False),
        ([0, 1, 2], False, False),
        ([0], False, True),
        ([0], True, True),
        ([-2, 0], True, False),
    ):
        attrs = {"dim": dim, "keep_dim": keep, "reduce_all": every}
        reduces.append(
            case(
                f"reduce_{op} {dim} {keep:d}{every:d}",
                "reduce_" + op,
                {"X": r(2, 3, 2)},
                attrs,
                grad=["X"],
            )
        )
    reduces.append(
        case(f"reduce_{op} 1d", "reduce_" + op, {"X": r(3)}, {"dim": [0]}, grad=["X"])
    )
    reduces.append(
        case(
            f"reduce_{op} int",
            "reduce_" + op,
            {"X": np.array([[1, 2], [3, 5]])},
            {"dim": [1]},
        )
    )
    reduces.append(
        case(f"reduce_{op} int32", "reduce_" + op, {"X": i32(3, 4)}, {"dim": [0]})
    )
for op in ("max", "min"):
    reduces.append(
        case(
            f"reduce_{op} ties",
            "reduce_" + op,
            {"X": F([[1, 1], [2, 3]])},
            {"dim": [1]},
            grad=["X"],
        )
    )
    reduces.append(
        case(
            f"reduce_{op} nan",
            "reduce_" + op,
            {"X": F([[1, nan], [nan, 3]])},
            {"dim": [1]},
        )
    )
reduces += [
    case(
        "reduce_sum to double",
        "reduce_sum",
        {"X": r(2, 3)},
        {"dim": [1], "in_dtype": 5, "out_dtype": 6},
    ),
    case(
        "reduce_prod zero",
        "reduce_prod",
        {"X": F([[0, 2], [3, 4]])},
        {"dim": [1]},
        grad=["X"],
    ),
    case(
        "reduce_all",
        "reduce_all",
        {"X": np.array([[True, False], [True, True]])},
        {"dim": [1]},
    ),
    case(
        "reduce_any",
        "reduce_any",
        {"X": np.array([[True, False], [False, False]])},
        {"dim": [1]},
    ),
    case(
        "reduce_all every",
        "reduce_all",
        {"X": np.array([[True, False], [True, True]])},
        {"reduce_all": True},
    ),
    case(
        "reduce declared",
        "reduce_sum",
        {"X": r(2, 3)},
        {"dim": [1], "keep_dim": True},
        declared={"X": (-1, 3)},
    ),
    case("mean declared", "mean", {"X": r(2, 3)}, declared={"X": (-1, 3)}),
]
edge = F([-1e3, -25, -7, -3, -1, -0.5, -0.2, 0, 0.2, 0.5, 1, 2.5, 3, 6, 7, 24, 45, 1e3])
acts = []
for op, attrs in (
    ("relu", {}),
    ("relu6", {}),
    ("relu6", {"threshold": 3.0}),
    ("sigmoid", {}),
    ("logsigmoid", {}),
    ("tanh", {}),
    ("tanh_shrink", {}),
    ("square", {}),
    ("abs", {}),
    ("ceil", {}),
    ("floor", {}),
    ("round", {}),
    ("sin", {}),
    ("cos", {}),
    ("atan", {}),
    ("softplus", {}),
    ("softsign", {}),
    ("softshrink", {}),
    ("softshrink", {"lambda": 1.0}),
    ("hard_shrink", {}),
    ("hard_sigmoid", {}),
    ("hard_swish", {}),
    ("hard_swish", {"threshold": 4.0, "scale": 5.0, "offset": 2.0}),
    ("swish", {}),
    ("swish", {"beta": 1.5}),
    ("elu", {"alpha": 0.7}),
    ("leaky_relu", {}),
    ("leaky_relu", {"alpha": -0.5}),
    ("gelu", {}),
    ("gelu", {"approximate": True}),
    ("brelu", {}),
    ("brelu", {"t_min": -1.0, "t_max": 3.0}),
    ("soft_relu", {}),
    ("soft_relu", {"threshold": 2.0}),
    ("stanh", {}),
    ("thresholded_relu", {}),
    ("pow", {"factor": 3.0}),
    ("exp", {}),
    ("reciprocal", {}),
):
    x = edge
    if op == "exp":
        x = edge[1:-2]
    if op == "reciprocal":
        x = edge[edge != 0]
    name = op + "".join(f" {attrs[k]}" for k in sorted(attrs))
    acts.append(case(name, op, {"X": x}, attrs, grad=["X"]))
positive = F([1e-6, 0.2, 0.5, 1, 2.5, 100])
for op in ("log", "sqrt", "rsqrt", "log1p"):
    acts.append(case(op, op, {"X": positive}, grad=["X"]))
    acts.append(case(op + " edge", op, {"X": F([0, -0.5, -2])}))
acts += [
    case("pow half", "pow", {"X": positive}, {"factor": 0.5}, grad=["X"]),
    case(
        "pow tensor",
        "pow",
        {"X": positive, "FactorTensor": F([2])},
        {"factor": 3.0},
        grad=["X"],
    ),
    case("pow int", "pow", {"X": i32(2, -3)}, {"factor": 2.0}),
    case("acos", "acos", {"X": F([-0.5, 0, 0.3])}, grad=["X"]),
    case("asin", "asin", {"X": F([-0.5, 0, 0.3])}, grad=["X"]),
    case("round half", "round", {"X": F([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])}),
    case("round double", "round", {"X": np.array([-2.5, 0.5, 2.5])}),
    case("abs int", "abs", {"X": i32(-1, 2)}),
    case("square int", "square", {"X": i32(-3, 2)}),
]
for op in ("relu", "relu6", "sigmoid", "tanh", "leaky_relu", "brelu", "hard_sigmoid"):
    acts.append(case("nan " + op, op, {"X": F([nan, inf, -inf])}))
for shape, axis in (
    ((2, 3), -1),
    ((2, 3, 4), 1),
    ((2, 3, 4), 0),
    ((2, 3, 4), -2),
    ((3,), -1),
    ((2, 1), -1),
):
    acts.append(
        case(
            f"softmax {shape} {axis:d}",
            "softmax",
            {"X": r(*shape)},
            {"axis": axis},
            grad=["X"],
        )
    )
acts.append(
    case(
        "softmax large",
        "softmax",
        {"X": F([[1000, 0, -1000], [-1e4, -1e4, -1e4]])},
        grad=["X"],
    )
)
acts.append(case("softmax inf", "softmax", {"X": F([[0, -inf, 1]])}))

here = os.path.dirname(os.path.abspath(__file__))
record(os.path.join(here, "creation.json"), creation)
record(os.path.join(here, "math.json"), mathops)
record(os.path.join(here, "reduce.json"), reduces)
record(os.path.join(here, "activation.json"), acts)
