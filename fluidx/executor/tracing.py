"""What ran when: events of ops, and of values that left for and came from other roles.

`active` is the recorder while a profile is taken, else None; everyone who could record
something looks at it first. Times are `time.perf_counter_ns`.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Flow", "Label", "Recorder", "Span", "active", "now", "start", "stop"]

now = time.perf_counter_ns


@dataclass(frozen=True)
class Label:
    """What is known of an event beforehand. detail: tells ops of a type apart."""

    name: str
    detail: str = ""
    category: str = "op"
    args: dict[str, object] = field(default_factory=dict)


class Span(NamedTuple):
    """Something that took time. depth: how many blocks were running around it."""

    label: Label
    thread: int
    begin: int
    end: int
    depth: int


class Flow(NamedTuple):
    """A value left (or arrived); both roles give the same `id`, from the message."""

    id: str
    starts: bool
    variable: str
    step: int
    thread: int
    at: int


class Recorder:
    """All events of this process since the profile began.

    state: "CPU", "GPU" or "All"; other than with "CPU", ops on a CUDA device count
    until the device has finished them.
    """

    def __init__(self, state: str = "CPU", option: str = "Default") -> None:
        self.state = state
        self.option = option
        self.roles: dict[int, str] = {}
        self._local = threading.local()
        self._threads: dict[int, int] = {}
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget what was recorded; begin anew."""
        self.spans: list[Span] = []
        self.flows: list[Flow] = []
        self.begin_ns = now()
        self.wall_ns = time.time_ns()

    def thread(self) -> int:
        """A small number for the calling thread: 0 for the first that records."""
        number: int | None = getattr(self._local, "number", None)
        if number is None:
            with self._lock:
                number = self._local.number = len(self._threads)
                self._threads[number] = threading.get_ident()
        return number

    def enter(self) -> int:
        """A block begins on this thread; returns how many run around it."""
        depth: int = getattr(self._local, "depth", 0)
        self._local.depth = depth + 1
        return depth

    def leave(self, label: Label, begin: int, depth: int) -> None:
        """The block has ended."""
        self._local.depth = depth
        self.spans.append(Span(label, self.thread(), begin, now(), depth))

    def op(self, label: Label, begin: int, end: int) -> None:
        """An op has run."""
        depth = getattr(self._local, "depth", 0)
        self.spans.append(Span(label, self.thread(), begin, end, depth))

    def flow(self, id: str, starts: bool, variable: str, step: int, role: str) -> None:
        """A value leaves or arrives now, here in this role."""
        thread = self.thread()
        self.roles[thread] = role
        self.flows.append(Flow(id, starts, variable, step, thread, now()))


active: Recorder | None = None


def start(state: str, option: str) -> None:
    """Record from now on, unless that is being done already."""
    global active
    if active is None:
        active = Recorder(state, option)


def stop() -> Recorder | None:
    """Record no more; returns what was recorded."""
    global active
    found, active = active, None
    return found
