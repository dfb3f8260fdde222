"""Traces of several roles: their arrows pair up, and merging finds their clocks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from distributed.linear import Run

from fluidx.cli import main as command
from fluidx.executor import tracing
from fluidx.executor.trace_file import merge, read_trace, trace_of, write_trace
from fluidx.ir.errors import EnforceNotMet


def trace(role: str, *flows: tuple[str, str, float]) -> dict[str, Any]:
    """A trace of one role; a flow is (phase, id, time)."""
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 7}]
    events += [{"ph": p, "id": i, "ts": t, "pid": 7, "tid": 0} for p, i, t in flows]
    return {"traceEvents": events, "otherData": {"role": role}}


def times(merged: dict[str, Any], process: int) -> list[float]:
    events = merged["traceEvents"]
    return [e["ts"] for e in events if e["pid"] == process and "ts" in e]


def test_clocks_from_messages_both_ways():
    """The server is 1000 ahead; messages take 10 there and back at their quickest."""
    trainer = trace("t", ("s", "a", 0), ("f", "A", 40), ("s", "b", 50), ("f", "B", 90))
    server = trace(
        "p", ("f", "a", 1010), ("s", "A", 1020), ("f", "b", 1075), ("s", "B", 1080)
    )
    merged, clocks = merge([trainer, server])
    assert clocks == [(0.0, 0.0), (1000.0, 10.0)]
    assert times(merged, 1) == [0, 40, 50, 90]
    assert times(merged, 2) == [10, 20, 75, 80]
    assert merged["otherData"]["roles"] == ["t", "p"]
    stamps = [e["ts"] for e in merged["traceEvents"] if "ts" in e]
    assert stamps == sorted(stamps)


def test_a_clock_known_through_another_role():
    """Two trainers never speak to each other, but to one server."""
    first = trace("t0", ("s", "a", 0), ("f", "A", 30))
    second = trace("t1", ("s", "b", 500), ("f", "B", 530))
    server = trace(
        "p", ("f", "a", 105), ("s", "A", 125), ("f", "b", 110), ("s", "B", 130)
    )
    _, clocks = merge([first, second, server])
    assert clocks == [(0.0, 0.0), (495.0, 10.0), (100.0, 5.0)]


def test_one_way_only_and_not_at_all():
    sender = trace("t", ("s", "a", 100), ("s", "lost", 120))
    taker, stranger = trace("p", ("f", "a", 90)), trace("x", ("s", "other", 5))
    merged, clocks = merge([sender, taker, stranger])
    assert clocks == [(0.0, 0.0), (-10.0, float("inf")), None]
    assert times(merged, 2) == [100]
    assert times(merged, 3) == [5]


def test_arrows_of_a_cluster_pair_up():
    """Every gradient sent arrives, every parameter received was sent, by step."""
    tracing.start("CPU", "Default")
    try:
        Run("pserver", steps=3, trainers=2, servers=1, table=False)
    finally:
        recorder = tracing.stop()
    assert recorder is not None
    starts = {f.id: f for f in recorder.flows if f.starts}
    ends = {f.id: f for f in recorder.flows if not f.starts}
    assert len(starts) + len(ends) == len(recorder.flows)
    assert set(starts) == set(ends)
    for id, left in starts.items():
        assert left.at <= ends[id].at
        assert (left.variable, left.step) == (ends[id].variable, ends[id].step)
        assert left.thread != ends[id].thread
    seen = Counter((f.variable, f.step) for f in starts.values())
    for step in (1, 2, 3):
        assert seen["b", step] == 2  # the new value, to both trainers
        # sent before the barrier that ends the step
        assert [seen[f"b@GRAD.trainer_{t}", step] for t in (0, 1)] == [1, 1]
    names = set(recorder.roles.values())
    assert {n.split()[0] for n in names} == {"trainer", "pserver"}
    assert len(names) == 3
    events = trace_of(recorder, "all")["traceEvents"]
    assert Counter(e["ph"] for e in events)["s"] == len(starts)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    write_trace(paths[0], trace("trainer 0", ("s", "a", 0), ("f", "A", 30)))
    write_trace(paths[1], trace("pserver x", ("f", "a", 105), ("s", "A", 125)))
    write_trace(paths[2], trace("trainer 1"))
    out = tmp_path / "out.json"
    assert command(["trace", "merge", *paths, "-o", str(out)]) == 0
    merged = json.loads(out.read_text())
    assert times(merged, 2) == [5, 25]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("pserver x: clock ahead by 100.0 us, give or take 5.0")
    assert lines[2].endswith(
        "trainer 1: no messages connect it: its times stay as they are"
    )


@pytest.mark.cluster
def test_cluster_of_processes(tmp_path: Path):
    """Each role writes its own trace; once merged, no value arrives before it left."""
    script = Path(__file__).with_name("profiled_role.py")
    arguments = ["--workers", "2", "--servers", "1", "--log-dir", str(tmp_path / "log")]
    launched = subprocess.run(
        [sys.executable, "-m", "fluidx", "launch", *arguments, str(script), tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert launched.returncode == 0, launched.stdout + launched.stderr
    found = sorted(p for p in tmp_path.glob("trace.*"))
    names = [p.name.split("_")[0] for p in found]
    assert names == ["trace.pserver", "trace.trainer", "trace.trainer"]
    merged, clocks = merge([read_trace(p) for p in found])
    assert all(c is not None and c.error < 60e6 for c in clocks)
    ends = {
        phase: {e["id"]: e for e in merged["traceEvents"] if e["ph"] == phase}
        for phase in ("s", "f")
    }
    pairs = [(ends["s"][i], ends["f"][i]) for i in ends["s"].keys() & ends["f"].keys()]
    assert all(a["ts"] <= b["ts"] + 1 and a["pid"] != b["pid"] for a, b in pairs)
    sent = Counter((a["name"], a["args"]["step"]) for a, _ in pairs)
    assert all(sent["w", step] == 2 for step in (2, 3))


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"traceEvents": [{"ph": "s", "ts": 1}]}', '{"a": 1}']
)
def test_what_is_no_trace(tmp_path: Path, text: str):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(EnforceNotMet, match="is no trace"):
        read_trace(tmp_path / "bad")
    assert command(["trace", "merge", str(tmp_path / "bad"), "-o", "/dev/null"]) == 2
