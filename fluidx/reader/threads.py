"""Reading ahead in threads."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from .decorators import Reader

__all__ = ["Ahead", "Closed", "buffered", "xmap_readers"]

JOIN_S = 5.0


class Closed(Exception):
    """The channel has ended: nobody takes, or nothing more comes."""


class Channel:
    """A bounded queue from one thread to another, that either side can end."""

    def __init__(self, capacity: int) -> None:
        self._capacity = max(1, capacity)
        self._items: deque[Any] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None

    def put(self, item: Any) -> None:
        """Wait for room; Closed once nobody takes any more."""
        with self._changed:
            while len(self._items) >= self._capacity and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def finish(self, error: BaseException | None = None) -> None:
        """Nothing more comes; what is there can still be taken, then the error."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def get(self) -> Any:
        """Wait for an item; Closed after the last one, or the giver's error."""
        with self._changed:
            while not self._items and not self._finished and not self._closed:
                self._changed.wait()
            if self._items and not self._closed:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            error, self._error = self._error, None
            if error is not None and not self._closed:
                raise error
            raise Closed

    def close(self) -> None:
        """Nobody takes any more."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._items)


class Ahead:
    """Reads ahead in a thread: at most `capacity` items wait to be taken.

    `take` gives the next; Closed at the end, or what the reader raised. `close` ends
    the thread: it is left alone only if the reader does not return in time.
    """

    def __init__(self, reader: Reader, capacity: int, name: str) -> None:
        self._channel = Channel(capacity)
        self._thread = threading.Thread(
            target=_fill, args=(self._channel, reader), name=name, daemon=True
        )
        # whoever drops this without closing it must not leave a thread that waits
        weakref.finalize(self, self._channel.close)
        self._thread.start()

    def take(self) -> Any:
        return self._channel.get()

    def waiting(self) -> int:
        """How many items wait to be taken."""
        return len(self._channel)

    def close(self) -> None:
        self._channel.close()
        if self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)


def _fill(channel: Channel, reader: Reader) -> None:
    # the thread must know the channel only: whoever reads can then be collected
    items: Any = None
    try:
        items = iter(reader())
        for item in items:
            channel.put(item)
        channel.finish()
    except Closed:
        pass
    except BaseException as error:
        channel.finish(error)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def buffered(reader: Reader, size: int) -> Reader:
    """A reader that reads up to `size` samples ahead, in a thread.

    What the reader raises is raised where the samples are taken.
    """

    def ahead() -> Iterator[Any]:
        source = Ahead(reader, size, "fluidx buffered reader")
        try:
            while True:
                try:
                    item = source.take()
                except Closed:
                    return
                yield item
        finally:
            source.close()

    return ahead


def xmap_readers(
    mapper: Callable[[Any], Any],
    reader: Reader,
    process_num: int,
    buffer_size: int,
    order: bool = False,
) -> Reader:
    """A reader of mapper(sample), computed by `process_num` threads.

    buffer_size: how many samples are under way at most. order: keep the order of
    `reader`. What mapper or reader raises is raised where the samples are taken.
    """
    threads, size = max(1, process_num), max(1, buffer_size)

    def mapped() -> Iterator[Any]:
        source = Ahead(reader, size, "fluidx xmap reader")
        pool = ThreadPoolExecutor(threads, thread_name_prefix="fluidx xmap")
        try:
            yield from _in_turn(source, pool, mapper, size, order)
        finally:
            source.close()
            pool.shutdown(wait=True, cancel_futures=True)

    return mapped


def _in_turn(
    source: Ahead,
    pool: ThreadPoolExecutor,
    mapper: Callable[[Any], Any],
    size: int,
    order: bool,
) -> Iterator[Any]:
    under_way: deque[Future[Any]] = deque()
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    count, more = 0, True
    while True:
        # wait for the reader only where nothing is left to give
        while more and count < size and (count == 0 or source.waiting()):
            try:
                sample = source.take()
            except Closed:
                more = False
                break
            future = pool.submit(mapper, sample)
            count += 1
            if order:
                under_way.append(future)
            else:
                future.add_done_callback(done.put)
        if count == 0:
            return
        ready = under_way.popleft() if order else done.get()
        count -= 1
        yield ready.result()
