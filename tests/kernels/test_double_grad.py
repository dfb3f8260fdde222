"""Gradients of gradients: the reference's programs and values, finite differences."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strict_xp import strict_xp

import fluidx
from fluidx import kernels

GOLDEN = Path(__file__).parents[1] / "golden"
PATHS = [str(GOLDEN / "oracle"), str(GOLDEN / "transpiler")]
sys.path[:0] = PATHS
import compare  # noqa: E402
import double_grad as oracle  # noqa: E402
import dump  # noqa: E402

for _path in PATHS:
    sys.path.remove(_path)

CASES = sorted(oracle.cases.CASES)
with lzma.open(oracle.FILE, "rt") as _file:
    RECORDED = json.load(_file)

#: where the reference has no second gradient: it refuses or finds none
OURS = {
    "conv2d_second",
    "conv3d_second",
    "elementwise_div_row_second",
    "instance_norm_bias",
    "instance_norm_scale",
}
#: the reference's kernel crashes
CRASHES = {"elementwise_mul_second"}


def test_all_cases_are_recorded() -> None:
    assert sorted(RECORDED) == CASES


def test_every_exception_is_one() -> None:
    assert {c for c in CASES if not RECORDED[c]["gradients"]} == OURS
    values = {c for c in CASES if not RECORDED[c]["values"]}
    assert values == OURS | CRASHES


def test_all_second_gradients_have_a_case() -> None:
    built = {
        op["type"]
        for case in RECORDED.values()
        if case["program"]
        for op in case["program"]["blocks"][0]["ops"]
    }
    assert built >= set(kernels.all_types("_grad_grad$"))


def _normal(program: Any) -> Any:
    """Without the shape ops' outputs, for which the reference infers nothing."""
    for block in program["blocks"]:
        kept = {n: v for n, v in block["vars"].items() if not n.endswith("_shape")}
        block["vars"] = kept
    return program


@pytest.mark.parametrize("case", [c for c in CASES if c not in OURS])
def test_programs_equal_the_reference(case: str) -> None:
    main, inputs, _, grads = oracle.build(fluidx, case)
    mine = _normal(json.loads(json.dumps(dump.dump(main))))
    assert compare.compare(_normal(RECORDED[case]["program"]), mine) == []
    made = {v.name: g.name for v, g in zip(inputs, grads) if g is not None}
    assert made == RECORDED[case]["gradients"]


@pytest.mark.parametrize("case", sorted(set(CASES) - OURS - CRASHES))
def test_values_equal_the_reference(case: str) -> None:
    main, *_ = oracle.build(fluidx, case)
    names = RECORDED[case]["gradients"]
    feed = oracle.feed_of(main, "float32")
    got = fluidx.Executor().run(main, feed=feed, fetch_list=list(names.values()))
    for name, value in zip(names, got):
        wanted = RECORDED[case]["values"][name]
        np.testing.assert_allclose(
            value.reshape(-1), wanted, rtol=2e-3, atol=2e-4, err_msg=name
        )


@pytest.mark.parametrize("case", CASES)
def test_finite_differences(case: str) -> None:
    main, inputs, squares, grads = oracle.build(fluidx, case, "float64")
    feed = oracle.feed_of(main, "float64")
    exe = fluidx.Executor()

    def total() -> float:
        return sum(float(v.sum()) for v in exe.run(main, feed, squares))

    for var, grad in zip(inputs, grads):
        assert grad is not None, var.name
        given = exe.run(main, feed, [grad])[0]
        array, wanted = feed[var.name], np.empty(var.shape)
        for at in np.ndindex(*var.shape):
            kept, around = array[at], []
            for step in (1e-5, -1e-5):
                array[at] = kept + step
                around.append(total())
            array[at] = kept
            wanted[at] = (around[0] - around[1]) / 2e-5
        np.testing.assert_allclose(given, wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_kernels_use_what_cupy_has(case: str) -> None:
    main, inputs, _, grads = oracle.build(fluidx, case)
    exe, proxied = fluidx.Executor(), fluidx.Executor()
    feed = oracle.feed_of(main, "float32")
    fetch = [g for g in grads if g is not None]
    plain = exe.run(main, feed=feed, fetch_list=fetch)
    proxied.xp = strict_xp()
    for a, b in zip(plain, proxied.run(main, feed=feed, fetch_list=fetch)):
        np.testing.assert_array_equal(a, b)


def test_a_gradient_penalty_trains() -> None:
    """The slope of a critic is driven to one."""
    layers = fluidx.layers
    x = fluidx.data("x", [8, 3])
    x.stop_gradient = False
    hidden = layers.fc(x, 16)
    score = layers.fc(layers.leaky_relu(hidden, 0.2), 1)
    (slope,) = fluidx.gradients(score, x)
    steepness = layers.sqrt(layers.reduce_sum(layers.square(slope), 1))
    loss = layers.mean(layers.square(layers.scale(steepness, 1.0, -1.0)))
    fluidx.default_startup_program().random_seed = 1
    fluidx.optimizer.Adam(0.02).minimize(loss)
    exe = fluidx.Executor()
    exe.run(fluidx.default_startup_program())
    data = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    losses = [exe.run(feed={"x": data}, fetch_list=[loss])[0][0] for _ in range(60)]
    assert losses[0] > 0.02
    assert losses[-1] < 0.05 * losses[0]
