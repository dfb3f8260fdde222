"""strided_slice and reverse against numpy; edge bounds as the reference has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite

from fluidx import kernels
from fluidx.kernels import GradContext, InferContext, InferError, Meta

X = normal(7, 6)


def strided(expected: Any, name: str, **attrs: Any) -> OpCase:
    return OpCase(
        "strided_slice",
        {"Input": X},
        attrs,
        lambda x, a: {"Out": expected(x["Input"])},
        name,
    )


CASES = [
    strided(lambda x: x[0:5:2], "steps", axes=[0], starts=[0], ends=[5], strides=[2]),
    strided(
        lambda x: x[1:7:3, 5:0:-2],
        "back",
        axes=[0, 1],
        starts=[1, 5],
        ends=[7, 0],
        strides=[3, -2],
    ),
    strided(
        lambda x: x[::-1],
        "before the first",
        axes=[0],
        starts=[6],
        ends=[-1],
        strides=[-1],
    ),
    strided(
        lambda x: x[-3:], "too far", axes=[0], starts=[-3], ends=[100], strides=[1]
    ),
    strided(
        lambda x: x[:, 2],
        "dropped",
        axes=[1],
        starts=[2],
        ends=[3],
        strides=[1],
        decrease_axis=[1],
    ),
    OpCase(
        "strided_slice",
        {
            "Input": X,
            "StartsTensorList": [np.array([1], "int32")],
            "EndsTensor": np.array([6], "int32"),
        },
        {"axes": [0], "starts": [-1], "strides": [2], "infer_flags": [-1]},
        lambda x, a: {"Out": x["Input"][1:6:2]},
        "tensors",
    ),
    OpCase("reverse", {"X": X}, {"axis": [0]}, lambda x, a: {"Out": x["X"][::-1]}),
    OpCase(
        "reverse",
        {"X": normal(2, 3, 4)},
        {"axis": [2, -2]},
        lambda x, a: {"Out": x["X"][:, ::-1, ::-1]},
        "two",
    ),
]
test_strided = suite(CASES)


def test_both_are_views() -> None:
    attrs = {"axes": [0], "starts": [0], "ends": [5], "strides": [2]}
    assert np.shares_memory(run_op("strided_slice", {"Input": X}, attrs)["Out"], X)
    assert np.shares_memory(run_op("reverse", {"X": X}, {"axis": [0]})["Out"], X)


def test_gradient_of_reverse_is_reverse() -> None:
    context = GradContext("reverse", {"X": ["x"]}, {"Out": ["y"]}, {"axis": [1]})
    (spec,) = kernels.find("reverse").grad_specs(context)
    assert (spec.type, spec.inputs) == ("reverse", {"X": ["y@GRAD"]})
    assert (spec.outputs, spec.attrs) == ({"Out": ["x@GRAD"]}, {"axis": [1]})


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        (
            {"starts": [5], "ends": [5], "strides": [1]},
            "5:5:1 leaves nothing of axis 0",
        ),
        ({"starts": [0], "ends": [5], "strides": [0]}, "the stride of axis 0 is 0"),
    ],
)
def test_inference_refuses(attrs: dict[str, Any], message: str) -> None:
    definition = kernels.find("strided_slice")
    given = {**definition.defaults, "axes": [0], **attrs}
    context = InferContext(
        "strided_slice", {"Input": [Meta((7, 6))]}, given, {"Out": 1}
    )
    with pytest.raises(InferError, match=message):
        definition.infer(context)
