"""`InMemoryDataset`: samples of files, kept and shuffled in memory."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import Columns, Slot
from .datasets import Batch, DatasetBase, sliced
from .exchange import exchange
from .files import Source
from .prefixes import Prefixes

__all__ = ["InMemoryDataset"]


class InMemoryDataset(DatasetBase):
    """Keeps all samples in memory, to be shuffled (``InMemoryDataset``).

    Zeros of slots that are not dense are left out (a sample keeps at least one
    value), as the reference's MultiSlotInMemoryDataFeed does.
    """

    _feed_type = "MultiSlotInMemoryDataFeed"

    def __init__(self) -> None:
        super().__init__()
        self._prefixes = Prefixes()
        self._merges_lines = False
        self._by_view = False
        self._phase = 0
        self._views: Any = None
        self._columns: Columns | None = None
        self._shuffled = 0
        self._loading: threading.Thread | None = None
        self._failed: BaseException | None = None

    def _source(self) -> Source:
        return replace(super()._source(), prefixes=self._prefixes)

    def _parsed_slots(self) -> list[Slot]:
        return [*self._prefixes.slots, *self._slots]

    # ------------------------------------------------ memory

    def load_into_memory(self) -> None:
        """Read all files. ValueError: a line is wrong; RuntimeError: the pipe command
        failed, or files or variables were not set."""
        self._columns = self._load(self._read(self._threads))

    def _load(self, read: Iterator[tuple[int, Columns]]) -> Columns:
        parts = sorted(read, key=lambda part: part[0])
        joined = Columns.joined(self._parsed_slots(), [chunk for _, chunk in parts])
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
        self._columns = self._views = None

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """How many samples are in memory; with a fleet, of all its workers.

        0 while they are merged into page views, as in the reference.
        """
        merged = self._columns is None or self._in_views
        return self._total(0 if merged else len(self._columns or ()), fleet)

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """How many samples the last shuffle among workers left here."""
        return self._total(self._shuffled, fleet)

    def get_pv_data_size(self) -> int:
        """How many page views `preprocess_instance` found."""
        return 0 if self._views is None else len(self._views) - 1

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
            if self._merges_lines:
                raise NotImplementedError(
                    "InMemoryDataset.set_merge_by_lineid: samples of several workers "
                    "are not merged; the pipe command can merge the lines of a file"
                )
            columns = self._columns or Columns.joined(self._parsed_slots(), ())
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
        if self._by_view and self._phase == 1:
            return self._batches_of_views()
        parts = iter([] if self._columns is None else [self._columns])
        return sliced(parts, self._parsed_slots(), self._batch_size, drop_last)

    # ------------------------------------------------ page views

    @property
    def _in_views(self) -> bool:
        return self._by_view and self._views is not None

    def preprocess_instance(self) -> None:
        """Merge samples of one search into page views (`set_merge_by_sid`), by number
        of the search.

        RuntimeError: there are no samples, or their lines had no log keys.
        """
        if self._columns is None or not self._prefixes.logkey:
            raise RuntimeError(
                "preprocess_instance: samples with log keys must be in memory: call "
                "set_parse_logkey(True), then load_into_memory"
            )
        searches = self._columns.values[0]
        order = np.argsort(searches, kind="stable")
        self._columns = self._columns.take(order)
        starts = np.flatnonzero(np.diff(searches[order])) + 1
        self._views = np.concatenate([[0], starts, [len(searches)]])
        self._by_view = True

    def postprocess_instance(self) -> None:
        """Let samples be samples again."""
        self._by_view = False

    def _batches_of_views(self) -> Generator[Batch, None, None]:
        """All samples of `set_pv_batch_size` page views at a time."""
        columns, views = self._columns, self._views
        size = self._desc.pv_batch_size or 1
        for at in range(0, 0 if columns is None else len(views) - 1, size):
            last = min(at + size, len(views) - 1)
            yield columns.cut(views[at], views[last]).feed()  # type: ignore[union-attr]

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

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Lines begin with an id, ``1 word``, which is left out."""
        self._prefixes = replace(self._prefixes, ins_id=bool(parse_ins_id))

    def set_parse_content(self, parse_content: bool) -> None:
        """Lines have a text behind the id, ``1 word``, which is left out."""
        self._prefixes = replace(self._prefixes, content=bool(parse_content))

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        """Lines have a log key in front of their slots, ``1 word`` (see `prefixes`)."""
        self._prefixes = replace(self._prefixes, logkey=bool(parse_logkey))

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """Lines begin with an id. As in the reference samples are merged by it only
        when workers exchange them, which is not supported."""
        self._merges_lines = True
        self.set_parse_ins_id(True)

    def set_merge_by_sid(self, merge_by_sid: bool) -> None:
        """Kept for scripts: `preprocess_instance` always merges by search."""

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        """Kept for scripts: phase 1 reads page views once they are merged."""

    def set_current_phase(self, current_phase: int) -> None:
        """1: batches hold whole page views, after `preprocess_instance`. 0: samples."""
        self._phase = current_phase

    def set_generate_unique_feasigns(
        self, generate_uni_feasigns: bool, shard_num: int
    ) -> None:
        """Kept for scripts; see `generate_local_tables_unlock`."""

    def generate_local_tables_unlock(
        self,
        table_id: int,
        fea_dim: int,
        read_thread_num: int,
        consume_thread_num: int,
        shard_num: int,
    ) -> None:
        """Needs the tables of pslib: NotImplementedError."""
        raise NotImplementedError(
            "InMemoryDataset.generate_local_tables_unlock: fills tables of pslib, "
            "which fluidx does not have; tables of embedding layers fill themselves"
        )


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
