"""Every mode with parameter servers in process, against the same in numpy."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.linear import (
    LR,
    Async,
    Geo,
    Run,
    batch,
    check,
    dense,
    descend,
    gradients,
    initial,
    network,
)

import fluidx as fluid
from fluidx.distributed.errors import ClusterError
from fluidx.distributed.inprocess import ClusterFailure, InProcessCluster

# trainer 0 is ahead, trainer 1 catches up
ORDER = [0, 0, 1, 0, 1, 1, 1, 0]
ASYNC = ["async", "async-split", "half-async"]


def decayed():
    rate = fluid.layers.exponential_decay(LR, decay_steps=4, decay_rate=0.5)
    return fluid.optimizer.SGD(rate)


def same(run, model, tables=True):
    check(run.servers, model.server if tables else dense(model.server))
    for t, states in model.seen.items():
        for ours, theirs in zip(run.seen[t], states):
            check(ours, theirs, set(ours) & set(theirs))


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("mode", ASYNC)
def test_async_applies_each_gradient_as_it_comes(mode, servers):
    same(Run(mode, ORDER, servers=servers), Async(ORDER))


@pytest.mark.parametrize("mode", ASYNC)
def test_one_async_trainer_is_local_training(mode):
    run = Run(mode, [0] * 5, trainers=1)
    params = initial()
    for step in range(5):
        descend(params, gradients(params, batch(0, step)))
    check(run.servers, params)
    check(run.seen[0][-1], dense(params))


@pytest.mark.parametrize("mode", ASYNC)
def test_an_async_schedule_counts_the_steps_of_all_trainers_from_one(mode):
    run = Run(mode, ORDER, optimizer=decayed)
    same(run, Async(ORDER, rate=lambda number: LR * 0.5 ** (number / 4)))


@pytest.mark.parametrize("mode", ["pserver", "completely-not-async"])
@pytest.mark.parametrize("optimizer", [None, decayed])
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_in_step_is_local_training_on_all_batches(mode, optimizer, trainers):
    """A schedule advances once per global step, from where it does in one process."""
    run = Run(mode, steps=4, trainers=trainers, optimizer=optimizer)
    params = initial()
    for step in range(4):
        every = [gradients(params, batch(t, step)) for t in range(trainers)]
        mean = {n: np.mean([g[n] for g in every], 0) for n in params}
        descend(params, mean, LR * 0.5 ** (step / 4) if optimizer else LR)
    check(run.servers, params)
    for t in range(trainers):
        check(run.seen[t][-1], dense(params))


def test_in_step_without_barriers_when_gradients_leave_early(monkeypatch):
    """Each one leaves by itself; a server with nothing but a table still waits."""
    monkeypatch.setenv("FLUIDX_FLUSH_BYTES", "1")
    test_in_step_is_local_training_on_all_batches("completely-not-async", None, 2)


def test_delay_compensation():
    """g + g * g * (server's parameter - the one that the trainer had)."""
    run = Run("dc-asgd", ORDER)
    same(run, Async(ORDER, dc=True))
    plain = Async(ORDER)
    assert np.abs(run.servers["w"] - plain.server["w"]).max() > 1e-3


@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize("servers", [1, 2])
def test_geo_exchanges_differences(every, servers):
    run = Run("geo", ORDER, servers=servers, geo_sgd_need_push_nums=every)
    same(run, Geo(ORDER, every))


def test_geo_with_one_trainer_is_local_training_at_its_pushes():
    run = Run("geo", [0] * 7, trainers=1, geo_sgd_need_push_nums=2)
    params = initial()
    for step in range(7):
        descend(params, gradients(params, batch(0, step)))
        check(run.seen[0][step], params)
    check(run.servers, params)


def test_geo_trainers_keep_their_optimizer():
    def adam():
        return fluid.optimizer.Adam(0.05)

    run = Run("geo", [0] * 5, trainers=1, optimizer=adam, geo_sgd_need_push_nums=2)
    main, startup, _ = network(adam)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for name, value in initial().items():
        scope.find_var(name).value = value.copy()
    for step in range(5):
        exe.run(main, feed=batch(0, step), scope=scope)
        if step % 2:  # at a push every row that was looked up is the server's
            check(run.seen[0][step], {n: scope.find_var(n).value for n in ("w", "b")})


def test_a_geo_push_is_one_exchange_and_one_look_up_of_rows():
    run = Run("geo", [0] * 6, trainers=1, servers=1, geo_sgd_need_push_nums=3)
    ways = run.hub.stats()["trainer-0"]["peers"]["pserver 127.0.0.1:6174"]
    kinds = {kind: c["messages"] for kind, c in ways["sent"].items()}
    # two pushes; the startup receives dense parameters, then tables
    assert kinds == {"HELLO": 1, "PUSH": 2 + 2, "LOOKUP": 2, "COMPLETE": 1}


@pytest.mark.parametrize("mode", ["async", "geo", "dc-asgd", "completely-not-async"])
def test_a_server_that_dies_is_named(mode):
    hub = InProcessCluster(seed=2)
    hub.crash("pserver-1", after=12)
    with pytest.raises(ClusterFailure) as caught:
        Run(mode, steps=200, hub=hub, geo_sgd_need_push_nums=2)
    errors = caught.value.errors
    assert any("pserver 127.0.0.1:6175 died" in str(e) for e in errors.values())
    assert set(errors) == {"pserver-0", "pserver-1", "trainer-0", "trainer-1"}


def test_a_trainer_that_is_done_lets_the_others_go_on():
    order = [0, 1, 0, 1, 1, 1, 1]
    same(Run("geo", order, geo_sgd_need_push_nums=2), Geo(order, 2))
    same(Run("dc-asgd", order), Async(order, dc=True))


@pytest.mark.parametrize("mode", ["pserver", "async"])
def test_servers_save_a_table(mode, tmp_path):
    ends = ["127.0.0.1:6174", "127.0.0.1:6175"]

    def notify(exe, folder=tmp_path):
        program = fluid.Program()
        attrs = {"dir": str(folder), "epmap": ends, "lookup_table": "table"}
        program.global_block().append_op("checkpoint_notify", {}, {}, attrs)
        exe.run(program)

    def fail(exe):
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(ClusterError, match=r"pserver .* cannot save table"):
            notify(exe, tmp_path / "file")
        notify(exe)  # nobody died of it

    run = Run(mode, [0, 0] if mode == "async" else None, 2, trainers=1, after=fail)
    names = ["table.block0", "table.block1"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", *names]
    loaded, scope = fluid.Program(), fluid.Scope()
    for name in names:
        block = loaded.global_block()
        block.create_var(name=name, persistable=True)
        path = {"file_path": str(tmp_path / name)}
        block.append_op("load", {}, {"Out": [name]}, path)
    fluid.Executor().run(loaded, scope=scope)
    whole = np.concatenate([scope.find_var(n).value for n in names])
    np.testing.assert_array_equal(whole, run.servers["table"])


def test_geo_needs_its_startup():
    main = Run("geo", [0], trainers=1).made.programs["trainer-0"]["main"]

    def train():
        scope = fluid.Scope()
        for name, value in initial().items():
            scope.var(name).value = value
        scope.var("learning_rate_0").value = np.array([LR], "f4")
        fluid.Executor().run(main, feed=batch(0, 0), scope=scope)

    with pytest.raises(ClusterFailure, match=r"startup program was not run"):
        InProcessCluster().run({"trainer-0": train})
