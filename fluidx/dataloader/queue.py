"""What a `read` op takes its batches from."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fluidx.ir.errors import EOFException, RunError
from fluidx.reader.threads import Ahead, Closed
from fluidx.reader.workers import Worker, take_any

__all__ = ["BatchQueue", "Batches", "Piped", "Source", "open_source"]

Batches = Callable[[], Iterable[list[Any]]]


class Piped:
    """Takes from a worker process; `Ahead` with a process for the thread."""

    def __init__(self, batches: Batches, capacity: int, name: str) -> None:
        slots = max(2, min(8, capacity))
        worker = Worker(batches, name, slots)
        self._items: Iterator[Any] = take_any([worker])
        self._end = weakref.finalize(self, worker.close)

    def take(self) -> Any:
        for item in self._items:
            return item
        raise Closed

    def close(self) -> None:
        self._end()


Source = Ahead | Piped


def open_source(
    batches: Batches, capacity: int, name: str, use_multiprocess: bool
) -> Source:
    """Start to read ahead."""
    kind = Piped if use_multiprocess else Ahead
    return kind(batches, capacity, name)


def take_from(source: Source, name: str) -> Any:
    """The next item. Closed at the end; RunError from what the reader raised."""
    try:
        return source.take()
    except Closed:
        raise
    except Exception as error:
        kind = error.__class__.__name__
        raise RunError(f"{name}: reading a batch failed: {kind}: {error}") from error


class BatchQueue:
    """Batches for the `read` ops of a program, read ahead once started.

    names: for messages, what the batches are fed to. Mirrors the blocking queue of
    the reference's readers: after the last batch every `take` raises EOFException
    until `reset`.
    """

    def __init__(
        self, capacity: int, names: Sequence[str], use_multiprocess: bool = False
    ) -> None:
        self.capacity = capacity
        self.name = f"reader of {', '.join(names)}"
        self.batches: Batches | None = None
        self._use_multiprocess = use_multiprocess
        self._source: Source | None = None
        self._ended = False

    def start(self) -> None:
        """Begin a pass. RuntimeError: there is nothing to read, or a pass goes on."""
        if self.batches is None:
            raise RuntimeError(f"{self.name}: set its generator before start()")
        if self._ended:
            return  # as in the reference: ended until reset()
        if self._source is not None:
            raise RuntimeError(f"{self.name}: already started; call reset() first")
        self._source = open_source(
            self.batches, self.capacity, f"fluidx {self.name}", self._use_multiprocess
        )

    def reset(self) -> None:
        """End the pass, wherever it is."""
        source, self._source, self._ended = self._source, None, False
        if source is not None:
            source.close()

    def take(self) -> list[Any]:
        """The next batch. EOFException: there is none. RunError: not started, or what
        the reader raised."""
        if self._ended:
            raise EOFException(f"{self.name}: there is no next batch; reset() it")
        if self._source is None:
            raise RunError(f"{self.name}: call start() before running the program")
        try:
            return take_from(self._source, self.name)  # type: ignore[no-any-return]
        except Closed:
            source, self._source, self._ended = self._source, None, True
            source.close()
            raise EOFException(f"{self.name}: there is no next batch") from None

    def size(self) -> int:
        """How many batches wait."""
        return self._source.waiting() if isinstance(self._source, Ahead) else 0
