"""Many samples of slots, one array of values per slot; and their text form.

MultiSlot text: a line is a sample; for each slot in turn it has the number of values
and the values: ``2 17 4 1 0.5`` is a slot with 17 and 4 and a slot with 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fluidx.tensor import LoDTensor

__all__ = ["Columns", "Slot", "parse"]


class Slot(NamedTuple):
    """dense: every sample has the same number of values, those of `shape`."""

    name: str
    is_float: bool
    dense: bool
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return "float32" if self.is_float else "int64"

    @property
    def size(self) -> int:
        """Values per sample, where dense."""
        return prod(d for d in self.shape[1:])


class Columns:
    """Samples in columns: per slot all values, and where each sample's begin."""

    def __init__(
        self, slots: Sequence[Slot], values: list[Any], offsets: list[Any]
    ) -> None:
        self.slots = slots
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets[0]) - 1 if self.offsets else 0

    @classmethod
    def of_lengths(
        cls, slots: Sequence[Slot], values: list[Any], lengths: list[Any]
    ) -> Columns:
        return cls(slots, values, [_offsets(n) for n in lengths])

    @classmethod
    def joined(cls, slots: Sequence[Slot], parts: Iterable[Columns]) -> Columns:
        """All samples of the parts, in order."""
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        values, lengths = [], []
        for i, slot in enumerate(slots):
            none = [np.zeros(0, slot.dtype)]
            values.append(np.concatenate([*none, *(p.values[i] for p in parts)]))
            counts = [np.diff(p.offsets[i]) for p in parts]
            lengths.append(np.concatenate([np.zeros(0, np.int64), *counts]))
        return cls.of_lengths(slots, values, lengths)

    def cut(self, first: int, last: int) -> Columns:
        """The samples from first to last - 1."""
        values, offsets = [], []
        for value, offset in zip(self.values, self.offsets):
            part = offset[first : last + 1]
            values.append(value[part[0] : part[-1]])
            offsets.append(part - part[0])
        return Columns(self.slots, values, offsets)

    def take(self, rows: Any) -> Columns:
        """The samples of these numbers, in their order."""
        values, offsets = [], []
        for value, offset in zip(self.values, self.offsets):
            starts, lengths = offset[rows], np.diff(offset)[rows]
            made = _offsets(lengths)
            # position of every value: its sample's start, and on from there
            at = np.repeat(starts - made[:-1], lengths) + np.arange(made[-1])
            values.append(value[at])
            offsets.append(made)
        return Columns(self.slots, values, offsets)

    def shuffle_slots(self, names: set[str], generator: Any) -> Columns:
        """The values of some slots given to other samples, each slot by itself."""
        values, offsets = list(self.values), list(self.offsets)
        for i, slot in enumerate(self.slots):
            if slot.name in names:
                mixed = self.take(generator.permutation(len(self)))
                values[i], offsets[i] = mixed.values[i], mixed.offsets[i]
        return Columns(self.slots, values, offsets)

    def without_zeros(self) -> Columns:
        """Zeros left out of slots that are not dense; a sample keeps one value."""
        values, offsets = list(self.values), list(self.offsets)
        for i, slot in enumerate(self.slots):
            if slot.dense or not len(self):
                continue
            keep = values[i] != 0
            counts = np.concatenate([[0], np.cumsum(keep)])
            bare = np.diff(counts[offsets[i]]) == 0
            keep[offsets[i][:-1][bare]] = True
            counts = np.concatenate([[0], np.cumsum(keep)])
            values[i], offsets[i] = values[i][keep], counts[offsets[i]]
        return Columns(self.slots, values, offsets)

    def feed(self) -> dict[str, LoDTensor]:
        """Name -> tensor; slots that are not dense as [values, 1] with LoD.

        Slots that no variable has (``@...``) are left out.
        """
        found = {}
        for slot, value, offset in zip(self.slots, self.values, self.offsets):
            if slot.name.startswith("@"):
                continue
            if slot.dense:
                found[slot.name] = LoDTensor(value.reshape(-1, *slot.shape[1:]))
            else:
                lod = [offset.tolist()]
                found[slot.name] = LoDTensor(value.reshape(-1, 1), lod)
        return found


def _offsets(lengths: Any) -> Any:
    made = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=made[1:])
    return made


# ------------------------------------------------ text


def parse(
    lines: Iterable[bytes], slots: Sequence[Slot], file: str, first: int
) -> Columns:
    """Samples from lines. ValueError names file, line and slot. Empty lines and what
    stands behind the last slot are left out."""
    numbered = [(n, t) for n, t in enumerate(map(bytes.split, lines), first) if t]
    numbers = [n for n, _ in numbered]
    rows = [t for _, t in numbered]
    found = _even(rows, slots)
    if found is None:
        found = _uneven(rows, slots, file, numbers)
    tokens, lengths = found
    values = []
    for slot, texts, counts in zip(slots, tokens, lengths):
        try:
            values.append(_numbers(texts, slot))
        except ValueError as error:
            line = numbers[_row_of_bad(texts, counts, slot)]
            raise ValueError(f"{file}:{line}: slot {slot.name}: {error}") from None
        if slot.dense and any(n != slot.size for n in set(counts)):
            row = next(r for r, n in enumerate(counts) if n != slot.size)
            raise ValueError(
                f"{file}:{numbers[row]}: slot {slot.name} takes {slot.size} values, "
                f"came {counts[row]}"
            )
    return Columns.of_lengths(slots, values, [np.array(n, np.int64) for n in lengths])


_Found = tuple[list[Any], list[Any]]


def _even(rows: list[list[bytes]], slots: Sequence[Slot]) -> _Found | None:
    """Where all lines have the same lengths, whole columns at a time."""
    if not rows or len(set(map(len, rows))) != 1:
        return None
    columns = list(zip(*rows))
    tokens, lengths, at = [], [], 0
    for _ in slots:
        if at >= len(columns) or len(set(columns[at])) != 1:
            return None
        text = columns[at][0]
        count = int(text) if text.isdigit() else 0
        part = columns[at + 1 : at + 1 + count]
        if count < 1 or len(part) != count:
            return None
        tokens.append(part[0] if count == 1 else list(chain.from_iterable(zip(*part))))
        lengths.append([count] * len(rows))
        at += 1 + count
    return tokens, lengths


def _uneven(
    rows: list[list[bytes]], slots: Sequence[Slot], file: str, numbers: list[int]
) -> _Found:
    tokens: list[list[bytes]] = [[] for _ in slots]
    lengths: list[list[int]] = [[] for _ in slots]
    places = list(zip(slots, tokens, lengths))
    for number, row in zip(numbers, rows):
        at = 0
        for slot, into, counts in places:
            count = int(row[at]) if at < len(row) and row[at].isdigit() else 0
            end = at + 1 + count
            if count < 1 or end > len(row):
                came = (
                    repr(str(row[at], "utf-8", "replace"))
                    if at < len(row)
                    else "nothing"
                )
                left = max(0, len(row) - at - 1)
                raise ValueError(
                    f"{file}:{number}: slot {slot.name}: expected the number of its "
                    f"values (at least 1) and as many values, came {came} and "
                    f"{left} values behind it"
                )
            into += row[at + 1 : end]
            counts.append(count)
            at = end
    return tokens, lengths


def _numbers(texts: Sequence[bytes], slot: Slot) -> Any:
    if slot.is_float:
        return np.array(list(map(float, texts)), np.float32)
    values = list(map(int, texts))
    try:
        return np.array(values, np.int64)
    except OverflowError:  # feature signs are unsigned: their bits are kept
        mask = (1 << 64) - 1
        if any(not -(1 << 63) <= v <= mask for v in values):
            raise ValueError("a value needs more than 64 bits") from None
        return np.array([v & mask for v in values], np.uint64).view(np.int64)


def _row_of_bad(texts: Sequence[bytes], counts: Sequence[int], slot: Slot) -> int:
    at = 0
    for row, count in enumerate(counts):
        try:
            _numbers(texts[at : at + count], slot)
        except ValueError:
            return row
        at += count
    return 0
