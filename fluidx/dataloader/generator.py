"""Loaders over generators: iterable ones, and those that stand in a program."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.reader.threads import Closed
from fluidx.tensor import Place

from .convert import Generator, from_batches, from_lists, from_samples
from .program import read_into
from .queue import Batches, BatchQueue, Source, buffered, open_source, take_from

__all__ = ["GeneratorLoader", "Pass", "PyReader", "feeds_of", "places_of"]


def places_of(places: Any) -> list[Place]:
    """A list of places, from one or several."""
    return list(places) if isinstance(places, (list, tuple)) else [places]


class Pass:
    """One pass over the batches of a loader; what reads ahead ends with it.

    It ends when its last batch was taken, when `close` is called, and when nobody
    holds it any more.
    """

    def __init__(self, items: Iterator[Any], close: Callable[[], None]) -> None:
        self._items = items
        self._end = weakref.finalize(self, close)

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._items)
        except BaseException:
            self.close()
            raise

    next = __next__

    def close(self) -> None:
        """End it; nothing more comes."""
        self._items = iter(())
        self._end()


class GeneratorLoader:
    """What `DataLoader.from_generator` returns; see there.

    feed: per place a dict name -> LoDTensor, or with `return_list` a list in the order
    of `feed_list`.
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> None:
        if feed_list is None:
            raise ValueError("DataLoader: feed_list must be given in static mode")
        if not isinstance(feed_list, (list, tuple)):
            raise TypeError(
                "DataLoader: feed_list must be a list of Variables, got "
                f"{feed_list!r:.60}"
            )
        if capacity is None:
            raise ValueError("DataLoader: give a value to capacity")
        if capacity < 1:
            raise ValueError(f"DataLoader: capacity must be positive, got {capacity!r}")
        self._variables = list(feed_list)
        self._names = [v.name for v in self._variables]
        self._iterable = iterable
        self._return_list = return_list
        self._drop_last = drop_last
        self._use_double_buffer = use_double_buffer
        self._use_multiprocess = use_multiprocess
        self._places: list[Place] | None = None
        self._running: weakref.ref[Pass] | None = None
        self._kept: Pass | None = None
        self._queue = BatchQueue(capacity, self._names, use_multiprocess)
        if not iterable:
            read_into(self._variables, self._queue, use_double_buffer)

    @property
    def iterable(self) -> bool:
        return self._iterable

    @property
    def queue(self) -> BatchQueue:
        """Where the batches wait."""
        return self._queue

    # ------------------------------------------------ sources

    def set_sample_generator(
        self,
        reader: Generator,
        batch_size: int,
        drop_last: bool = True,
        places: Any = None,
    ) -> GeneratorLoader:
        """Read samples: tuples with a field for each variable."""
        batches = from_samples(reader, self._variables, batch_size, drop_last)
        return self._read(batches, places)

    def set_sample_list_generator(
        self, reader: Generator, places: Any = None
    ) -> GeneratorLoader:
        """Read lists of samples, as `paddle.batch` gives them."""
        return self._read(from_lists(reader, self._variables), places)

    def set_batch_generator(
        self, reader: Generator, places: Any = None
    ) -> GeneratorLoader:
        """Read batches: an array or LoDTensor for each variable."""
        return self._read(from_batches(reader, self._variables), places)

    def _read(self, batches: Batches, places: Any) -> GeneratorLoader:
        if self._iterable and places is None:
            raise ValueError("DataLoader: places must be given when it is iterable")
        self._queue.batches = batches
        self._places = None if places is None else places_of(places)
        return self

    # ------------------------------------------------ in a program

    def start(self) -> None:
        """Begin a pass of the program's reader; not for iterable loaders."""
        self._must_be(False, "start()")
        self._queue.start()

    def reset(self) -> None:
        """End the pass, so that another can start."""
        self._must_be(False, "reset()")
        self._queue.reset()

    def _must_be(self, iterable: bool, what: str) -> None:
        if self._iterable != iterable:
            state = "iterable" if self._iterable else "not iterable"
            raise RuntimeError(f"DataLoader: {what} is not for one that is {state}")

    # ------------------------------------------------ iterating

    def __call__(self) -> Pass:
        return iter(self)

    def __iter__(self) -> Pass:
        """A new pass; an earlier one that has not ended ends now."""
        self._must_be(True, "iterating")
        if self._queue.batches is None or self._places is None:
            raise RuntimeError("DataLoader: its data source has not been set yet")
        earlier = self._running() if self._running is not None else None
        if earlier is not None:
            earlier.close()
        self._kept = None
        name = self._queue.name
        source: Source = open_source(
            self._queue.batches,
            self._queue.capacity,
            f"fluidx {name}",
            self._use_multiprocess,
        )
        if self._use_double_buffer and len(self._places) == 1:
            source = buffered(source, self._places[0])
        names = None if self._return_list else self._names
        feeds = feeds_of(source, name, names, len(self._places), self._drop_last)
        made = Pass(feeds, source.close)
        self._running = weakref.ref(made)
        return made

    def __next__(self) -> Any:
        """The next of the pass that goes on, or of a new one."""
        going = self._running() if self._running is not None else None
        if going is None:
            going = self._kept = iter(self)
        try:
            return next(going)
        except StopIteration:
            self._running = self._kept = None
            raise

    next = __next__


def feeds_of(
    source: Any, name: str, names: list[str] | None, places: int, drop_last: bool
) -> Iterator[list[Any]]:
    """Lists of a feed per place."""
    group: list[Any] = []
    while True:
        try:
            tensors = take_from(source, name)
        except Closed:
            break
        group.append(tensors if names is None else dict(zip(names, tensors)))
        if len(group) == places:
            yield group
            group = []
    if group and not drop_last:
        yield group


class PyReader(GeneratorLoader):
    """`DataLoader.from_generator` under its earlier name (``fluid.io.PyReader``)."""

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        super().__init__(feed_list, capacity, use_double_buffer, iterable, return_list)

    def decorate_sample_generator(
        self,
        sample_generator: Generator,
        batch_size: int,
        drop_last: bool = True,
        places: Any = None,
    ) -> None:
        """As `GeneratorLoader.set_sample_generator`."""
        self.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(
        self, reader: Generator, places: Any = None
    ) -> None:
        """As `GeneratorLoader.set_sample_list_generator`."""
        self.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Generator, places: Any = None) -> None:
        """As `GeneratorLoader.set_batch_generator`."""
        self.set_batch_generator(reader, places)
