"""merge_selected_rows and get_tensor_from_selected_rows."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, run_op, suite

from fluidx.kernels import InferContext, Meta, SelectedRows, VarType, find

ROWS = np.array([4, 1, 4, 0])
VALUE = np.arange(8.0).reshape(4, 2)
X = SelectedRows(ROWS, VALUE, 6)

test_row_ops = suite(
    [
        OpCase("merge_selected_rows", {"X": X}, expected={"Out": X.to_dense()}),
        OpCase("get_tensor_from_selected_rows", {"X": X}, expected={"Out": VALUE}),
    ]
)


def test_merged_rows_are_sorted_and_single() -> None:
    """The numbers are the reference's."""
    merged = run_op("merge_selected_rows", {"X": X}, {})["Out"]
    assert merged.rows.tolist() == [0, 1, 4]
    assert merged.value.tolist() == [[6.0, 7.0], [2.0, 3.0], [4.0, 6.0]]
    assert merged.height == 6
    values = run_op("get_tensor_from_selected_rows", {"X": merged}, {})["Out"]
    assert values is merged.value


@pytest.mark.parametrize(
    "name", ["merge_selected_rows", "get_tensor_from_selected_rows"]
)
def test_dense_input_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: X must be SelectedRows"):
        run_op(name, {"X": VALUE}, {})


def test_inferred_kinds() -> None:
    sparse = Meta((6, 2), VarType.FP32, 0, VarType.SELECTED_ROWS)
    for name, kind, shape in (
        ("merge_selected_rows", VarType.SELECTED_ROWS, (6, 2)),
        ("get_tensor_from_selected_rows", VarType.LOD_TENSOR, (-1, 2)),
    ):
        context = InferContext(name, {"X": [sparse]}, {}, {"Out": 1})
        find(name).infer(context)
        (out,) = context.outs["Out"]
        assert (out.kind, out.shape) == (kind, shape)
