"""What the reference cannot: rewritten programs run in a cluster and equal one process.

Every role runs in one process (`InProcessCluster`), deterministically.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.distributed.inprocess import InProcessCluster
from fluidx.transpiler import HashName

BATCH, STEPS, WIDTH = 6, 5, 60
Clip = fluid.clip

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.5),
    "adadelta": lambda: fluid.optimizer.Adadelta(0.5),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.1),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.02),
    "lamb": lambda: fluid.optimizer.Lamb(0.01),
    "norm": lambda: fluid.optimizer.SGD(
        0.5, grad_clip=Clip.GradientClipByGlobalNorm(0.05)
    ),
    "norm and decay": lambda: fluid.optimizer.Momentum(
        fluid.layers.exponential_decay(0.5, 2, 0.7),
        0.9,
        regularization=fluid.regularizer.L2Decay(0.01),
        grad_clip=Clip.GradientClipByGlobalNorm(0.05),
    ),
    "by norm": lambda: fluid.optimizer.SGD(
        0.5, grad_clip=Clip.GradientClipByNorm(0.02)
    ),
    "by value": lambda: fluid.optimizer.SGD(
        0.5, grad_clip=Clip.GradientClipByValue(0.002)
    ),
}
_L = fluid.layers
SCHEDULES: dict[str, Callable[[], Any]] = {
    "noam": lambda: _L.noam_decay(64, 4),
    "exponential": lambda: _L.exponential_decay(0.5, 2, 0.7, staircase=True),
    "natural exp": lambda: _L.natural_exp_decay(0.5, 2, 0.7),
    "inverse time": lambda: _L.inverse_time_decay(0.5, 2, 0.7),
    "polynomial": lambda: _L.polynomial_decay(0.5, 4, 0.01, power=0.5),
    "cyclic": lambda: _L.polynomial_decay(0.5, 2, 0.01, power=2.0, cycle=True),
    "cosine": lambda: _L.cosine_decay(0.5, 2, 4),
    "piecewise": lambda: _L.piecewise_decay([1, 3], [0.5, 0.2, 0.1]),
    "warm up": lambda: _L.linear_lr_warmup(0.5, 3, 0.1, 0.5),
}
for _name, _schedule in SCHEDULES.items():
    OPTIMIZERS[_name] = lambda make=_schedule: fluid.optimizer.Momentum(make(), 0.9)
OPTIMIZERS |= {
    "momentum": lambda: fluid.optimizer.Momentum(0.5, 0.9, use_nesterov=True),
    # with a tiny epsilon a gradient of mere rounding noise is a full step
    "decayed adagrad": lambda: fluid.optimizer.DecayedAdagrad(
        0.01, decay=0.9, epsilon=1e-3
    ),
    "lars": lambda: fluid.optimizer.LarsMomentum(5.0, 0.9, lars_coeff=0.1),
    "adamax": lambda: fluid.optimizer.Adamax(0.01),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.01, momentum=0.5, centered=True),
}


class Net:
    """One network with its own programs, built the same way in every role."""

    def __init__(self, optimizer: str) -> None:
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.main.random_seed = self.startup.random_seed = 5
        with (
            fluid.program_guard(self.main, self.startup),
            fluid.unique_name.guard(),
        ):
            x = fluid.data("x", [None, WIDTH])
            label = fluid.data("label", [None, 1], "int64")
            hidden = fluid.layers.fc(x, 300, act="relu")
            out = fluid.layers.fc(hidden, 4, act="softmax")
            loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
            OPTIMIZERS[optimizer]().minimize(loss)
        self.names = [p.name for p in self.main.all_parameters()]

    def transpile(self, trainer: int, ends: list[str], trainers: int, **options: Any):  # type: ignore[no-untyped-def]
        config = fluid.DistributeTranspilerConfig()
        for name, value in options.items():
            setattr(config, name, value)
        made = fluid.DistributeTranspiler(config)
        made.transpile(
            trainer,
            self.main,
            ",".join(ends),
            trainers,
            sync_mode=config.sync_mode,
            startup_program=self.startup,
        )
        return made


def batch(trainer: int, step: int) -> dict[str, Any]:
    x = np.random.default_rng(100 * step + trainer).standard_normal((BATCH, WIDTH))
    x = x.astype("f4")
    return {"x": x, "label": x[:, :4].argmax(1).reshape(-1, 1)}


def first_values(optimizer: str) -> dict[str, Any]:
    net, scope = Net(optimizer), fluid.Scope()
    fluid.Executor().run(net.startup, scope=scope)
    return {n: scope.find_var(n).value for n in net.names}


def alone(optimizer: str, trainers: int) -> dict[str, Any]:
    """One process on the batches of all trainers."""
    net, scope, exe = Net(optimizer), fluid.Scope(), fluid.Executor()
    exe.run(net.startup, scope=scope)
    for step in range(STEPS):
        parts = [batch(t, step) for t in range(trainers)]
        feed = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        exe.run(net.main, feed=feed, scope=scope)
    return {n: scope.find_var(n).value for n in net.names}


def server(
    optimizer: str, endpoint: str, ends: list[str], trainers: int, **options: Any
):  # type: ignore[no-untyped-def]
    """Serves, from the first values of a local run."""
    first = first_values(optimizer)
    made = Net(optimizer).transpile(0, ends, trainers, **options)
    main, startup = made.get_pserver_programs(endpoint)

    def run() -> None:
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(startup, scope=scope)
        for name, pieces in made._plan.on(endpoint).items():
            for piece in pieces:
                rows = first[name][piece.row : piece.row + piece.rows]
                scope.var(piece.name).value = rows.copy()
        exe.run(main, scope=scope)

    return run


def trainer(
    optimizer: str, number: int, ends: list[str], trainers: int, **options: Any
):  # type: ignore[no-untyped-def]
    """Trains and closes; gives its parameters."""
    net = Net(optimizer)
    main = net.transpile(number, ends, trainers, **options).get_trainer_program()

    def run() -> dict[str, Any]:
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(net.startup, scope=scope)
        for step in range(STEPS):
            exe.run(main, feed=batch(number, step), scope=scope)
        exe.close()
        return {n: scope.find_var(n).value for n in net.names}

    return run


def check(optimizer: str, servers: int, trainers: int, **options: Any) -> None:
    ends = [f"127.0.0.1:{6174 + i}" for i in range(servers)]
    roles = {
        f"pserver-{i}": server(optimizer, end, ends, trainers, **options)
        for i, end in enumerate(ends)
    }
    for t in range(trainers):
        roles[f"trainer-{t}"] = trainer(optimizer, t, ends, trainers, **options)
    with warnings.catch_warnings():
        # a small net leaves servers without anything to do
        warnings.filterwarnings("ignore", "pserver .* has nothing to update")
        results = InProcessCluster(seed=trainers).run(roles)
    wanted, first = alone(optimizer, trainers), first_values(optimizer)
    for name, value in wanted.items():
        assert np.abs(value - first[name]).max() > 1e-4, name
        for t in range(trainers):
            got = results[f"trainer-{t}"][name]
            np.testing.assert_allclose(got, value, 0, 2e-5, err_msg=name)


@pytest.mark.parametrize("trainers", [1, 2, 3])
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_global_norm_is_one_over_all_servers(servers: int, trainers: int) -> None:
    check("norm", servers, trainers)


@pytest.mark.parametrize("optimizer", sorted(set(OPTIMIZERS) - {"lars"}))
@pytest.mark.parametrize("trainers", [1, 2])
def test_sync_equals_one_process(optimizer: str, trainers: int) -> None:
    check(optimizer, 2, trainers)


@pytest.mark.parametrize("optimizer", ["adadelta", "ftrl", "norm and decay", "lamb"])
def test_small_blocks_on_servers_found_by_name(optimizer: str) -> None:
    check(optimizer, 3, 2, min_block_size=64, split_method=HashName)


@pytest.mark.parametrize("optimizer", ["norm", "by norm", "by value", "norm and decay"])
def test_clipping_without_slices(optimizer: str) -> None:
    check(optimizer, 2, 2, slice_var_up=False)


def test_lars_on_whole_parameters() -> None:
    """Its rate follows a parameter's norm: slices have others, as in the reference."""
    check("lars", 2, 2, slice_var_up=False)


@pytest.mark.parametrize("optimizer", ["sgd", "norm"])
def test_merging_without_barriers(optimizer: str) -> None:
    options = {
        "sync_mode": False,
        "runtime_split_send_recv": True,
        "completely_not_async": True,
    }
    check(optimizer, 2, 2, **options)
