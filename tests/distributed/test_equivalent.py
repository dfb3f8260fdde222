"""`equivalent` finds nothing where nothing is wrong, and else says where it is."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.fluid_cluster import Net, batch

import fluidx as fluid
from fluidx.distributed.equivalent import _orders, apart, compare, equivalent
from fluidx.distributed.interleave import every_order
from fluidx.distributed.replay import feeds_of, joined
from fluidx.ir import default_main_program
from fluidx.transpiler import TranspileError, config_for, distribute


def feed_fn(kind):
    return lambda step, trainer, trainers: batch(kind, trainer, step)


def check(kind, mode="pserver", optimizer="sgd", steps=3, **options):
    net = Net(kind, optimizer)
    return equivalent(
        net.main, mode, feed_fn(kind), steps, startup_program=net.startup, **options
    )


def broken(kind, change, optimizer="sgd", mode="pserver"):
    """The first difference once `change` was made to a set of programs."""
    net = Net(kind, optimizer)
    made = distribute(net.main, net.startup, mode)
    change(made.programs)
    report = compare(made, feeds_of(feed_fn(kind), 3, 2))
    assert report.same is False
    assert report.largest > 1e-3
    return report.first, str(report)


def ops(programs, role, which="main", block=0):
    return programs[role][which].blocks[block].ops


# ------------------------------------------------------------------ nothing is wrong


@pytest.mark.parametrize("kind", ["dense", "table", "sparse"])
@pytest.mark.parametrize(
    "mode", ["pserver", "completely-not-async", "grad-allreduce", "nccl2"]
)
def test_modes_in_step_equal_one_process(kind, mode):
    report = check(kind, mode, "momentum")
    assert report.same is True
    assert report.first is None
    assert report.largest < 1e-5
    assert "equal to one process" in str(report)


@pytest.mark.parametrize("trainers", [1, 3])
@pytest.mark.parametrize("servers", [1, 3])
def test_sizes(servers, trainers):
    report = check("dense", pservers=servers, trainers=trainers, optimizer="adam")
    assert report.same is True
    assert (report.servers, report.trainers, report.steps) == (servers, trainers, 3)


def test_a_config_and_unsliced():
    config = config_for("pserver", slice_var_up=False)
    assert check("dense", config).same is True


def test_frozen_parameters_and_default_programs():
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    frozen = fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(trainable=False))
    out = fluid.layers.fc(frozen, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.SGD(0.1).minimize(loss)

    def feed(step, trainer, trainers):
        rng = np.random.default_rng([step, trainer])
        return {n: rng.random((5, k), "f4") for n, k in (("x", 4), ("y", 1))}

    version = default_main_program()._version
    assert equivalent(default_main_program(), "pserver", feed, 2).same is True
    assert default_main_program()._version == version  # left alone


def test_the_local_run_gets_all_batches():
    parts = [{"x": np.array([[1.0]])}, {"x": np.array([[2.0], [3.0]])}]
    assert joined(parts)["x"].tolist() == [[1.0], [2.0], [3.0]]
    lod = [fluid.create_lod_tensor(np.ones((n, 1)), [[n]], None) for n in (2, 3)]
    made = joined([{"x": t} for t in lod])["x"]
    assert made.recursive_sequence_lengths() == [[2, 3]]
    assert made.shape() == [5, 1]


# ------------------------------------------------------------------ something is


def test_a_merge_that_does_not_divide():
    def change(programs):
        (scale,) = [o for o in ops(programs, "pserver-0", block=1) if o.type == "scale"]
        scale.attrs["scale"] = 1.0

    first, text = broken("dense", change)
    assert (first.variable, first.step) == ("fc_0.b_0@GRAD", 0)
    assert first.role == "pserver-0"
    assert first.role_op.startswith("block 1: scale(X=fc_0.b_0@GRAD)")
    assert first.op.startswith("elementwise_add_grad(")
    assert "fluid_cluster.py" in first.where
    assert "fc_0.b_0@GRAD differs by" in text


def test_a_trainer_that_is_left_out():
    def change(programs):
        merge = ops(programs, "pserver-1", block=1)[0]
        merge.inputs["X"] = merge.inputs["X"][:1]

    first, _ = broken("dense", change)
    assert (first.variable, first.role) == ("fc_0.w_0@GRAD", "pserver-1")


def test_a_wrong_rate():
    def change(programs):
        for op in ops(programs, "pserver-1", "startup"):
            if op.output("Out") == ["learning_rate_0"]:
                op.attrs["value"] = 0.25

    first, text = broken("dense", change)
    assert (first.variable, first.step) == ("learning_rate_0", -1)
    assert first.role == "pserver-1"
    assert first.amount == pytest.approx(0.25)
    assert "before the first step" in text


def test_a_wrong_accumulator():
    def change(programs):
        for op in ops(programs, "pserver-0", "startup"):
            if op.output("Out") == ["fc_0.w_0_moment1_0"]:
                op.attrs["value"] = 0.3

    first, _ = broken("dense", change, "adam")
    assert (first.variable, first.step) == ("fc_0.w_0_moment1_0", -1)
    assert "fill_constant" in first.role_op


def test_slices_in_the_wrong_order():
    def change(programs):
        (concat,) = [o for o in ops(programs, "trainer-1") if o.type == "concat"]
        concat.inputs["X"].reverse()

    first, _ = broken("dense", change)
    assert (first.variable, first.step) == ("fc_0.w_0", 0)
    assert first.role == "trainer-1"
    assert first.role_op.startswith("concat(")


def test_another_op_on_one_trainer():
    def change(programs):
        (relu,) = [o for o in ops(programs, "trainer-1") if o.type == "relu"]
        relu.type = "tanh"

    first, _ = broken("dense", change)
    assert (first.variable, first.step, first.role) == ("fc_0.tmp_2", 0, "trainer-1")
    assert first.op.startswith("relu(")
    assert first.role_op.startswith("tanh(")


def test_sparse_gradients_are_compared_whole():
    def change(programs):
        block = programs["pserver-1"]["main"].blocks[2]
        (scale,) = [o for o in block.ops if o.type == "scale"]
        scale.attrs["scale"] = 0.75

    first, _ = broken("sparse", change)
    assert (first.variable, first.role) == ("table@GRAD", "pserver-1")


def test_a_ring_that_forgets_a_gradient():
    def change(programs):
        for role in programs:
            block = programs[role]["main"].global_block()
            drop = [o for o in block.ops if o.input("X") == ["fc_1.b_0@GRAD"]]
            block.ops = [
                o for o in block.ops if not (o in drop and "allreduce" in o.type)
            ]

    first, _ = broken("dense", change, mode="grad-allreduce")
    assert first.step == 0
    assert first.variable in ("fc_1.b_0@GRAD", "fc_1.b_0")


def test_how_far_apart():
    assert apart(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == 0.5
    assert apart(np.zeros(2), np.zeros(3)) == np.inf
    assert apart(np.array([np.nan, 1]), np.array([np.nan, 1])) == 0.0
    assert apart(np.array([np.nan]), np.array([1.0])) == np.inf
    assert apart(np.array([np.inf]), np.array([np.inf])) == 0.0


# ------------------------------------------------------------------ roles out of step


@pytest.mark.parametrize("servers", [1, 2])
def test_async_is_enumerated_where_that_is_few(servers):
    report = check("dense", "async", steps=2, pservers=servers)
    assert report.same is None
    assert report.every is True
    assert report.orders == 6  # 4 steps, 2 of each trainer: 4! / (2! 2!)
    assert report.spread["fc_0.w_0"] > 1e-4
    assert "all 6 orders of events" in str(report)


def test_one_order_is_no_spread():
    report = check("dense", "async", steps=2, trainers=1)
    assert (report.orders, report.every) == (1, True)
    assert set(report.spread.values()) == {0.0}
    # gradients of one trainer, applied as they come: what one process does
    assert report.largest < 1e-6


def test_many_orders_are_sampled():
    report = check("dense", "async", steps=4, runs=5, seed=3)
    again = check("dense", "async", steps=4, runs=5, seed=3)
    assert report.every is False
    assert report.runs == 5
    assert 1 < report.orders <= 5
    assert report.spread == again.spread
    assert max(report.spread.values()) > 1e-4


def test_local_sgd_is_the_mean_of_all_steps():
    report = check("dense", "local-sgd", "momentum")
    assert report.same is None
    assert max(report.spread.values()) == 0.0  # all workers end alike
    assert report.largest < 1e-5  # the mean of linear updates is the update by the mean


def test_orders():
    turns = ([9], [2, 2], [3, 3], [2, 2, 2])
    assert [_orders(t) for t in turns] == [1, 6, 20, 90]


def test_every_order_walks_the_whole_tree():
    seen = []

    def run(script):
        taken = [*script, 0, 0][:2]
        seen.append(tuple(taken))
        return [2, 3] if taken[0] else [2, 2]

    counts = list(every_order(run, 100))
    assert sorted(seen) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert counts == [1, 2, 3, 4, 5]
    assert list(every_order(run, 3)) == [1, 2, 3, 4]  # one more than allowed


# ------------------------------------------------------------------ errors


def test_where_it_is_found():
    assert fluid.transpiler.equivalent is equivalent
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        fluid.transpiler.other  # noqa: B018


def test_errors():
    net = Net("dense", "sgd")
    with pytest.raises(TypeError, match="feed_fn"):
        equivalent(net.main, startup_program=net.startup)
    with pytest.raises(TranspileError, match="mode must be one of"):
        check("dense", "telepathy")
