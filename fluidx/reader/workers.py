"""Worker processes that read: one consumer, workers that never outlive it.

Workers are forked: readers are closures, which a fresh interpreter could not be
given, and scripts start no `if __name__ == "__main__"`. A worker runs nothing but the
reader, takes default signals, and closes what it inherited from other workers, so that
each pipe ends when one of its two sides does. NumPy's BLAS starts its threads anew in
a forked process; a reader must not use a GPU that the parent uses.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import shared
from .shared import HEAD, INLINE, Slot

__all__ = ["Worker", "WorkerError", "take_any"]

JOIN_S = 5.0
_END, _ERROR = -2, -3

#: consumers' ends of pipes, which a further worker must not keep open
_ends: weakref.WeakSet[Any] = weakref.WeakSet()


class WorkerError(RuntimeError):
    """A worker process failed, or died."""


class Worker:
    """One process that runs `source()` and hands over what it gives.

    name: for messages. slots: how many items with much data may be under way.
    `receive` after `ready` is readable; `Ended` is raised after the last item.
    """

    def __init__(
        self, source: Callable[[], Iterable[Any]], name: str, slots: int = 2
    ) -> None:
        if not hasattr(os, "fork"):
            raise WorkerError(f"{name}: worker processes need a system that can fork")
        self.name = name
        self._slots = shared.open_slots(slots)
        self._pipe, theirs = multiprocessing.Pipe(duplex=True)
        _ends.add(self._pipe)
        self._process = multiprocessing.get_context("fork").Process(
            target=_work, args=(source, theirs, self._slots), name=name, daemon=True
        )
        with warnings.catch_warnings():
            # Python 3.12 warns of forking beside threads; see above
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()
        # also where nobody closes it: a generator that was never started
        self._end = weakref.finalize(
            self, _finish, self._process, self._pipe, self._slots
        )

    @property
    def ready(self) -> Any:
        """To wait for with `multiprocessing.connection.wait`."""
        return self._pipe

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def receive(self) -> Any:
        """The next item. EOFError after the last; WorkerError if the worker failed."""
        try:
            message = self._pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            self._process.join(JOIN_S)
            code = self._process.exitcode
            raise WorkerError(
                f"{self.name} (process {self.pid}) died {_how(code)}"
            ) from None
        slot, header, size = HEAD.unpack_from(message)
        if slot == _END:
            raise EOFError
        body = memoryview(message)[HEAD.size :]
        if slot == _ERROR:
            raise WorkerError(f"{self.name} failed:\n{str(body, 'utf-8')}")
        if slot < 0:
            return shared.decode(body[:header], body[header:])
        item = shared.decode(body, self._slots[slot].room(size))
        # a worker that has given its last item waits for nothing
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._pipe.send_bytes(bytes([slot]))
        return item

    def close(self) -> None:
        """End the process, whatever it does; may be called again."""
        self._end()


def _finish(process: Any, pipe: Any, slots: list[Slot]) -> None:
    pipe.close()
    if process.is_alive():
        process.terminate()
        process.join(JOIN_S)
        if process.is_alive():
            process.kill()
    process.join(JOIN_S)
    for slot in slots:
        slot.close()


def _how(code: int | None) -> str:
    if code is None:
        return "without closing its pipe"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"with exit code {code} ({signal.Signals(-code).name})"
    return f"with exit code {code}"


def take_any(workers: list[Worker], timeout: float | None = None) -> Iterator[Any]:
    """Items of all workers as they come; closes the workers in the end.

    timeout: seconds that the next item may take; WorkerError beyond. Each turn takes
    one item of every worker that has one.
    """
    left = list(workers)
    try:
        while left:
            ready = multiprocessing.connection.wait([w.ready for w in left], timeout)
            if not ready:
                names = ", ".join(w.name for w in left)
                raise WorkerError(f"no item within {timeout} s from {names}")
            for worker in [w for w in left if w.ready in ready]:
                try:
                    item = worker.receive()
                except EOFError:
                    left.remove(worker)
                    continue
                yield item
    finally:
        for worker in workers:
            worker.close()


# ------------------------------------------------ in the worker


def _work(source: Callable[[], Iterable[Any]], pipe: Any, slots: list[Slot]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the consumer's
    for end in list(_ends):
        end.close()
    free = list(range(len(slots)))
    try:
        for item in source():
            _send(pipe, slots, free, item)
        pipe.send_bytes(HEAD.pack(_END, 0, 0))
    except (BrokenPipeError, EOFError, ConnectionResetError):
        return  # nobody takes any more
    except BaseException:
        text = traceback.format_exc().encode()
        with contextlib.suppress(OSError):
            pipe.send_bytes(HEAD.pack(_ERROR, 0, 0) + text)
        raise SystemExit(1) from None


def _send(pipe: Any, slots: list[Slot], free: list[int], item: Any) -> None:
    encoded = shared.encode(item)
    while pipe.poll():
        free.append(pipe.recv_bytes()[0])
    head = (len(encoded.header), encoded.size)
    if encoded.size <= INLINE:
        data = bytearray(encoded.size)
        shared.write(encoded, data)
        pipe.send_bytes(HEAD.pack(-1, *head) + encoded.header + data)
        return
    while not free:
        free.append(pipe.recv_bytes()[0])
    slot = free.pop()
    shared.write(encoded, slots[slot].room(encoded.size))
    pipe.send_bytes(HEAD.pack(slot, *head) + encoded.header)
