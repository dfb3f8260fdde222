"""Averages of parameters, and optimizers around an optimizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.oracle import optimizers

import fluidx as fluid
from fluidx.optimizer import (
    ExponentialMovingAverage,
    LookaheadOptimizer,
    Momentum,
    RecomputeOptimizer,
)
from fluidx.tensor import Scope

DATA = json.loads(
    (Path(__file__).parents[1] / "golden/oracle/optimizers.json").read_text()
)


@pytest.mark.parametrize("name", sorted(optimizers.AVERAGES))
def test_same_averages_as_the_reference(name: str) -> None:
    got = optimizers.averages(fluid, name)
    for step, (ours, theirs) in enumerate(zip(got, DATA[name], strict=True)):
        for place, (mine, wanted) in enumerate(zip(ours, theirs, strict=True)):
            for key, numbers in wanted.items():
                np.testing.assert_allclose(
                    mine[key], numbers, 2e-5, 2e-6, err_msg=f"{key} {step} {place}"
                )


def test_average_is_kept_until_restored() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = optimizers.net(fluid, False)
        fluid.optimizer.SGD(0.1).minimize(loss)
        average = ExponentialMovingAverage(0.5)
        average.update()
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(Scope()):
            w = fluid.global_scope().var("w").get_tensor()
            exe.run(fluid.default_startup_program())
            exe.run(feed=optimizers.batch(0), fetch_list=[loss])
            before = np.array(w)
            with average.apply(exe, need_restore=False):
                pass
            # one step in: 0.5 * w / (1 - 0.5) is w itself
            np.testing.assert_allclose(np.array(w), before, 1e-6)
            exe.run(feed=optimizers.batch(1), fetch_list=[loss])
            with average.apply(exe, need_restore=False):
                inside = np.array(w)
            assert np.abs(inside - before).max() > 1e-3
            np.testing.assert_array_equal(np.array(w), inside)
            average.restore(exe)
            assert np.abs(np.array(w) - inside).max() > 1e-3


def test_moving_average_decay_grows_with_the_steps() -> None:
    """decay = min(0.9, (1 + t) / (10 + t)), with a counter that starts at 1."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = optimizers.net(fluid, False)
        fluid.optimizer.SGD(0.1).minimize(loss)
        steps = fluid.layers.autoincreased_step_counter()
        average = ExponentialMovingAverage(0.9, thres_steps=steps)
        average.update()
        exe = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(Scope()):
            exe.run(fluid.default_startup_program())
            scope, total = fluid.global_scope(), 0.0
            for t in range(1, 4):
                exe.run(feed=optimizers.batch(t), fetch_list=[loss])
                w = np.array(scope.var("w").get_tensor())
                decay = (1 + t) / (10 + t)
                total = decay * total + (1 - decay) * w
                name = average._averages["w"].name
                got = np.array(scope.var(name).get_tensor())
                np.testing.assert_allclose(got, total, 1e-5)


# ---------------------------------------------------------------- recompute


def _deep(dropout: bool = False) -> tuple[Any, list[Any]]:
    x = fluid.data("x", [None, 4])
    h, inner = x, []
    for i in range(5):
        h = fluid.layers.fc(h, 6, act="tanh", param_attr=f"w{i}", bias_attr=f"b{i}")
        if dropout and i == 2:
            h = fluid.layers.dropout(h, 0.5)
        inner.append(h)
    return fluid.layers.mean(fluid.layers.square(h + inner[0])), inner


def _train(make: Callable[[Any, list[Any]], Any], dropout: bool = False) -> Any:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 9
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        make(*_deep(dropout))
    exe, scope = fluid.Executor(fluid.CPUPlace()), Scope()
    rng = np.random.default_rng(1)
    exe.run(startup, scope=scope)
    for _ in range(3):
        batch = {"x": rng.standard_normal((8, 4)).astype("float32")}
        exe.run(main, feed=batch, scope=scope)
    names = [p.name for p in main.all_parameters()]
    return main, {n: np.array(scope.var(n).get_tensor()) for n in names}


def _plain(loss: Any, inner: list[Any]) -> None:
    Momentum(0.1, 0.9).minimize(loss)


def _recomputed(loss: Any, inner: list[Any]) -> None:
    optimizer = RecomputeOptimizer(Momentum(0.1, 0.9))
    optimizer._set_checkpoints([inner[1], inner[3].name])
    optimizer.minimize(loss)


@pytest.mark.parametrize("dropout", [False, True])
def test_recomputation_changes_no_number(dropout: bool) -> None:
    _, plain = _train(_plain, dropout)
    main, again = _train(_recomputed, dropout)
    for name, value in plain.items():
        np.testing.assert_allclose(again[name], value, 1e-6, err_msg=name)
    drops = [op for op in main.all_ops() if op.type == "dropout"]
    assert len(drops) == (1 if dropout else 0), "drawn once"


def test_what_lies_between_checkpoints_is_not_kept() -> None:
    """Behind the last use in the forward pass, only copies are read."""
    main, _ = _train(_recomputed)
    ops = main.global_block().ops
    seed = next(i for i, op in enumerate(ops) if op.role == 257)
    copies = [n for n in main.global_block().vars if ".subprog_" in n]
    assert copies
    # the first layer's output is used behind the last cut, too
    originals = {n.split(".subprog_")[0] for n in copies} - {"fc_0.tmp_2"}
    for op in ops[seed:]:
        assert originals.isdisjoint(op.input_arg_names), op
    kinds = [op.type for op in ops[seed:] if ".subprog_" in str(op.output_arg_names)]
    assert set(kinds) == {"mul", "elementwise_add", "tanh"}


def test_recompute_needs_checkpoints_that_exist() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss, _ = _deep()
        optimizer = RecomputeOptimizer(Momentum(0.1, 0.9))
        with pytest.raises(ValueError, match="call _set_checkpoints first"):
            optimizer.minimize(loss)
        optimizer._set_checkpoints(["nowhere"])
        with pytest.raises(ValueError, match="'nowhere' is not made by any op"):
            optimizer.minimize(loss)


def test_lookahead_checks_its_arguments() -> None:
    inner = Momentum(0.1, 0.9)
    with pytest.raises(ValueError, match="alpha must be in"):
        LookaheadOptimizer(inner, alpha=1.5)
    with pytest.raises(ValueError, match="k must be a positive integer"):
        LookaheadOptimizer(inner, k=0)
