"""Samples and batches from a worker process: arrays in shared memory, no pickle.

A message through the pipe is a small header and, for little data, the data itself.
More lies in a slot: an anonymous file in memory that both processes map. A slot belongs
to the worker while it writes, to the consumer until it has copied the arrays out, and
goes back then; so what is under way is bounded, and nothing has a name that could
outlive both processes.

The header is `marshal` of the containers, with a mark where an array stands, and the
arrays' dtypes and shapes.
"""

from __future__ import annotations

import marshal
import math
import mmap
import os
import struct
import tempfile
from collections.abc import Callable
from io import FileIO
from typing import Any, NamedTuple

import numpy as np

from fluidx.tensor import LoDTensor
from fluidx.tensor.lod_tensor import Cell

__all__ = ["Decoder", "Slot", "Stream", "encode", "open_slots"]

ALIGN = 64
#: arrays of a message up to this many bytes travel in the pipe itself
INLINE = 16384
#: bytes in slots beyond which no more than FEW of them are used
BUDGET, FEW = 1 << 25, 4
#: bytes that are read at once
CHUNK = 1 << 16
#: slot (-1: the data follows the header), bytes of the header, bytes of data
HEAD = struct.Struct("<iQQ")
_MARK = Ellipsis
_PLAIN = frozenset([int, float, str, bytes, bool, complex, type(None)])


class Encoded(NamedTuple):
    header: bytes
    arrays: list[Any]
    size: int


def encode(item: Any) -> Encoded:
    """TypeError for what cannot travel: only arrays and plain containers can."""
    arrays: list[Any] = []
    specs: list[tuple[Any, ...]] = []
    tree = _strip(item, arrays, specs)
    size = sum(_padded(a.nbytes) for a in arrays)
    return Encoded(marshal.dumps((tree, specs)), arrays, size)


def _strip(item: Any, arrays: list[Any], specs: list[tuple[Any, ...]]) -> Any:
    kind = item.__class__
    if kind in _PLAIN:
        return item
    if isinstance(item, (np.ndarray, np.generic, LoDTensor)):
        array = np.asarray(item)
        if array.dtype.hasobject or array.dtype.names:
            raise TypeError(f"an array of {array.dtype} cannot leave a worker process")
        code = "a"
        lod: list[list[int]] = []
        if isinstance(item, LoDTensor):
            code, lod = "t", item.lod()
            if specs and lod == specs[-1][3]:
                lod = specs[-1][3]  # written once: slots often have the same
        elif isinstance(item, np.generic):
            code = "s"
        arrays.append(array)
        specs.append((code, array.dtype.str, array.shape, lod))
        return _MARK
    if isinstance(item, list):
        return [_strip(v, arrays, specs) for v in item]
    if isinstance(item, tuple):
        return tuple([_strip(v, arrays, specs) for v in item])
    if isinstance(item, dict):
        return {k: _strip(v, arrays, specs) for k, v in item.items()}
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} cannot leave a worker process; yield "
        "numbers, strings, numpy arrays, and lists, tuples or dicts of these"
    )


def _padded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def write(encoded: Encoded, target: Any) -> None:
    """The arrays into a writable buffer, each at a multiple of ALIGN."""
    at = 0
    for array in encoded.arrays:
        if array.nbytes:
            view = np.ndarray(array.shape, array.dtype, target, at)
            np.copyto(view, array)
        at += _padded(array.nbytes)


class Decoder:
    """The items again; their arrays are copies of their own.

    Batches mostly have one header, which is then understood once.
    """

    def __init__(self) -> None:
        self._header = b""
        self._tree: Any = None
        self._specs: list[tuple[Any, ...]] = []
        self._flat = False  # a list of arrays, as batches are

    def __call__(self, header: bytes, data: Any) -> Any:
        if header != self._header:
            self._tree, specs = marshal.loads(header)
            self._specs = _places(specs)
            self._flat = self._tree == [_MARK] * len(specs)
            self._header = header
        found: list[Any] = []
        for kind, dtype, shape, lod, at in self._specs:
            if at < 0:
                array = np.empty(shape, dtype)
            else:
                array = np.ndarray(shape, dtype, data, at).copy()
            if kind == "t":
                found.append(LoDTensor(cell=Cell(array, lod)))
            else:
                found.append(array[()] if kind == "s" else array)
        return found if self._flat else _fill(self._tree, iter(found).__next__)


def _places(specs: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """With dtypes, and where the data of each lies; -1: it has none."""
    at, found = 0, []
    for kind, code, shape, lod in specs:
        dtype = np.dtype(code)
        size = math.prod(shape) * dtype.itemsize
        found.append((kind, dtype, shape, lod or None, at if size else -1))
        at += _padded(size)
    return found


def _fill(tree: Any, take: Callable[[], Any]) -> Any:
    kind = tree.__class__
    if tree is _MARK:
        return take()
    if kind is list:
        return [_fill(v, take) for v in tree]
    if kind is tuple:
        return tuple([_fill(v, take) for v in tree])
    if kind is dict:
        return {k: _fill(v, take) for k, v in tree.items()}
    return tree


class Stream:
    """Messages of a pipe, as many to a system call as there are."""

    def __init__(self, end: FileIO) -> None:
        self._end = end
        self._buffer = bytearray(CHUNK)
        self._view = memoryview(self._buffer)
        self._from = self._to = 0

    def whole(self) -> bool:
        """Whether `take` has no need to read."""
        return self._to - self._from >= self._size()

    def _size(self) -> int:
        """Bytes of the next message, as far as that is known."""
        if self._to - self._from < HEAD.size:
            return HEAD.size
        slot, header, data = HEAD.unpack_from(self._buffer, self._from)
        return int(HEAD.size + header + (data if slot == -1 else 0))

    def take(self) -> tuple[int, bytes, int, memoryview]:
        """Slot, header, bytes of data, and the data where it follows the header.

        The data is valid until the next call. EOFError: the other side has closed.
        """
        size = self._size()
        while self._to - self._from < size:
            self._read(size)
            size = self._size()
        slot, header, data = HEAD.unpack_from(self._buffer, self._from)
        at = self._from + HEAD.size
        body = bytes(self._view[at : at + header])
        inline = self._view[at + header : self._from + size]
        self._from += size
        return slot, body, data, inline

    def _read(self, size: int) -> None:
        if self._from + size > len(self._buffer) or self._from == self._to:
            left = self._view[self._from : self._to]
            if size > len(self._buffer):
                self._buffer = bytearray(size)
                self._view = memoryview(self._buffer)
            self._view[: len(left)] = left
            self._from, self._to = 0, len(left)
        count = self._end.readinto(self._view[self._to :])
        if not count:
            raise EOFError
        self._to += count


class Slot:
    """An anonymous file in memory, mapped as large as needed."""

    def __init__(self) -> None:
        self._file = _anonymous()
        self._map: mmap.mmap | None = None

    def room(self, size: int) -> mmap.mmap:
        """A map of at least this many bytes, which the other process may have grown."""
        if self._map is None or len(self._map) < size:
            if self._map is not None:
                self._map.close()
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, size + size // 4)
            self._map = mmap.mmap(self._file, 0)
        return self._map

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _anonymous() -> int:
    """A file without a name."""
    make = getattr(os, "memfd_create", None)
    if make is not None:
        return int(make("fluidx-slot"))
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def open_slots(number: int) -> list[Slot]:
    return [Slot() for _ in range(number)]


def in_use(slots: list[Slot], size: int) -> list[Slot]:
    """Of those opened, how many both sides use for items of about this size."""
    return slots[: max(FEW, BUDGET // size)]
