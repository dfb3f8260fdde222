"""Ops that choose, split rows, and read and write arrays of tensors."""

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite

from fluidx import kernels
from fluidx.kernels import GradContext, SelectedRows
from fluidx.kernels.tensor_array import add_values, zeros_for

MASK = np.array([[True], [False], [True], [True]])


def mask(value):
    return np.array([value], "int32")


test_choice = suite(
    [
        OpCase(
            "select_input",
            {"X": [normal(2, 3), normal(4, seed=1)], "Mask": mask(1)},
            {},
            lambda x, a: {"Out": x["X"][1]},
            grad=(),
            infer=False,
        ),
        OpCase(
            "rnn_memory_helper",
            {"X": normal(2, 3)},
            {},
            lambda x, a: {"Out": x["X"]},
        ),
        OpCase(
            "split_lod_tensor",
            {"X": normal(4, 2), "Mask": MASK},
            {},
            lambda x, a: {"OutTrue": x["X"][[0, 2, 3]], "OutFalse": x["X"][[1]]},
            infer=False,
        ),
        OpCase(
            "merge_lod_tensor",
            {
                "X": MASK,
                "Mask": MASK,
                "InTrue": normal(3, 2),
                "InFalse": normal(1, 2, seed=1),
            },
            {},
            lambda x, a: {
                "Out": np.concatenate([x["InTrue"], x["InFalse"]])[[0, 3, 1, 2]]
            },
            infer=False,
        ),
    ]
)


def test_select_output():
    x = normal(2, 3)
    out = run_op("select_output", {"X": x, "Mask": mask(1)}, {}, counts={"Out": 3})
    assert [v is x for v in out["Out"]] == [False, True, False]
    assert out["Out"][0] is None


def test_choosing_what_is_not_there():
    with pytest.raises(ValueError, match="select_input: Mask is 2, there are 2"):
        run_op("select_input", {"X": [normal(1), normal(1)], "Mask": mask(2)}, {})
    with pytest.raises(ValueError, match="chosen input has no value"):
        run_op("select_input", {"X": [None, normal(1)], "Mask": mask(0)}, {})
    with pytest.raises(ValueError, match="Mask has 4 elements, X 3 rows"):
        run_op("split_lod_tensor", {"X": normal(3, 2), "Mask": MASK}, {})


# --- arrays --------------------------------------------------------------------------


def write(x, i, prior=None, name="array"):
    run = kernels.find("write_to_array").run
    return run(np, x, np.array([i]), prior=prior, names={"Out": [name]})


def read(array, i, like=None, name="array"):
    run = kernels.find("read_from_array").run
    return run(np, array, np.array([i]), like, names={"X": [name]})


def test_an_array_grows():
    array = write(normal(2), 2)
    assert [v is None for v in array] == [True, True, False]
    assert write(normal(3), 0, array) is array
    assert read(array, 0).shape == (3,)
    length = run_op("lod_array_length", {"X": array}, {})["Out"]
    assert length.tolist() == [3]
    assert length.dtype == np.int64
    assert run_op("lod_array_length", {"X": None}, {})["Out"].tolist() == [0]


def test_arrays_of_gradients_add_up_and_give_up():
    array = write(np.ones(2), 1, name="a@GRAD")
    write(np.ones(2), 1, array, "a@GRAD")
    assert read(array, 1, np.zeros(2), "a@GRAD").tolist() == [2, 2]
    assert read(array, 1, np.zeros(2), "a@GRAD").tolist() == [0, 0]
    assert read(None, 5, np.zeros(2), "a@GRAD").tolist() == [0, 0]


def test_bad_indices():
    with pytest.raises(IndexError, match="nothing was written at index 1"):
        read([np.ones(1)], 1)
    with pytest.raises(ValueError, match="index I is -1"):
        write(np.ones(1), -1)
    with pytest.raises(ValueError, match="I must have one element"):
        kernels.find("read_from_array").run(
            np, [], np.array([1, 2]), None, names={"X": ["a"]}
        )


def test_gradients_of_array_ops_are_array_ops():
    """As the reference's: reading the gradient of what was written, and back."""
    for type, ins, grad in (
        ("write_to_array", {"X": ["x"], "I": ["i"]}, "read_from_array"),
        ("read_from_array", {"X": ["x"], "I": ["i"]}, "write_to_array"),
    ):
        context = GradContext(type, ins, {"Out": ["y"]}, {})
        [spec] = kernels.find(type).grad_specs(context)
        assert (spec.type, spec.inputs["X"], spec.outputs["Out"]) == (
            grad,
            ["y@GRAD"],
            ["x@GRAD"],
        )


def test_sums_of_gradients():
    rows = SelectedRows(np.array([1, 2]), np.ones((2, 2)), 4)
    assert add_values(np, None, rows) is rows
    both = add_values(np, rows, rows)
    assert both.rows.tolist() == [1, 2, 1, 2]
    dense = add_values(np, rows, np.ones((4, 2)))
    assert dense[:, 0].tolist() == [1, 2, 2, 1]
    arrays = add_values(np, [np.ones(1)], [np.ones(1), None, np.ones(2)])
    assert [None if v is None else v.tolist() for v in arrays] == [[2], None, [1, 1]]
    out = run_op("sum", {"X": [[np.ones(1)], [None, np.ones(1)]]}, {})["Out"]
    assert [v.tolist() for v in out] == [[1], [1]]
    assert zeros_for(np, [1, 2]) == []
    assert zeros_for(np, rows).value.sum() == 0
    assert run_op("fill_zeros_like", {"X": None}, {}) == {}
