"""Small layers of contrib: programs and values are the reference's."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_networks import answers, cases_of, check_programs, check_values

import fluidx
from fluidx.contrib import layers

ANSWERS, CASES = answers("contrib_small"), cases_of("contrib_small")


def test_all_cases_are_recorded() -> None:
    assert list(ANSWERS) == list(CASES)


@pytest.mark.parametrize("name", list(ANSWERS))
def test_programs_equal_the_reference(name: str) -> None:
    check_programs(CASES, name, ANSWERS[name])


@pytest.mark.parametrize("name", [n for n in ANSWERS if ANSWERS[n]["values"]])
def test_values_equal_the_reference(name: str) -> None:
    check_values(CASES, name, ANSWERS[name])


def test_each_run_shuffles_anew_and_its_gradients_go_back() -> None:
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x = fluidx.data("x", [None, 2])
        x.stop_gradient = False
        out = layers.shuffle_batch(x, seed=5)
        (slope,) = fluidx.gradients(fluidx.layers.reduce_sum(out * out), x)
        exe = fluidx.Executor(fluidx.CPUPlace())
        rows = np.arange(40, dtype="float32").reshape(20, 2)
        orders = []
        for _ in range(3):
            made, found = exe.run(feed={"x": rows}, fetch_list=[out, slope])
            assert sorted(made[:, 0].tolist()) == rows[:, 0].tolist()
            np.testing.assert_array_equal(made[:, 1], made[:, 0] + 1)
            np.testing.assert_array_equal(found, 2 * rows)
            orders.append(tuple(made[:, 0]))
        assert len(set(orders)) == 3
        with fluidx.scope_guard(fluidx.Scope()):
            again = exe.run(feed={"x": rows}, fetch_list=[out])[0]
        assert tuple(again[:, 0]) == orders[0]


def test_wrong_arguments() -> None:
    with fluidx.program_guard(fluidx.Program(), fluidx.Program()):
        x, y = fluidx.data("x", [None, 5]), fluidx.data("y", [None, 6])
        fused = layers.fused_elemwise_activation
        for wrong in (["relu"], "relu", ["a", "b", "c"], None):
            with pytest.raises(ValueError, match="functor_list must have two names"):
                fused(x, x, wrong)  # type: ignore[arg-type]
        with pytest.raises(fluidx.ir.BuildError, match="is none of"):
            fused(x, x, ["elementwise_mul", "relu"])
        with pytest.raises(fluidx.ir.BuildError, match="matrices of different widths"):
            layers.partial_concat([x, y])
        with pytest.raises(fluidx.ir.BuildError, match="start_index 5 is not in 5"):
            layers.partial_sum([x, x], start_index=5)
        with pytest.raises(fluidx.ir.BuildError, match="columns 3 to 7 of only 5"):
            layers.partial_concat([x, x], start_index=3, length=4)
        with pytest.raises(TypeError, match="must be of INT64, got FP32"):
            layers.fused_embedding_seq_pool(x, [7, 3])
        ids = fluidx.data("ids", [None, 1], "int64", 1)
        with pytest.raises(ValueError, match=r"padding_idx must be in \[-7, 7\)"):
            layers.fused_embedding_seq_pool(ids, [7, 3], padding_idx=7)
        with pytest.raises(fluidx.ir.BuildError, match="combiner must be 'sum'"):
            layers.fused_embedding_seq_pool(ids, [7, 3], combiner="mean")
        with pytest.raises(TypeError, match="seed must be an integer or a Variable"):
            layers.shuffle_batch(x, seed="3")
