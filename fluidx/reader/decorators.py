"""Decorators that need no thread."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fluidx.arguments import as_number

__all__ = [
    "ComposeNotAligned",
    "Reader",
    "batch",
    "cache",
    "chain",
    "compose",
    "firstn",
    "map_readers",
    "shuffle",
]

Reader = Callable[[], Iterable[Any]]


class ComposeNotAligned(ValueError):
    """The readers that `compose` joins have different lengths."""


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """A reader of func(sample of each reader); ends with the shortest.

    >>> list(map_readers(lambda a, b: a + b, lambda: [1, 2], lambda: [10, 20])())
    [11, 22]
    """

    def mapped() -> Iterator[Any]:
        return map(func, *(reader() for reader in readers))

    return mapped


def shuffle(reader: Reader, buf_size: float) -> Reader:
    """A reader that shuffles within stretches of `buf_size` samples.

    Draws from Python's `random`: ``random.seed`` fixes the order.
    """
    buf_size = as_number(buf_size, "buf_size", "shuffle")

    def shuffled() -> Iterator[Any]:
        buffer: list[Any] = []
        for sample in reader():
            buffer.append(sample)
            if len(buffer) >= buf_size:
                random.shuffle(buffer)
                yield from buffer
                buffer = []
        random.shuffle(buffer)
        yield from buffer

    return shuffled


def chain(*readers: Reader) -> Reader:
    """A reader of all samples of the first, then of the second, ...

    >>> list(chain(lambda: [1, 2], lambda: [3])())
    [1, 2, 3]
    """

    def chained() -> Iterator[Any]:
        return itertools.chain.from_iterable(reader() for reader in readers)

    return chained


def _as_tuple(sample: Any) -> tuple[Any, ...]:
    return sample if isinstance(sample, tuple) else (sample,)


def compose(*readers: Reader, **kwargs: Any) -> Reader:
    """A reader of tuples that join one sample of each reader.

    check_alignment (True): `ComposeNotAligned` if one ends before another, or gives
    None; else what is left over is dropped.

    >>> list(compose(lambda: [1, 2], lambda: [(3, 4), (5, 6)])())
    [(1, 3, 4), (2, 5, 6)]
    """
    check_alignment = kwargs.pop("check_alignment", True)

    def composed() -> Iterator[Any]:
        passes = [reader() for reader in readers]
        if not check_alignment:
            for samples in zip(*passes):
                yield sum(map(_as_tuple, samples), ())
            return
        for samples in itertools.zip_longest(*passes):
            if any(sample is None for sample in samples):
                raise ComposeNotAligned(
                    "compose: a reader ended before another (or gave None); pass "
                    "check_alignment=False to drop what is left over"
                )
            yield sum(map(_as_tuple, samples), ())

    return composed


def firstn(reader: Reader, n: int) -> Reader:
    """A reader of the first n samples; of all if n is below 0."""

    def first() -> Iterator[Any]:
        return itertools.islice(reader(), n if n >= 0 else None)

    return first


def cache(reader: Reader) -> Reader:
    """A reader that reads the other at once and keeps all of its samples."""
    samples = tuple(reader())

    def cached() -> Iterator[Any]:
        return iter(samples)

    return cached


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of `batch_size` samples (``paddle.batch``).

    drop_last: leave out a last list that is shorter. ValueError: batch_size below 1.

    >>> list(batch(lambda: [1, 2, 3], 2)())
    [[1, 2], [3]]
    """
    size = int(batch_size)
    if size <= 0:
        raise ValueError(f"batch: batch_size must be positive, got {batch_size!r}")
    if not callable(reader):
        raise TypeError(
            "batch: reader must be a function that begins a new pass each time it is "
            f"called, got {reader!r:.60}"
        )

    def batched() -> Iterator[Any]:
        samples = iter(reader())
        while True:
            found = list(itertools.islice(samples, size))
            if not found or (drop_last and len(found) < size):
                return
            yield found

    return batched
