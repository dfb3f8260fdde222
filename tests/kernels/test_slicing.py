"""concat, split, slice, stack, unstack, expand."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import GradContext, InferContext, InferError, Meta

A, B, C = normal(2, 3), normal(2, 1, seed=1), normal(2, 2, seed=2)
CASES = [
    OpCase(
        "concat",
        {"X": [A, B, C]},
        {"axis": -1},
        lambda x, a: {"Out": np.concatenate(x["X"], 1)},
    ),
    OpCase(
        "concat",
        {"X": [A, A + 1], "AxisTensor": np.array([0], "i4")},
        {"axis": 1},
        lambda x, a: {"Out": np.concatenate(x["X"], 0)},
        "axis-tensor",
    ),
    OpCase(
        "split",
        {"X": normal(4, 6)},
        {"axis": -1, "num": 3},
        lambda x, a: {"Out": [x["X"][:, :2], x["X"][:, 2:4], x["X"][:, 4:]]},
        out_counts={"Out": 3},
    ),
    OpCase(
        "split",
        {"X": normal(6, 2)},
        {"axis": 0, "sections": [1, -1, 2]},
        lambda x, a: {"Out": [x["X"][:1], x["X"][1:4], x["X"][4:]]},
        "rest",
        out_counts={"Out": 3},
    ),
    OpCase(
        "split",
        {
            "X": normal(6, 2),
            "AxisTensor": np.array([0], "i4"),
            "SectionsTensorList": [np.array([2], "i4"), np.array([4], "i4")],
        },
        {"axis": 1, "sections": [-1, -1]},
        lambda x, a: {"Out": [x["X"][:2], x["X"][2:]]},
        "tensors",
        out_counts={"Out": 2},
    ),
    OpCase(
        "slice",
        {"Input": normal(4, 5, 3)},
        {"axes": [0, 2], "starts": [-3, 0], "ends": [100, -1]},
        lambda x, a: {"Out": x["Input"][-3:, :, :-1]},
    ),
    OpCase(
        "slice",
        {"Input": normal(4, 5, 3)},
        {"axes": [1], "starts": [-2], "ends": [-1], "decrease_axis": [1]},
        lambda x, a: {"Out": x["Input"][:, 3]},
        "decrease",
    ),
    OpCase(
        "slice",
        {"Input": normal(3)},
        {"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]},
        lambda x, a: {"Out": x["Input"][1:2]},
        "to-one",
    ),
    OpCase(
        "slice",
        {
            "Input": normal(4, 3),
            "StartsTensor": np.array([1, 0], "i4"),
            "EndsTensor": np.array([3, 2], "i4"),
        },
        {"axes": [0, 1], "infer_flags": [-1, -1]},
        lambda x, a: {"Out": x["Input"][1:3, :2]},
        "tensors",
    ),
    OpCase(
        "stack",
        {"X": [A, A * 2, A - 1]},
        {"axis": -1},
        lambda x, a: {"Y": np.stack(x["X"], 2)},
    ),
    OpCase(
        "unstack",
        {"X": normal(2, 3, 4)},
        {"axis": -2, "num": 3},
        lambda x, a: {"Y": [x["X"][:, i] for i in range(3)]},
        out_counts={"Y": 3},
    ),
    OpCase(
        "expand",
        {"X": normal(2, 1, 3)},
        {"expand_times": [2, 3, 1]},
        lambda x, a: {"Out": np.tile(x["X"], (2, 3, 1))},
    ),
    OpCase(
        "expand",
        {"X": normal(2, 1), "expand_times_tensor": [np.array([2]), np.array([3])]},
        {"expand_times": [-1, 3]},
        lambda x, a: {"Out": np.tile(x["X"], (2, 3))},
        "tensors",
    ),
]
test_slicing = suite(CASES)
test_against_reference = oracle_suite("array_ops", *{case.op for case in CASES})


def test_split_and_slice_are_views() -> None:
    x = normal(4, 6)
    for part in run_op("split", {"X": x}, {"axis": 1, "num": 2})["Out"]:
        assert np.shares_memory(part, x)
    attrs = {"axes": [0], "starts": [1], "ends": [3]}
    assert np.shares_memory(run_op("slice", {"Input": x}, attrs)["Out"], x)


def test_gradient_of_concat_gives_views_of_each_part() -> None:
    d_out = normal(2, 6)
    grads = run_op("concat_grad", {"X": [A, B, C], "Out@GRAD": d_out}, {"axis": 1})[
        "X@GRAD"
    ]
    assert [g.shape for g in grads] == [(2, 3), (2, 1), (2, 2)]
    assert all(np.shares_memory(g, d_out) for g in grads)


def test_gradient_of_split_is_concat() -> None:
    attrs = {"axis": 1, "num": 2, "sections": []}
    context = GradContext("split", {"X": ["x"]}, {"Out": ["a", "b"]}, attrs)
    (spec,) = kernels.find("split").grad_specs(context)
    assert spec.type == "concat"
    assert spec.inputs == {"X": ["a@GRAD", "b@GRAD"]}
    assert spec.outputs == {"Out": ["x@GRAD"]}
    assert spec.attrs == attrs


def _infer(op: str, metas: dict, attrs: dict, **counts: int) -> None:
    definition = kernels.find(op)
    context = InferContext(op, metas, {**definition.defaults, **attrs}, counts)
    definition.infer(context)


def test_inference_refuses() -> None:
    x, y = Meta((2, 3)), Meta((3, 3))
    with pytest.raises(InferError, match=r"concat: \(2, 3\) and \(3, 3\) differ"):
        _infer("concat", {"X": [x, y]}, {"axis": 1}, Out=1)
    with pytest.raises(InferError, match="concat: axis 2 is not one of 2 axes"):
        _infer("concat", {"X": [x, x]}, {"axis": 2}, Out=1)
    with pytest.raises(InferError, match="split: makes 3 pieces for 2 outputs"):
        _infer("split", {"X": [x]}, {"axis": 1, "num": 3}, Out=2)
    given = {"axes": [0], "starts": [2], "ends": [1]}
    with pytest.raises(InferError, match="leaves nothing of axis 0"):
        _infer("slice", {"Input": [x]}, given, Out=1)
    with pytest.raises(InferError, match="stack: shapes differ"):
        _infer("stack", {"X": [x, y]}, {"axis": 0}, Y=1)
