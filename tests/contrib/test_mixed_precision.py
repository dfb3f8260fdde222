"""Mixed precision: programs as the reference's, numerics, loss scaling."""

from __future__ import annotations

import inspect
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx.contrib import mixed_precision as mixed
from fluidx.kernels import VarType

GOLDEN = Path(__file__).parents[1] / "golden"
PATHS = [str(GOLDEN / "oracle"), str(GOLDEN / "transpiler")]
sys.path[:0] = PATHS
import amp as oracle  # noqa: E402
import amp_cases  # noqa: E402
import compare  # noqa: E402

for _path in PATHS:
    sys.path.remove(_path)

with lzma.open(oracle.FILE, "rt") as _file:
    RECORDED = json.load(_file)


def test_all_cases_are_recorded() -> None:
    assert sorted(RECORDED) == sorted(amp_cases.CASES)


def _normal(program: Any) -> Any:
    """Sets in order, and unknown sizes alike (the reference multiplies them)."""
    for block in program["blocks"]:
        for op in block["ops"]:
            if op["type"] == "conditional_block":
                op["out"].get("Out", []).sort()
        for var in block["vars"].values():
            if "shape" in var:
                var["shape"] = [max(size, -1) for size in var["shape"]]
    return program


def _with_roles(program: Any) -> Any:
    """Loss scaling as part of the update; the reference gives it no role."""
    for block in program["blocks"]:
        behind = block["idx"] > 0
        for op in block["ops"]:
            behind = behind or op["attrs"].get("op_role") == 2
            if behind:
                op["attrs"]["op_role"] = op["attrs"].get("op_role") or 2
    return program


@pytest.mark.parametrize("case", sorted(amp_cases.CASES))
def test_programs_equal_the_reference(case: str) -> None:
    made = json.loads(json.dumps(oracle.build(fluid, amp_cases.CASES[case])))
    for role in ("main", "startup"):
        theirs, mine = _normal(RECORDED[case][role]), _normal(made[role])
        if role == "main":
            theirs = _with_roles(theirs)
        assert compare.compare(theirs, mine) == []


def test_signatures_are_the_reference_s() -> None:
    def shown(function: Any) -> list[tuple[str, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in found]

    none, needed = None, inspect.Parameter.empty
    assert shown(mixed.AutoMixedPrecisionLists) == [
        ("custom_white_list", none),
        ("custom_black_list", none),
        ("custom_black_varnames", none),
    ]
    assert shown(mixed.decorate) == [
        ("optimizer", needed),
        ("amp_lists", none),
        ("init_loss_scaling", 32768),
        ("incr_every_n_steps", 1000),
        ("decr_every_n_nan_or_inf", 2),
        ("incr_ratio", 2.0),
        ("decr_ratio", 0.8),
        ("use_dynamic_loss_scaling", True),
    ]


# --- lists ---------------------------------------------------------------------------


def test_an_op_type_moves_between_lists() -> None:
    lists = mixed.AutoMixedPrecisionLists(["softmax", "elu"], ["matmul", "relu"])
    assert {"softmax", "elu"} <= lists.white_list
    assert lists.black_list.isdisjoint({"softmax", "elu"})
    assert {"matmul", "relu"} <= lists.black_list
    assert lists.white_list.isdisjoint({"matmul", "relu"})
    assert "relu" not in lists.gray_list


def test_an_op_type_in_both_custom_lists_is_refused() -> None:
    with pytest.raises(ValueError, match=r"softmax in the custom white list"):
        mixed.AutoMixedPrecisionLists(["softmax"], ["softmax"])


def test_names_must_come_in_a_list() -> None:
    with pytest.raises(TypeError, match=r"custom_white_list .* got 'softmax'"):
        mixed.AutoMixedPrecisionLists("softmax")  # type: ignore[arg-type]


def test_only_half_precisions_are_taken() -> None:
    lists = mixed.AutoMixedPrecisionLists()
    with pytest.raises(ValueError, match="float16 or bfloat16"):
        lists.dtype = "float64"  # type: ignore[assignment]


def test_only_optimizers_are_decorated() -> None:
    with pytest.raises(TypeError, match=r"not an optimizer: 0\.1"):
        mixed.decorate(0.1)


# --- training ------------------------------------------------------------------------


def _lists(dtype: str) -> mixed.AutoMixedPrecisionLists:
    lists = mixed.AutoMixedPrecisionLists()
    lists.dtype = dtype  # type: ignore[assignment]
    return lists


def _train(optimize: Any, net: Any, steps: int = 40) -> tuple[list[float], list[float]]:
    """Losses and loss scales of a run; optimize(optimizer) may decorate it."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, batch = net()
        optimizer = optimize(fluid.optimizer.Momentum(0.05, 0.9))
        optimizer.minimize(loss)
        fetch = [loss]
        if isinstance(optimizer, mixed.OptimizerWithMixedPrecision):
            fetch.append(optimizer.get_loss_scaling())
    exe, scope, rng = fluid.Executor(), fluid.Scope(), np.random.default_rng(5)
    exe.run(startup, scope=scope)
    losses, scales = [], []
    for _ in range(steps):
        got = exe.run(main, feed=batch(rng), fetch_list=fetch, scope=scope)
        losses.append(float(got[0][0]))
        scales.append(float(got[-1][0]))
    return losses, scales


def _classifier() -> Any:
    layers = fluid.layers
    x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1], "int64")
    out = layers.fc(layers.fc(x, 16, act="relu"), 3)
    loss = layers.mean(layers.softmax_with_cross_entropy(out, y))
    truth = np.random.default_rng(0).normal(size=(8, 3))

    def batch(rng: Any) -> dict[str, Any]:
        a = rng.normal(size=(32, 8)).astype("float32")
        return {"x": a, "y": (a @ truth).argmax(1)[:, None]}

    return loss, batch


def _conv_net() -> Any:
    layers = fluid.layers
    image = fluid.data("image", [None, 1, 8, 8])
    y = fluid.data("y", [None, 1], "int64")
    x = layers.batch_norm(layers.conv2d(image, 4, 3, bias_attr=False), act="relu")
    x = layers.pool2d(x, 2, "max", 2)
    x = layers.conv2d(x, 6, 3, act="relu")
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(x, 2), y))

    def batch(rng: Any) -> dict[str, Any]:
        a = rng.normal(size=(16, 1, 8, 8)).astype("float32")
        label = (a[:, 0, :4].sum((1, 2)) > 0).astype("int64")
        a += label[:, None, None, None]
        return {"image": a, "y": label[:, None]}

    return loss, batch


@pytest.mark.parametrize("net", [_classifier, _conv_net])
@pytest.mark.parametrize(("dtype", "close"), [("float16", 0.01), ("bfloat16", 0.08)])
def test_training_follows_float32(net: Any, dtype: str, close: float) -> None:
    plain, _ = _train(lambda o: o, net)
    half, scales = _train(lambda o: mixed.decorate(o, _lists(dtype)), net)
    assert np.mean(plain[-5:]) < 0.6 * plain[0]
    assert np.mean(half[-5:]) < 0.6 * plain[0]
    # rounding grows with the steps
    np.testing.assert_allclose(half[:15], plain[:15], atol=close)
    assert half != plain
    assert set(scales) == {2.0**15}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_have_the_declared_types(dtype: str) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, batch = _conv_net()
        mixed.decorate(fluid.optimizer.SGD(0.1), _lists(dtype)).minimize(loss)
    block = main.global_block()
    made = {n for op in block.ops for n in op.output_arg_names}
    wanted = [
        v
        for v in block.vars.values()
        if v.name in made and v.type == VarType.LOD_TENSOR and v.dtype != VarType.BOOL
    ]
    assert {v.dtype for v in wanted} >= {VarType.FP32, VarType.INT32}
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = batch(np.random.default_rng(1))
    values = exe.run(main, feed=feed, fetch_list=wanted, scope=scope)
    names = {
        VarType.FP16: "float16",
        VarType.BF16: "bfloat16",
        VarType.FP32: "float32",
        VarType.INT32: "int32",
        VarType.UINT8: "uint8",
    }
    for var, value in zip(wanted, values):
        assert value.dtype.name == names[var.dtype], var.name


def test_products_of_halves_add_up_in_float32() -> None:
    x, y = fluid.data("x", [1, 4096], "float16"), fluid.data("y", [4096, 1], "float16")
    out = fluid.layers.mul(x, y)
    ones = np.ones((1, 4096), "float16")
    got = fluid.Executor().run(feed={"x": ones, "y": ones.T}, fetch_list=[out])[0]
    # a float16 sum of ones stops at 2048
    assert got.dtype == np.float16
    assert got[0, 0] == 4096.0


# --- loss scaling --------------------------------------------------------------------


class _Step:
    """A net whose gradient the test feeds: loss = mean(w * x)."""

    def __init__(self, **options: Any) -> None:
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup):
            x = fluid.data("x", [1])
            one = fluid.initializer.Constant(1.0)
            w = fluid.layers.create_parameter(
                [1], "float32", name="w", default_initializer=one
            )
            loss = fluid.layers.mean(fluid.layers.elementwise_mul(w, x))
            sgd = fluid.optimizer.SGD(0.5)
            self.mixed = mixed.decorate(sgd, **options)
            self.updates, self.pairs = self.mixed.minimize(loss)
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        self.exe.run(self.startup, scope=self.scope)

    def run(self, gradient: float) -> tuple[float, float]:
        """One step; returns the scale and the weight after it."""
        feed = {"x": np.array([gradient], "float32")}
        self.exe.run(self.main, feed=feed, scope=self.scope)
        names = (self.mixed.get_loss_scaling().name, "w")
        scale, weight = (np.array(self.scope.find_var(n).get_tensor()) for n in names)
        return float(scale[0]), float(weight[0])


def test_the_scale_grows_after_good_steps() -> None:
    step = _Step(init_loss_scaling=4.0, incr_every_n_steps=2, incr_ratio=3.0)
    scales = [step.run(1.0)[0] for _ in range(7)]
    # the third good step in a row is the first beyond two
    assert scales == [4.0, 4.0, 12.0, 12.0, 12.0, 36.0, 36.0]


def test_the_scale_shrinks_after_bad_steps_but_not_below_one() -> None:
    step = _Step(init_loss_scaling=4.0, decr_every_n_nan_or_inf=1, decr_ratio=0.3)
    scales = [step.run(np.inf)[0] for _ in range(6)]
    np.testing.assert_allclose(scales, [4.0, 1.2, 1.2, 1.0, 1.0, 1.0], rtol=1e-6)


def test_a_good_step_ends_a_row_of_bad_ones() -> None:
    step = _Step(init_loss_scaling=4.0, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    scales = [step.run(g)[0] for g in (np.inf, 1.0, np.nan, 1.0, np.inf, np.inf)]
    assert scales == [4.0, 4.0, 4.0, 4.0, 4.0, 2.0]


def test_the_scale_does_not_grow_out_of_range() -> None:
    big = float(np.float32(3e38))
    step = _Step(init_loss_scaling=big, incr_every_n_steps=0, incr_ratio=2.0)
    assert step.run(1e-20)[0] == big


def test_a_bad_step_leaves_the_weight() -> None:
    step = _Step(init_loss_scaling=4.0)
    weights = [step.run(g)[1] for g in (1.0, np.inf, np.nan, 1.0)]
    assert weights == [0.5, 0.5, 0.5, 0.0]


def test_a_fixed_scale_does_not_change_the_step() -> None:
    step = _Step(init_loss_scaling=1024.0, use_dynamic_loss_scaling=False)
    assert step.run(1.0) == (1024.0, 0.5)
    assert step.run(-2.0) == (1024.0, 1.5)


def test_minimize_returns_updates_and_pairs() -> None:
    step = _Step()
    assert [op.type for op in step.updates] == ["sgd"]
    assert [param.name for param, _ in step.pairs] == ["w"]
    scaled = step.mixed.get_scaled_loss()
    assert scaled is not None
    assert scaled.shape == (1,)


# --- where we do better than the reference -------------------------------------------


def test_a_clone_for_testing_only_computes_the_loss() -> None:
    x = fluid.data("x", [None, 4])
    one = fluid.initializer.Constant(1.0)
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, param_attr=one))
    mixed.decorate(fluid.optimizer.SGD(0.1)).minimize(loss)
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32")}
    for _ in range(2):
        assert exe.run(test, feed=feed, fetch_list=[loss.name])[0] == 4.0


def test_blocks_read_the_cast() -> None:
    layers = fluid.layers
    x = fluid.data("x", [2, 4])
    a = layers.fc(x, 4, bias_attr=False)
    small = layers.less_than(layers.reduce_sum(x), layers.zeros([1], "float32"))
    b = layers.cond(small, lambda: layers.fc(a, 4), lambda: layers.relu(a))
    options = {"init_loss_scaling": 8.0, "use_dynamic_loss_scaling": False}
    mixed.decorate(fluid.optimizer.SGD(0.1), **options).minimize(layers.mean(b))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    w = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    data = np.arange(8, dtype="float32").reshape(2, 4)
    got, grad = exe.run(feed={"x": data}, fetch_list=[b, "fc_0.w_0@GRAD"])
    wanted = np.maximum(data @ w, 0)
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3)
    through = (data @ w > 0) / 8.0
    np.testing.assert_allclose(grad, 8.0 * data.T @ through, rtol=2e-3, atol=2e-3)


def test_an_overwritten_value_is_cast_again() -> None:
    layers = fluid.layers
    x = fluid.data("x", [2, 4])
    a = layers.fc(x, 4, bias_attr=False)
    before = layers.exp(a)
    block = fluid.default_main_program().global_block()
    block.append_op("relu", {"X": a}, {"Out": a})
    after = layers.exp(a)
    loss = layers.mean(layers.elementwise_add(before, after))
    mixed.decorate(fluid.optimizer.SGD(0.1)).minimize(loss)
    casts = [op for op in block.ops if op.output_arg_names == [f"{a.name}.cast_fp32"]]
    assert len(casts) == 2
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    data = -np.ones((2, 4), "float32")
    got = exe.run(feed={"x": data}, fetch_list=[before, after, a])
    np.testing.assert_allclose(got[1], np.exp(got[2].astype("float32")))


def test_noise_like_a_half_is_half() -> None:
    layers = fluid.layers
    x = fluid.data("x", [2, 4])
    a = layers.fc(x, 4, bias_attr=False)
    noise = layers.uniform_random_batch_size_like(a, [-1, 4])
    loss = layers.mean(layers.elementwise_add(a, noise))
    mixed.decorate(fluid.optimizer.SGD(0.1)).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    got = exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[noise])[0]
    assert got.dtype == np.float16
    assert np.abs(got).max() <= 1.0


def test_casts_keep_a_float64_gradient() -> None:
    layers = fluid.layers
    x = fluid.data("x", [2, 4])
    a = layers.cast(layers.fc(x, 4, bias_attr=False), "float64")
    b = layers.cast(layers.square(a), "float32")
    mixed.decorate(fluid.optimizer.SGD(0.1)).minimize(layers.mean(b))
    grad = fluid.default_main_program().global_block().var(f"{a.name}@GRAD")
    assert grad.dtype == VarType.FP64
