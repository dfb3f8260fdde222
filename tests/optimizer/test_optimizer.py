"""The optimizers' own rules: arguments, state, rates, clips, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from golden.oracle.optimizers import net

import fluidx as fluid
from fluidx.clip import (
    ErrorClipByValue,
    GradientClipByGlobalNorm,
    GradientClipByNorm,
    GradientClipByValue,
    set_gradient_clip,
)
from fluidx.ir import BuildError, OpRole
from fluidx.optimizer import SGD, Adam, DGCMomentumOptimizer, Ftrl, Lamb, Momentum
from fluidx.regularizer import L2Decay


@pytest.fixture(autouse=True)
def _programs() -> Iterator[None]:
    guard = fluid.program_guard(fluid.Program(), fluid.Program())
    with guard, fluid.unique_name.guard():
        yield


def _ops(type: str) -> list[Any]:
    return [op for op in fluid.default_main_program().all_ops() if op.type == type]


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="learning_rate must be a number or a Variable"):
        SGD("fast")
    with pytest.raises(TypeError, match="grad_clip must be a gradient clip"):
        SGD(0.1, grad_clip=3)
    with pytest.raises(TypeError, match="regularization must be one of"):
        SGD(0.1, regularization=0.5)
    with pytest.raises(TypeError, match="the loss must be a Variable"):
        SGD(0.1).minimize("loss")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must have shape \[1\], not \[-1, 4\]"):
        SGD(0.1).minimize(fluid.data("x", [None, 4]))
    with pytest.raises(TypeError, match="regularization_coeff must be a number"):
        L2Decay("much")  # type: ignore[arg-type]


def test_clips_check_their_bounds() -> None:
    with pytest.raises(ValueError, match=r"min 2.0 is above max 1.0"):
        GradientClipByValue(1.0, 2.0)
    with pytest.raises(ValueError, match="ErrorClipByValue: min 0"):
        ErrorClipByValue(-1.0, 0.0)
    with pytest.raises(TypeError, match="need_clip must be a function"):
        GradientClipByNorm(1.0, need_clip="w")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a gradient clip"):
        set_gradient_clip(1.0)  # type: ignore[arg-type]
    assert GradientClipByValue(2.0).min == -2.0


def test_minimize_twice_on_one_optimizer() -> None:
    optimizer = Momentum(0.1, 0.9)
    loss = net(fluid)
    optimizer.minimize(loss)
    with pytest.raises(ValueError, match=r"state velocity of .* exists already"):
        optimizer.minimize(loss)


def test_rate_of_another_program() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        rate = fluid.layers.fill_constant([1], "float32", 0.1)
        inside = net(fluid)
    with pytest.raises(TypeError, match="belongs to another program"):
        SGD(rate).minimize(net(fluid))
    # where the optimizer is made does not matter
    _, pairs = SGD(rate).minimize(inside, startup_program=fluid.Program())
    assert len(pairs) == 2


def test_state_is_known_by_name() -> None:
    optimizer = Adam(0.1)
    optimizer.minimize(net(fluid))
    names = [
        f"{p}_{s}_0"
        for p in ("table", "w")
        for s in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")
    ]
    assert optimizer.get_opti_var_name_list() == names
    assert set(optimizer.state_dict()) == set(names)
    assert optimizer._global_learning_rate().name == "learning_rate_0"
    w = fluid.default_main_program().global_block().var("w")
    with pytest.raises(ValueError, match="w has no state velocity"):
        optimizer._get_accumulator("velocity", w)


@pytest.mark.parametrize("method", ["current_step_lr", "clear_gradients"])
def test_dygraph_methods_say_so(method: str) -> None:
    with pytest.raises(RuntimeError, match=f"SGD.*{method} exists in dygraph mode"):
        getattr(SGD(0.1), method)()
    with pytest.raises(RuntimeError, match="set_dict exists in dygraph mode"):
        SGD(0.1).set_dict({})


def test_a_loss_without_parameters() -> None:
    loss = fluid.layers.mean(fluid.data("x", [None, 4]))
    assert SGD(0.1).minimize(loss) == ([], [])


def test_set_gradient_clip_on_some_parameters() -> None:
    """Only these; where the reference clips none if one has no clip."""
    loss = net(fluid)
    set_gradient_clip(GradientClipByNorm(1.0), param_list=["w"])
    SGD(0.1).minimize(loss)
    assert [op.input("X") for op in _ops("clip_by_norm")] == [["w@GRAD"]]
    assert [op.input("Grad") for op in _ops("sgd")] == [
        ["table@GRAD"],
        ["clip_by_norm_0.tmp_0"],
    ]


def test_groups_have_norms_of_their_own() -> None:
    """Each gradient is scaled by its group's factor, unlike in the reference."""
    loss = net(fluid)
    set_gradient_clip(GradientClipByGlobalNorm(1.0, "a"), param_list=["w"])
    set_gradient_clip(GradientClipByGlobalNorm(2.0, "b"), param_list=["table"])
    SGD(0.1).minimize(loss)
    factors = {}
    for op in _ops("elementwise_div"):
        bound = next(
            o for o in _ops("fill_constant") if o.output("Out") == op.input("X")
        )
        factors[op.output("Out")[0]] = bound.attr("value")
    scaled = {
        op.input("X")[0]: factors[op.input("Y")[0]]
        for op in _ops("elementwise_mul")
        if op.input("Y")[0] in factors
    }
    assert scaled == {"table@GRAD": 2.0, "w@GRAD": 1.0}


def test_one_group_with_two_norms() -> None:
    loss = net(fluid)
    set_gradient_clip(GradientClipByGlobalNorm(1.0), param_list=["w"])
    set_gradient_clip(GradientClipByGlobalNorm(2.0), param_list=["table"])
    with pytest.raises(ValueError, match="group 'default_group' has clip_norm"):
        SGD(0.1).minimize(loss)


def test_two_ways_of_clipping_at_once() -> None:
    loss = net(fluid)
    set_gradient_clip(GradientClipByNorm(1.0))
    with pytest.warns(UserWarning, match="set_gradient_clip has no effect"):
        SGD(0.1, grad_clip=GradientClipByValue(1.0)).minimize(loss)
    assert len(_ops("clip")) == 2
    assert not _ops("clip_by_norm")


def test_name_scopes_tell_the_clips_apart() -> None:
    """The transpiler looks for @CLIP."""
    loss = net(fluid)
    set_gradient_clip(GradientClipByNorm(1.0))
    SGD(0.1).minimize(loss)
    assert all("@CLIP" in op.attr("op_namescope") for op in _ops("clip_by_norm"))
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = net(fluid)
        SGD(0.1, grad_clip=GradientClipByNorm(1.0)).minimize(loss)
        for op in _ops("clip_by_norm"):
            assert op.attr("op_namescope").startswith("/gradient_clip")
            assert "@CLIP" not in op.attr("op_namescope")


def test_error_clip_in_minimize() -> None:
    loss = net(fluid)
    fluid.default_main_program().global_block().var("fc_0.tmp_0").set_error_clip(
        ErrorClipByValue(0.5)
    )
    SGD(0.1).minimize(loss)
    (clip,) = _ops("clip")
    assert clip.input("X") == clip.output("Out") == ["fc_0.tmp_0@GRAD"]
    assert clip.role == OpRole.Backward
    program = fluid.default_main_program().clone(for_test=True)
    assert "clip" not in [op.type for op in program.all_ops()]


def test_betas_as_variables() -> None:
    beta = fluid.layers.create_global_var([1], 0.5, "float32", persistable=True)
    Adam(0.1, beta1=beta).minimize(net(fluid))
    for op in _ops("adam"):
        assert op.input("Beta1Tensor") == [beta.name]
        assert op.input("Beta2Tensor") == []


def test_exclusion_from_decay_is_asked_per_parameter() -> None:
    optimizer = Lamb(
        0.1,
        lamb_weight_decay=0.25,
        exclude_from_weight_decay_fn=lambda p: p.name == "w",
    )
    optimizer.minimize(net(fluid))
    decay = {op.input("Param")[0]: op.attr("weight_decay") for op in _ops("lamb")}
    assert decay == {"table": 0.25, "w": 0.0}


def test_ftrl_takes_l1_for_both() -> None:
    Ftrl(0.1, l1=0.5, l2=0.25).minimize(net(fluid, False))
    assert {(op.attr("l1"), op.attr("l2")) for op in _ops("ftrl")} == {(0.5, 0.5)}


def test_sparse_gradient_where_an_update_takes_none() -> None:
    """The message comes when the program runs, and names the op and its line."""
    Ftrl(0.1).minimize(net(fluid, True))
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        feed = {"ids": np.zeros((2, 1), "int64"), "y": np.zeros((2, 1), "float32")}
        with pytest.raises(RuntimeError, match="takes a dense gradient, got Sel"):
            exe.run(feed=feed)


def test_gradient_of_another_shape() -> None:
    block = fluid.default_main_program().global_block()
    w = fluid.layers.create_parameter([2, 3], "float32", name="w")
    wrong = block.create_var(name="wrong", shape=[3, 2], dtype="float32")
    with pytest.raises(BuildError, match="sgd: Param has shape"):
        SGD(0.1).apply_gradients([(w, wrong)])


def test_compression_needs_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="works on GPUs only"):
        DGCMomentumOptimizer(0.1, 0.9, 0)
