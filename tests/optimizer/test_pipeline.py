"""PipelineOptimizer: sections that together are the whole step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.optimizer.pipeline import Section


def _net(optimizer: Any = None, **options: Any) -> tuple[Any, list[Section]]:
    layers = fluid.layers
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    h = layers.fc(x, 3, act="relu")
    k = layers.fc(h, 3, act="tanh")
    loss = layers.mean(layers.square_error_cost(layers.fc(k, 1), y))
    options.setdefault("cut_list", [[h], [k], [loss]])
    pipeline = fluid.optimizer.PipelineOptimizer(
        optimizer or fluid.optimizer.Momentum(0.1, 0.9), **options
    )
    assert pipeline.minimize(loss) is None
    return loss, fluid.default_main_program()._pipeline_opt["section_program_list"]


def _types(section: Section) -> list[str]:
    return [op.type for op in section.program.global_block().ops]


def test_two_cuts_make_three_sections_as_in_the_reference() -> None:
    layers = fluid.layers
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    h = layers.fc(x, 3, act="relu")
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    sgd = fluid.optimizer.SGD(0.1)
    fluid.optimizer.PipelineOptimizer(sgd, [[h], [loss]]).minimize(loss)
    options = fluid.default_main_program()._pipeline_opt
    first, middle, last = options["section_program_list"]
    assert first.input_set == {"x", "fc_0.w_0", "fc_0.b_0"}
    assert middle.input_set == {
        "y",
        "fc_0.tmp_2",
        "fc_1.w_0",
        "fc_1.b_0",
        "learning_rate_0",
    }
    assert last.input_set == {
        "x",
        "fc_0.tmp_0",
        "fc_0.tmp_2",
        "fc_0.tmp_2@GRAD",
        "fc_0.w_0",
        "fc_0.b_0",
        "learning_rate_0",
    }
    assert _types(first) == ["mul", "elementwise_add", "relu"]
    assert _types(last)[-2:] == ["sgd", "sgd"]
    assert (options["queue_size"], options["sync_steps"]) == (30, 1)


def test_every_op_stands_in_one_section() -> None:
    _, sections = _net()
    assert len(sections) == 5
    kept = sorted(t for section in sections for t in _types(section))
    whole = fluid.default_main_program().global_block().ops
    assert kept == sorted(op.type for op in whole)


@pytest.mark.parametrize("clip", [None, fluid.clip.GradientClipByGlobalNorm(0.5)])
def test_sections_in_order_are_the_whole_step(clip: Any) -> None:
    loss, sections = _net(fluid.optimizer.Momentum(0.1, 0.9, grad_clip=clip))
    startup = fluid.default_startup_program()
    startup.random_seed = 2
    exe, whole, parts = fluid.Executor(), fluid.Scope(), fluid.Scope()
    exe.run(startup, scope=whole)
    for var in startup.list_vars():  # the same start for both
        value = np.array(whole.find_var(var.name).get_tensor())
        parts.var(var.name).get_tensor().set(value, fluid.CPUPlace())
    rng = np.random.default_rng(3)
    for _ in range(4):
        x, y = (rng.normal(size=(8, n)).astype("float32") for n in (4, 1))
        wanted = exe.run(feed={"x": x, "y": y}, fetch_list=[loss], scope=whole)[0]
        values = {"x": x, "y": y}
        for section in sections:
            names = sorted(section.output_set)
            if loss.name in _makes(section):
                names.append(loss.name)
            feed = {n: v for n, v in values.items() if n in section.input_set}
            got = exe.run(section.program, feed, names, scope=parts)
            values.update(zip(names, got))
        np.testing.assert_array_equal(values[loss.name], wanted)


def _makes(section: Section) -> set[str]:
    ops = section.program.global_block().ops
    return {n for op in ops for n in op.output_arg_names}


def test_no_cut_leaves_one_section() -> None:
    _, sections = _net(cut_list=None)
    assert len(sections) == 1


def test_lists_must_have_an_entry_per_section() -> None:
    with pytest.raises(
        ValueError, match="3 cuts make 5 sections, but place_list has 2"
    ):
        _net(place_list=[fluid.CPUPlace()] * 2)


def test_the_last_cut_holds_the_loss() -> None:
    layers = fluid.layers
    h = layers.fc(fluid.data("x", [None, 4]), 3)
    loss = layers.mean(layers.fc(h, 3))
    sgd = fluid.optimizer.SGD(0.1)
    pipeline = fluid.optimizer.PipelineOptimizer(sgd, [[loss], [h]])
    with pytest.raises(ValueError, match="the last of cut_list must hold the loss"):
        pipeline.minimize(loss)


def test_a_cut_does_not_hold_what_follows_itself() -> None:
    layers = fluid.layers
    h = layers.fc(fluid.data("x", [None, 4]), 3)
    k = layers.fc(h, 3)
    loss = layers.mean(layers.fc(k, 3))
    sgd = fluid.optimizer.SGD(0.1)
    pipeline = fluid.optimizer.PipelineOptimizer(sgd, [[h, k], [loss]])
    with pytest.raises(ValueError, match="none may be computed from another"):
        pipeline.minimize(loss)


def test_ops_with_blocks_are_refused() -> None:
    layers = fluid.layers
    x = fluid.data("x", [2, 4])
    h = layers.fc(x, 3)
    small = layers.less_than(layers.reduce_sum(x), layers.zeros([1], "float32"))
    loss = layers.mean(layers.cond(small, lambda: h * 2.0, lambda: h))
    sgd = fluid.optimizer.SGD(0.1)
    pipeline = fluid.optimizer.PipelineOptimizer(sgd, [[h], [loss]])
    with pytest.raises(ValueError, match="conditional_block has blocks of its own"):
        pipeline.minimize(loss)
