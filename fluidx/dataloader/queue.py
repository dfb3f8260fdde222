"""What a `read` op takes its batches from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from fluidx.ir.errors import EOFException, RunError
from fluidx.reader.threads import Ahead, Closed
from fluidx.reader.workers import Worker, slots_each
from fluidx.tensor import Place

__all__ = ["BatchQueue", "Batches", "Piped", "Source", "buffered", "open_source"]

Batches = Callable[[], Iterable[list[Any]]]


class Piped:
    """Takes from a worker process; `Ahead` with a process for the thread."""

    def __init__(self, batches: Batches, capacity: int, name: str) -> None:
        self._worker = Worker(batches, name, max(2, min(slots_each(1), capacity)))

    def take(self) -> Any:
        try:
            return self._worker.receive()
        except EOFError:
            self.close()
            raise Closed from None
        except BaseException:
            self.close()
            raise

    def waiting(self) -> int:
        """Whether an item waits to be taken."""
        return int(self._worker.has_item(0))

    def close(self) -> None:
        self._worker.close()


class Source(Protocol):
    """What batches are taken from."""

    def take(self) -> Any:
        """The next batch; Closed at the end, or what the reader raised."""

    def waiting(self) -> int:
        """How many can be taken at once, as far as is known."""

    def close(self) -> None:
        """End it, and what reads ahead."""


#: plugged in by the executor: the same batches, on a device if the place is one
stage: Callable[[Source, Place], Source] | None = None


def open_source(
    batches: Batches, capacity: int, name: str, use_multiprocess: bool
) -> Source:
    """Start to read ahead."""
    kind = Piped if use_multiprocess else Ahead
    return kind(batches, capacity, name)


def buffered(source: Source, place: Place) -> Source:
    """The same batches; if the place is a GPU, each is copied there ahead of its use.

    Where the device cannot be used, the source itself.
    """
    return source if stage is None else stage(source, place)


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
        #: whether a program that runs on a GPU finds the batches there
        self.double_buffer = False
        self._staged = False
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
        self._staged = False
        self._source = open_source(
            self.batches, self.capacity, f"fluidx {self.name}", self._use_multiprocess
        )

    def reset(self) -> None:
        """End the pass, wherever it is."""
        source, self._source, self._ended = self._source, None, False
        if source is not None:
            source.close()

    def take(self, place: Place | None = None) -> list[Any]:
        """The next batch, for a program that runs on this place.

        EOFException: there is none. RunError: not started, or what the reader raised.
        """
        if self._ended:
            raise EOFException(f"{self.name}: there is no next batch; reset() it")
        if self._source is None:
            raise RunError(f"{self.name}: call start() before running the program")
        if self.double_buffer and place is not None and not self._staged:
            self._source, self._staged = buffered(self._source, place), True
        try:
            return take_from(self._source, self.name)  # type: ignore[no-any-return]
        except Closed:
            source, self._source, self._ended = self._source, None, True
            source.close()
            raise EOFException(f"{self.name}: there is no next batch") from None

    def size(self) -> int:
        """How many batches wait."""
        return 0 if self._source is None else self._source.waiting()
