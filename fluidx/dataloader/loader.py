"""`DataLoader`: one name for the ways of loading data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fluidx.ir import Variable

from .generator import GeneratorLoader, Pass, feeds_of, places_of
from .map_style import BatchSampler, MapSource, default_collate_fn
from .queue import Source, buffered

__all__ = ["DataLoader", "DatasetLoader"]


class DataLoader:
    """Batches of a map-style dataset (``fluid.io.DataLoader``).

    dataset: has ``__getitem__(index)`` and ``__len__()``; a sample has a field for
    each of `feed_list`. batch_sampler: gives lists of indices, in place of batch_size,
    shuffle and drop_last. collate_fn: makes arrays of a list of samples. num_workers:
    processes that load samples; batches come in order all the same. timeout: seconds
    that a batch from a worker may take (0: any). worker_init_fn: called with the
    worker's number in it. use_buffer_reader: on a CUDAPlace, copy a batch to the GPU
    while the one before it is used. Iterating gives, per place, a dict name ->
    LoDTensor, or with return_list a list; batches that do not fill all places are left
    out.

    `from_generator` and `from_dataset` make the other kinds of loader.
    """

    def __init__(
        self,
        dataset: Any,
        feed_list: Sequence[Variable] | None = None,
        places: Any = None,
        return_list: bool = False,
        batch_sampler: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
    ) -> None:
        if feed_list is None or places is None:
            raise ValueError("DataLoader: feed_list and places must be given")
        if num_workers < 0 or timeout < 0:
            raise ValueError("DataLoader: num_workers and timeout cannot be negative")
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
            raise ValueError(
                "DataLoader: batch_sampler decides on batch_size, shuffle and "
                "drop_last; give these to it instead"
            )
        self.dataset = dataset
        self.batch_sampler = batch_sampler or BatchSampler(
            dataset, None, shuffle, batch_size, drop_last
        )
        self._names = [v.name for v in feed_list]
        self._places = places_of(places)
        self._return_list = return_list
        self._collate = collate_fn or default_collate_fn
        self._workers = num_workers
        self._timeout = timeout or None
        self._buffer = use_buffer_reader
        self._init = worker_init_fn

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __call__(self) -> Pass:
        return iter(self)

    def __iter__(self) -> Pass:
        source: Source = MapSource(
            self.dataset,
            self.batch_sampler,
            self._collate,
            self._names,
            self._workers,
            self._timeout,
            self._init,
        )
        if self._buffer and len(self._places) == 1:
            source = buffered(source, self._places[0])
        names = None if self._return_list else self._names
        feeds = feeds_of(source, "DataLoader", names, len(self._places), True)
        return Pass(feeds, source.close)

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """A loader to be given a generator (``set_batch_generator`` and its like).

        feed_list: the variables, in the order of the generator's fields. capacity: how
        many batches are read ahead. iterable: iterate over it and feed what comes;
        else the current program reads by itself, between ``start()`` and
        EOFException. use_double_buffer: on a CUDAPlace, copy a batch to the GPU while
        the one before it is used. use_multiprocess: run the generator in a process of
        its own instead of a thread. drop_last: leave out batches that do not fill all
        places.
        """
        return GeneratorLoader(
            feed_list,
            capacity,
            use_double_buffer,
            iterable,
            return_list,
            use_multiprocess,
            drop_last,
        )

    @staticmethod
    def from_dataset(
        dataset: Any, places: Any, drop_last: bool = True
    ) -> DatasetLoader:
        """An iterable loader over an InMemoryDataset or a QueueDataset.

        drop_last: leave out a batch that is shorter than the batch size, and batches
        that do not fill all places. TypeError: it is no such dataset. RuntimeError: it
        is one in memory, and is not loaded.
        """
        return DatasetLoader(dataset, places, drop_last)


class DatasetLoader:
    """What `DataLoader.from_dataset` returns; see there."""

    def __init__(self, dataset: Any, places: Any, drop_last: bool = True) -> None:
        if not hasattr(dataset, "_batches"):
            raise TypeError(
                "DataLoader.from_dataset: takes a dataset of fluid.DatasetFactory, got "
                f"{dataset!r:.60}"
            )
        if places is None:
            raise ValueError("DataLoader.from_dataset: places must be given")
        loading = getattr(dataset, "_loading", None)
        if loading is None and getattr(dataset, "_columns", self) is None:
            raise RuntimeError(
                "DataLoader.from_dataset: the InMemoryDataset holds no samples; call "
                "load_into_memory() first"
            )
        self._dataset = dataset
        self._places = places_of(places)
        self._drop_last = drop_last

    def __call__(self) -> Pass:
        return iter(self)

    def __iter__(self) -> Pass:
        batches = self._dataset._batches(self._drop_last)
        return Pass(self._feeds(batches), batches.close)

    def _feeds(self, batches: Iterator[Any]) -> Iterator[Any]:
        group: list[Any] = []
        for batch in batches:
            group.append(batch)
            if len(group) == len(self._places):
                yield group
                group = []
        if group and not self._drop_last:
            yield group
