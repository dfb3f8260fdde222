"""Rank tables: sequences cut into steps and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import output_lods, run_op
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import GradContext, InferContext, InferError, Meta, VarType
from fluidx.kernels.rank_table import RankTable
from fluidx.kernels.tensor_array import TensorArray, add_values

LEVELS = [
    [[0, 1, 4, 6]],
    [[0, 0, 3, 3, 5, 6, 6]],
    [[0, 2, 4, 6]],
    [[0, 6]],
    [[0, 1, 2, 3, 4, 5, 6]],
]
NESTED = [[0, 1, 4, 6], [0, 2, 3, 3, 5, 6, 8]]


def ramp(rows: int) -> Any:
    return np.arange(rows * 2.0).reshape(rows, 2)


def cut(x: Any, levels: Any, level: int = 0, xp: Any = np) -> tuple[Any, Any]:
    """The rank table and the steps of x."""
    lod = {"X": levels}
    table = run_op("lod_rank_table", {"X": x}, {"level": level}, lod=lod, xp=xp)["Out"]
    inputs = {"X": x, "RankTable": table}
    return table, run_op("lod_tensor_to_array", inputs, {}, lod=lod, xp=xp)["Out"]


def by_loops(x: Any, offsets: list[int]) -> list[Any]:
    """Step t of all sequences that have one, the longest first."""
    parts = [x[a:b] for a, b in zip(offsets, offsets[1:])]
    parts.sort(key=len, reverse=True)  # stable
    longest = len(parts[0])
    return [np.array([p[t] for p in parts if len(p) > t]) for t in range(longest)]


@pytest.mark.parametrize("levels", LEVELS)
def test_steps(levels: Any) -> None:
    x = ramp(6)
    x[4, 0] = np.nan
    table, steps = cut(x, levels)
    wanted = by_loops(x, levels[0])
    assert len(steps) == len(wanted)
    for step, rows in zip(steps, wanted):
        np.testing.assert_array_equal(step, rows)
    longest = run_op("max_sequence_len", {"RankTable": table}, {})["Out"]
    assert longest.dtype == np.int64
    assert longest.tolist() == [len(wanted)]


@pytest.mark.parametrize(
    ("levels", "level"), [*((each, 0) for each in LEVELS), (NESTED, 0), (NESTED, 1)]
)
def test_there_and_back(levels: Any, level: int) -> None:
    x = ramp(levels[-1][-1])
    table, steps = cut(x, levels, level)
    inputs = {"X": steps, "RankTable": table}
    np.testing.assert_array_equal(run_op("array_to_lod_tensor", inputs, {})["Out"], x)
    assert output_lods("array_to_lod_tensor", {}, inputs, {})["Out"] == levels


def test_an_element_may_be_a_sequence() -> None:
    x = ramp(8)
    table, steps = cut(x, NESTED)
    assert table == ((1, 3), (2, 2), (0, 1))
    # element 1 of the second and third sequence: nothing, and two rows
    np.testing.assert_array_equal(steps[1], x[6:])
    assert [steps.of(t) for t in range(3)] == [[[0, 1, 2, 4]], [[0, 0, 2]], [[0, 2]]]


def test_without_lod_each_row_is_a_sequence() -> None:
    table, steps = cut(ramp(3), None)
    assert table == ((0, 1), (1, 1), (2, 1))
    np.testing.assert_array_equal(steps[0], ramp(3))


def test_no_sequences_have_no_steps() -> None:
    table, steps = cut(ramp(0), [[0, 0, 0]])
    assert (table, list(steps)) == (((0, 0), (1, 0)), [])
    assert run_op("max_sequence_len", {"RankTable": table}, {})["Out"].tolist() == [0]
    none, steps = cut(ramp(0), [[0]])
    assert (none, list(steps)) == ((), [])
    assert run_op("max_sequence_len", {"RankTable": none}, {})["Out"].tolist() == [0]
    with pytest.raises(ValueError, match="X has 0 elements"):
        run_op("array_to_lod_tensor", {"X": steps, "RankTable": table}, {})


def head(x: Any, step: int, levels: Any = None) -> tuple[Any, Any]:
    table = RankTable([(1, 3), (2, 2), (0, 1)])
    inputs = {"X": x, "RankTable": table, "I": np.array([step])}
    lod = {"X": levels}
    made = run_op("shrink_rnn_memory", inputs, {}, lod=lod)["Out"]
    return made, output_lods("shrink_rnn_memory", lod, inputs, {}).get("Out")


@pytest.mark.parametrize(("step", "count"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_a_state_shrinks(step: int, count: int) -> None:
    x = ramp(3)
    made, lod = head(x, step)
    np.testing.assert_array_equal(made, x[:count])
    assert lod is None
    back = {"X": x, "Out@GRAD": np.ones((count, 2))}
    slope = run_op("shrink_rnn_memory_grad", back, {})["X@GRAD"]
    np.testing.assert_array_equal(slope[:count], np.ones((count, 2)))
    assert not slope[count:].any()


def test_sequences_shrink() -> None:
    made, lod = head(ramp(7), 1, [[0, 3, 5, 7]])
    np.testing.assert_array_equal(made, ramp(7)[:5])
    assert lod == [[0, 3, 5]]
    assert head(ramp(6), 2, [[0, 2, 3, 3], [0, 1, 4, 6]])[1] == [[0, 2], [0, 1, 4]]


def test_a_gradient_that_does_not_come_is_zero() -> None:
    back = {"X": ramp(3), "Out@GRAD": None}
    assert not run_op("shrink_rnn_memory_grad", back, {})["X@GRAD"].any()


def test_gradients_go_back_the_same_way() -> None:
    for here, there in (
        ("lod_tensor_to_array", "array_to_lod_tensor"),
        ("array_to_lod_tensor", "lod_tensor_to_array"),
    ):
        names = {"X": ["x"], "RankTable": ["t"]}
        context = GradContext(here, names, {"Out": ["y"]}, {})
        (spec,) = kernels.find(here).grad_specs(context)
        assert spec.type == there
        assert spec.inputs == {"X": ["y@GRAD"], "RankTable": ["t"]}
        assert spec.outputs == {"Out": ["x@GRAD"]}


def test_it_needs_only_what_cupy_has() -> None:
    x, xp = ramp(6), strict_xp()
    table, steps = cut(x, LEVELS[0], xp=xp)
    inputs = {"X": steps, "RankTable": table}
    back = run_op("array_to_lod_tensor", inputs, {}, xp=xp)["Out"]
    np.testing.assert_array_equal(back, x)
    i = {"X": x[:3], "RankTable": table, "I": np.array([1])}
    assert len(run_op("shrink_rnn_memory", i, {}, xp=xp)["Out"]) == 2


TABLE = RankTable([(1, 3), (2, 2), (0, 1)])


@pytest.mark.parametrize(
    ("type", "inputs", "levels", "told"),
    [
        ("lod_rank_table", {"X": ramp(6)}, [[0, 6]], "1 levels of sequences, level is"),
        (
            "lod_tensor_to_array",
            {"X": ramp(6), "RankTable": TABLE},
            [[0, 1, 3, 6]],
            r"lengths \[1, 2, 3\], RankTable ranks \[1, 3, 2\]",
        ),
        (
            "array_to_lod_tensor",
            {"X": [ramp(3)], "RankTable": TABLE},
            None,
            "X has 1 elements, the longest sequence of RankTable 3 steps",
        ),
        (
            "array_to_lod_tensor",
            {"X": [ramp(3), ramp(3), ramp(1)], "RankTable": TABLE},
            None,
            "have 7 rows, the sequences of RankTable 6",
        ),
        (
            "shrink_rnn_memory",
            {"X": ramp(3), "RankTable": TABLE, "I": np.array([0, 1])},
            None,
            "I must have one element",
        ),
    ],
)
def test_refusals(type: str, inputs: Any, levels: Any, told: str) -> None:
    attrs = {"level": 1} if type == "lod_rank_table" else {}
    with pytest.raises(ValueError, match=told):
        run_op(type, inputs, attrs, lod={"X": levels})


def _infer(type: str, x: Meta, table: VarType = VarType.LOD_RANK_TABLE) -> Meta:
    ins = {"X": [x], "RankTable": [Meta((), kind=table)], "I": [Meta((1,))]}
    context = InferContext(type, ins, {"level": 0}, {"Out": 1})
    kernels.find(type).infer(context)
    return context.outs["Out"][0]


def test_inference() -> None:
    x = Meta((-1, 3), VarType.FP32, 2)
    steps = _infer("lod_tensor_to_array", x)
    assert steps == Meta((-1, 3), VarType.FP32, 1, VarType.LOD_TENSOR_ARRAY)
    assert _infer("array_to_lod_tensor", steps) == x
    assert _infer("shrink_rnn_memory", x) == x
    assert _infer("lod_rank_table", x).kind == VarType.LOD_RANK_TABLE
    assert _infer("max_sequence_len", x) == Meta((1,), VarType.INT64)
    with pytest.raises(InferError, match="RankTable must be a rank table"):
        _infer("lod_tensor_to_array", x, VarType.LOD_TENSOR)


def test_arrays_keep_the_lod_of_their_elements() -> None:
    write, read = (kernels.find(f"{n}_array") for n in ("write_to", "read_from"))
    names = {"Out": ["a"], "X": ["x"]}
    array = None
    for index, levels in ((1, [[0, 2]]), (0, None)):
        i, lod = np.array([index]), {"X": levels}
        array = write.run(np, ramp(2), i, prior=array, names=names, lod=lod)
    for index, levels in ((0, None), (1, [[0, 2]])):
        values = {"X": array, "I": np.array([index])}
        assert read.lod_rule({}, values, {})["Out"] == levels
    write.run(np, ramp(2), np.array([1]), prior=array, names=names)
    assert array.of(1) is None


def test_sums_of_arrays_keep_it_too() -> None:
    a, b = TensorArray([ramp(1)]), TensorArray([ramp(1), ramp(2)])
    b.lods = {1: [[0, 2]]}
    total = add_values(np, a, b)
    assert [t.tolist() for t in total] == [[[0, 2]], [[0, 1], [2, 3]]]
    assert total.of(1) == [[0, 2]]
    summed = run_op("sum", {"X": [a, b]}, {})["Out"]
    assert summed.of(1) == [[0, 2]]
