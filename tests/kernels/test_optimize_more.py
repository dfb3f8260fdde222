"""Update ops against three steps of the reference each, dense and sparse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.oracle import update_ops
from opcase import TestContext, run_op
from strict_xp import strict_xp

from fluidx import kernels
from fluidx.kernels import InferContext, Meta, SelectedRows, VarType, as_dtype

DATA = json.loads(
    (Path(__file__).parents[1] / "golden/oracle/update_ops.json").read_text()
)
TAKEN = sorted(n for n, steps in DATA.items() if steps and n != "dpsgd-noisy-dense")
REFUSED = sorted(n for n, steps in DATA.items() if not steps)


def _start(name: str) -> tuple[str, dict[str, Any], dict[str, str], dict[str, Any]]:
    op, ins, outs, attrs = update_ops.CASES[name]
    values = {
        k: _sparse(v, 1.0) if isinstance(v, dict) else v.copy() for k, v in ins.items()
    }
    return op, values, outs, attrs


def _sparse(given: dict[str, Any], factor: float) -> SelectedRows:
    value = given["value"] * np.float32(factor)
    return SelectedRows(np.array(given["rows"], np.int64), value, given["height"])


def _grad(name: str, factor: float) -> Any:
    given = update_ops.CASES[name][1]["Grad"]
    if isinstance(given, dict):
        return _sparse(given, factor)
    return given * np.float32(factor)


@pytest.mark.parametrize("xp", [np, strict_xp()], ids=["numpy", "strict"])
@pytest.mark.parametrize("name", TAKEN)
def test_trajectory(name: str, xp: Any) -> None:
    op, values, outs, attrs = _start(name)
    for factor, expected in zip(update_ops.STEPS, DATA[name], strict=True):
        if "Grad" in values:
            values["Grad"] = _grad(name, factor)
        made = run_op(op, values, attrs, xp=xp)
        for slot, numbers in expected.items():
            got = made[outs[slot]]
            assert got.dtype == values[slot].dtype
            np.testing.assert_allclose(
                got.reshape(-1), numbers, 2e-5, 1e-6, err_msg=f"{slot} at {factor}"
            )
            if slot in kernels.find(op).inplace.values():
                assert got is values[slot], f"{slot} is not updated in place"


@pytest.mark.parametrize("name", REFUSED)
def test_sparse_gradients_that_the_reference_refuses(name: str) -> None:
    op, values, _, attrs = _start(name)
    with pytest.raises(TypeError, match=f"{op}: takes a dense gradient"):
        run_op(op, values, attrs)


def _meta(value: Any) -> Meta:
    sparse = isinstance(value, SelectedRows)
    kind = VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR
    return Meta(tuple(value.shape), as_dtype(value.dtype), 0, kind)


@pytest.mark.parametrize("name", [n for n in TAKEN if n.endswith("dense")])
def test_inference(name: str) -> None:
    op, values, outs, attrs = _start(name)
    definition = kernels.find(op)
    metas = {k: [_meta(v)] for k, v in values.items()}
    counts = {s.name: 1 for s in definition.outs}
    context = InferContext(op, metas, {**definition.defaults, **attrs}, counts)
    definition.infer(context)
    assert {s.name for s in definition.outs} == set(context.outs)
    for slot, out in outs.items():
        assert context.outs[out] == metas[slot]


@pytest.mark.parametrize("name", [n for n in TAKEN if "dense" in n])
def test_float64_stays_float64(name: str) -> None:
    op, values, outs, attrs = _start(name)
    values = {k: v.astype("float64") for k, v in values.items()}
    made = run_op(op, values, attrs)
    for slot, out in outs.items():
        assert made[out].dtype == np.float64
        np.testing.assert_allclose(
            made[out].reshape(-1), DATA[name][0][slot], 1e-4, 1e-5, err_msg=slot
        )


def test_wrong_gradient_shape_is_named() -> None:
    definition = kernels.find("lamb")
    metas = {s.name: [Meta((4, 3))] for s in definition.ins}
    metas["Grad"] = [Meta((3, 4))]
    context = InferContext("lamb", metas, {}, {s.name: 1 for s in definition.outs})
    with pytest.raises(ValueError, match=r"lamb: Param has shape \(4, 3\)"):
        definition.infer(context)


def test_dpsgd_noise_is_one_number_per_call() -> None:
    op, values, _, attrs = _start("dpsgd-noisy-dense")
    definition = kernels.find(op)
    quiet, noisy = [], []
    for sigma, found in ((0.0, quiet), (2.0, noisy)):
        context = TestContext()
        for _ in range(2000):
            param = values["Param"].copy()
            every = {**definition.defaults, **attrs, "sigma": sigma, "seed": 0}
            given = {k: every.get(k, context) for k in definition.keywords}
            assert definition.run is not None
            grad, rate = values["Grad"], values["LearningRate"]
            found.append(definition.run(np, param, grad, rate, **given))
    noise = (np.array(quiet) - np.array(noisy)) / 0.1 * attrs["batch_size"]
    np.testing.assert_allclose(noise, noise[:, :1, :1] + np.zeros((1, 4, 3)), 0, 1e-4)
    assert abs(noise[:, 0, 0].std() - 2.0) < 0.1
    assert abs(noise[:, 0, 0].mean()) < 0.15


def test_dpsgd_seed_repeats_the_noise() -> None:
    op, values, _, attrs = _start("dpsgd-noisy-dense")
    once = run_op(op, {**values, "Param": values["Param"].copy()}, attrs)["ParamOut"]
    again = run_op(op, values, attrs)["ParamOut"]
    np.testing.assert_array_equal(once, again)


def test_long_arrays_are_updated_whole() -> None:
    """Pieces of an array that does not fit a cache give the same as the whole."""
    size = 200_001
    rng = np.random.default_rng(4)
    for name in (n for n in TAKEN if n.endswith("dense") and "dpsgd" not in n):
        op, values, outs, attrs = _start(name)
        long = {
            k: rng.uniform(0.1, 1.0, size).astype("f4") if v.size > 1 else v.copy()
            for k, v in values.items()
        }
        if "MeanGrad" in long:  # its square must stay below the mean square
            long["MeanGrad"] *= np.float32(0.1)
        wide = {k: v.astype("f8") for k, v in long.items()}
        got, want = run_op(op, long, attrs), run_op(op, wide, attrs)
        for out in outs.values():
            np.testing.assert_allclose(got[out], want[out], 2e-4, 1e-5, err_msg=name)


def test_average_moves_its_precise_sum() -> None:
    """At update 16384 the first sum goes over into the second."""
    op, values, _, attrs = _start("average-carry")
    attrs = {**attrs, "min_average_window": 10**6, "max_average_window": 10**6}
    before = values["in_sum_1"] + values["in_sum_2"] + values["param"]
    made = run_op(op, values, attrs)
    assert not made["out_sum_1"].any()
    np.testing.assert_allclose(made["out_sum_2"], before, 1e-6)
    assert made["out_num_updates"].tolist() == [16384]


@pytest.mark.parametrize(("step", "begin"), [(0.0, 2.0), (5.0, -1.0)])
def test_dgc_clip_waits_for_its_step(step: float, begin: float) -> None:
    x = 10 * update_ops.PARAM
    attrs = {"max_norm": 1.0, "rampup_begin_step": begin}
    values = {"current_step": np.array([step], "f4"), "X": x}
    got = run_op("dgc_clip_by_norm", values, attrs)["Out"]
    np.testing.assert_array_equal(got, x)
    assert got is not x
