"""Programs with sub-blocks: scopes, memory, errors, copies and other forms."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from golden.oracle.control_flow import CASES, build, run

import fluidx as fluid
from fluidx import layers as L
from fluidx.ir import Program
from fluidx.ir.errors import RunError
from fluidx.ir.verify import verify
from fluidx.tensor.scope import RunScope

NETS = ("branches_in_loop", "loop_in_branch", "static_rnn", "while_array")


@pytest.fixture
def exe():
    return fluid.Executor()


def count_to(limit):
    """A loop that doubles x `limit` times."""
    x = fluid.data("x", [None, 2])
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", limit)
    y = L.assign(x)
    go = L.less_than(i, n)
    with L.While(go).block():
        L.assign(y * 2.0, y)
        L.increment(i)
        L.less_than(i, n, cond=go)
    return i, y


# --- values --------------------------------------------------------------------------


def test_while_runs_as_often_as_its_condition_says(exe):
    i, y = count_to(5)
    for rows in (1, 3):
        x = np.ones((rows, 2), "float32")
        got = exe.run(feed={"x": x}, fetch_list=[i, y])
        assert got[0].tolist() == [5]
        assert np.array_equal(got[1], x * 32)


def test_a_fed_variable_that_a_loop_writes_is_not_the_users_array(exe):
    x = fluid.data("x", [1], "int64")
    n = L.fill_constant([1], "int64", 9)
    go = L.less_than(x, n)
    with L.While(go).block():
        L.increment(x)
        L.less_than(x, n, cond=go)
    mine = np.array([2])
    assert exe.run(feed={"x": mine}, fetch_list=[x])[0].tolist() == [9]
    assert mine.tolist() == [2]


def test_shapes_may_change_from_step_to_step(exe):
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 4)
    rows = L.fill_constant([1, 2], "float32", 1.0)
    go = L.less_than(i, n)
    with L.While(go).block():
        L.assign(L.concat([rows, rows + 1.0], axis=0), rows)
        L.increment(i)
        L.less_than(i, n, cond=go)
    (got,) = exe.run(fetch_list=[rows])
    assert got.shape == (16, 2)
    assert got.sum() == 2 * sum(bin(k).count("1") + 1 for k in range(16))


def test_arrays_begin_empty_in_every_run_and_every_step(exe):
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    outer, lengths = L.create_array("int64"), L.create_array("int64")
    go = L.less_than(i, n)
    with L.While(go).block():
        own = L.array_write(i, i)  # made anew in each step
        L.array_write(L.array_length(own), i, array=lengths)
        L.array_write(i * i, i, array=outer)
        L.increment(i)
        L.less_than(i, n, cond=go)
    size = L.array_length(outer)
    for _ in range(2):
        got = exe.run(fetch_list=[size, outer, lengths])
        assert got[0].tolist() == [3]
        assert [v.item() for v in got[1]] == [0, 1, 4]
        assert [v.item() for v in got[2]] == [1, 2, 3]


def test_switch_writes_a_variable_that_lasts(exe):
    step = L.autoincreased_step_counter(begin=0)
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    with L.Switch() as switch:
        for limit in (2, 4):
            bound = L.fill_constant([1], "int64", limit)
            with switch.case(L.less_than(step, bound)):
                L.assign(L.fill_constant([1], "float32", float(limit)), rate)
        with switch.default():
            L.assign(rate * 0.5, rate)
    exe.run(fluid.default_startup_program())
    seen = [exe.run(fetch_list=[rate])[0].item() for _ in range(6)]
    assert seen == [2.0, 2.0, 4.0, 4.0, 2.0, 1.0]
    assert fluid.global_scope().find_var("rate").value.item() == 1.0
    assert fluid.global_scope().find_var("tmp_0") is None


def test_only_the_chosen_branch_runs(exe):
    x = fluid.data("x", [1])
    ran = [
        L.create_global_var([1], 0.0, "float32", persistable=True, name=n)
        for n in ("yes", "no")
    ]
    positive = L.greater_than(x, L.zeros([1], "float32"))
    L.cond(
        positive,
        lambda: L.assign(ran[0] + 1.0, ran[0]) * 0.0,
        lambda: L.assign(ran[1] + 1.0, ran[1]) * 0.0,
    )
    exe.run(fluid.default_startup_program())
    for value in (1.0, 2.0, -1.0):
        exe.run(feed={"x": np.array([value], "float32")})
    assert [fluid.global_scope().find_var(v.name).value.item() for v in ran] == [2, 1]


def test_reversed_recurrence(exe):
    x = fluid.data("x", [4, 1])
    x.stop_gradient = False
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(shape=[1], batch_ref=now, ref_batch_dim_idx=1)
        after = before * 2.0 + now
        rnn.update_memory(before, after)
        rnn.step_output(after)
    out = rnn()
    op = next(o for o in out.block.ops if o.type == "recurrent")
    op._set_attr("reverse", True)
    fluid.backward.append_backward(L.reduce_sum(L.slice(out, [0], [0], [1])))
    data = np.array([[1.0], [2.0], [3.0], [4.0]], "float32")
    got, grad = exe.run(feed={"x": data}, fetch_list=[out, "x@GRAD"])
    assert got.ravel().tolist() == [49.0, 24.0, 11.0, 4.0]
    assert grad.ravel().tolist() == [1.0, 2.0, 4.0, 8.0]


def test_rows_that_all_go_one_way(exe):
    x = fluid.data("x", [None, 1])
    x.stop_gradient = False
    big = L.greater_than(x, L.zeros_like(x))
    chosen = L.IfElse(big)
    with chosen.true_block():
        chosen.output(chosen.input(x) * 3.0)
    with chosen.false_block():
        chosen.output(chosen.input(x) * -2.0)
    [out] = chosen()
    fluid.backward.append_backward(L.reduce_sum(out))
    for sign, factor in ((1, 3.0), (-1, -2.0)):
        data = np.array([[1.0], [2.0]], "float32") * sign
        got, grad = exe.run(feed={"x": data}, fetch_list=[out, "x@GRAD"])
        assert np.array_equal(got, data * factor)
        assert grad.ravel().tolist() == [factor, factor]


# --- memory --------------------------------------------------------------------------


def test_nothing_of_a_run_is_left(exe):
    """Steps and their scopes refer to each other, but go with the run."""
    main, startup, loss = build(fluid, "branches_in_loop")
    exe.run(startup)
    feed = {"x": np.ones((4, 3), "float32")}
    exe.run(main, feed=feed, fetch_list=[loss])
    gc.collect()
    gc.disable()
    try:
        before = sum(type(o) is RunScope for o in gc.get_objects())
        for _ in range(3):
            exe.run(main, feed=feed, fetch_list=[loss])
        arrays = [o for o in gc.get_objects() if type(o) is RunScope]
        assert len(arrays) == before
    finally:
        gc.enable()
    names = fluid.global_scope().local_var_names()
    lasting = {v.name for v in main.list_vars() if v.persistable}
    assert set(names) <= lasting


def test_steps_are_kept_only_for_a_gradient(exe):
    main, startup, loss = build(fluid, "while_loop")
    test = main.clone(for_test=True)
    exe.run(startup)
    feed = {"x": np.ones((4, 3), "float32")}
    trained = exe.run(main, feed=feed, fetch_list=[loss])
    assert exe.keeps(main, 1)
    assert not exe.keeps(test, 1)
    exe.run(startup)
    assert trained[0].shape == exe.run(test, feed=feed, fetch_list=[loss])[0].shape


# --- errors --------------------------------------------------------------------------


def test_an_error_inside_a_block_names_the_users_line(exe):
    x = fluid.data("x", [None, 2])
    w = L.create_global_var([3, 2], 1.0, "float32", persistable=True)
    positive = L.greater_than(L.reduce_mean(x), L.zeros([1], "float32"))
    out = L.cond(positive, lambda: L.elementwise_add(x, w), lambda: x * 1.0)
    exe.run(fluid.default_startup_program())
    with pytest.raises(RunError, match=r"(?s)op elementwise_add.*test_control_flow.py"):
        exe.run(feed={"x": np.ones((2, 2), "float32")}, fetch_list=[out])
    got = exe.run(feed={"x": -np.ones((2, 2), "float32")}, fetch_list=[out])
    assert np.array_equal(got[0], -np.ones((2, 2)))


def test_reading_what_was_never_written(exe):
    array, i = L.create_array("float32"), L.fill_constant([1], "int64", 2)
    L.array_write(L.ones([1], "float32"), L.fill_constant([1], "int64", 0), array)
    out = L.array_read(array, i)
    with pytest.raises(RunError, match=r"nothing was written at index 2 .* length 1"):
        exe.run(fetch_list=[out])


def test_a_condition_of_several_elements(exe):
    flag = fluid.data("flag", [-1], "bool")
    out = L.cond(flag, lambda: L.ones([1], "float32"), lambda: L.zeros([1], "float32"))
    with pytest.raises(RunError, match=r"condition 'flag' must have one element"):
        exe.run(feed={"flag": np.array([True, False])}, fetch_list=[out])


def test_recurrence_without_steps(exe):
    x = fluid.data("x", [None, 2])
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.step_output(rnn.step_input(x) * 2.0)
    with pytest.raises(RunError, match="recurrent: its inputs hold no step"):
        exe.run(feed={"x": np.ones((0, 2), "float32")}, fetch_list=[rnn()])


# --- other forms ---------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_verify_finds_nothing(name):
    main, startup, _ = build(fluid, name)
    assert verify(main) == []
    assert verify(startup) == []
    assert verify(main.clone(for_test=True)) == []


@pytest.mark.parametrize("name", NETS)
def test_copies_and_other_forms_compute_the_same(name):
    main, startup, loss = build(fluid, name)
    wanted = run(fluid, main, startup, loss, -1)
    copy = main.clone()
    text = Program.from_text(main.to_text())
    for other in (copy, text):
        assert other.fingerprint() == main.fingerprint()
        assert run(fluid, other, startup, loss, -1) == wanted


@pytest.mark.parametrize("name", NETS)
def test_bytes_and_back(name):
    main, startup, loss = build(fluid, name)
    raw = main.serialize_to_string()
    read = Program.parse_from_string(raw)
    assert read.serialize_to_string() == raw
    assert [b.forward_block_idx for b in read.blocks] == [
        b.forward_block_idx for b in main.blocks
    ]
    exe, feed = fluid.Executor(), {"x": np.full((4, 3), 0.5, "float32")}
    if name == "static_rnn":
        half = np.full((2, 4), 0.5, "float32")
        feed = {"x": np.full((5, 2, 3), 0.5, "float32"), "h0": half, "c": half}
    exe.run(startup)
    got = [exe.run(p, feed=feed, fetch_list=[loss.name])[0] for p in (main, read)]
    assert got[0] != got[1]  # the first run moved the parameters
    exe.run(startup)
    lasting = {v.name for v in main.list_vars() if v.persistable}
    values = {n: fluid.global_scope().find_var(n).value.copy() for n in lasting}
    for program in (main, read):
        for name, value in values.items():
            fluid.global_scope().find_var(name).value = value.copy()
        got.append(exe.run(program, feed=feed, fetch_list=[loss.name])[0])
    assert got[2] == got[3]


def test_clone_for_test_keeps_the_forward_blocks_only():
    main, _, _ = build(fluid, "branches_in_loop")
    test = main.clone(for_test=True)
    assert len(main.blocks) == 7
    assert [b.forward_block_idx for b in test.blocks] == [-1] * 4
    types = {op.type for op in test.all_ops()}
    assert {"while", "conditional_block", "select_input"} <= types
    assert not any(t.endswith("_grad") or t == "sgd" for t in types)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_embedding_in_a_loop_trains_alike_sparse_and_dense(exe, sparse):
    ids = fluid.data("ids", [3, 1], "int64")
    n = L.fill_constant([1], "int64", 2)

    def body(i, h):
        rows = L.embedding(ids, [6, 2], is_sparse=sparse, param_attr="table")
        return [L.increment(i), L.tanh(h + rows)]

    start = [L.fill_constant([1], "int64", 0), L.fill_constant([3, 2], "float32", 0.1)]
    start[1].stop_gradient = False
    _, h = L.while_loop(lambda i, h: L.less_than(i, n), body, start)
    fluid.optimizer.SGD(0.5).minimize(L.reduce_sum(h))
    exe.run(fluid.default_startup_program())
    table = np.linspace(-0.5, 0.6, 12, dtype="float32").reshape(6, 2)
    fluid.global_scope().find_var("table").value = table.copy()
    exe.run(feed={"ids": np.array([[1], [4], [1]])})
    got = fluid.global_scope().find_var("table").value
    w = table.astype("float64")
    first = np.tanh(0.1 + w)
    second = np.tanh(first + w)
    slope = (1 - second**2) * (1 + 1 - first**2)
    used = np.array([0, 2, 0, 0, 1, 0])[:, None]  # how often each row was looked up
    np.testing.assert_allclose(got, w - 0.5 * used * slope, rtol=1e-5)


def test_gradients_of_one_network_may_be_taken_again(exe):
    x = fluid.data("x", [2, 3])
    x.stop_gradient = False
    n = L.fill_constant([1], "int64", 3)

    def body(i, h):
        h = L.cond(L.less_than(i, n), lambda: L.tanh(h), lambda: h * 2.0)
        return [L.increment(i), h]

    _, h = L.while_loop(
        lambda i, h: L.less_than(i, n),
        body,
        [L.fill_constant([1], "int64", 0), x * 1.0],
    )
    one, two = L.mean(h), L.mean(h * h)
    found = [fluid.gradients(t, [x])[0] for t in (one, two, [one, two])]
    assert verify(fluid.default_main_program()) == []
    feed = {"x": np.random.default_rng(0).random((2, 3)).astype("float32")}
    a, b, both = exe.run(feed=feed, fetch_list=found)
    assert np.abs(a).min() > 0.01
    np.testing.assert_allclose(a + b, both, rtol=1e-5)
