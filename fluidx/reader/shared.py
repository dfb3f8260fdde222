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
from typing import Any, NamedTuple

import numpy as np

from fluidx.tensor import LoDTensor

__all__ = ["Slot", "decode", "encode", "open_slots"]

ALIGN = 64
#: arrays of a message up to this many bytes travel in the pipe itself
INLINE = 16384
#: slot (-1: the data follows the header), bytes of the header, bytes of data
HEAD = struct.Struct("<iQQ")
_MARK = Ellipsis
_PLAIN = frozenset([int, float, str, bytes, bool, complex, type(None)])


class _Array(NamedTuple):
    """kind: "a" an array, "s" a scalar of numpy's, "t" a LoDTensor."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    lod: list[list[int]]


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


def decode(header: Any, data: Any) -> Any:
    """The item again; its arrays are copies of their own."""
    tree, specs = marshal.loads(header)
    found: list[Any] = []
    at = 0
    for spec in specs:
        kind, dtype, shape, lod = _Array(*spec)
        of = np.dtype(dtype)
        size = math.prod(shape) * of.itemsize
        array = np.empty(shape, of)
        if size:
            np.copyto(array, np.ndarray(shape, of, data, at))
        at += _padded(size)
        if kind == "t":
            found.append(LoDTensor(array, lod or None))
        else:
            found.append(array[()] if kind == "s" else array)
    return _fill(tree, iter(found).__next__)


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
