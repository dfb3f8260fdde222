"""Worker processes that read: one consumer, workers that never outlive it.

Workers are forked: readers are closures, which a fresh interpreter could not be
given, and scripts start no `if __name__ == "__main__"`. A worker runs nothing but the
reader, takes default signals, and closes what it inherited from other workers, so that
each pipe and socket ends when one of its two sides does. NumPy's BLAS starts its
threads anew in a forked process; a reader must not use a GPU that the parent uses.

A consumer that trains must not be kept from it. So a worker runs under SCHED_BATCH
where there is such a policy: waking it then never takes the processor from who wakes
it. It is told of free slots (through a socket, whose end is the worker's too) for half
of them at once. Messages come through a pipe, which packs small ones together. The
consumer reads as many of them as there are in one call, and makes items of all, where
they are small: one by one, between the steps of a training, each would cost twice the
time, since nothing of this is in the cache any more.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from typing import Any

from . import shared
from .shared import HEAD, INLINE, Decoder, Slot, Stream

__all__ = ["Worker", "WorkerError", "slots_each", "take_any"]

JOIN_S = 5.0
#: bytes of items that the consumer holds ready beyond the one asked for
READY = 1 << 20
_END, _ERROR = -2, -3
#: slots of one worker that help a consumer, and of all together: each is an open file
USEFUL, MOST = 16, 256

#: consumers' ends of pipes and sockets, which a further worker must not keep open
_ends: weakref.WeakSet[Any] = weakref.WeakSet()


class WorkerError(RuntimeError):
    """A worker process failed, or died."""


def slots_each(workers: int) -> int:
    """How many slots each of so many workers may have.

    >>> slots_each(2), slots_each(40), slots_each(1000)
    (16, 6, 2)
    """
    return max(2, min(USEFUL, MOST // workers))


class Worker:
    """One process that runs `source()` and hands over what it gives.

    name: for messages. slots: how many items with much data may be under way, at most
    255. Items are for the process that made the worker.
    """

    def __init__(
        self, source: Callable[[], Iterable[Any]], name: str, slots: int = 2
    ) -> None:
        if not hasattr(os, "fork"):
            raise WorkerError(f"{name}: worker processes need a system that can fork")
        self.name = name
        self._slots = shared.open_slots(slots)
        self._used = 0  # slots that come round, known from the first item in one
        self._free = 0  # slots read since the worker was told
        self._end, theirs = socket.socketpair()
        out, into = os.pipe()
        self._pipe = FileIO(out)
        self._stream = Stream(self._pipe)
        self._decode = Decoder()
        self._items: deque[Any] = deque()  # ready
        self._over = False  # nothing comes after the ready ones
        self._failure = ""  # why, if that is not the end
        _ends.update((self._end, self._pipe))
        self._process = multiprocessing.get_context("fork").Process(
            target=_work,
            args=(source, theirs, into, self._slots),
            name=name,
            daemon=True,
        )
        _start(self._process)
        theirs.close()
        os.close(into)
        # also where nobody closes it: a generator that was never started
        self._finish = weakref.finalize(
            self,
            _finish,
            self._process,
            (self._end, self._pipe),
            self._slots,
            os.getpid(),
        )

    @property
    def ready(self) -> Any:
        """To wait for with `multiprocessing.connection.wait`, unless `waiting`."""
        return self._pipe

    @property
    def waiting(self) -> bool:
        """Whether an item has been read that nobody took yet."""
        return bool(self._items) or self._over or self._stream.whole()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def has_item(self, timeout: float) -> bool:
        """Whether `receive` will not wait, within so many seconds."""
        return self.waiting or bool(
            multiprocessing.connection.wait([self.ready], timeout)
        )

    def receive(self) -> Any:
        """The next item. EOFError after the last; WorkerError if the worker failed."""
        items = self._items
        if not items and not self._over:
            held = self._take()
            while held < READY and not self._over and self._stream.whole():
                held += self._take()
            self._tell()
        if items:
            return items.popleft()
        failure, self._failure = self._failure, ""
        if failure:
            raise WorkerError(failure)
        raise EOFError

    def _take(self) -> int:
        """Make one more message ready; how many bytes of data it has."""
        try:
            slot, header, size, data = self._stream.take()
        except (EOFError, ConnectionResetError):
            self._over, self._failure = True, self._death()
            return 0
        if slot >= 0:
            self._items.append(self._decode(header, self._slots[slot].room(size)))
            self._used = self._used or len(shared.in_use(self._slots, size))
            self._free += 1
        elif slot == -1:
            self._items.append(self._decode(header, data))
        else:
            self._over = True
            if slot == _ERROR:
                self._failure = f"{self.name} failed:\n{header.decode()}"
        return size

    def _tell(self) -> None:
        """Tell the worker of slots that it can use again, once they are half of all."""
        if self._free and self._free * 2 >= self._used:
            # a worker that has given its last item waits for nothing
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._end.send(bytes([self._free]))
            self._free = 0

    def _death(self) -> str:
        self._process.join(JOIN_S)
        code = self._process.exitcode
        return f"{self.name} (process {self.pid}) died {_how(code)}"

    def close(self) -> None:
        """End the process, whatever it does; may be called again."""
        self._items.clear()
        self._over, self._failure = True, ""
        self._finish()


def _start(process: Any) -> None:
    me = multiprocessing.current_process()
    daemon = me.daemon
    if daemon:
        # it could leave children behind when it is ended; a worker ends by itself
        me.daemon = False
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of forking beside threads; see above
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
    finally:
        if daemon:
            me.daemon = True


def _finish(process: Any, ends: Any, slots: list[Slot], owner: int) -> None:
    for end in ends:
        end.close()
    if os.getpid() == owner:  # not in a process forked off later
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
        return "without closing its socket"
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
            for worker in _with_items(left, timeout):
                try:
                    item = worker.receive()
                except EOFError:
                    left.remove(worker)
                    continue
                yield item
    finally:
        for worker in workers:
            worker.close()


def _with_items(workers: list[Worker], timeout: float | None) -> list[Worker]:
    if timeout is None and len(workers) == 1:
        return list(workers)  # `receive` waits by itself
    found = [w for w in workers if w.waiting]
    if not found:
        ready = multiprocessing.connection.wait([w.ready for w in workers], timeout)
        found = [w for w in workers if w.ready in ready]
    if not found:
        names = ", ".join(w.name for w in workers)
        raise WorkerError(f"no item within {timeout} s from {names}")
    return found


# ------------------------------------------------ in the worker


def _work(
    source: Callable[[], Iterable[Any]], end: Any, into: int, slots: list[Slot]
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the consumer's
    for theirs in list(_ends):
        theirs.close()
    _yield_to_consumer()
    watch = threading.Thread(target=_end_with, args=(end,), daemon=True)
    watch.start()
    sender = _Sender(into, end, slots)
    try:
        for item in source():
            sender.send(item)
        _flush()
        sender.put(HEAD.pack(_END, 0, 0))
    except (BrokenPipeError, EOFError, ConnectionResetError):
        return  # nobody takes any more
    except BaseException:
        text = traceback.format_exc().encode()
        _flush()
        with contextlib.suppress(OSError):
            sender.put(HEAD.pack(_ERROR, len(text), 0) + text)
        raise SystemExit(1) from None


def _flush() -> None:
    """What the reader printed: its process may be ended before it does this itself."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()


def _yield_to_consumer() -> None:
    """Never preempt who wakes this process; see the module."""
    if not hasattr(os, "SCHED_BATCH"):
        return
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _end_with(end: socket.socket) -> None:
    """End this process once the consumer's side is closed, whatever the reader does."""
    poll = select.poll()
    poll.register(end, 0)  # told of nothing but the end
    poll.poll()
    os._exit(1)


class _Sender:
    """Items through the pipe and the slots, which come round in turn."""

    def __init__(self, pipe: int, end: socket.socket, slots: list[Slot]) -> None:
        self._pipe = pipe
        self._end = end
        self._slots = slots
        self._free = -1  # the first item tells how many come round
        self._next = 0

    def put(self, message: bytes) -> None:
        left = memoryview(message)
        while left:
            left = left[os.write(self._pipe, left) :]

    def send(self, item: Any) -> None:
        encoded = shared.encode(item)
        head = len(encoded.header), encoded.size
        if encoded.size <= INLINE:
            data = bytearray(encoded.size)
            shared.write(encoded, data)
            self.put(HEAD.pack(-1, *head) + encoded.header + data)
            return
        if self._free < 0:
            self._slots = shared.in_use(self._slots, encoded.size)
            self._free = len(self._slots)
        while not self._free:
            told = self._end.recv(4096)
            if not told:
                raise EOFError
            self._free += sum(told)
        slot = self._next
        shared.write(encoded, self._slots[slot].room(encoded.size))
        self.put(HEAD.pack(slot, *head) + encoded.header)
        self._free -= 1
        self._next = (slot + 1) % len(self._slots)
