"""Collective modes in one process: ranks are roles of a deterministic cluster."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from distributed import collective_toy as toy

import fluidx as fluid
from fluidx.distributed import ClusterError, PeerLost, WaitTimeout
from fluidx.distributed.collective import buckets, world
from fluidx.distributed.collective.alone import AloneWorld
from fluidx.distributed.collective.board import SLOT, Board
from fluidx.distributed.collective.environment import adopt
from fluidx.distributed.collective.rendezvous import share
from fluidx.distributed.inprocess import ClusterFailure, InProcessCluster
from fluidx.executor.collectives import gather_reductions
from fluidx.kernels import SelectedRows

PLACE = fluid.CPUPlace()


def run(ranks, body, seed=0, cluster=None):
    """body(rank) on every rank; the results in rank order."""
    cluster = cluster or InProcessCluster(seed)
    roles = {f"trainer-{r}": (lambda r=r: body(r)) for r in range(ranks)}
    results = cluster.run(roles)
    return [results[f"trainer-{r}"] for r in range(ranks)]


def check_training(results, wanted):
    for got in results:
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=2e-5, atol=2e-6)
            np.testing.assert_array_equal(got[name], results[0][name])


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("mode", ["grad_allreduce", "local_sgd", "nccl2"])
def test_training_equals_its_definition(mode, ranks):
    results = run(ranks, lambda r: toy.train(mode, r, ranks))
    check_training(results, toy.expected(mode, ranks))


def test_modes_differ():
    one, other = toy.expected("grad_allreduce", 2), toy.expected("local_sgd", 2)
    assert max(abs(one[n] - other[n]).max() for n in one) > 1e-3


@pytest.mark.parametrize("mode", ["grad_allreduce", "local_sgd", "nccl2"])
def test_several_rings_give_the_same_numbers(mode):
    one = run(3, lambda r: toy.train(mode, r, 3, rings=1))
    three = run(3, lambda r: toy.train(mode, r, 3, rings=3), seed=5)
    for a, b in zip(one, three):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_hierarchical_rings_give_the_same_sums():
    results = run(4, lambda r: toy.train("nccl2", r, 4, rings=2, inner=2))
    check_training(results, toy.expected("nccl2", 4))


def test_gradients_can_be_summed_instead():
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = strategy.GradientScaleStrategy.One
    results = run(2, lambda r: toy.train("nccl2", r, 2, strategy=strategy))
    check_training(results, toy.expected("nccl2", 2, factor=2.0))


def test_num_trainers_alone_is_enough():
    def body(rank):
        main, startup, loss = toy.build(rank)
        strategy = fluid.BuildStrategy()
        strategy.num_trainers, strategy.trainer_id = 2, rank
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, strategy)
        scope, exe = fluid.Scope(), fluid.Executor(PLACE)
        exe.run(startup, scope=scope)
        for x, y in toy.batches(2, 4):
            feed = {"x": x[rank::2], "y": y[rank::2]}
            exe.run(program, feed=feed, scope=scope)
        return {n: np.array(scope.find_var(n).get_tensor()) for n in toy.NAMES}

    check_training(run(2, body), toy.expected("nccl2", 2))


def test_parallel_executor():
    def body(rank):
        main, startup, loss = toy.build(rank)
        scope = fluid.Scope()
        fluid.Executor(PLACE).run(startup, scope=scope)
        runner = fluid.ParallelExecutor(
            False, loss.name, main, num_trainers=2, trainer_id=rank, scope=scope
        )
        for x, y in toy.batches(2, 4):
            runner.run([loss], feed={"x": x[rank::2], "y": y[rank::2]})
        return {n: np.array(scope.find_var(n).get_tensor()) for n in toy.NAMES}

    check_training(run(2, body), toy.expected("nccl2", 2))


def test_an_nccl2_program_as_it_is_warns_once():
    main, startup, loss = toy.build(0)
    toy.transpile(main, startup, "nccl2", 0, 2)
    _, local_startup, _ = toy.build(0)
    scope, exe = fluid.Scope(), fluid.Executor(PLACE)
    exe.run(local_startup, scope=scope)
    ((x, y),) = toy.batches(2, 1)
    feed = {"x": x, "y": y}
    with pytest.warns(UserWarning, match="gradients are not averaged"):
        exe.run(main, feed=feed, scope=scope)
    exe.run(main, feed=feed, scope=scope)  # warnings are errors in these tests
    test = main.clone(for_test=True)
    exe.run(test, feed=feed, fetch_list=[loss.name], scope=scope)


def test_sparse_gradients_equal_dense_ones():
    table = np.random.RandomState(0).randn(9, 2).astype("float32")

    def body(rank, sparse):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            start = fluid.initializer.NumpyArrayInitializer(table)
            rows = fluid.embedding(
                ids, [9, 2], is_sparse=sparse, param_attr=fluid.ParamAttr("t", start)
            )
            loss = fluid.layers.mean(fluid.layers.square(rows))
            fluid.optimizer.SGD(1.0).minimize(loss)
        toy.transpile(main, startup, "grad_allreduce", rank, 2)
        scope, exe = fluid.Scope(), fluid.Executor(PLACE)
        exe.run(startup, scope=scope)
        # the ranks name other rows, and unequally many
        mine = np.array([[1], [3], [3]] if rank else [[3], [8]], "int64")
        for _ in range(3):
            exe.run(main, feed={"ids": mine}, scope=scope)
        return np.array(scope.find_var("t").get_tensor())

    sparse = run(2, lambda r: body(r, True))
    dense = run(2, lambda r: body(r, False))
    np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    np.testing.assert_array_equal(sparse[0], sparse[1])
    # row 8 by hand: two ids of two numbers on rank 0, halved by the mean over ranks
    factor = (1 - 2 / 4 / 2) ** 3
    np.testing.assert_allclose(sparse[0][8], table[8] * factor, rtol=1e-5)


# ------------------------------------------------------------------ ops


def one_op(type, value, rank, ranks, **attrs):
    main = fluid.Program()
    block = main.global_block()
    x = block.create_var(name="x", shape=value.shape, dtype=str(value.dtype))
    x.is_data = True
    y = block.create_var(name="y")
    block.append_op(type, {"X": x}, {"Out": y}, attrs)
    world(PLACE).open_ring(0, rank, ranks)
    (got,) = fluid.Executor(PLACE).run(main, feed={"x": value}, fetch_list=[y])
    assert tuple(y.shape) == got.shape
    return got


GIVEN = [np.arange(6.0).reshape(6, 1) * (r + 1) - 3 for r in range(3)]
OPS = {
    "c_allreduce_sum": (np.sum(GIVEN, 0), {}),
    "c_allreduce_max": (np.max(GIVEN, 0), {}),
    "c_allreduce_min": (np.min(GIVEN, 0), {}),
    "c_allreduce_prod": (np.prod(GIVEN, 0), {}),
    "c_broadcast": (GIVEN[2], {"root": 2}),
    "broadcast": (GIVEN[1], {"root": 1}),
    "c_allgather": (np.concatenate(GIVEN), {"nranks": 3}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("type", list(OPS))
def test_ops(type, dtype):
    wanted, attrs = OPS[type]
    results = run(3, lambda r: one_op(type, GIVEN[r].astype(dtype), r, 3, **attrs))
    for got in results:
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("kind", "function"), [(0, np.sum), (1, np.prod), (2, np.max), (3, np.min)]
)
def test_allreduce_kinds(kind, function):
    def body(rank):
        return one_op("allreduce", GIVEN[rank], rank, 3, reduce_type=kind)

    for got in run(3, body):
        np.testing.assert_array_equal(got, function(GIVEN, 0))


def test_reducescatter():
    results = run(3, lambda r: one_op("c_reducescatter", GIVEN[r], r, 3, nranks=3))
    np.testing.assert_array_equal(np.concatenate(results), np.sum(GIVEN, 0))


def test_small_floats_add_up_in_float32():
    value = np.array([1.0], "float16")
    tiny = np.array([2.0**-11], "float16")
    results = run(3, lambda r: one_op("c_allreduce_sum", tiny if r else value, r, 3))
    assert results[0].dtype == np.float16
    assert results[0][0] == np.float16(1 + 2.0**-10)


def test_ops_say_what_does_not_fit():
    def body(rank):
        one_op("c_allgather", GIVEN[0], rank, 2, nranks=3)

    with pytest.raises(ClusterFailure, match="nranks is 3, ring 0 has 2 ranks"):
        run(2, body)


# ------------------------------------------------------------------ failures


def test_collectives_in_different_orders():
    def body(rank):
        world(PLACE).open_ring(0, rank, 2)
        ring = world(PLACE).group(0)
        for name in ("a", "b") if rank else ("b", "a"):
            ring.all_reduce([np.ones(3)], "sum", [name])

    with pytest.raises(ClusterFailure) as failed:
        run(2, body)
    for error in failed.value.errors.values():
        assert isinstance(error, ClusterError)
        text = str(error)
        assert "the ranks run different collectives" in text
        assert "all_reduce sum of a" in text
        assert "all_reduce sum of b" in text


def test_rings_in_different_orders_wait_for_the_deadline_only():
    def body(rank):
        for number in range(2):
            world(PLACE).open_ring(number, rank, 2)
        for number in (0, 1) if rank else (1, 0):
            world(PLACE).group(number).barrier()

    with pytest.raises(ClusterFailure) as failed:
        run(2, body)
    first = next(iter(failed.value.errors.values()))
    assert isinstance(first, WaitTimeout)
    assert "is in collective 1 of ring" in str(first)


def test_a_rank_that_runs_fewer_steps():
    with pytest.raises(ClusterFailure) as failed:
        run(2, lambda r: toy.train("grad_allreduce", r, 2, steps=4 - r))
    (error,) = failed.value.errors.values()
    assert isinstance(error, PeerLost)
    assert "rank 1 has ended" in str(error)
    assert "@GRAD" in str(error)


def test_a_rank_that_crashes():
    cluster = InProcessCluster(1)
    cluster.crash("trainer-1", after=6)
    with pytest.raises(ClusterFailure) as failed:
        run(3, lambda r: toy.train("local_sgd", r, 3), cluster=cluster)
    for role in ("trainer-0", "trainer-2"):
        assert isinstance(failed.value.errors[role], PeerLost)


def test_a_program_of_several_ranks_alone():
    alone = AloneWorld()
    with pytest.raises(ClusterError, match="fluidx launch --collective --workers 2"):
        alone.open_ring(0, 0, 2)
    with pytest.raises(ClusterError, match="was the startup program run"):
        alone.group(0)


def test_one_rank_gives_back_what_it_got():
    alone = AloneWorld()
    alone.open_ring(0, 0, 1)
    value = np.arange(4.0)
    rows = SelectedRows(np.array([1]), np.ones((1, 2)), 3)
    got = alone.group(0).all_reduce([value, rows], "sum", ["a", "b"])
    np.testing.assert_array_equal(got[0], value)
    assert got[0] is not value
    np.testing.assert_array_equal(got[1].to_dense(), rows.to_dense())
    for same in (alone.group(0).all_gather, alone.group(0).reduce_scatter):
        np.testing.assert_array_equal(same(value, "a"), value)
    assert alone.traffic()[0]["all_reduce"].bytes == 32 + 8 + 16


def test_the_wrong_rank():
    def body(rank):
        world(PLACE).open_ring(0, rank, 2)
        world(PLACE).open_ring(1, 1 - rank, 2)

    with pytest.raises(ClusterFailure, match="made for rank 1 of 2, but its process"):
        run(2, body)


# ------------------------------------------------------------------ parts


def written(rank=0):
    main, startup, _ = toy.build(rank)
    toy.transpile(main, startup, "grad_allreduce", rank, 2, rings=2)
    return main


def test_reductions_are_put_side_by_side():
    ops = written().global_block().ops
    made = gather_reductions(ops)
    kinds = [op.type for op in made]
    first = kinds.index("c_allreduce_sum")
    assert kinds[first : first + 4] == ["c_allreduce_sum"] * 4
    assert kinds[first + 4] == "adagrad"
    before = [op for op in ops if op.type == "c_allreduce_sum"]
    assert made[first : first + 4] == before
    rest = [op for op in ops if not op.type.startswith("c_")]
    assert [op for op in made if not op.type.startswith("c_")] == rest


def test_an_op_that_reads_a_sum_comes_behind_it():
    main = fluid.Program()
    block = main.global_block()
    for name in "abc":
        block.create_var(name=name, shape=[2], dtype="float32")

    def op(type, x, out, **attrs):
        return block.append_op(type, {"X": x}, {"Out": out}, attrs)

    sum_a = op("c_allreduce_sum", "a", "a")
    sum_b = op("c_allreduce_sum", "b", "b")
    other = op("scale", "c", "c")
    reads = op("scale", "a", "c")
    last = op("c_allreduce_max", "c", "c")
    now = op("c_allreduce_sum", "b", "b", use_calc_stream=True)
    wanted = [other, sum_a, sum_b, reads, last, now]
    assert [id(op) for op in gather_reductions(block.ops)] == [id(op) for op in wanted]


def test_buckets():
    shapes = [(3,), (2, 2), (40,), (), (5,)]
    values = [np.arange(np.prod(s, dtype=int), dtype="f4").reshape(s) for s in shapes]
    values.insert(2, np.arange(3.0))
    lists = list(buckets.plan(values, small=20, limit=32))
    assert sorted(i for places in lists for i in places) == list(range(6))
    assert [3] in lists  # 160 bytes: by itself
    for places in lists:
        some = [values[i] for i in places]
        assert len({v.dtype for v in some}) == 1
        assert len(some) == 1 or sum(v.nbytes for v in some) <= 32
        for part, value in zip(buckets.part(buckets.join(some), some), some):
            np.testing.assert_array_equal(part, value)


def test_the_board():
    memory = bytearray(2 * SLOT)
    slots = {r: memoryview(memory)[r * SLOT : (r + 1) * SLOT] for r in range(2)}
    one, other = Board(0, slots), Board(1, slots)
    one.enter("sum of a")
    assert one.gone() is None
    assert "rank 1 has not begun" in map(str, one.others())
    other.enter("sum of b")
    assert str(one.elsewhere()) == "rank 1 is in collective 1: sum of b"
    other.leave()
    other.end()
    assert one.elsewhere() is None
    assert one.gone() is None  # it was in this one
    one.enter("sum of c")
    assert str(one.gone()) == "rank 1 has ended after 1 collectives"


def test_the_environment_under_mpiexec():
    env = {"PMI_RANK": "1", "PMI_SIZE": "3"}
    adopt(env)
    assert env["PADDLE_TRAINER_ID"] == "1"
    assert env["PADDLE_TRAINERS_NUM"] == "3"
    ends = env["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(ends)) == 3
    assert env["PADDLE_CURRENT_ENDPOINT"] == ends[1]
    given = {"PMI_RANK": "1", "PMI_SIZE": "3", "PADDLE_TRAINER_ID": "2"}
    same = dict(given)
    adopt(same)
    assert same == given
    adopt(env := {"HOME": "/"})
    assert env == {"HOME": "/"}


def test_a_few_bytes_without_mpi(ports):
    ends = ports(3)
    got = {}

    def role(rank):
        for name in ("ring_0", "ring_1"):
            value = name.encode() * 20 if rank == 0 else b""
            got[rank, name] = share(name, value, rank, ends, 20)

    threads = [threading.Thread(target=role, args=(r,)) for r in (2, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {
        (r, n): n.encode() * 20 for r in range(3) for n in ("ring_0", "ring_1")
    }


def test_nobody_comes_for_the_bytes(ports):
    ends = ports(2)
    with pytest.raises(WaitTimeout, match=f"for rank 1 at {ends[1]}"):
        share("ring_0", b"x", 0, ends, 0.2)
    with pytest.raises(WaitTimeout, match=r"waited 0\.2 s for ring_0 from rank 0"):
        share("ring_0", b"", 1, ends, 0.2)
