"""The executor: values, memory, reuse of plans, seeds, pruning, LoD, errors."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx.ir.errors import EnforceNotMet, FeedError, RunError
from fluidx.kernels import SelectedRows


@pytest.fixture
def exe():
    return fluid.Executor(fluid.CPUPlace())


def ones(*shape):
    return np.ones(shape, "float32")


def regression():
    """y = x w + b by SGD; returns the loss."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    out = fluid.layers.fc(x, 1, param_attr="w", bias_attr="b")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def test_sgd_steps_are_those_of_float64_arithmetic(exe):
    fluid.default_startup_program().random_seed = 5
    loss = regression()
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    w = np.array(scope.find_var("w").get_tensor(), "float64")
    b = np.array(scope.find_var("b").get_tensor(), "float64")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = rng.standard_normal((4, 3)), rng.standard_normal((4, 1))
        feed = {"x": x.astype("float32"), "y": y.astype("float32")}
        (got,) = exe.run(feed=feed, fetch_list=[loss])
        error = x @ w + b - y
        np.testing.assert_allclose(got, [(error**2).mean()], rtol=1e-5)
        d = 2 * error / error.size
        w, b = w - 0.1 * x.T @ d, b - 0.1 * d.sum(0)
    np.testing.assert_allclose(scope.find_var("w").value, w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scope.find_var("b").value, b, rtol=1e-5, atol=1e-6)


def test_a_program_is_compiled_once_per_version_feed_and_fetch(exe):
    x = fluid.data("x", [None, 3])
    y = fluid.layers.scale(x, 2.0)
    for _ in range(3):
        exe.run(feed={"x": ones(2, 3)}, fetch_list=[y])
        exe.run(feed={"x": ones(5, 3)}, fetch_list=[y.name])
    main = fluid.default_main_program()
    known = exe._plans[main]
    assert len(known) == 2  # the version, and one plan
    z = fluid.layers.scale(y, 2.0)
    (got,) = exe.run(feed={"x": ones(1, 3)}, fetch_list=[z])
    assert got.tolist() == [[4.0, 4.0, 4.0]]


def test_fetched_parameters_are_the_users_own_copies(exe):
    loss = regression()
    exe.run(fluid.default_startup_program())
    feed = {"x": ones(2, 3), "y": ones(2, 1)}
    (before,) = exe.run(feed=feed, fetch_list=["w"])
    kept = before.copy()
    exe.run(feed=feed, fetch_list=[loss])
    assert np.array_equal(before, kept)
    before[:] = 7
    (after,) = exe.run(feed=feed, fetch_list=["w"])
    assert not np.any(after == 7)


def test_a_view_of_a_parameter_keeps_the_value_it_had_before_the_update(exe):
    loss = regression()
    main = fluid.default_main_program()
    seen = main.global_block().create_var(name="seen")
    shape = main.global_block().create_var(name="seen_shape")
    main.global_block()._insert_op(
        0,
        type="reshape2",
        inputs={"X": "w"},
        outputs={"Out": seen, "XShape": shape},
        attrs={"shape": [3]},
    )
    exe.run(fluid.default_startup_program())
    (start,) = exe.run(
        feed={"x": ones(2, 3), "y": ones(2, 1)}, fetch_list=["w"], use_prune=True
    )
    feed = {"x": ones(2, 3), "y": ones(2, 1)}
    tensor = fluid.global_scope().find_var("w").get_tensor()
    tensor.set(np.full((3, 1), 2, "float32"), fluid.CPUPlace())  # far from y
    old = np.array(tensor)
    got, end = exe.run(feed=feed, fetch_list=["seen", "w"])
    np.testing.assert_array_equal(got, old.reshape(3))
    assert not np.allclose(end, old)
    assert start.shape == (3, 1)
    assert loss.shape == (1,)


def test_feeding_leaves_the_users_array_alone(exe):
    x = fluid.data("x", [None, 2])
    y = fluid.layers.relu(fluid.layers.elementwise_add(x, x))
    z = fluid.layers.increment(fluid.layers.reshape(x, [-1]), 1.0, in_place=False)
    given = np.array([[-1.0, 2.0]], "float32")
    exe.run(feed={"x": given}, fetch_list=[y, z])
    assert given.tolist() == [[-1.0, 2.0]]


def test_fetching_a_fed_variable_gives_a_copy(exe):
    x = fluid.data("x", [None, 2])
    given = ones(1, 2)
    (got,) = exe.run(feed={"x": given}, fetch_list=[x])
    got[:] = 5
    assert given.tolist() == [[1.0, 1.0]]


def test_lists_and_scalars_are_fed_in_the_variables_dtype(exe):
    x = fluid.data("x", [None, 2], "int64")
    (got,) = exe.run(feed={"x": [[1, 2]]}, fetch_list=[x])
    assert got.dtype == np.int64


def test_return_numpy_false_gives_tensors(exe):
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 3.0)
    (got,) = exe.run(feed={"x": ones(1, 2)}, fetch_list=[y], return_numpy=False)
    assert isinstance(got, fluid.LoDTensor)
    assert np.array(got).tolist() == [[3.0, 3.0]]


def test_lod_goes_through_ops_and_must_be_fetched_as_a_tensor(exe):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    table = fluid.ParamAttr(
        name="t",
        initializer=fluid.initializer.NumpyArrayInitializer(
            np.arange(8, dtype="float32").reshape(4, 2)
        ),
    )
    vec = fluid.layers.embedding(ids, [4, 2], param_attr=table)
    pooled = fluid.layers.sequence_pool(vec, "sum")
    exe.run(fluid.default_startup_program())
    feed = {"ids": fluid.create_lod_tensor([[0, 3], [2]], [[2, 1]], fluid.CPUPlace())}
    (rows,) = exe.run(feed=feed, fetch_list=[vec], return_numpy=False)
    assert rows.lod() == [[0, 2, 3]]
    (sums,) = exe.run(feed=feed, fetch_list=[pooled])
    assert sums.tolist() == [[6.0, 8.0], [4.0, 5.0]]
    with pytest.raises(RunError, match="return_numpy=False"):
        exe.run(feed=feed, fetch_list=[vec])


def test_use_prune_runs_only_what_the_fetch_needs(exe):
    regression()
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    before = scope.find_var("w").value.copy()
    out = "fc_0.tmp_1"
    (got,) = exe.run(feed={"x": ones(2, 3)}, fetch_list=[out], use_prune=True)
    assert got.shape == (2, 1)
    assert np.array_equal(scope.find_var("w").value, before)
    with pytest.raises(RunError, match=r"'y'.*must be fed"):
        exe.run(feed={"x": ones(2, 3)}, fetch_list=[out])


def test_sparse_gradients_can_be_fetched(exe):
    ids = fluid.data("ids", [None, 1], "int64")
    vec = fluid.layers.embedding(ids, [5, 2], is_sparse=True, param_attr="t")
    loss = fluid.layers.reduce_sum(vec)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    feed = {"ids": np.array([[1], [1], [3]])}
    (got,) = exe.run(feed=feed, fetch_list=["t@GRAD"])
    assert isinstance(got, SelectedRows)
    assert got.to_dense()[:, 0].tolist() == [0, 2, 0, 1, 0]


def test_seeded_runs_are_reproducible_and_go_on():
    x = fluid.data("x", [None, 50])
    y = fluid.layers.dropout(x, 0.5)
    fluid.default_main_program().random_seed = 3

    def draws():
        own = fluid.Executor(fluid.CPUPlace())
        feed = {"x": ones(1, 50)}
        return [own.run(feed=feed, fetch_list=[y])[0].tolist() for _ in range(2)]

    first, second = draws(), draws()
    assert first == second
    assert first[0] != first[1]


def test_scopes_are_separate(exe):
    regression()
    scopes = [fluid.Scope(), fluid.Scope()]
    for scope in scopes:
        with fluid.scope_guard(scope):
            exe.run(fluid.default_startup_program())
    feed = {"x": ones(1, 3), "y": ones(1, 1)}
    exe.run(feed=feed, scope=scopes[0])
    a, b = (s.find_var("b").value for s in scopes)
    assert not np.array_equal(a, b)
    assert fluid.global_scope().find_var("b") is None


def test_an_erased_variable_is_missed_not_remembered(exe):
    regression()
    exe.run(fluid.default_startup_program())
    feed = {"x": ones(1, 3), "y": ones(1, 1)}
    exe.run(feed=feed)
    fluid.global_scope().erase(["w"])
    with pytest.raises(RunError, match=r"'w' has no value.*startup program"):
        exe.run(feed=feed)


# ---------------------------------------------------------------- one-line causes


def test_an_unknown_feed_name_is_told_with_the_nearest(exe):
    fluid.data("image", [None, 3])
    with pytest.raises(FeedError, match=r"no variable 'imag'.*did you mean 'image'"):
        exe.run(feed={"imag": ones(1, 3)})


def test_what_the_program_lacks_is_left_out_with_a_warning(exe):
    y = fluid.layers.scale(fluid.data("x", [None, 3]), 2.0)
    feed = {"x": ones(1, 3), "label": ones(1, 1)}
    with pytest.warns(UserWarning, match=r"no variable 'label'; it takes \['x'\]"):
        (came,) = exe.run(feed=feed, fetch_list=[y])
    assert came.tolist() == [[2, 2, 2]]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (ones(3), r"feed x: expected 2 dimensions \[any, 3\], came 1 \[3\]"),
        (ones(2, 4), r"feed x: dimension 1 must be 3 .*came \[2, 4\]"),
        (np.ones((2, 3)), "feed x: expected dtype float32, came float64"),
    ],
)
def test_feeds_are_checked_before_anything_runs(exe, array, said):
    x = fluid.data("x", [None, 3])
    y = fluid.layers.scale(x, 1.0)
    with pytest.raises(FeedError, match=said):
        exe.run(feed={"x": array}, fetch_list=[y])


def test_an_unfed_variable_is_named(exe):
    x = fluid.data("x", [None, 3])
    y = fluid.layers.scale(x, 1.0)
    with pytest.raises(RunError, match=r"op scale.*'x' has no value; it must be fed"):
        exe.run(fetch_list=[y])


def test_an_uninitialised_parameter_says_startup(exe):
    x = fluid.data("x", [None, 3])
    y = fluid.layers.fc(x, 2)
    with pytest.raises(RunError, match="startup program run in this scope") as caught:
        exe.run(feed={"x": ones(1, 3)}, fetch_list=[y])
    assert "y = fluid.layers.fc(x, 2)" in str(caught.value)


def test_a_failing_op_names_itself_its_inputs_and_the_users_line(exe):
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 3])
    z = fluid.layers.elementwise_add(x, y)
    with pytest.raises(RunError) as caught:
        exe.run(feed={"x": ones(2, 3), "y": ones(4, 3)}, fetch_list=[z])
    text = str(caught.value)
    assert text.startswith("op elementwise_add: ")
    assert "X x: float32[2, 3]" in text
    assert "Y y: float32[4, 3]" in text
    assert "z = fluid.layers.elementwise_add(x, y)" in text


def test_fetching_the_unknown_is_refused(exe):
    with pytest.raises(RunError, match="no variable 'nothing'"):
        exe.run(fetch_list=["nothing"])
    with pytest.raises(TypeError, match="fetch_list takes"):
        exe.run(fetch_list=[3])


def test_an_op_without_definition_is_named(exe):
    main = fluid.default_main_program()
    block = main.global_block()
    block.ops.append(fluid.ir.Operator(block, "no_such_op", {}, {}, {}))
    with pytest.raises(RunError, match="op no_such_op: fluidx has no op"):
        exe.run(main)


def test_what_is_no_program_is_refused(exe):
    with pytest.raises(TypeError, match="takes a Program"):
        exe.run("main")
    with pytest.raises(TypeError, match="takes a place"):
        fluid.Executor("cpu")


def test_a_closed_executor_refuses_to_run(exe):
    exe.close()
    exe.close()
    with pytest.raises(EnforceNotMet, match="was closed"):
        exe.run(fluid.default_startup_program())


def test_cuda_place_without_a_gpu_gives_one_clear_error():
    from fluidx.executor.cuda import device_count

    if device_count():
        assert fluid.Executor(fluid.CUDAPlace(0)).xp.__name__ == "cupy"
        return
    with pytest.raises(EnforceNotMet, match=r"CUDAPlace.*use CPUPlace"):
        fluid.Executor(fluid.CUDAPlace(0))


def test_compiled_programs_run(exe):
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 2.0)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled = compiled.with_data_parallel(loss_name=y.name)
    (got,) = exe.run(compiled, feed={"x": ones(1, 2)}, fetch_list=[y])
    assert got.tolist() == [[2.0, 2.0]]
