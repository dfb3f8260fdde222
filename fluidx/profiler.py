"""Where the time goes: ``fluid.profiler``.

Between `start_profiler` and `stop_profiler` executors run their programs op by op
under a clock; otherwise nothing is measured, and nothing is paid for it. At the end a
table goes to standard output and a trace to a file that ``chrome://tracing`` and
https://ui.perfetto.dev open. In a cluster each role writes its own, with arrows where
values were sent; ``fluidx trace merge`` puts them together.

Mirrors ``paddle.fluid.profiler``; its file is a protobuf instead.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from fluidx.executor import tracing
from fluidx.executor.cuda import cuda_profile, device_count
from fluidx.executor.trace_file import role, trace_of, write_trace
from fluidx.ir.errors import EnforceNotMet

__all__ = [
    "cuda_profiler",
    "profiler",
    "reset_profiler",
    "start_profiler",
    "stop_profiler",
]

_STATES = ("CPU", "GPU", "All")
_OPTIONS = ("Default", "OpDetail", "AllOpDetail")
_KEYS = ("calls", "total", "max", "min", "ave")


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Measure from now on; nothing changes if that is being done already.

    state: "CPU": when ops were called; "GPU" and "All": until the device was done with
    each (the same on `CPUPlace`). tracer_option: "OpDetail": a row for each op instead
    of each type; "AllOpDetail": also for the blocks that were run.

    ValueError: another state or option.
    """
    if state not in _STATES:
        raise ValueError(f"profiler: state must be one of {_STATES}, got {state!r}")
    if tracer_option not in _OPTIONS:
        raise ValueError(
            f"profiler: tracer_option must be one of {_OPTIONS}, got {tracer_option!r}"
        )
    tracing.start(state, tracer_option)


def stop_profiler(
    sorted_key: str | None = None, profile_path: str = "/tmp/profile"
) -> None:
    """Print the table and write the trace; nothing if nothing was started.

    sorted_key: "calls", "total", "max", "min" or "ave", largest first; None: in the
    order in which they ran. profile_path: of the trace. In a cluster (TRAINING_ROLE is
    set) the role is appended, as in ``/tmp/profile.trainer_0``.

    ValueError: another key. OSError: the file cannot be written.
    """
    _check_key(sorted_key)
    recorder = tracing.stop()
    if recorder is None:
        return
    print(_table(recorder, sorted_key))
    write_trace(_path(profile_path), trace_of(recorder))


def reset_profiler() -> None:
    """Forget what was measured so far."""
    if tracing.active is not None:
        tracing.active.reset()


@contextmanager
def profiler(
    state: str,
    sorted_key: str | None = None,
    profile_path: str = "/tmp/profile",
    tracer_option: str = "Default",
) -> Iterator[None]:
    """`start_profiler` before, `stop_profiler` after what is inside.

    >>> import fluidx as fluid, tempfile
    >>> with fluid.profiler.profiler("CPU", "total", tempfile.mktemp()):
    ...     pass  # exe.run(...)
    <BLANKLINE>
    ------------------------->     Profiling Report     <-------------------------
    ...
    """
    _check_key(sorted_key)
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextmanager
def cuda_profiler(
    output_file: str, output_mode: str | None = None, config: object = None
) -> Iterator[None]:
    """Let NVIDIA's tools record what is inside.

    They decide where their output goes: run the script under
    ``nsys profile -c cudaProfilerApi``. (The reference drove nvprof, which is gone.)
    EnforceNotMet: no CUDA device. ValueError: output_mode is not "kvp" or "csv".
    """
    if output_mode not in (None, "kvp", "csv"):
        raise ValueError(
            f"cuda_profiler: output_mode must be 'kvp' or 'csv', got {output_mode!r}"
        )
    if not device_count():
        raise EnforceNotMet(
            "cuda_profiler: this machine has no usable CUDA device; "
            "profiler('CPU') measures ops on CPUs"
        )
    with cuda_profile():
        yield


# ---------------------------------------------------------------- the table


def _check_key(key: str | None) -> None:
    if key is not None and key not in _KEYS:
        raise ValueError(
            f"profiler: sorted_key must be None or in {_KEYS}, got {key!r}"
        )


def _path(path: str) -> str:
    mine = role().replace(" ", "_").replace(":", "_")
    return f"{path}.{mine}" if mine else os.fspath(path)


class _Row:
    """All events of one name on one thread, in milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total = self.max = 0.0
        self.min = float("inf")

    def add(self, took: float) -> None:
        self.calls += 1
        self.total += took
        self.min, self.max = min(self.min, took), max(self.max, took)

    @property
    def ave(self) -> float:
        return self.total / self.calls


def _rows(recorder: tracing.Recorder) -> list[_Row]:
    detailed = recorder.option != "Default"
    rows: dict[str, _Row] = {}
    for label, thread, begin, end, _ in sorted(recorder.spans, key=lambda s: s.begin):
        if label.category == "block" and recorder.option != "AllOpDetail":
            continue
        name = f"thread{thread}::{label.name}"
        if detailed and label.detail:
            name += f"/{label.detail}"
        rows.setdefault(name, _Row(name)).add((end - begin) / 1e6)
    return list(rows.values())


def _totals(recorder: tracing.Recorder) -> tuple[float, float]:
    """Milliseconds of all runs, and of the ops in them (of those in loops: once)."""
    found: dict[str, float] = defaultdict(float)
    for label, _, begin, end, depth in recorder.spans:
        if depth == (0 if label.category == "block" else 1):
            found[label.category] += (end - begin) / 1e6
    return found["block"], found["op"]


def _table(recorder: tracing.Recorder, key: str | None) -> str:
    rows = _rows(recorder)
    if key is not None:
        rows.sort(key=lambda row: getattr(row, key), reverse=True)
    whole, ops = _totals(recorder)
    order = f"{key}, descending" if key else "first call"
    width = max([len(row.name) for row in rows] + [20]) + 2
    heads = ("Calls", "Total", "Min.", "Max.", "Ave.", "Ratio.")
    lines = [
        "",
        f"{'-' * 25}>     Profiling Report     <{'-' * 25}",
        "",
        f"Place: {recorder.state}    Time unit: ms    Sorted by: {order}",
        "",
        f"Total time: {whole:.6g}",
        f"  Computation time       Total: {ops:<12.6g} Ratio: {_percent(ops, whole)}",
        f"  Framework overhead     Total: {whole - ops:<12.6g} "
        f"Ratio: {_percent(whole - ops, whole)}",
        "",
        f"{'-' * 25}       Event Summary       {'-' * 25}",
        "",
        f"{'Event':<{width}}" + "".join(f"{h:<12}" for h in heads).rstrip(),
    ]
    for row in rows:
        ratio = row.total / whole if whole else 0.0
        numbers = (row.total, row.min, row.max, row.ave, ratio)
        shown = f"{row.calls:<12}" + "".join(f"{n:<12.6g}" for n in numbers)
        lines.append(f"{row.name:<{width}}{shown}".rstrip())
    return "\n".join(lines)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.4g}%"
