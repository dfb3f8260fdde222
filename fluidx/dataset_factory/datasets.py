"""`InMemoryDataset` and `QueueDataset`: samples in files, for `train_from_dataset`."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.reader.workers import Worker, take_any
from fluidx.tensor import LoDTensor

from .columns import Columns, Slot
from .desc import FeedDesc, SlotDesc
from .exchange import exchange
from .files import chunks_of

__all__ = ["DatasetBase", "DatasetFactory", "InMemoryDataset", "QueueDataset"]

Batch = dict[str, LoDTensor]


class DatasetFactory:
    """Makes datasets by the name of their class (``fluid.DatasetFactory``)."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A QueueDataset or InMemoryDataset. ValueError: another name."""
        kinds = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}
        if datafeed_class not in kinds:
            raise ValueError(
                f"dataset class {datafeed_class!r} does not exist; there are "
                f"{', '.join(kinds)}"
            )
        return kinds[datafeed_class]()


class DatasetBase:
    """Files of samples: which, how they are read, and into which variables."""

    _feed_type = "MultiSlotDataFeed"

    def __init__(self) -> None:
        self._desc = FeedDesc(self._feed_type)
        self._files: list[str] = []
        self._threads = 1
        self._slots: list[Slot] = []
        self._hdfs: tuple[str, str] | None = None
        self._generator = np.random.default_rng()

    # ------------------------------------------------ settings

    def set_pipe_command(self, pipe_command: str) -> None:
        """The shell command that turns a file into MultiSlot text ("cat": it is)."""
        self._desc.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """Samples per batch (1 unless set)."""
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
        """Kept for scripts; files must be local (see `files.chunks_of`)."""
        self._hdfs = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:
        """Kept for scripts."""

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

    def _read(self, threads: int) -> Iterator[tuple[int, Columns]]:
        """(number of the file, some of its samples), by several processes if many.

        The processes start here and now, in the caller's thread: none must be forked
        while another thread computes.
        """
        if not self._slots:
            raise RuntimeError("the dataset has no variables: call set_use_var")
        if not self._files:
            raise RuntimeError("the dataset has no files: call set_filelist")
        command, slots = self._desc.pipe_command, self._slots
        count = min(threads, len(self._files))
        files = list(enumerate(self._files))
        if count < 2:
            return (
                (number, chunk)
                for number, path in files
                for chunk in chunks_of(path, command, slots)
            )
        workers = [
            Worker(
                _parser(files[first::count], command, slots),
                f"parser {first} of the dataset",
            )
            for first in range(count)
        ]
        return (
            (number, Columns(slots, values, offsets))
            for number, values, offsets in take_any(workers)
        )

    def _batches(
        self, drop_last: bool = False, threads: int | None = None
    ) -> Generator[Batch, None, None]:
        """Feeds for one pass."""
        raise NotImplementedError


def _parser(files: list[tuple[int, str]], command: str, slots: list[Slot]) -> Any:
    def parts() -> Iterator[Any]:
        for number, path in files:
            for chunk in chunks_of(path, command, slots):
                yield number, chunk.values, chunk.offsets

    return parts


def _sliced(
    parts: Iterator[Columns], slots: list[Slot], size: int, drop_last: bool
) -> Generator[Batch, None, None]:
    """Batches across the borders of the parts."""
    left = Columns.joined(slots, ())
    for part in parts:
        rows = Columns.joined(slots, [left, part]) if len(left) else part
        full = len(rows) // size * size
        for at in range(0, full, size):
            yield rows.cut(at, at + size).feed()
        left = rows.cut(full, len(rows))
    if len(left) and not drop_last:
        yield left.feed()


class QueueDataset(DatasetBase):
    """Reads its files during every pass (``QueueDataset``)."""

    def _batches(
        self, drop_last: bool = False, threads: int | None = None
    ) -> Generator[Batch, None, None]:
        parts = (chunk for _, chunk in self._read(threads or self._threads))
        return _sliced(parts, self._slots, self._batch_size, drop_last)

    def local_shuffle(self) -> None:
        """Not possible: NotImplementedError."""
        raise NotImplementedError(
            "QueueDataset keeps no samples to shuffle; use InMemoryDataset"
        )

    def global_shuffle(self, fleet: Any = None) -> None:
        """Not possible: NotImplementedError."""
        self.local_shuffle()


class InMemoryDataset(DatasetBase):
    """Keeps all samples in memory, to be shuffled (``InMemoryDataset``).

    Zeros of slots that are not dense are left out (a sample keeps at least one
    value), as the reference's MultiSlotInMemoryDataFeed does.
    """

    _feed_type = "MultiSlotInMemoryDataFeed"

    def __init__(self) -> None:
        super().__init__()
        self._columns: Columns | None = None
        self._shuffled = 0
        self._loading: threading.Thread | None = None
        self._failed: BaseException | None = None

    # ------------------------------------------------ memory

    def load_into_memory(self) -> None:
        """Read all files. ValueError: a line is wrong; RuntimeError: the pipe command
        failed, or files or variables were not set."""
        self._columns = self._load(self._read(self._threads))

    def _load(self, read: Iterator[tuple[int, Columns]]) -> Columns:
        parts = sorted(read, key=lambda part: part[0])
        joined = Columns.joined(self._slots, [chunk for _, chunk in parts])
        return joined.without_zeros()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begin to read all files, in a thread; `wait_preload_done` ends it."""
        self.wait_preload_done()
        read = self._read(thread_num or self._threads)

        def load() -> None:
            try:
                self._columns = self._load(read)
            except BaseException as error:
                self._failed = error

        self._loading = threading.Thread(target=load, name="fluidx preload")
        self._loading.daemon = True
        self._loading.start()

    def wait_preload_done(self) -> None:
        """Wait for `preload_into_memory`, and raise what it raised."""
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.join()
        error, self._failed = self._failed, None
        if error is not None:
            raise error

    def release_memory(self) -> None:
        """Forget all samples."""
        self._columns = None

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """How many samples are in memory; with a fleet, of all its workers."""
        return self._total(0 if self._columns is None else len(self._columns), fleet)

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """How many samples the last shuffle among workers left here."""
        return self._total(self._shuffled, fleet)

    def get_pv_data_size(self) -> int:
        """0: samples are not merged into page views."""
        return 0

    @staticmethod
    def _total(count: int, fleet: Any) -> int:
        if fleet is None or fleet.worker_num() < 2:
            return count
        return int(np.sum(exchange(fleet, np.array([count], np.int64))))

    # ------------------------------------------------ shuffling

    def local_shuffle(self) -> None:
        """Shuffle the samples in memory."""
        if self._columns is not None:
            order = self._generator.permutation(len(self._columns))
            self._columns = self._columns.take(order)

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Shuffle the samples of all workers of a fleet among these.

        Without a fleet, or with a single worker: as `local_shuffle`.
        """
        if fleet is not None and fleet.worker_num() > 1:
            columns = self._columns or Columns.joined(self._slots, ())
            count = fleet.worker_num()
            target = self._generator.integers(count, size=len(columns))
            self._columns = _dealt(columns, target, fleet)
            self._shuffled = len(self._columns)
        self.local_shuffle()

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Give the values of these slots to other samples, each slot by itself.

        ValueError: there is no such slot.
        """
        unknown = set(slots) - {slot.name for slot in self._slots}
        if unknown:
            raise ValueError(f"slots_shuffle: there are no slots {sorted(unknown)}")
        if self._columns is not None:
            self._columns = self._columns.shuffle_slots(set(slots), self._generator)

    def _batches(
        self, drop_last: bool = False, threads: int | None = None
    ) -> Generator[Batch, None, None]:
        parts = iter([] if self._columns is None else [self._columns])
        return _sliced(parts, self._slots, self._batch_size, drop_last)

    # ------------------------------------------------ settings of the reference

    def set_feed_type(self, data_feed_type: str) -> None:
        """Name another feed in the description; lines stay MultiSlot text."""
        self._desc.name = data_feed_type

    def set_queue_num(self, queue_num: int) -> None:
        """Kept for scripts."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Kept for scripts."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Kept for scripts."""

    def _refuse(self, what: str, wanted: Any) -> None:
        if wanted:
            raise NotImplementedError(
                f"InMemoryDataset.{what}: lines with ids or log keys are not read"
            )

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        self._refuse("set_parse_ins_id", parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        self._refuse("set_parse_content", parse_content)

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        self._refuse("set_parse_logkey", parse_logkey)

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        self._refuse("set_merge_by_lineid", True)

    def set_merge_by_sid(self, merge_by_sid: bool) -> None:
        self._refuse("set_merge_by_sid", merge_by_sid)

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        self._refuse("set_enable_pv_merge", enable_pv_merge)

    def set_current_phase(self, current_phase: int) -> None:
        self._refuse("set_current_phase", current_phase)

    def preprocess_instance(self) -> None:
        self._refuse("preprocess_instance", True)

    def postprocess_instance(self) -> None:
        self._refuse("postprocess_instance", True)

    def set_generate_unique_feasigns(
        self, generate_uni_feasigns: bool, shard_num: int
    ) -> None:
        self._refuse("set_generate_unique_feasigns", generate_uni_feasigns)

    def generate_local_tables_unlock(
        self,
        table_id: int,
        fea_dim: int,
        read_thread_num: int,
        consume_thread_num: int,
        shard_num: int,
    ) -> None:
        self._refuse("generate_local_tables_unlock", True)


def _dealt(columns: Columns, target: Any, fleet: Any) -> Columns:
    """The samples of all workers whose target is this one."""
    slots, mine = columns.slots, fleet.worker_index()
    targets = exchange(fleet, target)
    values = [exchange(fleet, v) for v in columns.values]
    offsets = [exchange(fleet, o) for o in columns.offsets]
    parts = []
    for worker, chosen in enumerate(targets):
        whole = Columns(
            slots, [v[worker] for v in values], [o[worker] for o in offsets]
        )
        parts.append(whole.take(np.flatnonzero(chosen == mine)))
    return Columns.joined(slots, parts)
