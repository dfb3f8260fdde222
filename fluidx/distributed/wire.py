"""The wire format: one message is a small header and raw buffers.

A message carries many variables. Small arrays lie inside the first frame, aligned;
a large one is a frame of its own (or several, where it exceeds `Limits.chunk`), so
that neither side copies it. No pickle: what arrives is checked before it is used,
and `WireError` says what is wrong with it.

First frame: magic, version, kind, flags, trainer, seq, step, counts; then the wanted
names, the text, one record per variable; then, from a 64-byte boundary on, the small
arrays.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fluidx.kernels import SelectedRows

from .errors import WireError

__all__ = ["DEFAULT_LIMITS", "Kind", "Limits", "Message", "Value", "decode", "encode"]

Value = Any  # numpy array | SelectedRows | None
Buffer = Any  # bytes-like

VERSION = 1
_MAGIC = b"FLX"
# magic, version, kind, flags, trainer, seq, step, wanted names, variables, text bytes
_HEAD = struct.Struct("<3sBBBiQQIIII")
_NAME = struct.Struct("<H")
# what it is, dtype, dimensions
_RECORD = struct.Struct("<BBB")
_SIZE = struct.Struct("<Q")
_BARRIER = 1
_NONE, _DENSE, _ROWS = 0, 1, 2
_ALIGN = 64
_MAX_NDIM = 32
_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "float16", "float32", "float64", "bfloat16", "complex64",
    "complex128",
)  # fmt: skip
_CODES = {name: code for code, name in enumerate(_DTYPES)}


class Kind(enum.IntEnum):
    """What a message asks or tells."""

    HELLO = 1  # trainer -> server: I take part
    PUSH = 2  # gradients, perhaps a barrier, perhaps names wanted back
    LOOKUP = 3  # rows of tables wanted: values hold the row numbers
    PING = 4
    COMPLETE = 5  # this trainer is done
    ABORT = 6  # this trainer fails, text says why
    VALUES = 7  # server -> trainer: answer to PUSH or LOOKUP
    PONG = 8
    FAIL = 9  # the cluster fails, text says why


@dataclass(frozen=True)
class Limits:
    """inline: arrays up to this many bytes lie in the first frame.
    chunk: no frame of an array is larger."""

    inline: int = 16384
    chunk: int = 1 << 30


DEFAULT_LIMITS = Limits()


@dataclass
class Message:
    """One message. seq pairs an answer with its question; step is for errors."""

    kind: Kind
    trainer: int = -1
    seq: int = 0
    step: int = 0
    barrier: bool = False
    names: list[str] = field(default_factory=list)
    values: list[tuple[str, Value]] = field(default_factory=list)
    text: str = ""


@cache
def _code(dtype: np.dtype[Any]) -> int:
    code = _CODES.get(dtype.name)
    if code is None:
        raise WireError(f"arrays of {dtype} cannot be sent")
    return code


@cache
def _dtype(code: int) -> np.dtype[Any]:
    if code >= len(_DTYPES):
        raise WireError(f"unknown element type {code}")
    if _DTYPES[code] == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise WireError("bfloat16 came, but ml_dtypes is not installed") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_DTYPES[code])


def _text(name: str) -> bytes:
    raw = name.encode()
    if len(raw) > 0xFFFF:
        raise WireError(f"a name of {len(raw)} bytes cannot be sent")
    return _NAME.pack(len(raw)) + raw


def _raw(array: Any) -> Any:
    """The array's bytes, without a copy where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def encode(message: Message, limits: Limits = DEFAULT_LIMITS) -> list[Buffer]:
    """The frames of a message; large arrays are given as they are, not copied."""
    parts: list[bytes] = [b""]
    inline: list[Any] = []
    frames: list[Buffer] = []

    def put(array: Any) -> None:
        # dtype, shape, then where the bytes are is told by their number alone
        parts.append(struct.pack(f"<{array.ndim}Q", *array.shape))
        size = array.nbytes
        if size <= limits.inline and size <= limits.chunk:
            if size:
                inline.append(_raw(array))
            parts.append(b"\1")
            return
        parts.append(b"\0")
        raw = _raw(array)
        if size <= limits.chunk:
            frames.append(raw)
        else:
            step = limits.chunk
            frames.extend(raw[i : i + step] for i in range(0, size, step))

    for name in message.names:
        parts.append(_text(name))
    text = message.text.encode()
    parts.append(text)
    for name, value in message.values:
        parts.append(_text(name))
        if value is None:
            parts.append(_RECORD.pack(_NONE, 0, 0))
        elif isinstance(value, SelectedRows):
            rows = np.asarray(value.rows, np.int64)
            array = np.asarray(value.value)
            parts.append(_RECORD.pack(_ROWS, _code(array.dtype), array.ndim))
            parts.append(_SIZE.pack(value.height))
            put(array)
            put(rows)
        else:
            array = np.asarray(value)
            parts.append(_RECORD.pack(_DENSE, _code(array.dtype), array.ndim))
            put(array)
    parts[0] = _HEAD.pack(
        _MAGIC,
        VERSION,
        message.kind,
        _BARRIER if message.barrier else 0,
        message.trainer,
        message.seq,
        message.step,
        len(message.names),
        len(message.values),
        len(text),
        sum(map(len, parts[1:])),
    )
    if inline:
        offset = sum(map(len, parts))
        for raw in inline:
            pad = -offset % _ALIGN
            parts.append(b"\0" * pad)
            parts.append(raw.tobytes())
            offset += pad + len(raw)
    return [b"".join(parts), *frames]


class _Reader:
    """Takes a message apart; every read is checked against what is there."""

    def __init__(self, frames: Sequence[Buffer]) -> None:
        if not frames:
            raise WireError("an empty message")
        # the first frame is small: copied, it is aligned and leaves the socket alone
        self.head = bytearray(frames[0])
        self.rest = [memoryview(f).cast("B") for f in frames[1:]]
        self.at = 0
        self.end = len(self.head)
        self.inline = 0
        self.frame = 0

    def take(self, size: int) -> int:
        """Move over `size` bytes; gives where they start."""
        start = self.at
        if size > self.end - start:
            raise WireError("truncated message")
        self.at = start + size
        return start

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack_from(self.head, self.take(layout.size))

    def name(self) -> str:
        (size,) = self.unpack(_NAME)
        return self.string(size)

    def string(self, size: int) -> str:
        start = self.take(size)
        try:
            return self.head[start : start + size].decode()
        except UnicodeDecodeError:
            raise WireError("a name or text is not UTF-8") from None

    def array(self, dtype: np.dtype[Any], ndim: int) -> Any:
        shape = struct.unpack_from(f"<{ndim}Q", self.head, self.take(8 * ndim))
        (inside,) = self.head[self.take(1) : self.at]
        size = math.prod(shape) * dtype.itemsize
        try:
            if not size:
                return np.empty(shape, dtype)
            raw = self._inside(size) if inside else self._outside(size)
            return raw.view(dtype).reshape(shape)
        except (ValueError, OverflowError, MemoryError) as error:
            raise WireError(f"an array of shape {shape}: {error}") from None

    def _inside(self, size: int) -> Any:
        start = self.inline + -self.inline % _ALIGN
        if size > len(self.head) - start:
            raise WireError("truncated message")
        self.inline = start + size
        return np.frombuffer(self.head, np.uint8, size, start)

    def _outside(self, size: int) -> Any:
        first = self.frame
        total = 0
        while total < size:
            if self.frame == len(self.rest):
                raise WireError(f"{size} bytes announced, {total} came")
            if not len(self.rest[self.frame]):
                raise WireError("an empty frame")
            total += len(self.rest[self.frame])
            self.frame += 1
        if total != size:
            raise WireError(f"{size} bytes announced, {total} came")
        if self.frame == first + 1:
            raw = np.frombuffer(self.rest[first], np.uint8)
            if raw.__array_interface__["data"][0] % 8 == 0:
                return raw
            return raw.copy()  # numpy and BLAS want aligned elements
        whole = np.empty(size, np.uint8)
        at = 0
        for piece in self.rest[first : self.frame]:
            whole[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        return whole


def decode(frames: Sequence[Buffer]) -> Message:
    """The message in these frames; arrays look into the frames where they can.

    WireError: not a message of this version, truncated, or inconsistent.
    """
    reader = _Reader(frames)
    head = reader.unpack(_HEAD)
    magic, version, kind, flags, trainer, seq, step, n_names, n_values, n_text = head[
        :10
    ]
    if magic != _MAGIC:
        raise WireError("not a fluidx message")
    if version != VERSION:
        raise WireError(f"protocol version {version} came, this one is {VERSION}")
    if kind not in Kind._value2member_map_:
        raise WireError(f"unknown kind of message {kind}")
    records = head[10]
    if records > reader.end - reader.at:
        raise WireError("truncated message")
    reader.end = reader.inline = reader.at + records
    message = Message(Kind(kind), trainer, seq, step, bool(flags & _BARRIER))
    message.names = [reader.name() for _ in range(n_names)]
    message.text = reader.string(n_text)
    message.values = [_variable(reader) for _ in range(n_values)]
    if reader.at != reader.end or reader.inline != len(reader.head):
        raise WireError("bytes left over in the first frame")
    if reader.frame != len(reader.rest):
        raise WireError(f"{len(reader.rest) - reader.frame} frames left over")
    return message


def _variable(reader: _Reader) -> tuple[str, Value]:
    name = reader.name()
    kind, code, ndim = reader.unpack(_RECORD)
    if kind == _NONE:
        return name, None
    if ndim > _MAX_NDIM:
        raise WireError(f"{name}: {ndim} dimensions")
    dtype = _dtype(code)
    if kind == _DENSE:
        return name, reader.array(dtype, ndim)
    if kind != _ROWS:
        raise WireError(f"{name}: unknown kind of variable {kind}")
    (height,) = reader.unpack(_SIZE)
    value = reader.array(dtype, ndim)
    rows = reader.array(np.dtype(np.int64), 1)
    if value.ndim < 1 or len(value) != len(rows):
        raise WireError(f"{name}: {rows.shape} row numbers for {value.shape}")
    if len(rows) and not 0 <= rows.min() <= rows.max() < height:
        raise WireError(f"{name}: row numbers outside [0, {height})")
    return name, SelectedRows(rows, value, height)
