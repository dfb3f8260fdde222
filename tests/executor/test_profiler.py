"""The profiler counts what ran, and leaves no trace of itself behind."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidx as fluid
from fluidx import layers, profiler
from fluidx.executor import tracing
from fluidx.executor.trace_file import role
from fluidx.ir.errors import EnforceNotMet, RunError

FEED = {"x": np.ones((2, 4), "float32")}


@pytest.fixture(autouse=True)
def _stopped():
    yield
    assert tracing.stop() is None, "the test left the profiler on"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch):
    for name in ("TRAINING_ROLE", "PADDLE_TRAINING_ROLE"):
        monkeypatch.delenv(name, raising=False)


def train_net() -> Any:
    x = fluid.data("x", [None, 4])
    loss = layers.mean(layers.fc(x, 3, act="relu"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def ready() -> fluid.Executor:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def rows(text: str) -> dict[str, list[float]]:
    """name -> [calls, total, min, max, ave, ratio] of a printed table."""
    found = {}
    for line in text.partition("Event Summary")[2].splitlines():
        cells = line.split("  ")
        if cells[0].startswith("thread"):
            found[cells[0]] = [float(c) for c in cells[1:] if c]
    return found


def spans(path: Path, category: str = "op") -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    return [e for e in events if e.get("cat") == category and e["ph"] == "X"]


SIGNATURES = {
    "start_profiler": "(state, tracer_option='Default')",
    "stop_profiler": "(sorted_key=None, profile_path='/tmp/profile')",
    "reset_profiler": "()",
    "profiler": "(state, sorted_key=None, profile_path='/tmp/profile', "
    "tracer_option='Default')",
    "cuda_profiler": "(output_file, output_mode=None, config=None)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_the_reference_s(name: str):
    found = inspect.signature(getattr(profiler, name))
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    shown = found.replace(parameters=plain, return_annotation=found.empty)
    assert str(shown) == SIGNATURES[name]
    assert set(SIGNATURES) == set(profiler.__all__)


def test_every_op_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    loss, exe = train_net(), ready()
    with profiler.profiler("CPU", "total", str(tmp_path / "trace")):
        for _ in range(3):
            exe.run(feed=FEED, fetch_list=[loss])
    text = capsys.readouterr().out
    table = rows(text)
    block = fluid.default_main_program().global_block()
    assert set(table) == {f"thread0::{op.type}" for op in block.ops}
    assert {row[0] for row in table.values()} == {3.0}
    totals = [row[1] for row in table.values()]
    assert totals == sorted(totals, reverse=True)
    for calls, total, low, high, mean, ratio in table.values():
        assert 0 < low <= mean <= high <= total
        assert mean == pytest.approx(total / calls, rel=1e-4)
        assert 0 < ratio < 1
    whole = float(re.search(r"Total time: (\S+)", text)[1])  # type: ignore[index]
    ops = float(re.search(r"Computation.*Total: (\S+)", text)[1])  # type: ignore[index]
    assert sum(totals) == pytest.approx(ops, rel=1e-4)
    assert ops < whole


def test_trace_has_ops_inside_their_blocks(tmp_path: Path):
    loss, exe = train_net(), ready()
    with profiler.profiler("All", None, str(tmp_path / "new" / "trace")):
        exe.run(feed=FEED, fetch_list=[loss])
    found = spans(tmp_path / "new" / "trace")
    (block,) = spans(tmp_path / "new" / "trace", "block")
    mul = found[0]
    assert (mul["name"], mul["args"]["outputs"]) == ("mul", ["fc_0.tmp_0"])
    assert mul["args"]["built at"].startswith(f"{__file__}:")
    for op in found:
        assert block["ts"] <= op["ts"] + 0.5
        assert op["ts"] + op["dur"] <= block["ts"] + block["dur"] + 0.5
    ends = [op["ts"] + op["dur"] for op in found]
    assert all(end <= op["ts"] + 0.5 for end, op in zip(ends, found[1:]))


def test_profiled_runs_compute_the_same(tmp_path: Path):
    loss, exe = train_net(), ready()
    scope = fluid.global_scope()
    first = np.array(scope.find_var("fc_0.w_0").value)
    plain = [exe.run(feed=FEED, fetch_list=[loss])[0] for _ in range(3)]
    scope.find_var("fc_0.w_0").value = first
    scope.find_var("fc_0.b_0").value = np.zeros(3, "float32")
    with profiler.profiler("CPU", None, str(tmp_path / "trace")):
        timed = [exe.run(feed=FEED, fetch_list=[loss])[0] for _ in range(3)]
    np.testing.assert_array_equal(plain, timed)


def test_details_and_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    x = fluid.data("x", [None, 4])
    out = layers.relu(layers.relu(x))
    exe = ready()
    for option, names in (
        ("Default", {"relu"}),
        ("OpDetail", {"relu/relu_0.tmp_0", "relu/relu_1.tmp_0"}),
        ("AllOpDetail", {"relu/relu_0.tmp_0", "relu/relu_1.tmp_0", "block 0"}),
    ):
        with profiler.profiler("CPU", "calls", str(tmp_path / "trace"), option):
            exe.run(feed=FEED, fetch_list=[out])
        found = rows(capsys.readouterr().out)
        assert set(found) == {f"thread0::{n}" for n in names}


def test_loops_are_looked_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    i = layers.fill_constant([1], "int64", 0)
    limit = layers.fill_constant([1], "int64", 4)
    more = layers.less_than(i, limit)
    loop = layers.While(more)
    with loop.block():
        layers.increment(i, 1)
        layers.less_than(i, limit, cond=more)
    exe = fluid.Executor()
    with profiler.profiler("CPU", "max", str(tmp_path / "trace")):
        (value,) = exe.run(fetch_list=[i])
    text = capsys.readouterr().out
    assert value == 4
    table = rows(text)
    assert table["thread0::increment"][0] == 4
    assert table["thread0::less_than"][0] == 5
    assert table["thread0::while"][1] >= table["thread0::increment"][1]
    share = float(re.search(r"Computation.*Ratio: (\S+)%", text)[1])  # type: ignore[index]
    assert share <= 100  # what runs in the loop counts once


def test_reset_forgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    loss, exe = train_net(), ready()
    profiler.start_profiler("CPU")
    exe.run(feed=FEED, fetch_list=[loss])
    profiler.reset_profiler()
    profiler.start_profiler("All")  # it runs already: nothing changes
    exe.run(feed=FEED, fetch_list=[loss])
    profiler.stop_profiler("ave", str(tmp_path / "trace"))
    assert "Place: CPU" in (text := capsys.readouterr().out)
    assert {row[0] for row in rows(text).values()} == {1.0}


def test_nothing_is_left_when_it_is_off(tmp_path: Path):
    loss, exe = train_net(), ready()
    main = fluid.default_main_program()
    exe.run(feed=FEED, fetch_list=[loss])
    plan = exe.plan_of(main, 0, ("x",), (loss.name,))
    scope = fluid.global_scope()
    before = plan._runner(scope)
    with profiler.profiler("CPU", None, str(tmp_path / "trace")):
        timed = plan._runner(scope)
        exe.run(feed=FEED, fetch_list=[loss])
    assert timed is not before
    assert plan._runner(scope) is before
    assert "now_" not in plan.source


def test_errors_name_their_op_while_profiling(tmp_path: Path):
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 4])
    out = layers.relu(layers.concat([x, y], axis=1))  # the failing line
    exe = ready()
    feed = FEED | {"y": np.ones((3, 4), "float32")}
    with (
        profiler.profiler("CPU", None, str(tmp_path / "trace")),
        pytest.raises(RunError, match=r"(?s)op concat.*# the failing line"),
    ):
        exe.run(feed=feed, fetch_list=[out])
    assert spans(tmp_path / "trace") == []


def test_stop_without_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    profiler.stop_profiler("total", str(tmp_path / "trace"))
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "trace").exists()


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="state must be one of"):
        profiler.start_profiler("TPU")
    with pytest.raises(ValueError, match="tracer_option must be one of"):
        profiler.start_profiler("CPU", "Everything")
    with pytest.raises(ValueError, match="sorted_key must be None or in"):
        profiler.stop_profiler("name")
    with (
        pytest.raises(ValueError, match="sorted_key must be None or in"),
        profiler.profiler("CPU", "name"),
    ):
        pass
    with (
        pytest.raises(ValueError, match="output_mode must be 'kvp' or 'csv'"),
        profiler.cuda_profiler("out.txt", "xml"),
    ):
        pass


def test_cuda_profiler_without_a_device(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(profiler, "device_count", lambda: 0)
    with (
        pytest.raises(EnforceNotMet, match="no usable CUDA device"),
        profiler.cuda_profiler("out.txt"),
    ):
        pass


def test_files_of_roles_have_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "3")
    with profiler.profiler("CPU", None, str(tmp_path / "trace")):
        pass
    text = (tmp_path / "trace.trainer_3").read_text()
    assert json.loads(text)["otherData"]["role"] == "trainer 3"
    monkeypatch.setenv("TRAINING_ROLE", "PSERVER")
    monkeypatch.setenv("POD_IP", "127.0.0.1")
    monkeypatch.setenv("PADDLE_PORT", "6174")
    monkeypatch.delenv("PADDLE_CURRENT_ENDPOINT", raising=False)
    assert role() == "pserver 127.0.0.1:6174"
