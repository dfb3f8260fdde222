"""Branches, loops and recurrence in a cluster: two servers equal one process.

Every role runs in one process (`InProcessCluster`), deterministically.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.distributed.inprocess import InProcessCluster

STEPS, TRAINERS = 4, 2
ENDS = ["127.0.0.1:6174", "127.0.0.1:6175"]
L = fluid.layers


def cond_net() -> Any:
    x = fluid.data("x", [None, 8])
    positive = L.greater_than(L.reduce_mean(x), L.zeros([1], "float32"))
    tanh, plain = (lambda: L.fc(x, 4, act="tanh")), (lambda: L.fc(x, 4))
    return L.mean(L.square(L.fc(L.cond(positive, tanh, plain), 1)))


def loop_net() -> Any:
    x, n = fluid.data("x", [None, 8]), L.fill_constant([1], "int64", 3)
    _, h = L.while_loop(
        lambda i, h: L.less_than(i, n),
        lambda i, h: [L.increment(i), L.fc(h, 4, act="tanh")],
        [L.fill_constant([1], "int64", 0), L.fc(x, 4)],
    )
    return L.mean(L.square(h))


def rnn_net() -> Any:
    x = fluid.data("x", [None, 8])
    steps = L.transpose(L.reshape(x, [-1, 4, 2]), [1, 0, 2])
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(steps)
        before = rnn.memory(shape=[-1, 3], batch_ref=now)
        after = L.fc([now, before], 3, act="tanh")
        rnn.update_memory(before, after)
        rnn.step_output(after)
    return L.mean(L.square(rnn()))


NETS: dict[str, Callable[[], Any]] = {
    "cond": cond_net,
    "loop": loop_net,
    "rnn": rnn_net,
}


class Role:
    """One network with programs of its own, and parameters known to all roles."""

    def __init__(self, name: str) -> None:
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.startup.random_seed = 5
        with (
            fluid.program_guard(self.main, self.startup),
            fluid.unique_name.guard(),
        ):
            fluid.optimizer.SGD(0.3).minimize(NETS[name]())
        self.names = [p.name for p in self.main.all_parameters()]
        self.exe, self.scope = fluid.Executor(), fluid.Scope()

    def transpiled(self, trainer: int) -> Any:
        made = fluid.DistributeTranspiler()
        made.transpile(
            trainer,
            self.main,
            ",".join(ENDS),
            TRAINERS,
            startup_program=self.startup,
        )
        return made

    def start(self) -> None:
        self.exe.run(self.startup, scope=self.scope)

    def values(self) -> dict[str, Any]:
        return {n: np.array(self.scope.find_var(n).value) for n in self.names}


def batch(trainer: int, step: int) -> Any:
    """All trainers take the same branch in a step."""
    x = np.random.default_rng(10 * step + trainer).uniform(0.1, 1, (6, 8))
    return (x * (-1) ** step).astype("float32")


def alone(name: str) -> dict[str, Any]:
    role = Role(name)
    role.start()
    for step in range(STEPS):
        x = np.concatenate([batch(t, step) for t in range(TRAINERS)])
        role.exe.run(role.main, feed={"x": x}, scope=role.scope)
    return role.values()


def server(name: str, endpoint: str) -> Callable[[], None]:
    first = Role(name)
    first.start()
    values = first.values()
    made = Role(name).transpiled(0)
    main, startup = made.get_pserver_programs(endpoint)

    def run() -> None:
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(startup, scope=scope)
        for var, value in values.items():  # nothing here is large enough to be cut
            found = scope.find_var(var)
            if found is not None:
                found.value = value.copy()
        exe.run(main, scope=scope)

    return run


def trainer(name: str, number: int) -> Callable[[], dict[str, Any]]:
    role = Role(name)
    main = role.transpiled(number).get_trainer_program()

    def run() -> dict[str, Any]:
        role.start()
        for step in range(STEPS):
            role.exe.run(main, feed={"x": batch(number, step)}, scope=role.scope)
        role.exe.close()
        return role.values()

    return run


@pytest.mark.parametrize("name", NETS)
def test_sync_equals_one_process(name: str) -> None:
    roles: dict[str, Callable[[], Any]] = {
        f"pserver-{i}": server(name, e) for i, e in enumerate(ENDS)
    }
    roles |= {f"trainer-{t}": trainer(name, t) for t in range(TRAINERS)}
    results = InProcessCluster().run(roles)
    wanted = alone(name)
    first = Role(name)
    first.start()
    for number in range(TRAINERS):
        got = results[f"trainer-{number}"]
        for var, value in wanted.items():
            np.testing.assert_allclose(got[var], value, rtol=2e-5, atol=1e-6)
            assert not np.array_equal(value, first.values()[var]), "it was trained"
