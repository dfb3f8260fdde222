"""Readers in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .decorators import Reader
from .workers import Worker, WorkerError, slots_each, take_any

__all__ = ["multiprocess_reader"]


def multiprocess_reader(
    readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000
) -> Reader:
    """A reader of what several readers give, each run in a process of its own.

    The order between readers is not fixed. Samples may be numbers, strings, numpy
    arrays, and lists, tuples and dicts of these; None is refused, as in the
    reference. queue_size: bounds the samples with much data under way. use_pipe: kept
    for scripts. ValueError: a reader failed, or its process died.
    """
    if callable(readers):
        raise TypeError("multiprocess_reader: takes a list of readers, got one")
    if not readers:
        raise ValueError("multiprocess_reader: no readers were given")
    slots = max(2, min(slots_each(len(readers)), queue_size // len(readers)))

    def read() -> Iterator[Any]:
        workers: list[Worker] = []
        try:
            for number, reader in enumerate(readers):
                name = f"reader {number} of multiprocess_reader"
                workers.append(Worker(_without_none(reader), name, slots))
            yield from take_any(workers)
        except WorkerError as error:
            raise ValueError(f"multiprocess_reader: {error}") from None
        finally:
            for worker in workers:
                worker.close()

    return read


def _without_none(reader: Reader) -> Reader:
    def checked() -> Iterator[Any]:
        for sample in reader():
            if sample is None:
                raise ValueError("a sample is None")
            yield sample

    return checked
