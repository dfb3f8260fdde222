"""split_byref, split_selected_rows, fake_init, distributed_lookup_table."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, TestContext, normal, run_op, suite

from fluidx import kernels
from fluidx.kernels import GradContext, InferContext, InferError, Meta, SelectedRows

SPARSE = SelectedRows(np.array([5, 0, 3, 5]), normal(4, 3), 7)


def rows_of(low, high):
    """The part of SPARSE in these rows, as a dense tensor."""
    return SPARSE.to_dense()[low:high]


CASES = [
    OpCase(
        "split_byref",
        {"X": normal(5, 3)},
        {"sections": [2, 2, 1]},
        lambda x, a: {"Out": [x["X"][:2], x["X"][2:4], x["X"][4:]]},
        name="rows",
        out_counts={"Out": 3},
    ),
    OpCase(
        "split_byref",
        {"X": normal(6)},
        {"num": 3},
        lambda x, a: {"Out": [x["X"][:2], x["X"][2:4], x["X"][4:]]},
        name="equal",
        out_counts={"Out": 3},
        grad=(),  # `concat` along axis 0, as the case above shows
    ),
    OpCase(
        "split_selected_rows",
        {"X": SPARSE},
        {"height_sections": [3, 1, 3]},
        {"Out": [rows_of(0, 3), rows_of(3, 4), rows_of(4, 7)]},
        out_counts={"Out": 3},
        grad=(),  # its gradient op is `sum`; see test_gradient_ops
    ),
    OpCase(
        "fake_init",
        {},
        {"shape": [4, 2]},
        {"Out": np.zeros((4, 2))},
    ),
]

test_sharding = suite(CASES)


def test_slices_are_views():
    x = np.arange(6.0)
    pieces = run_op("split_byref", {"X": x}, {"sections": [4, 2]}, counts={"Out": 2})
    assert all(np.shares_memory(x, piece) for piece in pieces["Out"])


def test_sparse_slices_have_local_row_numbers():
    pieces = run_op(
        "split_selected_rows",
        {"X": SPARSE},
        {"height_sections": [4, 3]},
        counts={"Out": 2},
    )["Out"]
    assert [p.rows.tolist() for p in pieces] == [[0, 3], [1, 1]]
    assert [p.height for p in pieces] == [4, 3]


def test_gradient_ops():
    for type, made in (("split_byref", "concat"), ("split_selected_rows", "sum")):
        context = GradContext(type, {"X": ["x"]}, {"Out": ["a", "b"]}, {})
        (spec,) = kernels.find(type).grad_specs(context)
        assert spec.type == made
        assert spec.inputs == {"X": ["a@GRAD", "b@GRAD"]}
        assert spec.outputs == {"Out": ["x@GRAD"]}


def test_sections_must_fit():
    with pytest.raises(ValueError, match=r"sections \[2, 2\] for 5 rows and 2 outputs"):
        run_op("split_byref", {"X": normal(5)}, {"sections": [2, 2]}, counts={"Out": 2})
    with pytest.raises(ValueError, match="5 rows do not make 2 equal parts"):
        run_op("split_byref", {"X": normal(5)}, {"num": 2}, counts={"Out": 2})
    with pytest.raises(TypeError, match="not a SelectedRows"):
        run_op(
            "split_selected_rows",
            {"X": normal(5)},
            {"height_sections": [5]},
            counts={"Out": 1},
        )
    context = InferContext(
        "split_byref",
        {"X": [Meta((5, 2))]},
        {"sections": [2, 2], "num": 0},
        {"Out": 2},
    )
    with pytest.raises(InferError, match="do not add up to 5 rows"):
        kernels.find("split_byref").infer(context)


def test_a_fake_table_takes_no_memory():
    table = run_op("fake_init", {}, {"shape": [10**12, 64]})["Out"]
    assert table.shape == (10**12, 64)
    assert table.dtype == np.float32
    assert set(table.strides) == {0}
    assert table[10**11, 3] == 0


class Tables:
    """The RPC side of a lookup: whole tables at hand, and a note of what was asked."""

    def __init__(self, **tables):
        self.tables = tables
        self.asked = []

    def lookup(self, requests, trainer_id):
        self.asked += [(e, t, r.tolist(), trainer_id) for e, t, r in requests]
        return [self.tables[t][r] for _, t, r in requests]


WHOLE = np.arange(20, dtype="f4").reshape(10, 2)
ATTRS = {
    "table_names": ["a", "b"],
    "endpoints": ["e0", "e1"],
    "height_sections": [6, 4],
    "trainer_id": 3,
}


def lookup(ids, **more):
    """Run the op over two servers; its outputs, and what was asked of them."""
    definition = kernels.find("distributed_lookup_table")
    context = TestContext()
    context.rpc = Tables(a=WHOLE[:6], b=WHOLE[6:])
    every = {**definition.defaults, **ATTRS, **more}
    given = {k: context if k == "ctx" else every[k] for k in definition.keywords}
    table = np.broadcast_to(np.zeros((), "f4"), (10, 2))
    return definition.run(np, ids, table, **given), context.rpc.asked


def test_lookup_asks_each_server_once_for_each_row():
    ids = [np.array([[7], [2], [7]]), np.array([[9], [2]])]
    outs, asked = lookup(ids)
    assert asked == [("e0", "a", [2], 3), ("e1", "b", [1, 3], 3)]
    for out, i in zip(outs, ids):
        np.testing.assert_array_equal(out, WHOLE[i[:, 0]])
        assert out.dtype == np.float32


def test_lookup_leaves_out_servers_without_rows():
    (out,), asked = lookup([np.array([[1], [0]])])
    assert asked == [("e0", "a", [0, 1], 3)]
    np.testing.assert_array_equal(out, WHOLE[[1, 0]])


def test_lookup_version_2_appends_a_dimension():
    ids = np.array([[7, 2, 0], [9, 9, 6]])
    (out,), _ = lookup([ids], lookup_table_version="lookup_table_v2")
    np.testing.assert_array_equal(out, WHOLE[ids])


def test_padding_rows_are_zeros_and_not_asked_for():
    ids = np.array([[7], [2], [8]])
    (out,), asked = lookup([ids], padding_idx=2)
    assert asked == [("e1", "b", [1, 2], 3)]
    np.testing.assert_array_equal(out, [[14, 15], [0, 0], [16, 17]])
    (out,), asked = lookup([np.array([[2]])], padding_idx=2)
    assert asked == []
    np.testing.assert_array_equal(out, [[0, 0]])


def test_lookup_of_nothing():
    (out,), asked = lookup([np.zeros((0, 1), np.int64)])
    assert asked == []
    assert out.shape == (0, 2)


@pytest.mark.parametrize("bad", [-1, 10])
def test_ids_must_be_in_the_table(bad):
    with pytest.raises(ValueError, match=rf"id {bad} is not in \[0, 10\)"):
        lookup([np.array([[3], [bad]])])


def test_lookup_inference():
    definition = kernels.find("distributed_lookup_table")
    for version, ids, shape in (
        ("lookup_table", (-1, 1), (-1, 8)),
        ("lookup_table_v2", (-1, 3), (-1, 3, 8)),
    ):
        context = InferContext(
            "distributed_lookup_table",
            {"Ids": [Meta(ids, kernels.VarType.INT64)], "W": [Meta((100, 8))]},
            {**definition.defaults, "lookup_table_version": version},
            {"Outputs": 1},
        )
        definition.infer(context)
        assert context.outs["Outputs"][0].shape == shape
        assert context.outs["Outputs"][0].dtype == kernels.VarType.FP32
