"""`fc`: product, bias and relu in one op."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, normal, suite

from fluidx.ir import BuildError, Program
from fluidx.kernels import VarType

X, W, B = normal(3, 4), normal(4, 5, seed=1), normal(5, seed=2)


def padded(w):
    """W with four more rows and columns, of anything."""
    made = np.full((w.shape[0] + 4, w.shape[1] + 4), 99.0)
    made[:-4, :-4] = w
    return made


def plain(x, a):
    given, w = x["Input"], x["W"]
    if a.get("padding_weights"):
        w = w[:-4, :-4]
    split = a.get("in_num_col_dims", 1)
    rows = given.reshape(int(np.prod(given.shape[:split])), -1)
    out = rows @ w + (x["Bias"].reshape(-1) if "Bias" in x else 0.0)
    if a.get("activation_type"):
        out = np.where(out > 0, out, 0.0)
    return {"Out": out.reshape(*given.shape[:split], w.shape[1])}


def case(name, inputs, **attrs):
    return OpCase("fc", inputs, attrs, plain, name)


CASES = [
    case("bias", {"Input": X, "W": W, "Bias": B}),
    case("no bias", {"Input": X, "W": W}),
    case("row of bias", {"Input": X, "W": W, "Bias": B.reshape(1, 5)}),
    case("relu", {"Input": X, "W": W, "Bias": B}, activation_type="relu"),
    case("flattened", {"Input": normal(3, 2, 2), "W": W, "Bias": B}),
    case(
        "two axes of rows",
        {"Input": normal(2, 3, 4), "W": W, "Bias": B},
        in_num_col_dims=2,
    ),
    case("padded", {"Input": X, "W": padded(W), "Bias": B}, padding_weights=True),
]
test_fc = suite(CASES)


@pytest.mark.parametrize(
    ("w", "bias", "attrs", "said"),
    [
        ([4, 4], [4], {}, r"Input \(2, 3\) has 3 columns but W has 4 rows"),
        ([3, 4], [5], {}, r"Bias of shape \(5,\) does not go with 4 columns"),
        ([3, 4], [4], {"activation_type": "tanh"}, "'relu' or nothing, got 'tanh'"),
        ([3, 4], None, {"activation_type": "relu"}, "relu needs a Bias"),
        ([3, 4], [4], {"in_num_col_dims": 2}, "must split Input"),
        ([3], [4], {}, "W must be a matrix"),
    ],
)
def test_what_does_not_fit(w, bias, attrs, said):
    block = Program().global_block()
    shapes = {"x": [2, 3], "w": w, "b": bias}
    for name, shape in shapes.items():
        if shape is not None:
            block.create_var(name=name, shape=shape, dtype=VarType.FP32)
    block.create_var(name="o", dtype=VarType.FP32)
    slots = {"Input": ["x"], "W": ["w"], **({"Bias": ["b"]} if bias else {})}
    with pytest.raises(BuildError, match=said):
        block.append_op("fc", slots, {"Out": ["o"]}, attrs)
