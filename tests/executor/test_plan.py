"""Plans: what is compiled, what is overwritten, what is batched."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx.executor.analysis import analyse


def plan_source(exe, feeds, fetches):
    main = fluid.default_main_program()
    return exe.plan_of(main, 0, tuple(feeds), tuple(fetches)).source


def test_the_source_reads_like_the_program_and_reuses_dead_buffers():
    x = fluid.data("x", [None, 3])
    a = fluid.layers.scale(x, 2.0)
    b = fluid.layers.relu(a)
    c = fluid.layers.tanh(b)
    exe = fluid.Executor()
    source = plan_source(exe, ["x"], [c.name])
    scale, relu, tanh = [s for s in source.splitlines() if "(xp, " in s]
    assert "out=None" in scale, "what the user fed must not be overwritten"
    assert "out=(v1" in relu
    assert "out=(v2" in tanh
    (got,) = exe.run(feed={"x": -np.ones((1, 3), "float32")}, fetch_list=[c])
    assert got.tolist() == [[0.0, 0.0, 0.0]]


def test_a_fetched_or_later_read_buffer_is_not_overwritten():
    x = fluid.data("x", [None, 3])
    a = fluid.layers.scale(x, 2.0)
    b = fluid.layers.relu(a)
    c = fluid.layers.elementwise_add(a, b)
    exe = fluid.Executor()
    feed = {"x": np.array([[-1.0, 0.0, 1.0]], "float32")}
    got = exe.run(feed=feed, fetch_list=[a, b, c])
    assert [g.tolist() for g in got] == [
        [[-2.0, 0.0, 2.0]],
        [[0.0, 0.0, 2.0]],
        [[-2.0, 0.0, 4.0]],
    ]


def test_a_view_protects_the_buffer_that_it_shows():
    x = fluid.data("x", [None, 4])
    a = fluid.layers.scale(x, 1.0)
    view = fluid.layers.reshape(a, [-1])
    b = fluid.layers.relu(a)
    c = fluid.layers.elementwise_add(fluid.layers.reshape(b, [-1]), view)
    exe = fluid.Executor()
    feed = {"x": np.array([[-1.0, -2.0, 3.0, 4.0]], "float32")}
    (got,) = exe.run(feed=feed, fetch_list=[c])
    assert got.tolist() == [-1.0, -2.0, 6.0, 8.0]


def test_updates_of_one_kind_run_as_one_call():
    x = fluid.data("x", [None, 3])
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(x, 4), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    block = fluid.default_main_program().global_block()
    facts = analyse(block, block.ops, {"x"}, [loss.name])
    groups = [s for s in facts.steps if s.group]
    assert [len(s.ops) for s in groups] == [4]
    assert {op.type for op in groups[0].ops} == {"sgd"}


def test_updates_that_touch_each_other_stay_apart():
    main = fluid.default_main_program()
    block = main.global_block()
    for name in ("p", "g", "lr"):
        block.create_var(name=name, shape=[2], dtype="float32", persistable=True)
    for _ in range(2):
        block.append_op(
            type="sgd",
            inputs={"Param": "p", "Grad": "g", "LearningRate": "lr"},
            outputs={"ParamOut": "p"},
        )
    scope = fluid.global_scope()
    for name, value in (("p", [1.0, 1.0]), ("g", [1.0, 2.0]), ("lr", [0.5])):
        scope.var(name).value = np.array(value, "float32")
    fluid.Executor().run(main)
    assert scope.find_var("p").value.tolist() == [0.0, -1.0]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_an_update_out_of_place_leaves_the_old_parameter(optimizer):
    """ParamOut with a name of its own: Param itself must not change."""
    main = fluid.default_main_program()
    block = main.global_block()
    names = {
        "SGD": {"Param": "p", "Grad": "g", "LearningRate": "lr"},
        "Adam": {
            "Param": "p",
            "Grad": "g",
            "LearningRate": "lr",
            "Moment1": "m",
            "Moment2": "v",
            "Beta1Pow": "b1",
            "Beta2Pow": "b2",
        },
    }[optimizer]
    scope = fluid.global_scope()
    for name in names.values():
        size = 2 if name in "pgmv" else 1
        block.create_var(name=name, shape=[size], dtype="float32", persistable=True)
        scope.var(name).value = np.full(size, 0.5, "float32")
    outs = {f"{s}Out": f"{n}_out" for s, n in names.items() if s not in ("Grad",)}
    outs.pop("LearningRateOut")
    for name in outs.values():
        block.create_var(name=name, persistable=True)
    block.append_op(type=optimizer.lower(), inputs=names, outputs=outs)
    fluid.Executor().run(main)
    assert scope.find_var("p").value.tolist() == [0.5, 0.5]
    assert not np.array_equal(scope.find_var("p_out").value, [0.5, 0.5])


def test_an_attribute_named_like_a_keyword():
    x = fluid.data("x", [None, 3])
    y = fluid.layers.softshrink(x, alpha=1.0)
    feed = {"x": np.array([[-3.0, 0.5, 2.0]], "float32")}
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[y])
    assert got.tolist() == [[-2.0, 0.0, 1.0]]


def test_infinities_come_silently():
    x = fluid.data("x", [None, 2])
    y = fluid.layers.log(x)
    feed = {"x": np.zeros((1, 2), "float32")}
    (got,) = fluid.Executor().run(feed=feed, fetch_list=[y])
    assert got.tolist() == [[-np.inf, -np.inf]]
