"""Datasets that are asked for samples by number, in worker processes if wanted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidx.reader.threads import Closed
from fluidx.reader.workers import Worker, WorkerError, slots_each
from fluidx.tensor import LoDTensor

__all__ = ["BatchSampler", "Dataset", "MapSource", "default_collate_fn"]


class Dataset:
    """Base of map-style datasets: define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{self.__class__.__name__} lacks __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{self.__class__.__name__} lacks __len__")


class BatchSampler:
    """Lists of indices: of all of `dataset`, or of `indices`.

    >>> list(BatchSampler(indices=[4, 2, 0], batch_size=2))
    [[4, 2], [0]]
    """

    def __init__(
        self,
        dataset: Any = None,
        indices: Sequence[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (indices is None):
            raise ValueError("BatchSampler: give either dataset or indices")
        if batch_size < 1:
            raise ValueError(f"BatchSampler: batch_size must be positive: {batch_size}")
        self._indices = list(range(len(dataset)) if indices is None else indices)
        self._shuffle = shuffle
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        order = list(self._indices)
        if self._shuffle:
            np.random.shuffle(order)
        for at in range(0, len(order), self.batch_size):
            found = order[at : at + self.batch_size]
            if len(found) == self.batch_size or not self.drop_last:
                yield found

    def __len__(self) -> int:
        count = len(self._indices)
        full = count // self.batch_size
        return full if self.drop_last else -(-count // self.batch_size)


def default_collate_fn(batch: list[Any]) -> list[Any]:
    """Stack the fields of the samples: one array for each field."""
    return [np.stack([np.asarray(v) for v in field]) for field in zip(*batch)]


class MapSource:
    """Batches in the order of the sampler, loaded here or by worker processes.

    Batch number n is the work of worker n modulo their number, so the order needs no
    sorting, and each worker is at most its slots ahead.
    """

    def __init__(
        self,
        dataset: Any,
        sampler: Iterable[list[int]],
        collate: Callable[[list[Any]], Any],
        names: list[str],
        workers: int,
        timeout: float | None,
        init: Callable[[int], Any] | None,
    ) -> None:
        self._timeout = timeout
        self._names = names
        self._workers: list[Worker] = []
        self._turn = 0
        if not workers:
            self._own = _load(dataset, iter(sampler), collate)
            return
        plan = list(sampler)
        seed = random.randrange(1 << 31)
        try:
            for number in range(workers):
                mine = plan[number::workers]
                source = _worker_source(dataset, mine, collate, number, seed, init)
                name = f"worker {number} of DataLoader"
                self._workers.append(Worker(source, name, slots_each(workers)))
        except BaseException:
            self.close()
            raise

    def take(self) -> list[LoDTensor]:
        """The next batch; Closed at the end."""
        if self._workers:
            arrays = self._from_worker()
        else:
            found = next(self._own, None)
            if found is None:
                raise Closed
            arrays = found
        if len(arrays) != len(self._names):
            raise ValueError(
                f"a batch has {len(arrays)} fields, but there are "
                f"{len(self._names)} variables: {self._names}"
            )
        return arrays

    def _from_worker(self) -> list[LoDTensor]:
        worker = self._workers[self._turn % len(self._workers)]
        if self._timeout is not None and not worker.has_item(self._timeout):
            raise WorkerError(f"no batch within {self._timeout} s from {worker.name}")
        try:
            arrays = worker.receive()
        except EOFError:
            # batches are dealt out in turn: the others have none left either
            raise Closed from None
        self._turn += 1
        return arrays  # type: ignore[no-any-return]

    def waiting(self) -> int:
        """Whether the next batch has been loaded."""
        if not self._workers:
            return 0
        return int(self._workers[self._turn % len(self._workers)].has_item(0))

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()


def _load(
    dataset: Any, plan: Iterable[list[int]], collate: Callable[[list[Any]], Any]
) -> Iterator[list[LoDTensor]]:
    for indices in plan:
        arrays = collate([dataset[i] for i in indices])
        yield [v if isinstance(v, LoDTensor) else LoDTensor(v) for v in arrays]


def _worker_source(
    dataset: Any,
    plan: list[list[int]],
    collate: Callable[[list[Any]], Any],
    number: int,
    seed: int,
    init: Callable[[int], Any] | None,
) -> Callable[[], Iterator[Any]]:
    def source() -> Iterator[Any]:
        # forked alike: without this all workers would draw the same numbers
        random.seed(seed + number)
        np.random.seed(seed + number)
        if init is not None:
            init(number)
        return _load(dataset, plan, collate)

    return source
