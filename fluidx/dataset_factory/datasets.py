"""`DatasetBase` and `QueueDataset`: samples in files, for `train_from_dataset`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.reader.workers import Worker, slots_each, take_any
from fluidx.tensor import LoDTensor

from .columns import Columns, Slot
from .desc import FeedDesc, SlotDesc
from .files import Source, chunks_of

__all__ = ["Batch", "DatasetBase", "QueueDataset", "sliced"]

Batch = dict[str, LoDTensor]


class DatasetBase:
    """Files of samples: which, how they are read, and into which variables."""

    _feed_type = "MultiSlotDataFeed"

    def __init__(self) -> None:
        self._desc = FeedDesc(self._feed_type)
        self._files: list[str] = []
        self._threads = 1
        self._slots: list[Slot] = []
        self._hdfs: tuple[str, str] | None = None
        self._download = ""
        self._generator = np.random.default_rng()

    # ------------------------------------------------ settings

    def set_pipe_command(self, pipe_command: str) -> None:
        """The shell command that turns a file into MultiSlot text ("cat": it is)."""
        self._desc.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """Samples per batch (1 unless set)."""
        if not isinstance(batch_size, int):
            raise TypeError(
                f"set_batch_size: must be an integer, got {batch_size!r:.60}"
            )
        if batch_size < 1:
            raise ValueError(f"set_batch_size: must be positive, got {batch_size}")
        self._desc.batch_size = batch_size

    def set_thread(self, thread_num: int) -> None:
        """How many processes parse files, where there are several files."""
        if thread_num < 1:
            raise ValueError(f"set_thread: must be positive, got {thread_num}")
        self._threads = thread_num

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files to read."""
        self._files = [os.fspath(f) for f in filelist]

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The variables that the slots of a line are fed to, in order.

        A variable with LoD takes any number of values, one without takes those of its
        shape. ValueError: the dtype is neither float32 nor int64.
        """
        slots, descs = [], []
        for var in var_list:
            if not isinstance(var, Variable):
                raise TypeError(f"set_use_var: takes Variables, got {var!r:.60}")
            if var.dtype not in (VarType.FP32, VarType.INT64):
                raise ValueError(
                    f"set_use_var: {var.name} is {var.dtype}; datasets take float32 "
                    "and int64"
                )
            is_float, dense = var.dtype == VarType.FP32, var.lod_level == 0
            if dense and any(d < 0 for d in var.shape[1:]):
                raise ValueError(
                    f"set_use_var: {var.name} has an unknown size in {list(var.shape)}"
                )
            slots.append(Slot(var.name, is_float, dense, tuple(var.shape)))
            desc = SlotDesc(var.name, "float" if is_float else "uint64")
            desc.is_used = True
            if dense:
                desc.is_dense, desc.shape = True, list(var.shape)
            descs.append(desc)
        self._slots, self._desc.slots = slots, descs

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Where ``hdfs:`` and ``afs:`` files lie, and "user,password" for it.

        They are read with the command line tool ``hadoop`` (see `files.Source`).
        """
        self._hdfs = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:
        """The shell command that writes a file to its output: it gets the file's name
        as last argument, and takes the place of ``hadoop fs -cat``."""
        self._download = download_cmd

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Allow `slots_shuffle`."""

    def set_rank_offset(self, rank_offset: str) -> None:
        """Kept in the description."""
        self._desc.rank_offset = rank_offset

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Kept in the description."""
        self._desc.pv_batch_size = pv_batch_size

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        raise NotImplementedError(
            f"{self.__class__.__name__} keeps no samples; use InMemoryDataset"
        )

    def desc(self) -> str:
        """The description of this dataset as protobuf text."""
        return self._desc.text()

    # ------------------------------------------------ reading

    @property
    def _batch_size(self) -> int:
        return self._desc.batch_size or 1

    def _source(self) -> Source:
        """How files are read."""
        return Source(self._desc.pipe_command, self._hdfs, self._download)

    def _parsed_slots(self) -> list[Slot]:
        """What a line holds."""
        return self._slots

    def _shares(self, threads: int) -> list[Share]:
        """The files in as many parts as there are processes to read them."""
        if not self._slots:
            raise RuntimeError("the dataset has no variables: call set_use_var")
        if not self._files:
            raise RuntimeError("the dataset has no files: call set_filelist")
        count = max(1, min(threads, len(self._files)))
        files = list(enumerate(self._files))
        return [
            Share(files[first::count], self._source(), self._parsed_slots())
            for first in range(count)
        ]

    def _read(self, threads: int) -> Iterator[tuple[int, Columns]]:
        """(number of the file, some of its samples), by several processes if many."""
        shares = self._shares(threads)
        if len(shares) < 2:
            return shares[0].numbered()
        workers = _parsers([share.columns for share in shares])
        slots = self._parsed_slots()
        return (
            (number, Columns(slots, values, offsets))
            for number, values, offsets in take_any(workers)
        )

    def _batches(
        self, drop_last: bool = False, threads: int | None = None
    ) -> Generator[Batch, None, None]:
        """Feeds for one pass."""
        raise NotImplementedError


class Share(NamedTuple):
    """Files, with their numbers, that one process reads."""

    files: list[tuple[int, str]]
    source: Source
    slots: list[Slot]

    def numbered(self) -> Iterator[tuple[int, Columns]]:
        """(number of the file, some of its samples)."""
        for number, path in self.files:
            for chunk in chunks_of(path, self.source, self.slots):
                yield number, chunk

    def columns(self) -> Iterator[tuple[int, list[Any], list[Any]]]:
        """The same as what can leave a process."""
        for number, chunk in self.numbered():
            yield number, chunk.values, chunk.offsets

    def batches(self, size: int) -> Iterator[Batch | tuple[list[Any], list[Any]]]:
        """Feeds, and in the end the columns of the samples that fill none."""
        parts = (chunk for _, chunk in self.numbered())
        for rows in _pieces(parts, self.slots, size):
            yield rows.feed() if len(rows) == size else (rows.values, rows.offsets)


def _parsers(works: list[Callable[[], Iterator[Any]]]) -> list[Worker]:
    """A process for each.

    They start here and now, in the caller's thread: none must be forked while another
    thread computes.
    """
    return [
        Worker(work, f"parser {number} of the dataset", slots_each(len(works)))
        for number, work in enumerate(works)
    ]


def _pieces(
    parts: Iterable[Columns], slots: list[Slot], size: int
) -> Iterator[Columns]:
    """So many samples at a time, across the borders of the parts; fewer in the end."""
    left = Columns.joined(slots, ())
    for part in parts:
        rows = Columns.joined(slots, [left, part]) if len(left) else part
        full = len(rows) // size * size
        for at in range(0, full, size):
            yield rows.cut(at, at + size)
        left = rows.cut(full, len(rows))
    if len(left):
        yield left


def sliced(
    parts: Iterable[Columns], slots: list[Slot], size: int, drop_last: bool
) -> Generator[Batch, None, None]:
    """Batches across the borders of the parts."""
    for rows in _pieces(parts, slots, size):
        if len(rows) == size or not drop_last:
            yield rows.feed()


def _gathered(
    workers: list[Worker], slots: list[Slot], size: int, drop_last: bool
) -> Generator[Batch, None, None]:
    """The batches of all processes as they come, then those of what they left over."""
    left = []
    for given in take_any(workers):
        if isinstance(given, dict):
            yield given
        else:
            left.append(Columns(slots, *given))
    yield from sliced(left, slots, size, drop_last)


class QueueDataset(DatasetBase):
    """Reads its files during every pass (``QueueDataset``)."""

    def _batches(
        self, drop_last: bool = False, threads: int | None = None
    ) -> Generator[Batch, None, None]:
        size, slots = self._batch_size, self._slots
        shares = self._shares(threads or self._threads)
        if len(shares) < 2:
            parts = (chunk for _, chunk in shares[0].numbered())
            return sliced(parts, slots, size, drop_last)
        workers = _parsers([partial(share.batches, size) for share in shares])
        return _gathered(workers, slots, size, drop_last)

    def local_shuffle(self) -> None:
        """Not possible: NotImplementedError."""
        raise NotImplementedError(
            "QueueDataset keeps no samples to shuffle; use InMemoryDataset"
        )

    def global_shuffle(self, fleet: Any = None) -> None:
        """Not possible: NotImplementedError."""
        self.local_shuffle()
