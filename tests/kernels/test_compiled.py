"""Compiled kernels stand in for the op's own without anybody noticing."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from fluidx import kernels
from fluidx.kernels import compiled
from fluidx.kernels.compiled import BATCHES, COMPILED, compiled_batch, compiled_kernel


@pytest.mark.parametrize("type", sorted(COMPILED))
def test_same_calling_rule_as_the_op(type):
    own, fast = kernels.find(type).run, compiled_kernel(type)
    assert fast is not None, "numba is part of the dev extra"
    assert [p.kind for p in inspect.signature(fast).parameters.values()] == [
        p.kind for p in inspect.signature(own).parameters.values()
    ]
    assert list(inspect.signature(fast).parameters) == list(
        inspect.signature(own).parameters
    )


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_environment_turns_them_off(wanted):
    script = "from fluidx.kernels import compiled as c; print(c.available())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "FLUIDX_COMPILED": wanted},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [str(wanted == "1")]


def _numba_after(rows: int) -> str:
    """Whether a training step with a softmax over so many rows imports numba."""
    script = f"""
import sys
import numpy as np
import fluidx as fluid

x = fluid.data("x", [None, 64])
loss = fluid.layers.mean(fluid.layers.softmax(fluid.layers.fc(x, 64)))
fluid.optimizer.Adam(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.run(feed={{"x": np.ones(({rows}, 64), "float32")}}, fetch_list=[loss])
print("numba" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.strip()


def test_numba_is_imported_for_large_arrays_only():
    assert [_numba_after(8), _numba_after(2048)] == ["False", "True"]


@pytest.mark.parametrize("elements", [compiled.WORTH - 1, compiled.WORTH])
def test_own_kernels_run_until_numba_is_worth_it(elements, monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", set())
    used = []
    own = kernels.find("sigmoid").run
    kernel = compiled.lazily(lambda *given: used.append(1) or own(*given), "sigmoid")
    x = np.linspace(-5, 5, elements, dtype="float32")
    np.testing.assert_allclose(kernel(np, x), 1 / (1 + np.exp(-x)), rtol=1e-5)
    assert bool(used) == (elements < compiled.WORTH)


def _calls(type, dtype, nesterov):
    """Updates of four parameters, long and short, the same in every call."""
    definition, draw = kernels.find(type), np.random.default_rng(3)
    calls = []
    for shape in ((520, 512), (4097,), (300, 100), (7,)):
        inputs = []
        for slot in definition.ins:
            if slot.name.endswith("Tensor"):
                inputs.append(None)
            elif slot.name in ("LearningRate", "Beta1Pow", "Beta2Pow"):
                inputs.append(np.full(1, 0.9 if "Pow" in slot.name else 0.01, dtype))
            else:
                inputs.append(abs(draw.standard_normal(shape)).astype(dtype))
        attrs = {**definition.defaults, "mu": 0.9, "use_nesterov": nesterov}
        calls.append(kernels.Call(definition, inputs, attrs, {}))
    return calls


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("type", sorted(BATCHES))
def test_updates_are_the_same_to_the_last_bit(type, nesterov, dtype):
    plain, fast = kernels.batch_of(type), compiled_batch(type)
    wanted = plain(np, None, _calls(type, dtype, nesterov))
    got = fast(np, None, _calls(type, dtype, nesterov))
    for ours, theirs in zip(got, wanted):
        for a, b in zip(ours, theirs):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax_of_nan_and_infinities(axis):
    x = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    x[0, 0], x[1], x[2, 3], x[3, 4] = np.nan, -np.inf, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = kernels.find("softmax").run(np, x, axis=axis)
        got = compiled_kernel("softmax")(np, x, axis=axis)
    np.testing.assert_allclose(got, wanted, 1e-6, 1e-30)


@pytest.mark.parametrize("type", ["gelu", "sigmoid", "swish"])
def test_activations_at_the_ends(type):
    x = np.linspace(-12, 12, 5000, dtype="float32")
    x[:6] = np.nan, np.inf, -1e30, 1e30, -200, 200
    definition = kernels.find(type)
    attrs = {
        k: v
        for k, v in (("approximate", False), ("beta", 1.0))
        if k in definition.keywords
    }
    with np.errstate(all="ignore"):
        wanted = definition.run(np, x, **attrs)
        got = compiled_kernel(type)(np, x, **attrs)
    np.testing.assert_allclose(got, wanted, 1e-6, 1e-6)


def test_leaky_relu_grad_is_the_same_to_the_last_bit():
    y = np.linspace(-1, 1, 5001, dtype="float32")
    y[:4] = np.nan, np.inf, -np.inf, -0.0
    d = np.random.default_rng(0).standard_normal(5001).astype("float32")
    d[7] = np.nan
    for alpha in (0.02, -3.0):
        wanted = kernels.find("leaky_relu_grad").run(np, y, d, alpha=alpha)
        got = compiled_kernel("leaky_relu_grad")(np, y, d, alpha=alpha)
        np.testing.assert_array_equal(got, wanted)
