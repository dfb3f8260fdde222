"""reshape, squeeze, unsqueeze, flatten, transpose."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels

EDITIONS = [
    (
        "reshape",
        {"shape": [0, -1, 2]},
        lambda x, a: {"Out": x["X"].reshape(2, 6, 2)},
    ),
    ("squeeze", {"axes": []}, lambda x, a: {"Out": x["X"].reshape(2, 3, 4)}),
    ("squeeze", {"axes": [-3]}, lambda x, a: {"Out": x["X"].reshape(2, 3, 4)}),
    ("unsqueeze", {"axes": [1, -1]}, lambda x, a: {"Out": x["X"][:, None, ..., None]}),
    ("flatten", {"axis": 2}, lambda x, a: {"Out": x["X"].reshape(2, 12)}),
    (
        "transpose",
        {"axis": [3, 1, 0, 2]},
        lambda x, a: {"Out": x["X"].transpose(3, 1, 0, 2)},
    ),
]
CASES = [
    OpCase(op + edition, {"X": normal(2, 1, 3, 4)}, attrs, expected)
    for op, attrs, expected in EDITIONS
    for edition in ("", "2")
]
test_manipulation = suite(CASES)
test_against_reference = oracle_suite(
    "array_ops",
    *{case.op for case in CASES},
)


@pytest.mark.parametrize(("op", "attrs"), [(op, a) for op, a, _ in EDITIONS])
def test_results_are_views_and_x_shape_is_empty(op: str, attrs: dict) -> None:
    x = normal(2, 1, 3, 4)
    outs = run_op(op + "2", {"X": x}, attrs)
    assert np.shares_memory(outs["Out"], x)
    assert outs["XShape"].shape == (0, 2, 1, 3, 4)
    assert outs["XShape"].nbytes == 0
    assert kernels.find(op).view
    assert kernels.find(op + "2").view


@pytest.mark.parametrize("op", ["reshape2", "transpose2"])
def test_gradient_views_its_first_input(op: str) -> None:
    grad = kernels.find(op + "_grad")
    assert grad.view
    assert grad.ins[0].name == "Out@GRAD"
    assert "XShape" in grad.shape_only


def test_reshape_names_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"reshape: cannot give \(2, 3\).*\(4, 2\)"):
        run_op("reshape2", {"X": normal(2, 3)}, {"shape": [4, 2]})
