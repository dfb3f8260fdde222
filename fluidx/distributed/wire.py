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
from functools import cache, lru_cache
from typing import Any, NamedTuple

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
_BARRIER, _ENDS = 1, 2
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
    FAIL = 8  # the cluster fails, text says why
    CHECKPOINT = 9  # save this table (names) in that folder (text)


@dataclass(frozen=True)
class Limits:
    """inline: arrays up to this many bytes lie in the first frame.
    chunk: no frame of an array is larger."""

    inline: int = 16384
    chunk: int = 1 << 30


DEFAULT_LIMITS = Limits()
_KINDS = {int(kind): kind for kind in Kind}


@dataclass
class Message:
    """One message. seq pairs an answer with its question; step is for errors.

    barrier: the trainer's round ends here, and it waits. ends: the same, without
    waiting for the others.
    """

    kind: Kind
    trainer: int = -1
    seq: int = 0
    step: int = 0
    barrier: bool = False
    names: list[str] = field(default_factory=list)
    values: list[tuple[str, Value]] = field(default_factory=list)
    text: str = ""
    ends: bool = False


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
        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(_DTYPES[code])


class _Array(NamedTuple):
    """Where an array is. inside: in the first frame, else in frames of its own."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    inside: bool


class _Spec(NamedTuple):
    """One variable's record: parts are none, one array, or values and row numbers."""

    name: str
    kind: int
    parts: tuple[_Array, ...]
    height: int = 0


# sending


def _text(name: str) -> bytes:
    raw = name.encode()
    if len(raw) > 0xFFFF:
        raise WireError(f"a name of {len(raw)} bytes cannot be sent")
    return _NAME.pack(len(raw)) + raw


@lru_cache(maxsize=256)
def _records(names: tuple[str, ...], text: str, specs: tuple[_Spec, ...]) -> bytes:
    """What stands between head and arrays; the same in every step of a training."""
    parts = [_text(name) for name in names]
    parts.append(text.encode())
    for spec in specs:
        parts.append(_text(spec.name))
        ndim = len(spec.parts[0].shape) if spec.parts else 0
        code = _code(spec.parts[0].dtype) if spec.parts else 0
        parts.append(_RECORD.pack(spec.kind, code, ndim))
        if spec.kind == _ROWS:
            parts.append(_SIZE.pack(spec.height))
        for array in spec.parts:
            parts.append(struct.pack(f"<{len(array.shape)}Q", *array.shape))
            parts.append(b"\1" if array.inside else b"\0")
    return b"".join(parts)


def _arrays(value: Value) -> tuple[Any, ...]:
    """The arrays that a value is sent as."""
    if value is None:
        return ()
    if isinstance(value, SelectedRows):
        return np.asarray(value.value), np.asarray(value.rows, np.int64)
    return (np.asarray(value),)


def encode(message: Message, limits: Limits = DEFAULT_LIMITS) -> list[Buffer]:
    """The frames of a message; large arrays are given as they are, not copied."""
    specs: list[_Spec] = []
    inline: list[Any] = []
    frames: list[Buffer] = []
    most = min(limits.inline, limits.chunk)
    for name, value in message.values:
        parts = []
        for array in _arrays(value):
            size = array.nbytes
            parts.append(_Array(array.dtype, array.shape, size, size <= most))
            if size > most:
                frames += _outside(array, limits.chunk)
            elif size:
                inline.append(array)
        kind = (_NONE, _DENSE, _ROWS)[len(parts)]
        height = value.height if kind == _ROWS else 0
        specs.append(_Spec(name, kind, tuple(parts), height))
    records = _records(tuple(message.names), message.text, tuple(specs))
    head = _HEAD.pack(
        _MAGIC,
        VERSION,
        message.kind,
        message.barrier * _BARRIER | message.ends * _ENDS,
        message.trainer,
        message.seq,
        message.step,
        len(message.names),
        len(message.values),
        len(message.text.encode()),
        len(records),
    )
    pieces = [head, records]
    offset = len(head) + len(records)
    for array in inline:
        pad = -offset % _ALIGN
        pieces += b"\0" * pad, array.tobytes()
        offset += pad + array.nbytes
    return [b"".join(pieces), *frames]


def _outside(array: Any, chunk: int) -> list[Any]:
    """The array's bytes, without a copy where it is contiguous."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if len(raw) <= chunk:
        return [raw]
    return [raw[i : i + chunk] for i in range(0, len(raw), chunk)]


# receiving


class _Records:
    """Reads the records; every read is checked against what is there."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def take(self, size: int) -> int:
        """Move over `size` bytes; gives where they start."""
        start = self.at
        if size > len(self.raw) - start:
            raise WireError("truncated message")
        self.at = start + size
        return start

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack_from(self.raw, self.take(layout.size))

    def name(self) -> str:
        (size,) = self.unpack(_NAME)
        return self.string(size)

    def string(self, size: int) -> str:
        start = self.take(size)
        try:
            return self.raw[start : start + size].decode()
        except UnicodeDecodeError:
            raise WireError("a name or text is not UTF-8") from None

    def array(self, dtype: np.dtype[Any], ndim: int) -> _Array:
        shape = struct.unpack_from(f"<{ndim}Q", self.raw, self.take(8 * ndim))
        inside = bool(self.raw[self.take(1)])
        return _Array(dtype, shape, math.prod(shape) * dtype.itemsize, inside)

    def spec(self) -> _Spec:
        name = self.name()
        kind, code, ndim = self.unpack(_RECORD)
        if kind == _NONE:
            return _Spec(name, kind, ())
        if ndim > _MAX_NDIM:
            raise WireError(f"{name}: {ndim} dimensions")
        dtype = _dtype(code)
        if kind == _DENSE:
            return _Spec(name, kind, (self.array(dtype, ndim),))
        if kind != _ROWS:
            raise WireError(f"{name}: unknown kind of variable {kind}")
        (height,) = self.unpack(_SIZE)
        value = self.array(dtype, ndim)
        rows = self.array(np.dtype(np.int64), 1)
        if not value.shape or value.shape[0] != rows.shape[0]:
            raise WireError(f"{name}: {rows.shape} row numbers for {value.shape}")
        return _Spec(name, kind, (value, rows), height)


@lru_cache(maxsize=256)
def _parse(
    raw: bytes, n_names: int, n_text: int, n_values: int
) -> tuple[tuple[str, ...], str, tuple[_Spec, ...]]:
    """Names, text and variables that the records tell."""
    records = _Records(raw)
    names = tuple(records.name() for _ in range(n_names))
    text = records.string(n_text)
    specs = tuple(records.spec() for _ in range(n_values))
    if records.at != len(raw):
        raise WireError("bytes left over in the first frame")
    return names, text, specs


class _Arrays:
    """Hands out the arrays of a message, in order."""

    def __init__(self, head: bytearray, start: int, rest: Sequence[Buffer]) -> None:
        self.head = head
        self.at = start
        self.rest = rest
        self.frame = 0

    def next(self, array: _Array) -> Any:
        try:
            if not array.size:
                return np.empty(array.shape, array.dtype)
            if array.inside:
                raw = self._inside(array.size)
            else:
                raw = self._outside(array.size)
            return raw.view(array.dtype).reshape(array.shape)
        except (ValueError, OverflowError, MemoryError) as error:
            raise WireError(f"an array of shape {array.shape}: {error}") from None

    def _inside(self, size: int) -> Any:
        start = self.at + -self.at % _ALIGN
        if size > len(self.head) - start:
            raise WireError("truncated message")
        self.at = start + size
        return np.frombuffer(self.head, np.uint8, size, start)

    def _outside(self, size: int) -> Any:
        pieces = []
        total = 0
        while total < size:
            if self.frame == len(self.rest):
                raise WireError(f"{size} bytes announced, {total} came")
            piece = self.rest[self.frame]
            if not len(piece):
                raise WireError("an empty frame")
            pieces.append(np.frombuffer(piece, np.uint8))
            total += len(pieces[-1])
            self.frame += 1
        if total != size:
            raise WireError(f"{size} bytes announced, {total} came")
        if len(pieces) > 1:
            return np.concatenate(pieces)
        raw = pieces[0]
        # numpy and BLAS want aligned elements
        aligned = raw.__array_interface__["data"][0] % 8 == 0
        return raw if aligned else raw.copy()


def decode(frames: Sequence[Buffer]) -> Message:
    """The message in these frames; arrays look into the frames where they can.

    WireError: not a message of this version, truncated, or inconsistent.
    """
    if not frames or len(frames[0]) < _HEAD.size:
        raise WireError("truncated message")
    # the first frame is small: copied, it is aligned and leaves the socket alone
    first = bytearray(frames[0])
    head = _HEAD.unpack_from(first)
    magic, version, kind, flags, trainer, seq, step = head[:7]
    n_names, n_values, n_text, size = head[7:]
    if magic != _MAGIC:
        raise WireError("not a fluidx message")
    if version != VERSION:
        raise WireError(f"protocol version {version} came, this one is {VERSION}")
    if kind not in _KINDS:
        raise WireError(f"unknown kind of message {kind}")
    end = _HEAD.size + size
    if end > len(first):
        raise WireError("truncated message")
    raw = bytes(first[_HEAD.size : end])
    names, text, specs = _parse(raw, n_names, n_text, n_values)
    arrays = _Arrays(first, end, frames[1:])
    message = Message(_KINDS[kind], trainer, seq, step, names=list(names), text=text)
    message.barrier, message.ends = bool(flags & _BARRIER), bool(flags & _ENDS)
    message.values = [(spec.name, _value(spec, arrays)) for spec in specs]
    if arrays.at != len(first):
        raise WireError("bytes left over in the first frame")
    if arrays.frame != len(arrays.rest):
        raise WireError(f"{len(arrays.rest) - arrays.frame} frames left over")
    return message


def _value(spec: _Spec, arrays: _Arrays) -> Value:
    if spec.kind == _NONE:
        return None
    value = arrays.next(spec.parts[0])
    if spec.kind == _DENSE:
        return value
    rows = arrays.next(spec.parts[1])
    if len(rows) and not 0 <= rows.min() <= rows.max() < spec.height:
        raise WireError(f"{spec.name}: row numbers outside [0, {spec.height})")
    return SelectedRows(rows, value, spec.height)
