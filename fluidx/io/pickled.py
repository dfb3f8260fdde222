"""Writing ``.pdparams`` and ``.pdopt``: a dict of arrays as the reference reads it.

The reference keeps these files as pickles. No pickler is used to write them: this
encoder can say one thing only, a dict from names to numpy arrays, in the opcodes of
protocol 2 that numpy's own arrays are rebuilt from. No object of any other class and
no code can get into a file. For arrays in C order the bytes are those that the
reference writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from .errors import ModelFileError

__all__ = ["write_arrays"]

_CHUNK = 1 << 20
_MAX_TEXT = (1 << 32) - 1
_ONE_BATCH = 1000


def write_arrays(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write a dict of name -> numpy array.

    ModelFileError: a dtype that is no number or bool, or an array of several GiB,
    more than protocol 2 has room for.
    """
    _Encoder(file).dict(arrays)


class _Encoder:
    """Writes opcodes and counts what the reader's memo will hold."""

    def __init__(self, file: BinaryIO) -> None:
        self._write = file.write
        self._memo: dict[Any, int] = {}
        self._count = 0

    def dict(self, arrays: Mapping[str, Any]) -> None:
        self._write(b"\x80\x02}")
        self._remember()
        items = list(arrays.items())
        for start in range(0, len(items), _ONE_BATCH):
            batch = items[start : start + _ONE_BATCH]
            if len(batch) > 1:
                self._write(b"(")
            for name, array in batch:
                self._text(str(name).encode())
                self._array(str(name), np.asarray(array))
            self._write(b"u" if len(batch) > 1 else b"s")
        self._write(b".")

    # ------------------------------------------------ parts

    def _remember(self, what: Any = None) -> None:
        """Put the top of the reader's stack into its memo."""
        number = self._count
        self._count += 1
        if what is not None:
            self._memo[what] = number
        short = number < 256
        self._write(
            struct.pack("<cB" if short else "<cI", b"q" if short else b"r", number)
        )

    def _again(self, what: Any) -> bool:
        """Fetch something from the memo, if it is there."""
        number = self._memo.get(what)
        if number is None:
            return False
        short = number < 256
        self._write(
            struct.pack("<cB" if short else "<cI", b"h" if short else b"j", number)
        )
        return True

    def _text(self, data: bytes) -> None:
        self._write(b"X" + struct.pack("<I", len(data)) + data)
        self._remember()

    def _word(self, word: str) -> None:
        """One of the few constant words, once."""
        if not self._again(word):
            data = word.encode()
            self._write(b"X" + struct.pack("<I", len(data)) + data)
            self._remember(word)

    def _global(self, module: str, name: str) -> None:
        key = (module, name)
        if not self._again(key):
            self._write(f"c{module}\n{name}\n".encode())
            self._remember(key)

    def _integer(self, value: int) -> None:
        if 0 <= value < 256:
            self._write(struct.pack("<cB", b"K", value))
        elif 0 <= value < 65536:
            self._write(struct.pack("<cH", b"M", value))
        elif -(1 << 31) <= value < 1 << 31:
            self._write(struct.pack("<ci", b"J", value))
        else:
            size = value.bit_length() // 8 + 1
            self._write(struct.pack("<cB", b"\x8a", size))
            self._write(value.to_bytes(size, "little", signed=True))

    def _array(self, name: str, array: Any) -> None:
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ModelFileError(f"{name!r}: dtype {array.dtype} cannot be saved")
        self._global("numpy.core.multiarray", "_reconstruct")
        self._global("numpy", "ndarray")
        self._write(b"K\x00\x85")
        self._remember()
        self._placeholder()
        self._write(b"\x87")
        self._remember()
        self._write(b"R")
        self._remember()
        self._write(b"(K\x01")
        self._shape(array.shape)
        self._dtype(array.dtype)
        self._write(b"\x89")
        self._data(name, array)
        self._write(b"t")
        self._remember()
        self._write(b"b")

    def _placeholder(self) -> None:
        """The bytes ``b"b"``, as protocol 2 has them."""
        if not self._again(("bytes", "b")):
            self._global("_codecs", "encode")
            self._word("b")
            self._word("latin1")
            self._write(b"\x86")
            self._remember()
            self._write(b"R")
            self._remember(("bytes", "b"))

    def _shape(self, shape: tuple[int, ...]) -> None:
        if not shape:
            self._write(b")")  # the empty tuple is not remembered
            return
        if len(shape) > 3:
            self._write(b"(")
        for size in shape:
            self._integer(size)
        self._write({1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(shape), b"t"))
        self._remember()

    def _dtype(self, dtype: Any) -> None:
        code = dtype.str[1:]
        if self._again(("dtype", code)):
            return
        self._global("numpy", "dtype")
        self._word(code)
        self._write(b"\x89\x88\x87")
        self._remember()
        self._write(b"R")
        self._remember(("dtype", code))
        self._write(b"(K\x03")
        self._word("|" if dtype.itemsize == 1 else "<")
        self._write(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t")
        self._remember()
        self._write(b"b")

    def _data(self, name: str, array: Any) -> None:
        """The elements: protocol 2 has no bytes, only text; so each byte a letter."""
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if not flat.size:
            self._global("__builtin__", "bytes")
            self._write(b")R")
            self._remember()
            return
        length = flat.size + int(np.count_nonzero(flat > 127))
        if length > _MAX_TEXT:
            raise ModelFileError(
                f"{name!r}: {flat.size} bytes are more than a .pdparams file can hold "
                "in one array; use save_persistables"
            )
        self._global("_codecs", "encode")
        self._write(b"X" + struct.pack("<I", length))
        for piece in _letters(flat):
            self._write(piece)
        self._remember()
        self._word("latin1")
        self._write(b"\x86")
        self._remember()
        self._write(b"R")
        self._remember()


def _letters(flat: Any) -> Iterator[bytes]:
    """Bytes as UTF-8 text of the letters 0 to 255, piece by piece."""
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].tobytes().decode("latin1").encode()
