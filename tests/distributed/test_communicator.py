"""``fluid.communicator``: merging, queues, threads, settings."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest
from distributed.linear import LR, Async, Geo, Run, check, initial, network

import fluidx as fluid
from fluidx.communicator import Communicator
from fluidx.distributed import communicator as beside
from fluidx.distributed.communicator.queues import Queue, merge
from fluidx.distributed.errors import WaitTimeout
from fluidx.distributed.inprocess import ClusterFailure, InProcessCluster
from fluidx.ir import Program
from fluidx.kernels import SelectedRows, find
from fluidx.transpiler import DistributedMode, GeoSgdTranspiler

# numbers with which the threads are as predictable as the trainer
SETTINGS = {
    "communicator_max_merge_var_num": 4,
    "communicator_send_queue_size": 4,
    "communicator_send_wait_times": 100,
    "communicator_independent_recv_thread": 0,
}


def asynchronous(**more):
    envs = {**SETTINGS, **{f"communicator_{k}": v for k, v in more.items()}}
    return lambda main: Communicator(main, DistributedMode.ASYNC, None, envs)


# ------------------------------------------------------------------ merging


def test_dense_gradients_merge_to_their_sum_or_mean():
    values = [np.full((2, 2), v, "f4") for v in (1, 2, 6)]
    for add, wanted in ((True, 9), (False, 3)):
        made = merge(values, add)
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made, np.full((2, 2), wanted))
    assert merge(values[:1], False) is values[0]


def test_sparse_gradients_merge_by_rows():
    one = SelectedRows(np.array([3, 1, 3]), np.array([[1], [2], [4]], "f4"), 9)
    two = SelectedRows(np.array([1, 8]), np.array([[10], [20]], "f4"), 9)
    added = merge([one, two], True)
    assert added.rows.tolist() == [1, 3, 8]
    assert added.value.tolist() == [[12], [5], [20]]
    mean = merge([one, two], False)
    assert mean.value.tolist() == [[6], [2.5], [10]]
    assert mean.value.dtype == np.float32
    np.testing.assert_array_equal(
        merge([one, two], True, unique=False).to_dense(), added.to_dense()
    )
    assert merge([one], True).rows.tolist() == [1, 3]


def test_a_step_counter_is_added_up_also_where_gradients_are_averaged():
    settings = beside.Settings(is_sgd_optimizer=False)
    attrs = dict(find("send").defaults, epmap=["e0", "e1"], merge_add=True)
    queue = Queue(["counter"], attrs)
    for _ in range(3):
        queue.put([np.array([1], "i8")])
    got = queue.pushed(queue.take(2), settings)
    assert [(e, n, v.tolist()) for e, n, v in got] == [
        ("e0", "counter", [2]), ("e1", "counter", [2]),
    ]  # fmt: skip
    assert len(queue.waiting) == 1


# ------------------------------------------------------------------ async


def test_one_gradient_at_a_time_is_what_happens_without_a_communicator():
    stand = asynchronous(max_merge_var_num=1, send_queue_size=1)
    run = Run("async-split", [0] * 5, trainers=1, beside=stand)
    # all gradients arrive; those behind the first are from older parameters
    assert len(run.seen[0]) == 6
    assert np.abs(run.servers["w"] - initial()["w"]).max() > 0.1


class Sums:
    """A trainer whose gradients do not depend on its parameter: every order of events
    ends alike. moved: by how much the parameter has changed on its two servers."""

    def __init__(self, mean, steps=8, hub=None, settings=None):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 4])
            out = fluid.layers.fc(x, 2, param_attr="w", bias_attr=False)
            fluid.optimizer.SGD(LR).minimize(fluid.layers.reduce_sum(out))
        config = fluid.DistributeTranspilerConfig()
        config.sync_mode, config.runtime_split_send_recv = False, True
        config.min_block_size = 2
        transpiler = fluid.DistributeTranspiler(config)
        ends = ["127.0.0.1:6174", "127.0.0.1:6175"]
        transpiler.transpile(0, main, ",".join(ends), 1, False, startup)
        self.feeds = [
            {"x": np.random.default_rng(s).standard_normal((3, 4)).astype("f4")}
            for s in range(steps)
        ]
        self.stand = Communicator(
            main,
            DistributedMode.ASYNC,
            None,
            {
                **SETTINGS,
                "communicator_is_sgd_optimizer": not mean,
                **(settings or {}),
            },
        )
        self.hub = hub or InProcessCluster(seed=4)
        scopes = [fluid.Scope(), fluid.Scope()]

        def serve(number):
            both = transpiler.get_pserver_programs(ends[number])

            def run():
                exe = fluid.Executor()
                exe.run(both[1], scope=scopes[number])
                exe.run(both[0], scope=scopes[number])

            return run

        def train():
            exe, scope = fluid.Executor(), fluid.Scope()
            self.stand.start()
            assert self.stand.is_running()
            exe.run(startup, scope=scope)
            first = np.array(scope.find_var("w").value)
            for feed in self.feeds:
                exe.run(main, feed=feed, scope=scope)
            self.stand.stop()
            assert not self.stand.is_running()
            exe.close()
            return first

        roles = {"pserver-0": serve(0), "pserver-1": serve(1), "trainer-0": train}
        first = self.hub.run(roles)["trainer-0"]
        held = [s.find_var(f"w.block{i}").value for i, s in enumerate(scopes)]
        self.moved = np.concatenate(held) - first

    def gradients(self):
        return [np.repeat(f["x"].sum(0)[:, None], 2, 1) for f in self.feeds]


@pytest.mark.parametrize("independent", [0, 1])
def test_merged_gradients_add_up_to_all_of_them(independent):
    settings = {"communicator_independent_recv_thread": independent}
    settings["communicator_min_send_grad_num_before_recv"] = 2
    made = Sums(mean=False, steps=11, settings=settings)
    check({"w": made.moved}, {"w": -LR * np.sum(made.gradients(), 0)})


def test_merged_gradients_are_averaged_in_groups():
    made = Sums(mean=True, steps=8)
    grads = made.gradients()
    wanted = np.mean(grads[:4], 0) + np.mean(grads[4:], 0)
    check({"w": made.moved}, {"w": -LR * wanted})
    pushes = made.hub.stats()["trainer-0"]["peers"]["pserver 127.0.0.1:6174"]["sent"]
    # the startup's fetch, and two groups of four
    assert pushes["PUSH"]["messages"] == 1 + 2


def test_parameters_change_between_steps_and_never_within_one():
    """recv hands over what came last; the trainer goes on meanwhile."""
    stand = asynchronous(max_merge_var_num=1, send_wait_times=0)
    run = Run("async-split", steps=6, trainers=1, beside=stand)
    states = [s["w"] for s in run.seen[0]]
    assert any((a != b).any() for a, b in zip(states, states[1:]))
    # what the trainer has is what the servers had at some time, as a whole
    learned = np.abs(run.servers["w"] - initial()["w"]).max()
    assert 0 < np.abs(states[-1] - initial()["w"]).max() < 2 * learned


def test_async_with_background_threads_learns():
    stand = asynchronous(
        max_merge_var_num=2,
        independent_recv_thread=1,
        min_send_grad_num_before_recv=2,
        send_wait_times=0,
        send_queue_size=2,
    )

    def gentle():
        return fluid.optimizer.SGD(0.05)

    run = Run("async-split", steps=300, optimizer=gentle, beside=stand)
    truth = initial(seed=9)
    start = np.abs(initial()["w"] - truth["w"]).max()
    assert np.abs(run.servers["w"] - truth["w"]).max() < 0.1 * start


def test_it_stands_between_slices_that_ops_cut_too():
    """Without runtime_split_send_recv, split and concat are ops of the program."""
    stand = asynchronous(max_merge_var_num=2)
    run = Run("async", steps=60, trainers=1, beside=stand)
    assert np.abs(run.servers["w"] - initial(seed=9)["w"]).max() < 0.5


def test_a_full_queue_makes_the_trainer_wait_but_not_for_ever():
    hub = InProcessCluster(seed=1)
    # answers to what is behind the startup never arrive
    hub.lose("pserver-0", "trainer-0", *range(1, 50))
    with pytest.raises(ClusterFailure) as caught:
        Sums(mean=False, steps=60, hub=hub)
    error = caught.value.errors["trainer-0"]
    assert isinstance(error, WaitTimeout)
    assert "trainer 0 waited 180 s for room in the send queue of w@GRAD" in str(error)
    assert "4 gradients for pserver 127.0.0.1:6174, 127.0.0.1:6175 wait" in str(error)


def test_a_dead_server_ends_the_threads_and_is_named():
    hub = InProcessCluster(seed=1)
    hub.crash("pserver-1", after=3)
    with pytest.raises(ClusterFailure) as caught:
        Sums(mean=False, steps=60, hub=hub)
    text = str(caught.value.errors["trainer-0"])
    assert "communicator: pserver 127.0.0.1:6175 died" in text


# ------------------------------------------------------------------ other modes


def test_half_async_exchanges_at_the_end_of_a_batch():
    order = [0, 0, 1, 0, 1, 1]
    run = Run(
        "half-async",
        order,
        beside=lambda main: Communicator(main, DistributedMode.HALF_ASYNC),
    )
    model = Async(order)
    check(run.servers, model.server)
    for t in range(2):
        for ours, theirs in zip(run.seen[t], model.seen[t]):
            check(ours, theirs)


class Line:
    """A client that notes what it is asked."""

    trainer = 0

    def __init__(self):
        self.log = []

    def push(self, endpoint, name, value):
        self.log.append((endpoint, name, value.tolist()))

    def exchange(self, barriers, wanted, trainer):
        self.log.append(("exchange", list(wanted)))
        return [np.zeros(1)] * len(wanted)


def test_half_async_merges_what_was_sent_since_the_last_exchange():
    attrs = dict(find("send").defaults, epmap=["e0"])
    for mean in (False, True):
        own, line = beside.Batches(beside.Settings(is_sgd_optimizer=not mean)), Line()
        between = own.between(line, None)
        for value in (1.0, 2.0, 6.0):
            between.send(["g"], [np.array([value])], attrs, {})
        between.receive([("e0", "p")], 0)
        between.send(["g"], [np.array([5.0])], attrs, {})
        own.end()
        assert line.log == [
            ("e0", "g", [3.0 if mean else 9.0]), ("exchange", [("e0", "p")]),
            ("e0", "g", [5.0]), ("exchange", []),
        ]  # fmt: skip


def test_geo_may_be_told_its_variables():
    """Programs from a file know no plan: the Communicator does."""
    order = [0, 1, 1, 0, 0]
    kept = {}

    def told(main):
        plan = main._parameters_on_pservers
        info = {
            p.name: {
                "var_names": [s.name for s in p.slices],
                "sections": [str(n) for n in p.sections],
                "epmap": p.endpoints,
                "is_sparse": [str(p.table)],
            }
            for p in plan.parameters
        }
        kept[id(main)] = plan
        kwargs = {"push_vars": info, "trainers": 2, "push_nums": 2}
        main._parameters_on_pservers = None
        return Communicator(main, DistributedMode.GEO, kwargs)

    run = Run("geo", order, beside=told)
    check(run.servers, Geo(order, 2).server)
    assert len(kept) == 2


def test_what_a_geo_communicator_is_told():
    """The form of the reference's ``vars_info``."""
    main, startup, _ = network()
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode, config.geo_sgd_mode, config.min_block_size = False, True, 2
    transpiler = GeoSgdTranspiler(config)
    transpiler.transpile(0, main, "a:1,b:2", 2, False, startup)
    told = transpiler.vars_info
    assert list(told) == ["b", "table", "w"]
    assert told["table"] == {
        "var_names": ["table.block0", "table.block1"],
        "sections": ["6", "5"],
        "epmap": ["b:2", "a:1"],
        "is_sparse": ["True"],
    }
    assert told["w"]["is_sparse"] == ["False"]


def test_the_signatures_are_the_reference_s():
    recorded = {
        "__init__": "(self, program, mode, kwargs=None, envs={})",
        "is_running": "(self)",
        "start": "(self)",
        "stop": "(self)",
    }
    for name, text in recorded.items():
        found = inspect.signature(getattr(Communicator, name))
        plain = [
            p.replace(annotation=inspect.Parameter.empty)
            for p in found.parameters.values()
        ]
        assert str(inspect.Signature(plain)) == text


def test_a_synchronous_program_needs_none_and_may_have_one():
    def stand(main):
        return Communicator(main, DistributedMode.SYNC, {"pserver_endpoints": ["e"]})

    run = Run("pserver", steps=2, beside=stand)
    plain = Run("pserver", steps=2)
    check(run.servers, plain.servers)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="mode must be one of"):
        Communicator(Program(), 7)
    with pytest.raises(ValueError, match="needs a program of GeoSgdTranspiler"):
        Communicator(Program(), DistributedMode.GEO)
    with pytest.raises(ValueError, match="no setting 'communicator_speed'"):
        Communicator(Program(), 1, None, {"communicator_speed": 1})
    with pytest.raises(ValueError, match="send_queue_size='many'"):
        Communicator(Program(), 1, None, {"communicator_send_queue_size": "many"})
    sync = Run("pserver", steps=1).made.programs["trainer-0"]["main"]
    with pytest.raises(ValueError, match="sync_mode=True"):
        Communicator(sync, DistributedMode.ASYNC)


def test_settings_come_from_the_environment_too():
    env = {
        "FLAGS_communicator_max_merge_var_num": "7",
        "FLAGS_communicator_send_queue_size": "5",
        "FLAGS_communicator_independent_recv_thread": "false",
    }
    made = beside.Settings.of({"communicator_send_queue_size": "3"}, env)
    assert (made.max_merge_var_num, made.send_queue_size) == (7, 3)
    assert made.independent_recv_thread is False
    assert made.thread_pool_size == 5


def test_one_at_a_time_and_threads_that_end():
    one, two = (Communicator(Program(), DistributedMode.ASYNC) for _ in range(2))
    before = threading.active_count()
    assert not one.is_running()
    one.start()
    one.start()
    assert one.is_running()
    with pytest.raises(RuntimeError, match="another Communicator is running"):
        two.start()
    one.stop()
    one.stop()
    assert not one.is_running()
    two.start()
    two.stop()
    assert threading.active_count() == before


def test_batch_values_are_copies():
    """The trainer goes on to write into its arrays."""
    attrs = dict(find("send").defaults, epmap=["e0"])
    queue, value = Queue(["g"], attrs), np.ones(2)
    queue.put([value])
    value[:] = 5
    assert queue.pushed(queue.take(1), beside.Settings())[0][2].tolist() == [1, 1]
