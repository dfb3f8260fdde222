"""What goes into a predictor and comes out: `PaddleTensor` and its parts."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "PaddleBuf",
    "PaddleDType",
    "PaddlePlace",
    "PaddleTensor",
    "dtype_of",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
    "plain_array",
]


class PaddleDType(enum.IntEnum):
    """Element types of a predictor (``core.PaddleDType``).

    >>> PaddleDType.INT32, int(PaddleDType.INT32), paddle_dtype_size(PaddleDType.INT64)
    (PaddleDType.INT32, 2, 8)
    """

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2

    def __str__(self) -> str:
        return f"PaddleDType.{self.name}"

    __repr__ = __str__


class PaddlePlace(enum.IntEnum):
    """Where a predictor's memory is (``core.PaddlePlace``)."""

    UNK = -1
    CPU = 0
    GPU = 1

    def __str__(self) -> str:
        return f"PaddlePlace.{self.name}"

    __repr__ = __str__


_NUMPY: dict[PaddleDType, Any] = {
    PaddleDType.FLOAT32: np.dtype("float32"),
    PaddleDType.INT64: np.dtype("int64"),
    PaddleDType.INT32: np.dtype("int32"),
}
_OF_NUMPY = {dtype: kind for kind, dtype in _NUMPY.items()}


def paddle_dtype_size(dtype: PaddleDType) -> int:
    """Bytes of one element (``core.paddle_dtype_size``)."""
    return _NUMPY[PaddleDType(dtype)].itemsize  # type: ignore[no-any-return]


def dtype_of(array: Any, what: str) -> PaddleDType:
    """The kind of an array. TypeError, naming `what`: a predictor has none for it."""
    found = _OF_NUMPY.get(array.dtype)
    if found is None:
        raise TypeError(
            f"{what} holds {array.dtype}; a predictor knows float32, int32 and int64 "
            "only: cast it"
        )
    return found


def plain_array(data: Any, what: str) -> Any:
    """An array of float32, int32 or int64.

    Smaller integers and truth values become int32, as in the reference. TypeError for
    anything that int32 cannot hold: the reference cuts float64 down to int32.
    """
    array = np.asarray(data)
    if not hasattr(data, "dtype") and array.dtype == np.int64:
        array = array.astype("int32")  # a list of numbers
    if array.dtype in _OF_NUMPY:
        return array
    if array.dtype.kind in "iub":
        whole = array.astype("int32")
        if array.dtype.itemsize < 4 or np.array_equal(whole, array):
            return whole
    raise TypeError(
        f"{what} takes arrays of float32, int32 or int64, got {array.dtype}: cast it, "
        'such as with x.astype("float32")'
    )


def _bytes_of(array: Any) -> Any:
    """The memory of an array as bytes; shared where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view("uint8")


class PaddleBuf:
    """A piece of memory (``core.PaddleBuf``).

    data: how many bytes; or what it holds from the start: a list of numbers (as
    float32) or an array of float32, int32 or int64.

    >>> buf = PaddleBuf([1.0, 2.5])
    >>> buf.length(), buf.float_data()
    (8, [1.0, 2.5])
    """

    __slots__ = ("_memory",)

    def __init__(self, data: Any) -> None:
        if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
            if data < 0:
                raise ValueError(f"PaddleBuf: a length from 0 on, not {data}")
            self._memory: Any = np.zeros(int(data), "uint8")
        else:
            self._memory = _bytes_of(_held(data)).copy()

    @classmethod
    def _of(cls, array: Any) -> PaddleBuf:
        """The buffer that is an array's own memory."""
        made = cls.__new__(cls)
        made._memory = _bytes_of(array)
        return made

    def empty(self) -> bool:
        return not self._memory.size

    def length(self) -> int:
        """How many bytes."""
        return int(self._memory.size)

    def resize(self, length: int) -> None:
        """Make it at least this long; a larger one stays as it is, as in the reference.

        New memory is zero.
        """
        if length > self._memory.size:
            self._memory = np.zeros(length, "uint8")

    def reset(self, data: Any) -> None:
        """Write to the start of it, making it longer if need be."""
        new = _bytes_of(_held(data))
        self.resize(new.size)
        self._memory[: new.size] = new

    def float_data(self) -> list[float]:
        """All of it, as float32."""
        return self.tolist("float32")

    def int32_data(self) -> list[int]:
        return self.tolist("int32")

    def int64_data(self) -> list[int]:
        return self.tolist("int64")

    def tolist(self, dtype: str) -> list[Any]:
        """All of it. ValueError: dtype is not "float32", "int32" or "int64"."""
        if dtype not in ("float32", "int32", "int64"):
            raise ValueError(f"PaddleBuf: float32, int32 or int64, not {dtype!r}")
        return self._as(np.dtype(dtype)).tolist()  # type: ignore[no-any-return]

    def _as(self, dtype: Any) -> Any:
        whole = self._memory.size // dtype.itemsize * dtype.itemsize
        return self._memory[:whole].view(dtype)


def _held(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return np.array(data, "float32")
    return plain_array(data, "PaddleBuf")


class PaddleTensor:
    """A value with a name (``core.PaddleTensor``): what `run` takes and gives.

    data: an array of float32, int32 or int64, by default nothing yet. lod: offsets per
    level. copy: False shares the array's memory. Attributes: name, shape, dtype, lod,
    data (a `PaddleBuf`).

    >>> x = PaddleTensor(np.ones((2, 3), "float32"), name="x")
    >>> x.shape, x.dtype, x.data.length()
    ([2, 3], PaddleDType.FLOAT32, 24)
    """

    # _source: the value as it was given, until someone asks for `data`
    __slots__ = ("_data", "_dtype", "_name", "_source", "lod", "shape")

    def __init__(
        self,
        data: Any = None,
        name: str = "",
        lod: Sequence[Sequence[int]] = (),
        copy: bool = True,
    ) -> None:
        self.name = name
        self.lod = [list(map(int, level)) for level in lod]
        self.shape: list[int] = []
        self._dtype = PaddleDType.FLOAT32
        self._data: PaddleBuf | None = None
        self._source: Any = None
        if data is None:
            self._data = PaddleBuf(0)
            return
        array = plain_array(data, "PaddleTensor")
        take = np.array if copy else np.asarray
        self._source = take(array, order="C")
        self.shape = list(array.shape)
        self._dtype = _OF_NUMPY[array.dtype]

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, value: str | bytes) -> None:
        if not isinstance(value, (str, bytes)):
            raise TypeError(f"PaddleTensor: a name is a str, not {value!r:.60}")
        self._name = value.decode() if isinstance(value, bytes) else value

    @property
    def dtype(self) -> PaddleDType:
        return self._dtype

    @dtype.setter
    def dtype(self, value: PaddleDType) -> None:
        if not isinstance(value, PaddleDType):
            raise TypeError(f"PaddleTensor: dtype is a PaddleDType, not {value!r:.60}")
        self._dtype = value

    @property
    def data(self) -> PaddleBuf:
        if self._data is None:
            self._data, self._source = PaddleBuf._of(self._source), None
        return self._data

    @data.setter
    def data(self, value: PaddleBuf) -> None:
        if not isinstance(value, PaddleBuf):
            raise TypeError(
                f"PaddleTensor: data is a PaddleBuf, not {type(value).__name__}; "
                "an array goes into the constructor, or into data.reset(array)"
            )
        self._data, self._source = value, None

    @classmethod
    def _of(cls, name: str, array: Any, lod: Any, what: str) -> PaddleTensor:
        """The tensor of an array that is nobody else's."""
        made = cls.__new__(cls)
        made._name, made.shape = name, list(array.shape)
        made._dtype, made._data, made._source = dtype_of(array, what), None, array
        made.lod = [list(level) for level in lod] if lod else []
        return made

    def _array(self) -> Any:
        """The value, sharing memory. ValueError: fewer bytes than the shape needs."""
        dtype, source = _NUMPY[self._dtype], self._source
        same = source is not None and source.dtype == dtype
        if same and self.shape == list(source.shape):
            return source
        shape = tuple(map(int, self.shape))
        count = math.prod(shape)
        memory = self.data._memory
        if any(size < 0 for size in shape) or memory.size < count * dtype.itemsize:
            raise ValueError(
                f"PaddleTensor {self._name!r}: shape {list(shape)} of {self._dtype} "
                f"needs {count * dtype.itemsize} bytes, its data has {memory.size}"
            )
        return memory[: count * dtype.itemsize].view(dtype).reshape(shape)

    def as_ndarray(self) -> Any:
        """The value as an array; a copy."""
        return self._array().copy()


def paddle_tensor_to_bytes(tensor: PaddleTensor) -> bytes:
    """A tensor in the form that the reference writes (little endian).

    int32 version 0; name, LoD and shape, each behind its length (uint64); int32
    dtype; the data behind its length. Mirrors ``core.paddle_tensor_to_bytes``.
    """
    name, data = tensor.name.encode(), tensor.data._memory
    parts = [struct.pack("<iQ", 0, len(name)), name, _long(len(tensor.lod))]
    for level in tensor.lod:
        parts += [_long(8 * len(level)), struct.pack(f"<{len(level)}Q", *level)]
    parts.append(_long(len(tensor.shape)))
    parts.append(struct.pack(f"<{len(tensor.shape)}i", *tensor.shape))
    parts += [struct.pack("<iQ", tensor.dtype, data.size), data.tobytes()]
    return b"".join(parts)


def _long(number: int) -> bytes:
    return struct.pack("<Q", number)
