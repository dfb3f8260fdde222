"""Tensors as the streams of bytes that the reference's files are made of.

A tensor is (all numbers little-endian)::

    uint32  0, the version
    uint64  number of LoD levels; for each: uint64 bytes, then uint64 offsets
    uint32  0, the version of what follows
    int32   size of the description: protobuf {1: dtype, 2: dims, repeated}
    data    in C order, without padding

and `SelectedRows` are::

    uint32  0, the version
    uint64  number of rows, then an int64 each
    int64   height
    uint32, int32, description, data as above

A separate file is one such stream, a combined file one after the other. What is read
is checked against the bytes that are left before memory is taken for it.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np

from fluidx.kernels import SelectedRows, VarType, as_dtype, to_numpy

from .errors import ModelFileError

__all__ = ["Reader", "memory_of", "read_all", "write_value"]

LoD = list[list[int]]
Value = tuple[Any, LoD | None]

_MAX_DESCRIPTION = 4096
_MAX_LEVELS = 64


# ---------------------------------------------------------------- writing


def write_value(file: BinaryIO, value: Any, lod: LoD | None = None) -> None:
    """Append a tensor or `SelectedRows` to a file.

    Arrays of no dimension, which Fluid does not have, are written as shape [1].
    ModelFileError: a value that has no such form, or a dtype without a number.
    """
    if isinstance(value, SelectedRows):
        rows = np.ascontiguousarray(value.rows, "<i8")
        file.write(struct.pack("<IQ", 0, rows.size))
        file.write(memory_of(rows))
        file.write(struct.pack("<q", value.height))
    else:
        _write_lod(file, lod or ())
    array = value.value if isinstance(value, SelectedRows) else value
    if not isinstance(array, np.ndarray):
        raise ModelFileError(f"a {value.__class__.__name__} cannot be saved")
    description = _description(array)
    file.write(struct.pack("<Ii", 0, len(description)))
    file.write(description)
    file.write(memory_of(array))


def _write_lod(file: BinaryIO, lod: Sequence[Sequence[int]]) -> None:
    file.write(struct.pack("<IQ", 0, len(lod)))
    for level in lod:
        offsets = np.asarray(level, "<u8")
        file.write(struct.pack("<Q", offsets.nbytes))
        file.write(memory_of(offsets))


def memory_of(array: Any) -> Any:
    """The memory of an array in C order, little-endian; a copy only if need be."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def _description(array: Any) -> bytes:
    try:
        kind = as_dtype(array.dtype)
    except TypeError as error:
        raise ModelFileError(f"an array cannot be saved: {error}") from None
    shape = array.shape or (1,)
    return b"\x08" + _varint(kind) + b"".join(b"\x10" + _varint(d) for d in shape)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


# ---------------------------------------------------------------- reading


class Reader:
    """Reads streams from a file or from bytes, and knows how much is left.

    what: how errors call it. Every error is a ModelFileError.
    """

    def __init__(self, source: BinaryIO | bytes, what: str) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            self._size = len(source)
            self._file: BinaryIO = BytesIO(source)
        else:
            self._file = source
            self._size = os.fstat(source.fileno()).st_size
        self.what = what
        self.left = self._size

    def skip(self, count: int) -> None:
        """Leave out bytes."""
        self._claim(count, "an offset")
        self._file.seek(count, os.SEEK_CUR)

    def tensor(self) -> Value:
        """The next tensor: an array of its own, and its LoD or None."""
        self._version()
        lod = self._lod()
        return self._array(), lod or None

    def selected_rows(self) -> SelectedRows:
        """The next `SelectedRows`."""
        self._version()
        (count,) = self._numbers("<Q", "the number of rows")
        self._claimable(count * 8, f"{count} row numbers")
        rows = self.array((count,), np.dtype("<i8"))
        (height,) = self._numbers("<q", "the height")
        value = self._array()
        if value.ndim == 0 or len(value) != count or height < 0:
            raise self.error(f"{count} rows of height {height} with {value.shape}")
        return SelectedRows(rows, value, height)

    def outline(self, kind: int = VarType.LOD_TENSOR) -> tuple[VarType, list[int]]:
        """Dtype and shape of the next value; its elements are passed over."""
        self._version()
        if kind == VarType.SELECTED_ROWS:
            (count,) = self._numbers("<Q", "the number of rows")
            self.skip(count * 8)
            self._numbers("<q", "the height")
        else:
            self._lod()
        dtype, shape = self._header()
        self.skip(math.prod(shape) * dtype.itemsize)
        return as_dtype(dtype), shape

    def value(self, kind: int = VarType.LOD_TENSOR) -> Value:
        """The next value of a variable of this kind."""
        if kind == VarType.SELECTED_ROWS:
            return self.selected_rows(), None
        return self.tensor()

    def end(self) -> None:
        """Nothing may be left."""
        if self.left:
            raise self.error(
                f"{self.left} bytes more than the variables asked for; a combined "
                "file must be loaded as a whole"
            )

    def array(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """The next bytes as a new array."""
        size = math.prod(shape) * dtype.itemsize
        self._claim(size, f"{dtype}{list(shape)}")
        made: Any = np.empty(shape, dtype)
        room = memoryview(made.reshape(-1).view(np.uint8))
        done = 0
        while done < size:
            got = self._file.readinto(room[done:])  # type: ignore[attr-defined]
            if not got:
                raise self.error("it became shorter while it was read")
            done += got
        return made

    def error(self, message: str) -> ModelFileError:
        place = self._size - self.left
        return ModelFileError(f"{self.what}, at byte {place}: {message}")

    def _claimable(self, count: int, of: str) -> None:
        if count > self.left:
            raise self.error(f"{of} need {count} bytes, but {self.left} are left")

    def _claim(self, count: int, of: str) -> None:
        self._claimable(count, of)
        self.left -= count

    def take(self, count: int, of: str) -> bytes:
        """The next bytes, which are `of` something."""
        self._claim(count, of)
        data = self._file.read(count)
        if len(data) != count:
            raise self.error("it became shorter while it was read")
        return data

    def _numbers(self, form: str, of: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form), of))

    def _version(self) -> None:
        (version,) = self._numbers("<I", "a version")
        if version:
            raise self.error(f"version {version} of a tensor is not known, only 0")

    def _lod(self) -> LoD:
        (levels,) = self._numbers("<Q", "the number of LoD levels")
        if levels > _MAX_LEVELS:
            raise self.error(f"{levels} LoD levels are not believable")
        lod = []
        for _ in range(levels):
            (size,) = self._numbers("<Q", "a LoD level")
            if size % 8:
                raise self.error(f"a LoD level of {size} bytes")
            self._claimable(size, "a LoD level")
            offsets = self.array((size // 8,), np.dtype("<u8"))
            if offsets.size and (offsets[1:] < offsets[:-1]).any():
                raise self.error("offsets of a LoD level do not rise")
            lod.append(offsets.tolist())
        return lod

    def part(self, seek: int, shape: Sequence[int]) -> Any:
        """Of the next tensor: so many elements from the `seek`-th on, in this shape."""
        self._version()
        self._lod()
        dtype, _ = self._header()
        if any(d < 0 for d in shape):
            raise self.error(f"a part of shape {list(shape)}")
        self.skip(seek * dtype.itemsize)
        return self.array(shape, dtype)

    def _array(self) -> Any:
        dtype, shape = self._header()
        self._claimable(math.prod(shape) * dtype.itemsize, f"{dtype}{shape}")
        try:
            return self.array(shape, dtype)
        except (ValueError, OverflowError, MemoryError) as error:
            raise self.error(f"{dtype}{shape}: {error}") from None

    def _header(self) -> tuple[np.dtype[Any], list[int]]:
        """Dtype and shape of the tensor whose elements come next."""
        self._version()
        (size,) = self._numbers("<i", "a description's size")
        if not 0 < size <= _MAX_DESCRIPTION:
            raise self.error(f"a tensor's description of {size} bytes")
        return self._described(self.take(size, "a tensor's description"))

    def _described(self, data: bytes) -> tuple[np.dtype[Any], list[int]]:
        kind, shape, place = None, [], 0
        while place < len(data):
            key, place = self._varint(data, place)
            if key == 0x12:  # dims as one packed field
                size, place = self._varint(data, place)
                end = place + size
                while place < min(end, len(data)):
                    dim, place = self._varint(data, place)
                    shape.append(dim)
                if place != end:
                    raise self.error("a tensor's description is damaged")
                continue
            number, place = self._varint(data, place)
            if key == 0x08:
                kind = number
            elif key == 0x10:
                shape.append(number)
            else:
                raise self.error("a tensor's description is damaged")
        if kind is None or any(d >= 1 << 63 for d in shape):
            raise self.error(f"a tensor of type {kind} and shape {shape}")
        try:
            return to_numpy(VarType(kind)), shape
        except (TypeError, ValueError) as error:
            raise self.error(f"a tensor's type {kind}: {error}") from None

    def _varint(self, data: bytes, place: int) -> tuple[int, int]:
        number = shift = 0
        while place < len(data) and shift < 70:
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number & (1 << 64) - 1, place
            shift += 7
        raise self.error("a tensor's description is damaged")


def read_all(
    source: BinaryIO | bytes, what: str, kinds: Iterable[tuple[str, int]]
) -> dict[str, Value]:
    """The values of a combined (or separate) file, for these (name, kind), in order.

    ModelFileError: too few, too many or damaged; it names the variable.
    """
    reader = Reader(source, what)
    found: dict[str, Value] = {}
    for name, kind in kinds:
        reader.what = f"{what}, variable {name!r}"
        found[name] = reader.value(kind)
    reader.what = what
    reader.end()
    return found
