"""Gradients through loops, branches and recurrent networks, by finite differences.

All in float64; the program itself is run with each element moved up and down.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers as L

F64 = "float64"


def const(value, shape=(1,), dtype=F64):
    return L.fill_constant(list(shape), dtype, value)


def counter(value=0):
    return L.fill_constant([1], "int64", value)


def data(name, shape):
    var = fluid.data(name, shape, F64)
    var.stop_gradient = False
    return var


def leaf(value):
    """A variable of the program whose gradient is wanted though nothing feeds it."""
    value.stop_gradient = False
    return value


def check(build: Callable[[], object], feed: dict[str, np.ndarray], tol=1e-7):
    """Gradients of all parameters and fed variables against differences."""
    loss = build()
    main = fluid.default_main_program()
    params = main.global_block().all_parameters()
    names = [n for n in feed if not main.global_block().var(n).stop_gradient]
    fluid.backward.append_backward(loss)
    scope, exe = fluid.Scope(), fluid.Executor()
    rng = np.random.default_rng(3)
    feed = {n: np.array(v) for n, v in feed.items()}
    with fluid.scope_guard(scope):
        exe.run(fluid.default_startup_program())
        for p in params:
            scope.find_var(p.name).value = rng.uniform(-0.9, 0.9, p.shape)
        places = {n: feed[n] for n in names}
        places |= {p.name: scope.find_var(p.name).value for p in params}
        wanted = {n: f"{n}@GRAD" for n in places}
        block = main.global_block()
        wanted = {n: g for n, g in wanted.items() if block.has_var(g)}
        got = exe.run(feed=feed, fetch_list=[loss, *wanted.values()])[1:]
        assert wanted

        def value():
            return exe.run(feed=feed, fetch_list=[loss])[0].sum()

        for name, gradient in zip(wanted, got):
            array = places[name]
            assert gradient.shape == array.shape, name
            for at in np.ndindex(array.shape):
                kept = array[at]
                array[at] = kept + 1e-6
                above = value()
                array[at] = kept - 1e-6
                below = value()
                array[at] = kept
                slope = (above - below) / 2e-6
                assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=tol), (
                    f"{name}{list(at)}"
                )
    return dict(zip(wanted, got))


X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))


# --- while ---------------------------------------------------------------------------


def test_while_that_overwrites_what_it_reads():
    """acc = tanh(acc w + b) + x: each step's gradient needs the acc of that step."""

    def build():
        x, i, n = data("x", [2, 3]), counter(), counter(3)
        acc = leaf(const(0.3, (2, 3)))
        go = L.less_than(i, n)
        with L.While(go).block():
            L.assign(L.fc(acc, 3, act="tanh") + x, acc)
            L.increment(i)
            L.less_than(i, n, cond=go)
        return L.mean(acc)

    check(build, {"x": X})


def test_while_that_reads_before_and_after_it_writes():
    def build():
        x, i, n = data("x", [2, 3]), counter(), counter(3)
        acc, kept = leaf(const(0.5, (2, 3))), leaf(const(0.0, (2, 3)))
        go = L.less_than(i, n)
        with L.While(go).block():
            L.assign(acc * acc * x, acc)
            L.assign(kept + acc * acc + L.sqrt(acc), kept)
            L.assign(L.tanh(acc + x), acc)
            L.increment(i)
            L.less_than(i, n, cond=go)
        return L.mean(kept * acc)

    check(build, {"x": X})


def test_while_that_never_runs_passes_gradients_on():
    def build():
        x, i, n = data("x", [2, 3]), counter(5), counter(3)
        acc = x * 2.0
        go = L.less_than(i, n)
        with L.While(go).block():
            L.assign(L.fc(acc, 3, act="tanh"), acc)
            L.increment(i)
            L.less_than(i, n, cond=go)
        return L.mean(acc)

    found = check(build, {"x": X})
    assert not found["fc_0.w_0"].any()


def test_while_over_an_array():
    def build():
        x, i, n = data("x", [2, 3]), counter(), counter(3)
        memory = L.array_write(L.fc(x, 4), i)
        go = L.less_than(i, n)
        with L.While(go).block():
            before = L.array_read(memory, i)
            after = L.fc(before, 4, act="tanh")
            L.increment(i)
            L.array_write(after, i, array=memory)
            L.less_than(i, n, cond=go)
        first, last = L.array_read(memory, counter(1)), L.array_read(memory, n)
        return L.mean(last * last) + L.mean(first)

    check(build, {"x": X})


def test_while_that_reads_two_elements_of_what_it_writes():
    """Fibonacci: each element is read by the two steps behind it, and by the loss."""

    def build():
        x, i, n = data("x", [2, 3]), counter(1), counter(5)
        memory = L.array_write(x * 0.5, counter())
        L.array_write(L.tanh(x), i, array=memory)
        go = L.less_than(i, n)
        with L.While(go).block():
            one = L.array_read(memory, i)
            two = L.array_read(memory, i - counter(1))
            i2 = L.increment(i, in_place=False)
            L.array_write(one * two + x, i2, array=memory)
            L.assign(i2, i)
            L.less_than(i, n, cond=go)
        return L.mean(L.array_read(memory, n)) + L.mean(
            L.array_read(memory, counter(3))
        )

    check(build, {"x": X})


def test_nested_loops():
    def build():
        x, n, m = data("x", [2, 3]), counter(2), counter(3)

        def outer(i, acc):
            def inner(j, total):
                return [L.increment(j), L.tanh(L.fc(total * acc, 3))]

            _, total = L.while_loop(
                lambda j, total: L.less_than(j, m), inner, [counter(), acc * 1.0]
            )
            return [L.increment(i), acc + total * x]

        _, acc = L.while_loop(
            lambda i, acc: L.less_than(i, n), outer, [counter(), L.fc(x, 3)]
        )
        return L.mean(acc)

    check(build, {"x": X})


def test_branches_in_a_loop():
    def build():
        x, n, two = data("x", [2, 3]), counter(4), counter(2)

        def body(i, h):
            h = L.cond(
                L.less_than(i, two),
                lambda: L.fc(h, 3, act="tanh"),
                lambda: h * x,
            )
            return [L.increment(i), h]

        _, h = L.while_loop(
            lambda i, h: L.less_than(i, n), body, [counter(), L.fc(x, 3)]
        )
        return L.mean(h)

    check(build, {"x": X})


@pytest.mark.parametrize("sign", [1, -1])
def test_a_loop_in_a_branch(sign):
    def build():
        x, n = data("x", [2, 3]), counter(3)
        h = L.fc(x, 3)

        def loop():
            _, g = L.while_loop(
                lambda i, g: L.less_than(i, n),
                lambda i, g: [L.increment(i), L.fc(g, 3, act="tanh") * x],
                [counter(), L.assign(h)],
            )
            return g

        positive = L.greater_than(L.reduce_mean(x), const(0.0))
        return L.mean(L.cond(positive, loop, lambda: h * 2.0))

    check(build, {"x": X * sign})


def test_a_loop_whose_shapes_grow():
    def build():
        x, n = data("x", [2, 3]), counter(3)
        rows = L.assign(x)
        i = counter()
        go = L.less_than(i, n)
        with L.While(go).block():
            L.assign(L.concat([rows, L.tanh(rows)], axis=0), rows)
            L.increment(i)
            L.less_than(i, n, cond=go)
        return L.reduce_sum(rows * rows)

    check(build, {"x": X}, tol=1e-6)


# --- branches ------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_cond_with_shared_weights_and_inputs(sign):
    def build():
        x = data("x", [2, 3])
        h = L.fc(x, 4)
        positive = L.greater_than(L.reduce_mean(x), const(0.0))
        a, b = L.cond(
            positive,
            lambda: (L.fc(h, 3, param_attr="w", act="tanh"), h),
            lambda: (L.fc(h, 3, param_attr="w"), h * h),
        )
        return L.mean(a) + L.mean(b * b)

    check(build, {"x": X * sign})


@pytest.mark.parametrize("sign", [1, -1])
def test_cond_of_which_only_one_result_is_used(sign):
    def build():
        x = data("x", [2, 3])
        positive = L.greater_than(L.reduce_mean(x), const(0.0))
        a, _ = L.cond(
            positive,
            lambda: (L.fc(x, 3), L.tanh(x)),
            lambda: (x * 3.0, L.fc(x, 3)),
        )
        return L.mean(a)

    check(build, {"x": X * sign})


@pytest.mark.parametrize("sign", [1, -1])
def test_a_block_that_may_overwrite_its_input(sign):
    """Where it does not run, the gradient goes past it."""

    def build():
        x = data("x", [2, 3])
        h = L.fc(x, 3)
        positive = L.greater_than(L.reduce_mean(x), const(0.0))

        def square():
            L.assign(h * h, h)

        L.cond(positive, square, None)
        return L.mean(h * x)

    check(build, {"x": X * sign})


@pytest.mark.parametrize("mean", [0.5, 1.5, 2.5])
def test_case_and_switch_case(mean):
    def build():
        x = data("x", [2, 3])
        m = L.reduce_mean(x)
        one = L.case(
            [
                (L.less_than(m, const(1.0)), lambda: L.fc(x, 3)),
                (L.less_than(m, const(2.0)), lambda: L.tanh(x)),
            ],
            default=lambda: x * x,
        )
        two = L.switch_case(
            L.cast(m, "int32"), {0: lambda: L.tanh(x), 2: lambda: L.fc(x, 3)}
        )
        return L.mean(one) + L.mean(two)

    check(build, {"x": X - X.mean() + mean})


def test_an_array_that_branches_return():
    def build():
        x = data("x", [2, 3])
        positive = L.greater_than(L.reduce_mean(x), const(0.0))

        def branch(factor):
            array = L.array_write(x * factor, counter())
            L.array_write(L.tanh(x), counter(1), array=array)
            return array

        array = L.cond(positive, lambda: branch(2.0), lambda: branch(3.0))
        return L.mean(L.array_read(array, counter()) * L.array_read(array, counter(1)))

    check(build, {"x": X})


# --- recurrent -----------------------------------------------------------------------

STEPS = np.random.default_rng(1).uniform(-0.9, 0.9, (4, 2, 3))


def test_static_rnn():
    def build():
        x, h0, c = data("x", [4, 2, 3]), data("h0", [2, 3]), data("c", [2, 3])
        rnn = L.StaticRNN()
        with rnn.step():
            now = rnn.step_input(x)
            one = rnn.memory(init=h0)
            two = rnn.memory(shape=[-1, 3], batch_ref=now, init_value=0.5)
            h = L.fc([now, one], 3, act="tanh") + c
            rnn.update_memory(one, h)
            rnn.update_memory(two, two * h)
            rnn.output(h, two * now)
        a, b = rnn()
        return L.mean(a * a) + L.mean(b)

    check(build, {"x": STEPS, "h0": X, "c": X + 0.1})


def test_static_rnn_without_a_gradient_through_its_memory():
    def build():
        x = data("x", [4, 2, 3])
        rnn = L.StaticRNN()
        with rnn.step():
            now = rnn.step_input(x)
            count = rnn.memory(shape=[-1, 3], batch_ref=now)
            count.stop_gradient = True
            rnn.update_memory(count, count + 1.0)
            rnn.step_output(now * count)
        return L.mean(rnn() * rnn())

    check(build, {"x": STEPS})


def test_a_loop_in_a_step():
    def build():
        x, n = data("x", [4, 2, 3]), counter(2)
        rnn = L.StaticRNN()
        with rnn.step():
            now = rnn.step_input(x)
            before = rnn.memory(shape=[-1, 3], batch_ref=now)
            _, h = L.while_loop(
                lambda i, h: L.less_than(i, n),
                lambda i, h: [L.increment(i), L.fc([h, now], 3, act="tanh")],
                [counter(), before * 1.0],
            )
            rnn.update_memory(before, h)
            rnn.step_output(h)
        return L.mean(rnn())

    check(build, {"x": STEPS})
