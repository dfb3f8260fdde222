"""Traces for ``chrome://tracing`` and Perfetto: written per role, merged across roles.

Times are microseconds. A value that goes from role to role is an arrow: two flow
events of one id, which both roles take from the message (trainer, number, variable).
Clocks of different machines differ; merging estimates by how much from the arrows, as
NTP does: what goes one way seems late by as much as what goes back seems early.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fluidx.ir.errors import EnforceNotMet

from .tracing import Recorder

__all__ = ["Clock", "Trace", "merge", "read_trace", "role", "trace_of", "write_trace"]

Trace = dict[str, Any]


class Clock(NamedTuple):
    """How far a role's clock is ahead, in microseconds; the estimate's bound of error
    (infinite if messages went one way only)."""

    ahead: float
    error: float


Ends = dict[str, tuple[int, float]]


def role() -> str:
    """This process's role in the cluster that its environment tells of, or ""."""
    kind = os.environ.get("TRAINING_ROLE") or os.environ.get("PADDLE_TRAINING_ROLE")
    if kind is None:
        return ""
    if kind.upper() == "TRAINER":
        return f"trainer {os.environ.get('PADDLE_TRAINER_ID', '0')}"
    host, port = os.environ.get("POD_IP", ""), os.environ.get("PADDLE_PORT", "")
    endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT") or f"{host}:{port}"
    return f"pserver {endpoint}"


def trace_of(recorder: Recorder, name: str | None = None) -> Trace:
    """Everything that was recorded, as a trace."""
    roles = sorted(set(recorder.roles.values()))
    name = name or role() or ", ".join(roles) or "fluidx"
    process = os.getpid()

    def stamp(at: int) -> float:
        return (at - recorder.begin_ns + recorder.wall_ns) / 1000

    events: list[dict[str, Any]] = [_named("process_name", name, process)]
    for thread in sorted({s.thread for s in recorder.spans} | set(recorder.roles)):
        known = recorder.roles.get(thread)
        title = f"thread{thread}" + (f" {known}" if known else "")
        events.append(_named("thread_name", title, process, thread))
    for label, thread, begin, end, _ in recorder.spans:
        event: dict[str, Any] = {"ph": "X", "name": label.name, "cat": label.category}
        took = (end - begin) / 1000
        event |= {"pid": process, "tid": thread, "ts": stamp(begin), "dur": took}
        events.append(event | {"args": label.args})
    for flow in recorder.flows:
        event = {"ph": "s"} if flow.starts else {"ph": "f", "bp": "e"}
        event |= {"id": flow.id, "name": flow.variable, "cat": "rpc", "pid": process}
        event |= {"tid": flow.thread, "ts": stamp(flow.at)}
        events.append(event | {"args": {"step": flow.step, "variable": flow.variable}})
    events.sort(key=lambda e: e.get("ts", -1.0))
    return {"traceEvents": events, "otherData": {"role": name}}


def _named(what: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    event = {"ph": "M", "name": what, "pid": process, "tid": thread}
    return event | {"args": {"name": name}}


def write_trace(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write it; folders are made."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(trace), "utf-8")


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """A trace that `write_trace` wrote. EnforceNotMet: it is none."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise EnforceNotMet(f"{os.fspath(path)!r} is no trace: {error}") from None
    events = found.get("traceEvents") if isinstance(found, dict) else None
    if not isinstance(events, list) or not all(_is_event(e) for e in events):
        raise EnforceNotMet(f"{os.fspath(path)!r} is no trace: it has no traceEvents")
    return dict(found)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
        return False
    timed = event["ph"] == "M" or isinstance(event.get("ts"), (int, float))
    return timed and (event["ph"] not in "sf" or isinstance(event.get("id"), str))


# ---------------------------------------------------------------- merging


def merge(traces: Sequence[Trace]) -> tuple[Trace, list[Clock | None]]:
    """One trace of all roles, on the clock of the first.

    Returns it, and how far each role's clock is ahead of the first one's: None where no
    arrows connect them, which leaves its times as they are.
    """
    clocks = _clocks(traces)
    events = []
    for number, (trace, clock) in enumerate(zip(traces, clocks)):
        for event in trace["traceEvents"]:
            moved = event | {"pid": number + 1}
            if "ts" in event and clock is not None:
                moved["ts"] = event["ts"] - clock.ahead
            events.append(moved)
    events.sort(key=lambda e: e.get("ts", float("-inf")))
    roles = [t.get("otherData", {}).get("role", "") for t in traces]
    return {"traceEvents": events, "otherData": {"roles": roles}}, clocks


def _clocks(traces: Sequence[Trace]) -> list[Clock | None]:
    """How far each clock is ahead of the first, along the arrows."""
    delays = _delays(traces)
    clocks: list[Clock | None] = [None] * len(traces)
    clocks[:1] = [Clock(0.0, 0.0)]
    reached = [0][: len(traces)]
    for here in reached:
        known = clocks[here]
        for there in range(len(traces)):
            step = _ahead(delays.get((here, there)), delays.get((there, here)))
            if known is not None and clocks[there] is None and step is not None:
                clocks[there] = Clock(*(a + b for a, b in zip(known, step)))
                reached.append(there)
    return clocks


def _ahead(forth: float | None, back: float | None) -> Clock | None:
    """By how much the far clock is ahead, from the shortest delays seen each way."""
    if forth is not None and back is not None:
        return Clock((forth - back) / 2, (forth + back) / 2)
    if forth is not None:  # as if its quickest message had taken no time
        return Clock(forth, math.inf)
    return None if back is None else Clock(-back, math.inf)


def _delays(traces: Sequence[Trace]) -> dict[tuple[int, int], float]:
    """The shortest apparent delay from role to role."""
    starts: Ends = {}
    ends: Ends = {}
    for number, trace in enumerate(traces):
        for event in trace["traceEvents"]:
            if event["ph"] in ("s", "f"):
                side = starts if event["ph"] == "s" else ends
                side[event["id"]] = (number, event["ts"])
    found: dict[tuple[int, int], float] = {}
    for id, (origin, left) in starts.items():
        if id in ends:
            target, arrived = ends[id]
            if target != origin:
                key, delay = (origin, target), arrived - left
                found[key] = min(delay, found.get(key, delay))
    return found
