"""lookup_table and lookup_table_v2, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

from fluidx import kernels
from fluidx.kernels import InferContext, Meta, SelectedRows, VarType

IDS = np.array([[1, 3, 1], [0, 4, 3]])


def _rows(x: dict, attrs: dict) -> dict:
    ids = x["Ids"]
    ids = ids[..., 0] if ids.shape[-1] == 1 else ids
    out = x["W"][ids]
    out[ids == attrs["padding_idx"]] = 0
    return {"Out": out}


CASES = [
    OpCase(op, {"W": normal(5, 3), "Ids": ids}, {"padding_idx": p, **s}, _rows)
    for op, ids in (("lookup_table", IDS[..., None]), ("lookup_table_v2", IDS))
    for p, s in ((-1, {}), (3, {}), (-1, {"is_sparse": True}))
]
test_embedding = suite(CASES)
test_against_reference = oracle_suite("array_ops", "lookup_table", "lookup_table_v2")


def test_sparse_gradient_is_the_output_gradient_itself() -> None:
    d_out = normal(2, 3, 4)
    table = normal(5, 4)
    grad = run_op(
        "lookup_table_v2_grad",
        {"W": table, "Ids": IDS, "Out@GRAD": d_out},
        {"is_sparse": True},
    )["W@GRAD"]
    assert isinstance(grad, SelectedRows)
    assert grad.rows.tolist() == [1, 3, 1, 0, 4, 3]
    assert grad.shape == table.shape
    assert np.shares_memory(grad.value, d_out)
    dense = run_op(
        "lookup_table_v2_grad", {"W": table, "Ids": IDS, "Out@GRAD": d_out}, {}
    )["W@GRAD"]
    np.testing.assert_allclose(grad.to_dense(), dense)


def test_table_is_needed_for_its_shape_only() -> None:
    assert kernels.find("lookup_table_grad").shape_only == {"W"}


@pytest.mark.parametrize("sparse", [False, True])
def test_inferred_kind_of_the_gradient(sparse: bool) -> None:
    definition = kernels.find("lookup_table_grad")
    metas = {
        "W": [Meta((5, 4))],
        "Ids": [Meta((-1, 1), VarType.INT64)],
        "Out@GRAD": [Meta((-1, 4))],
    }
    attrs = {**definition.defaults, "is_sparse": sparse}
    context = InferContext("lookup_table_grad", metas, attrs, {"W@GRAD": 1})
    definition.infer(context)
    (meta,) = context.outs["W@GRAD"]
    assert meta.shape == (5, 4)
    wanted = VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR
    assert meta.kind is wanted


@pytest.mark.parametrize("wrong", [5, -1])
def test_an_id_outside_the_table_is_named(wrong: int) -> None:
    ids = np.array([[1], [wrong]])
    with pytest.raises(
        IndexError, match=rf"lookup_table: id {wrong} is not in \[0, 5\)"
    ):
        run_op("lookup_table", {"W": normal(5, 3), "Ids": ids}, {})


def test_no_ids_give_no_rows() -> None:
    out = run_op("lookup_table", {"W": normal(5, 3), "Ids": np.zeros((0, 1), int)}, {})
    assert out["Out"].shape == (0, 3)
