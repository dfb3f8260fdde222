"""Costs on paper equal what runs measure; the simulation follows its own arithmetic."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from distributed.fluid_cluster import BATCH, Net, batch, cluster

import fluidx as fluid
from fluidx.distributed import config, wire
from fluidx.distributed.inprocess import InProcessCluster
from fluidx.distributed.replay import Cluster, Local, feeds_of
from fluidx.kernels import SelectedRows
from fluidx.transpiler import (
    Network,
    TranspileError,
    Workload,
    config_for,
    cost,
    distribute,
    scaling,
    traffic,
)
from fluidx.transpiler.traffic import Message, Value, message_bytes

STEPS = 3


def made(kind="dense", mode="pserver", servers=2, trainers=2, **options):
    net = Net(kind, "sgd")
    settings = config_for(mode, **options)
    return distribute(
        net.main, net.startup, settings, trainers=trainers, pservers=servers
    ).programs


# ------------------------------------------------------------------ sizes


def test_numbers_are_those_of_the_wire_format():
    assert wire._HEAD.size == traffic.HEAD
    assert wire._NAME.size == traffic.NAME
    assert wire._RECORD.size == traffic.RECORD
    assert wire._SIZE.size == traffic.SIZE
    assert struct.calcsize("<?") == traffic.WHERE
    assert traffic.ALIGN == wire._ALIGN
    assert wire.DEFAULT_LIMITS.inline == traffic.INLINE
    assert config.RpcConfig().flush == traffic.FLUSH


def value_of(name, value):
    arrays = wire._arrays(value)
    return Value(name, tuple((a.shape, a.nbytes) for a in arrays))


@pytest.mark.parametrize("seed", range(8))
def test_size_of_a_message_is_that_of_its_frames(seed):
    rng = np.random.default_rng(seed)
    values = []
    for i in range(rng.integers(0, 9)):
        shape = tuple(rng.integers(0, 90, rng.integers(0, 4)))
        value = np.zeros(shape, ["f4", "f8", "i8"][i % 3])
        if i % 2 and len(shape) == 2:
            value = SelectedRows(np.zeros(shape[0], "i8"), value, 100)
        values.append(("v" * i + "é", value))
    names = [f"name{i}" for i in range(rng.integers(0, 5))]
    frames = wire.encode(wire.Message(wire.Kind.PUSH, names=names, values=values))
    told = message_bytes(names, [value_of(n, v) for n, v in values])
    assert told == sum(len(f) for f in frames)


# ------------------------------------------------------------------ bytes of a run


def measured(kind, servers, trainers, **options):
    hub = InProcessCluster(seed=1)
    hub.run(cluster(kind, "sgd", servers, [STEPS] * trainers, **options))
    return hub.stats()


def check(kind, servers, trainers, mode, work, slices=True):
    """Bytes of every kind and pair of roles: those of the start and of the steps."""
    sync = mode == "pserver"
    stats = measured(kind, servers, trainers, sync=sync, slices=slices)
    programs = made(kind, mode, servers, trainers, slice_var_up=slices)
    begin = traffic.traffic(programs, work(0, 0), "startup")
    for t in range(trainers):
        steps = [traffic.traffic(programs, work(t, s))[t] for s in range(STEPS)]
        messages = [m for one in (begin[t], *steps) for m in one.messages]
        for i in range(servers):
            told = stats[f"trainer-{t}"]["peers"].get(f"pserver 127.0.0.1:{6174 + i}")
            mine = [m for m in messages if m.server == f"pserver-{i}"]
            for kind_ in ("PUSH", "LOOKUP"):
                some = [m for m in mine if m.kind == kind_]
                sent = told["sent"].get(kind_, {"messages": 0, "bytes": 0})
                assert sent["messages"] == len(some)
                assert sent["bytes"] == sum(m.sent for m in some)
            got = told["received"]["VALUES"]
            assert got["messages"] == sum(m.answer is not None for m in mine)
            assert got["bytes"] == sum(m.received for m in mine)


def dense_work(trainer, step):
    return Workload(BATCH)


def sparse_work(sections):
    """How many rows each slice of the table gets, from the ids that are fed."""

    def work(trainer, step):
        ids = batch("sparse", trainer, step)["x"].reshape(-1)
        ends = np.cumsum(sections)

        def counts(numbers):
            return np.bincount(
                np.searchsorted(ends, numbers, "right"), minlength=len(sections)
            ).tolist()

        rows, distinct = {"table": counts(ids)}, {"table": counts(np.unique(ids))}
        return Workload(BATCH, rows, distinct)

    return work


@pytest.mark.parametrize("mode", ["pserver", "async"])
@pytest.mark.parametrize("slices", [True, False])
@pytest.mark.parametrize("kind", ["dense", "table"])
def test_bytes_equal_a_run(kind, slices, mode):
    check(kind, 2, 2, mode, dense_work, slices)


@pytest.mark.parametrize("mode", ["pserver", "async"])
def test_bytes_of_sparse_rows_equal_a_run(mode):
    check("sparse", 2, 2, mode, sparse_work([1250, 1250]))


def test_three_servers_and_one_trainer():
    check("dense", 2, 1, "pserver", dense_work)


def big():
    """One parameter of 6 MB: its gradient leaves before the step ends."""
    x = fluid.data("x", [None, 1000])
    out = fluid.layers.fc(fluid.layers.fc(x, 1500), 1)
    loss = fluid.layers.mean(out)
    fluid.optimizer.SGD(0.1).minimize(loss)
    pair = fluid.default_main_program(), fluid.default_startup_program()
    return distribute(*pair, trainers=1, pservers=1)


def test_large_gradients_leave_early():
    programs = big().programs
    roles = {}

    def serve():
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(programs["pserver-0"]["startup"], scope=scope)
        exe.run(programs["pserver-0"]["main"], scope=scope)

    def train():
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(programs["trainer-0"]["startup"], scope=scope)
        feed = {"x": np.ones((2, 1000), "f4")}
        exe.run(programs["trainer-0"]["main"], feed=feed, scope=scope)
        exe.close()

    roles = {"pserver-0": serve, "trainer-0": train}
    hub = InProcessCluster()
    hub.run(roles)
    (sent,) = hub.stats()["trainer-0"]["peers"].values()
    begin = traffic.traffic(programs, Workload(2), "startup")[0].messages
    step = traffic.traffic(programs, Workload(2))[0].messages
    assert [m.barrier for m in step] == [False, True]
    assert sent["sent"]["PUSH"] == {
        "messages": len(begin) + 2,
        "bytes": sum(m.sent for m in [*begin, *step]),
    }


def test_both_ends_agree():
    report = cost(made(servers=3, trainers=4), work=Workload(BATCH))
    trainers = [r for r in report.roles if r.name.startswith("trainer")]
    servers = [r for r in report.roles if r.name.startswith("pserver")]
    assert sum(r.sent for r in trainers) == sum(r.received for r in servers)
    assert sum(r.received for r in trainers) == sum(r.sent for r in servers)
    # 60 x 300 + 300 + 300 x 4 + 4 numbers, there and back
    assert trainers[0].payload_sent == trainers[0].payload_received == 4 * 19504
    assert sum(r.held for r in servers) == 4 * 19504


def test_balance():
    even = cost(made(servers=1)).balance
    # without slices both layers' weights, 72,000 and 4,800 bytes, meet on one server
    uneven = cost(made(servers=2, slice_var_up=False)).balance
    assert even == 1.0
    assert uneven == pytest.approx(76800 / (78016 / 2))


def test_geo_spreads_an_exchange_over_its_steps():
    every = cost(made(mode="geo"), push_every=1)
    seldom = cost(made(mode="geo"), push_every=100)
    assert every["trainer-0"].payload_sent == 4 * 19504
    assert seldom["trainer-0"].payload_sent == 4 * 19504 // 100
    assert seldom.step < every.step
    assert "every 100 steps" in str(seldom)


def test_bytes_of_geo_equal_a_run():
    every, steps = 2, 4
    net = Net("dense", "sgd")
    settings = config_for("geo", geo_sgd_need_push_nums=every)
    roles = distribute(net.main, net.startup, settings)
    feeds = feeds_of(lambda step, t, _: batch("dense", t, step), steps, 2)
    hub = InProcessCluster()
    Cluster(roles, feeds, Local(roles, feeds[:1]).states[0], hub).run()
    begin = traffic.traffic(roles.programs, which="startup")[0].messages
    report = cost(roles.programs, push_every=1)
    ways = hub.stats()["trainer-0"]["peers"].values()
    pushed = sum(w["sent"]["PUSH"]["bytes"] for w in ways)
    got = sum(w["received"]["VALUES"]["bytes"] for w in ways)
    exchanges = steps // every
    assert pushed == sum(m.sent for m in begin) + exchanges * report["trainer-0"].sent
    answers = exchanges * report["trainer-0"].received
    assert got == sum(m.received for m in begin) + answers


def test_geo_says_what_it_leaves_out():
    assert "rows of sparse tables" in str(cost(made("sparse", "geo")))
    assert "rows of sparse tables" not in str(cost(made("dense", "geo")))


@pytest.mark.parametrize("mode", ["grad-allreduce", "local-sgd", "nccl2"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_rings(mode, ranks):
    report = cost(made(mode=mode, trainers=ranks))
    sizes = [4 * n for n in (60 * 300, 300, 300 * 4, 4)]
    wanted = sum(2 * (ranks - 1) * s // ranks for s in sizes)
    assert report["trainer-1"].sent == report["trainer-1"].received == wanted


# ------------------------------------------------------------------ times

SLOW = {"latency": 1.0, "compute": 10.0, "message": 0.5, "bandwidth": 100.0}


def step_of(network, trainers=1, servers=("s",), sync=True, size=100, answer=200):
    messages = []
    for name in servers:
        value = Value("", (((size,), size),))
        back = (Value("", (((answer,), answer),)),)
        messages.append(Message("t", name, "PUSH", (value,), ("w",), True, back))
    return messages, traffic_step(messages, network, trainers, servers, sync)


def traffic_step(messages, network, trainers, servers, sync):
    from fluidx.transpiler.simulate import simulate

    return simulate(
        [messages], network, trainers=trainers, servers=servers, sync=sync
    ).step


def test_one_step_by_hand():
    network = Network(update=50.0, **SLOW)
    (message,), step = step_of(network)
    there = 0.5 + message.sent / 100 + 1.0 + 0.5
    update = (100 + 100) / 50  # merging reads 100 bytes, updating writes 100
    back = 0.5 + message.received / 100 + 1.0 + 0.5
    assert step == pytest.approx(10.0 + there + update + back)


def test_a_servers_link_is_shared():
    network = Network(update=1e18, **SLOW)
    (message,), one = step_of(network)
    _, four = step_of(network, 4)
    # four answers leave over one link, one after the other; the trainers go on as they
    # get theirs, so that what they send next comes spaced out and waits for nobody
    assert four == pytest.approx(one + 3 * message.received / 100)


def test_async_trainers_do_not_wait_for_each_other():
    network = Network(update=1e18, latency=0.0, compute=10.0, message=0.0)
    _, sync = step_of(network, 50)
    _, alone = step_of(network, 50, sync=False)
    assert alone <= sync


def test_cores_are_shared():
    apart = Network(latency=0.0, compute=1.0, message=0.0)
    shared = Network(latency=0.0, compute=1.0, message=0.0, cores=2)
    assert step_of(apart, 6)[1] == pytest.approx(1.0, abs=1e-5)
    assert step_of(shared, 6)[1] == pytest.approx(3.0, abs=1e-5)


def test_more_servers_help_where_links_are_narrow():
    network = Network(bandwidth=1e6, compute=1e-3)
    steps = [cost(made("table", "pserver", n, 4), network).step for n in (1, 2)]
    assert 0.5 * steps[0] < steps[1] < 0.7 * steps[0]


def test_scaling_to_thousands():
    network = Network(bandwidth=1.25e9, compute=0.05)
    found = scaling(made(), network, trainers=(1, 64, 4096))
    efficiency = [row[3] for row in found.rows]
    assert efficiency[0] > 0.98
    assert efficiency == sorted(efficiency, reverse=True)
    # at last the fullest server's link is the limit: 42 kB each way per trainer
    bytes_ = cost(made())["pserver-0"].received / 2
    assert found.rows[2][1] > 4096 * bytes_ / 1.25e9
    assert str(found).splitlines()[0].split() == [
        "trainers", "step", "steps/s", "efficiency",
    ]  # fmt: skip


def test_scaling_agrees_with_cost():
    network = Network(compute=1e-3)
    programs = made(trainers=2)
    assert scaling(programs, network, trainers=[2]).rows[0][1] == pytest.approx(
        cost(programs, network).step
    )


def test_short_work_goes_ahead_of_long_work():
    """As on a real machine: a server need not wait until a trainer has computed."""
    busy = Network(latency=0.0, compute=1.0, message=1e-4, cores=1)
    # two trainers compute for 1 s each; packing and unpacking eight times takes 0.8 ms
    assert step_of(busy, 2)[1] == pytest.approx(2.0008, abs=5e-4)


def test_it_is_a_pure_function():
    programs = made()
    before = [p.fingerprint() for both in programs.values() for p in both.values()]
    assert str(cost(programs)) == str(cost(programs))
    after = [p.fingerprint() for both in programs.values() for p in both.values()]
    assert before == after


def test_table():
    lines = str(cost(made(), Network(compute=1e-3), Workload(BATCH))).splitlines()
    assert lines[0].split() == [
        "role", "sent", "received", "payload", "messages", "holds", "blocks",
    ]  # fmt: skip
    assert lines[3].split()[0] == "pserver-0"
    assert "balance of the servers: 1.077 (1 is even)" in lines


def test_errors():
    with pytest.raises(ValueError, match=r"Network\.bandwidth must be above 0"):
        Network(bandwidth=0)
    with pytest.raises(ValueError, match=r"Network\.latency must not be negative"):
        Network(latency=-1)
    servers = {r: p for r, p in made().items() if r.startswith("pserver")}
    with pytest.raises(TranspileError, match="no trainer"):
        cost(servers)
    with pytest.raises(TranspileError, match="at least one trainer"):
        scaling(made(), trainers=[0])
