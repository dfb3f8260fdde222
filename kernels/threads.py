"""A few threads that kernels share rows out to.

NumPy's ufuncs and compiled kernels leave the interpreter to others while they run, so
two stretches of one array can be worked on at once. As many threads take part as
OMP_NUM_THREADS says (BLAS reads it too), else as this process has processors; the
caller is one of them. The others start with the first large array, wait for more as
long as the process lives, and start anew in a forked child.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["NAME", "share", "width"]

#: how the threads are called
NAME = "fluidx-kernels"
#: elements below which waking another thread (30 us) costs more than it saves
_LEAST = 1 << 19

Work = Callable[[int, int], Any]


def width() -> int:
    """Threads that one kernel may use."""
    global _width
    if _width is None:
        given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        if given.isdigit() and int(given) > 0:
            _width = int(given)
        else:
            _width = _processors()
    return _width


_width: int | None = None


def _processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Crew:
    """Threads that wait for work, and who may give them some."""

    def __init__(self, size: int) -> None:
        self.taken = threading.Lock()
        self.done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self.desks: list[queue.SimpleQueue[Callable[[], Any]]] = []
        for number in range(size):
            desk: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
            self.desks.append(desk)
            name = f"{NAME}-{number}"
            threading.Thread(
                target=self._serve, args=[desk], name=name, daemon=True
            ).start()

    def _serve(self, desk: queue.SimpleQueue[Callable[[], Any]]) -> None:
        while True:
            act = desk.get()
            failed: BaseException | None = None
            try:
                act()
            except BaseException as error:
                failed = error
            del act  # its arrays are the caller's to free
            self.done.put(failed)

    def run(self, parts: list[tuple[int, int]], work: Work) -> list[Any]:
        """The first part here, each other one by a thread."""
        results: list[Any] = [None] * len(parts)

        def act(number: int) -> None:
            results[number] = work(*parts[number])

        for number in range(1, len(parts)):
            # NumPy's handling of floating-point errors belongs to the context
            context = contextvars.copy_context()
            self.desks[number - 1].put(partial(context.run, act, number))
        failed: BaseException | None = None
        try:
            act(0)
        except BaseException as error:
            failed = error
        for _ in parts[1:]:
            failed = self.done.get() or failed
        if failed is not None:
            raise failed
        return results


_crew: _Crew | None = None
_making = threading.Lock()


def _forget() -> None:
    """Threads do not come along into a forked child."""
    global _crew, _making
    _crew, _making = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _the_crew() -> _Crew:
    global _crew
    if _crew is None:
        with _making:
            if _crew is None:
                _crew = _Crew(width() - 1)
    return _crew


def parts_of(count: int, elements: int) -> list[tuple[int, int]]:
    """`count` rows with so many elements in all, in as many parts as it pays."""
    parts = 1 if elements < _LEAST else min(width(), count)
    edges = [count * i // parts for i in range(parts + 1)]
    return list(zip(edges, edges[1:]))


def share(count: int, elements: int, work: Work) -> list[Any]:
    """What work(begin, end) returns for stretches that make up range(count).

    elements: how many values all of it touches. The stretches depend on these numbers
    alone; they run one after the other here while another thread has the crew. What
    work raises is raised.
    """
    if elements < _LEAST or width() == 1:
        return [work(0, count)]
    parts = parts_of(count, elements)
    crew = _the_crew()
    if crew.taken.acquire(blocking=False):
        try:
            return crew.run(parts, work)
        finally:
            crew.taken.release()
    return [work(begin, end) for begin, end in parts]
