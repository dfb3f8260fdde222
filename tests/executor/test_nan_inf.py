"""FLAGS_check_nan_inf: the first op that makes a NaN or Inf is named."""

from __future__ import annotations

import numpy as np
import pytest

import fluidx as fluid
from fluidx import debugger
from fluidx.flags import FLAGS, SWITCHES
from fluidx.ir.errors import RunError

BAD = np.array([[1, 0, -1], [2, 3, 4]], "float32")


@pytest.fixture(autouse=True)
def flag_off_again():
    yield
    FLAGS._set.pop("FLAGS_check_nan_inf", None)
    SWITCHES.check_nan_inf = False


@pytest.fixture
def net():
    """log, mean, scale of x."""
    x = fluid.data("x", [None, 3])
    return fluid.layers.scale(fluid.layers.mean(fluid.layers.log(x)), 2.0)


def run(fetch, x=BAD, exe=None):
    exe = exe or fluid.Executor(fluid.CPUPlace())
    return exe.run(feed={"x": x}, fetch_list=[fetch])


def message(fetch, **given):
    with pytest.raises(RunError) as caught:
        run(fetch, **given)
    return str(caught.value)


def test_names_op_variable_numbers_and_line(net):
    assert np.isnan(run(net)[0])
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    text = message(net)
    assert text.startswith(
        "op log: output Out log_0.tmp_0 holds 1 NaN and 1 Inf among 6 values, "
        "the first at [0, 1]\n  built at "
    )
    assert "test_nan_inf.py" in text
    assert run(net, x=np.ones((2, 3), "float32"))[0] == 0
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    assert np.isnan(run(net)[0])


def test_costs_nothing_when_off(net):
    exe = fluid.Executor(fluid.CPUPlace())
    sources = []
    for on in (False, True, False):
        fluid.set_flags({"FLAGS_check_nan_inf": on})
        plan = exe.plan_of(fluid.default_main_program(), 0, ("x",), (net.name,))
        sources.append(plan.source)
    assert "check(" not in sources[0]
    assert sources[0] == sources[2]
    assert sources[1].count("check(") == 3


def test_the_environment_is_read_when_an_executor_is_made(net, monkeypatch):
    monkeypatch.setenv("FLAGS_check_nan_inf", "1")
    assert "op log" in message(net)
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")
    assert np.isnan(run(net)[0])


@pytest.mark.parametrize(
    ("variable", "value", "blamed"),
    # recorded from the reference
    [
        ("PADDLE_INF_NAN_SKIP_OP", "log, mean", "op scale: output Out scale_0"),
        ("PADDLE_INF_NAN_SKIP_VAR", "log:log_0.tmp_0", "op mean: output Out mean_0"),
        ("PADDLE_INF_NAN_SKIP_ROLE", "backward,optimize", "op log"),
        ("PADDLE_INF_NAN_SKIP_ROLE", "forward", None),
    ],
)
def test_what_is_skipped(net, monkeypatch, variable, value, blamed):
    monkeypatch.setenv(variable, value)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    if blamed is None:
        assert np.isnan(run(net)[0])
    else:
        assert message(net).startswith(blamed)


def test_roles_that_do_not_exist(net, monkeypatch):
    monkeypatch.setenv("PADDLE_INF_NAN_SKIP_ROLE", "forwards")
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    with pytest.raises(ValueError, match="no role 'forwards'; roles are forward,"):
        run(net)


def test_updates_and_sparse_gradients_are_looked_at():
    ids = fluid.data("ids", [None, 1], "int64")
    table = fluid.embedding(ids, [5, 2], is_sparse=True, param_attr="table")
    loss = fluid.layers.mean(fluid.layers.scale(table, 1e38))
    fluid.optimizer.SGD(1e30).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    feed = {"ids": np.array([[1], [1], [3]], "int64")}
    with pytest.raises(RunError, match="op sgd: output ParamOut table holds 0 NaN and"):
        exe.run(feed=feed, fetch_list=[loss])


def test_sub_blocks_are_looked_into():
    i = fluid.layers.fill_constant([1], "float32", 3.0)
    end = fluid.layers.fill_constant([1], "float32", -1.0)
    out = fluid.layers.fill_constant([1], "float32", 0.0)
    more = fluid.layers.greater_than(i, end)
    loop = fluid.layers.While(more)
    with loop.block():
        fluid.layers.increment(i, -1.0)
        fluid.layers.assign(fluid.layers.log(i), out)
        fluid.layers.greater_than(i, end, cond=more)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(RunError, match=r"op log: output Out log_0.tmp_0 holds 0 NaN"):
        exe.run(fetch_list=[out])


def test_integers_and_arrays_of_tensors():
    i = fluid.layers.fill_constant([1], "int64", 0)
    one = fluid.layers.fill_constant([1], "float32", np.inf)
    array = fluid.layers.array_write(fluid.layers.fill_constant([2], "int64", 7), i)
    fluid.layers.array_write(one, i, array=array)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(RunError, match=r"op fill_constant: .* 0 NaN and 1 Inf among 1"):
        exe.run(fetch_list=[one])


def test_the_debugger_checks_one_run(net):
    debugger.prepare_fast_nan_inf_debug(fluid.default_main_program())
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(RunError, match="op log"):
        debugger.run_fast_nan_inf_debug(exe, feed={"x": BAD}, fetch_list=[net])
    good = {"x": np.ones((2, 3), "float32")}
    assert debugger.run_fast_nan_inf_debug(exe, feed=good, fetch_list=[net])[0] == 0
    assert np.isnan(run(net, exe=exe)[0])
