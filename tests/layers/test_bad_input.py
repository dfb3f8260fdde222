"""Wrong arguments: the error names the layer, the argument and what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluidx import input as fluid_input
from fluidx import layers, nets
from fluidx.initializer import (
    MSRA,
    Bilinear,
    Constant,
    Normal,
    NumpyArrayInitializer,
    Uniform,
)
from fluidx.ir import BuildError
from fluidx.param_attr import ParamAttr

data = fluid_input.data


def _x(*shape: Any, dtype: str = "float32", name: str = "x") -> Any:
    return data(name, list(shape), dtype)


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "not a variable": (
        lambda: layers.fc(3, 5),
        TypeError,
        "fc: input must be a Variable, got int 3",
    ),
    "no input": (lambda: layers.fc([], 5), ValueError, "fc: input is an empty list"),
    "fc of integers": (
        lambda: layers.fc(_x(None, 4, dtype="int64"), 5),
        TypeError,
        r"fc: input \(x\) must be of FP16, .* got INT64",
    ),
    "fc size": (
        lambda: layers.fc(_x(None, 4), 0),
        ValueError,
        "fc: size must be a positive integer, got 0",
    ),
    "fc flatten": (
        lambda: layers.fc(_x(None, 4), 3, num_flatten_dims=2),
        ValueError,
        r"fc: num_flatten_dims 2 .* \[-1, 4\]",
    ),
    "fc unknown width": (
        lambda: layers.fc(_x(None, None), 3),
        BuildError,
        r"fc: parameter fc_0.w_0 would have shape \[-1, 3\]",
    ),
    "activation": (
        lambda: layers.fc(_x(None, 4), 3, act="rleu"),
        ValueError,
        "fc: there is no activation 'rleu'",
    ),
    "param_attr": (
        lambda: layers.fc(_x(None, 4), 3, param_attr=3.5),
        TypeError,
        "fc: param_attr: .* got 3.5 of type float",
    ),
    "param_attr count": (
        lambda: layers.fc(
            [_x(None, 4), _x(None, 4, name="y")] * 2, 3, param_attr=["a"] * 3
        ),
        ValueError,
        "fc: 4 inputs, but 3 param_attr",
    ),
    "param_attr off": (
        lambda: layers.fc(_x(None, 4), 3, param_attr=False),
        TypeError,
        "fc: a parameter it cannot do without was switched off",
    ),
    "shared shape": (
        lambda: [
            layers.fc(_x(None, n, name=f"x{n}"), 3, param_attr="shared") for n in (4, 5)
        ],
        BuildError,
        r"parameter shared exists with shape \[4, 3\]",
    ),
    "layer name": (
        lambda: layers.fc(_x(None, 4), 3, name=7),
        TypeError,
        "fc: name must be a string, got 7",
    ),
    "data name": (
        lambda: data(3, [1]),
        TypeError,
        "data: name must be a string, got 3",
    ),
    "data shape": (
        lambda: data("x", [1, "a"]),
        TypeError,
        "data: shape must be made of integers and None",
    ),
    "data shape kind": (
        lambda: layers.data("x", 3),  # type: ignore[arg-type]
        TypeError,
        "layers.data: shape must be a list or a tuple, got 3",
    ),
    "data dtype": (
        lambda: data("x", [1], "float31"),
        TypeError,
        "'float31' is not a dtype",
    ),
    "embedding ids": (
        lambda: layers.embedding(_x(None, 1), [10, 4]),
        TypeError,
        r"embedding: input \(x\) must be of INT64, got FP32",
    ),
    "embedding last": (
        lambda: layers.embedding(_x(None, 3, dtype="int64"), [10, 4]),
        ValueError,
        r"last dimension of input must be 1, got \[-1, 3\]",
    ),
    "embedding size": (
        lambda: layers.embedding(_x(None, 1, dtype="int64"), 10),  # type: ignore[arg-type]
        ValueError,
        r"embedding: size must be \[rows, width\], got 10",
    ),
    "padding_idx": (
        lambda: layers.embedding(_x(None, 1, dtype="int64"), [10, 4], padding_idx=10),
        ValueError,
        r"padding_idx must be in \[-10, 10\), got 10",
    ),
    "one_hot depth": (
        lambda: layers.one_hot(_x(None, 1, dtype="int64"), -2),
        ValueError,
        "one_hot: depth must be a positive integer .* got -2",
    ),
    "conv rank": (
        lambda: layers.conv2d(_x(None, 4, 5), 6, 3),
        ValueError,
        r"conv2d: input must have 4 dimensions, x has shape \[-1, 4, 5\]",
    ),
    "conv groups": (
        lambda: layers.conv2d(_x(None, 4, 9, 9), 6, 3, groups=3),
        ValueError,
        "conv2d: groups 3 must divide 4 channels and 6 filters",
    ),
    "conv padding word": (
        lambda: layers.conv2d(_x(None, 4, 9, 9), 6, 3, padding="FULL"),
        ValueError,
        r"conv2d: padding must be one of \['SAME', 'VALID'\], got 'FULL'",
    ),
    "conv padding of batch": (
        lambda: layers.conv2d(
            _x(None, 4, 9, 9), 6, 3, padding=[[1, 0], [0, 0], [1, 1], [1, 1]]
        ),
        ValueError,
        "conv2d: padding cannot pad batch and channel",
    ),
    "conv stride": (
        lambda: layers.conv2d(_x(None, 4, 9, 9), 6, 3, stride=[1, 2, 3]),
        ValueError,
        "conv2d: stride must be an integer or 2 integers",
    ),
    "conv filter too large": (
        lambda: layers.conv2d(_x(None, 4, 3, 3), 6, 7),
        BuildError,
        r"op conv2d: .*\n  built at .*test_bad_input.py",
    ),
    "transposed size": (
        lambda: layers.conv2d_transpose(_x(None, 4, 3, 3), 6),
        ValueError,
        "conv2d_transpose: give output_size or filter_size",
    ),
    "pool type": (
        lambda: layers.pool2d(_x(None, 4, 9, 9), 2, "median"),
        ValueError,
        r"pool2d: pool_type must be one of \['max', 'avg'\], got 'median'",
    ),
    "pool size": (
        lambda: layers.pool2d(_x(None, 4, 9, 9)),
        ValueError,
        "pool2d: pool_size must be positive without global_pooling, got -1",
    ),
    "batch_norm attr": (
        lambda: layers.batch_norm(_x(None, 4), bias_attr=False),
        ValueError,
        "batch_norm: bias_attr must not be False",
    ),
    "layer_norm axis": (
        lambda: layers.layer_norm(_x(None, 4), begin_norm_axis=2),
        ValueError,
        "layer_norm: begin_norm_axis 2 does not go with input x",
    ),
    "dropout share": (
        lambda: layers.dropout(_x(None, 4), 1.5),
        ValueError,
        r"dropout: dropout_prob must be in \[0, 1\], got 1.5",
    ),
    "reshape two unknowns": (
        lambda: layers.reshape(_x(None, 4), [-1, -1]),
        ValueError,
        "reshape: only one size may be -1",
    ),
    "reshape copies nothing": (
        lambda: layers.reshape(_x(None, 4), [-1, 4, 0]),
        ValueError,
        "reshape: size 0 at 2 copies a dimension",
    ),
    "reshape count": (
        lambda: layers.reshape(_x(3, 4), [5, 2]),
        BuildError,
        "op reshape2",
    ),
    "transpose": (
        lambda: layers.transpose(_x(None, 4), [0, 0]),
        ValueError,
        r"transpose: perm \[0, 0\] is no order of the dimensions of x \[-1, 4\]",
    ),
    "split uneven": (
        lambda: layers.split(_x(None, 7), 2, 1),
        ValueError,
        "split: cannot cut size 7 into 2 equal parts",
    ),
    "split axis": (
        lambda: layers.split(_x(None, 7), 7, 2),
        ValueError,
        r"split: dim 2 is outside x of shape \[-1, 7\]",
    ),
    "slice lengths": (
        lambda: layers.slice(_x(None, 7), [0, 1], [0], [1, 1]),
        ValueError,
        "slice: 2 axes, but 1 starts",
    ),
    "unstack": (
        lambda: layers.unstack(_x(None, 7)),
        ValueError,
        "unstack: dimension 0 of x .* is not known; give num",
    ),
    "mixed dtypes": (
        lambda: layers.elementwise_add(_x(4), _x(4, dtype="int64", name="i")),
        TypeError,
        r"elementwise_add: x \(x\) is FP32, y \(i\) is INT64; cast one of them",
    ),
    "shapes": (
        lambda: layers.elementwise_add(_x(None, 4), _x(3, name="y")),
        BuildError,
        "op elementwise_add: .*do not go together",
    ),
    "assign a list": (
        lambda: layers.assign([1.0]),
        TypeError,
        r"assign: input must be a Variable or a numpy array, got \[1.0\]",
    ),
    "assign float64": (
        lambda: layers.assign(np.zeros(2)),
        TypeError,
        "assign: an array can be bool, float32, int32, int64, got float64",
    ),
    "assign too much": (
        lambda: layers.assign(np.zeros(1024 * 1024 + 1, "float32")),
        ValueError,
        "1048577 elements is too large",
    ),
    "integer parameter": (
        lambda: layers.create_parameter([3], "int64"),
        TypeError,
        "create_parameter: a parameter of VarType.INT64 has no default initializer",
    ),
    "labels": (
        lambda: layers.cross_entropy(_x(None, 4), _x(None, 1, name="y")),
        TypeError,
        r"cross_entropy: label \(y\) must be of INT32, INT64, got FP32",
    ),
    "topk": (
        lambda: layers.topk(_x(None, 4), 0),
        ValueError,
        "topk: k must be a positive integer, got 0",
    ),
    "logic": (
        lambda: layers.logical_not(_x(None, 4)),
        TypeError,
        r"logical_not: x \(x\) must be of BOOL, got FP32",
    ),
    "pool kind": (
        lambda: layers.sequence_pool(data("x", [None, 4], lod_level=1), "median"),
        ValueError,
        "sequence_pool: pool_type must be one of .* got 'MEDIAN'",
    ),
    "clip": (
        lambda: layers.clip(_x(None, 4), 2.0, 1.0),
        ValueError,
        "clip: min 2.0 is above max 1.0",
    ),
    "reduce": (
        lambda: layers.reduce_sum(_x(None, 4), dim=1.5),
        TypeError,
        "reduce_sum: dim must be made of integers, got 1.5",
    ),
    "heads": (
        lambda: nets.scaled_dot_product_attention(*[_x(3, 5, 8)] * 3, num_heads=3),
        ValueError,
        "num_heads 3 does not divide the width of keys, 8",
    ),
    "groups of convolutions": (
        lambda: nets.img_conv_group(_x(None, 4, 9, 9), [4, 4], 2, conv_padding=[1]),
        ValueError,
        "img_conv_group: 2 convolutions, but 1 values of conv_padding",
    ),
    "uniform": (
        lambda: Uniform(2.0, 1.0),
        ValueError,
        "Uniform: high 1.0 is below low 2",
    ),
    "normal": (lambda: Normal(0.0, -1.0), ValueError, "scale must not be negative"),
    "constant": (
        lambda: Constant("a"),  # type: ignore[arg-type]
        TypeError,
        "ConstantInitializer: value must be a number, got 'a'",
    ),
    "seed": (
        lambda: MSRA(seed=0.5),  # type: ignore[arg-type]
        TypeError,
        "MSRAInitializer: seed must be an integer, got 0.5",
    ),
    "bilinear": (
        lambda: layers.create_parameter(
            [3, 4], "float32", attr=ParamAttr(initializer=Bilinear())
        ),
        ValueError,
        r"Bilinear needs a filter of shape \[out, in, size, size\], got \[3, 4\]",
    ),
    "array shape": (
        lambda: layers.create_parameter(
            [3, 4], "float32", attr=NumpyArrayInitializer(np.zeros(3))
        ),
        ValueError,
        r"the array has shape \[3\], create_parameter_0.w_0 has \[3, 4\]",
    ),
    "attr name": (lambda: ParamAttr(3), TypeError, "name must be a string, got 3"),  # type: ignore[arg-type]
    "attr initializer": (
        lambda: ParamAttr("w", 0.1),
        TypeError,
        "initializer must be one of fluid.initializer, got 0.1",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error_says_what_is_wrong(case: str) -> None:
    build, kind, message = CASES[case]
    with pytest.raises(kind, match=message):
        build()
