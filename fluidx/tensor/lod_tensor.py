"""LoDTensor: an array, and optionally how its rows form nested sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from fluidx.kernels import VarType, as_dtype

from .places import Place

__all__ = ["Cell", "LoDTensor", "create_lod_tensor", "create_random_int_lodtensor"]

LoD = list[list[int]]

_C_NAMES = {
    "float16": "::paddle::platform::float16",
    "float32": "float",
    "float64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "uint8": "uint8_t",
}


class Cell:
    """What holds a value: an array, `SelectedRows`, a list, or None; and its LoD."""

    __slots__ = ("lod", "value")

    def __init__(self, value: Any = None, lod: LoD | None = None) -> None:
        self.value = value
        self.lod = lod


def _host(value: Any) -> np.ndarray[Any, Any]:
    """A numpy array of a value that may live on a device."""
    return value.get() if hasattr(value, "get") else np.asarray(value)


class LoDTensor:
    """An array with a level of detail (``core.LoDTensor``).

    The LoD is a list of levels, each a list of offsets: ``[[0, 2, 5]]`` says that
    rows 0-1 and rows 2-4 are two sequences.

    >>> t = LoDTensor(np.arange(5))
    >>> t.set_recursive_sequence_lengths([[2, 3]])
    >>> t.lod(), t.has_valid_recursive_sequence_lengths()
    ([[0, 2, 5]], True)
    """

    __slots__ = ("_cell",)

    def __init__(
        self, value: Any = None, lod: LoD | None = None, cell: Cell | None = None
    ) -> None:
        self._cell = cell or Cell(None if value is None else np.asarray(value), lod)

    @property
    def value(self) -> Any:
        """The array itself; None if never set."""
        return self._cell.value

    def set(self, array: Any, place: Place | None = None) -> None:
        """Copy an array in."""
        self._cell.value = np.array(array)

    def lod(self) -> LoD:
        return [list(level) for level in self._cell.lod or ()]

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of each level."""
        self._cell.lod = [list(map(int, level)) for level in lod] or None

    def recursive_sequence_lengths(self) -> LoD:
        return [
            [b - a for a, b in zip(level, level[1:])] for level in self._cell.lod or ()
        ]

    def set_recursive_sequence_lengths(self, lengths: Sequence[Sequence[int]]) -> None:
        """Set the LoD by the lengths of the sequences of each level."""
        self.set_lod([[0, *accumulate(map(int, level))] for level in lengths])

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the levels fit together and cover all rows."""
        lod = self._cell.lod
        if not lod:
            return True
        rows = len(self.value) if self.value is not None else 0
        sizes = [len(level) - 1 for level in lod[1:]] + [rows]
        return all(
            level[0] == 0
            and level[-1] == size
            and all(a <= b for a, b in zip(level, level[1:]))
            for level, size in zip(lod, sizes)
        )

    def shape(self) -> list[int]:
        return [] if self.value is None else list(self.value.shape)

    def _dtype(self) -> VarType:
        return as_dtype(self.value.dtype)

    def _is_initialized(self) -> bool:
        return self.value is not None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.value is None:
            raise ValueError("this LoDTensor holds no value yet")
        array = _host(self.value)
        return np.array(array, dtype=dtype) if copy else np.asarray(array, dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory of the array, for ``torch.from_dlpack`` and its like."""
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        return self.__array__()[index]

    def __str__(self) -> str:
        """As the reference prints it: six significant digits, all elements."""
        if self.value is None:
            return repr(self)
        array = self.__array__()
        levels = "".join("{" + ", ".join(map(str, level)) + "}" for level in self.lod())
        plain = array.astype("int64") if array.dtype == bool else array
        return (
            f"\tlod: {{{levels}}}\n\tdim: {', '.join(map(str, array.shape))}\n"
            f"\tlayout: NCHW\n\tdtype: {_C_NAMES.get(array.dtype.name, array.dtype)}\n"
            f"\tdata: [{' '.join(f'{v:g}' for v in plain.ravel().tolist())}]\n"
        )

    def __repr__(self) -> str:
        lod = f", lod={self.lod()}" if self._cell.lod else ""
        return f"LoDTensor({self.value!r}{lod})"


def create_lod_tensor(
    data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Place | None = None
) -> LoDTensor:
    """A LoDTensor from an array, a LoDTensor, or a list of sequences of integers.

    recursive_seq_lens: sequence lengths per level. ValueError if they do not cover
    the rows. Mirrors ``fluid.create_lod_tensor``.

    >>> create_lod_tensor([[1, 2], [3]], [[2, 1]]).shape()
    [3, 1]
    """
    if not isinstance(recursive_seq_lens, (list, tuple)) or not all(
        isinstance(level, (list, tuple, np.ndarray)) for level in recursive_seq_lens
    ):
        raise TypeError(
            "create_lod_tensor: recursive_seq_lens must be a list of lists, as "
            f"[[2, 1]], got {recursive_seq_lens!r:.60}"
        )
    if not isinstance(data, (LoDTensor, np.ndarray, list)):
        raise TypeError(
            "create_lod_tensor: data must be a LoDTensor, a numpy array or a list, got "
            f"{data!r:.60}"
        )
    if place is not None and not isinstance(place, Place):
        raise TypeError(
            "create_lod_tensor: place must be one such as CPUPlace(), got "
            f"{place!r:.60}"
        )
    if isinstance(data, LoDTensor):
        data = np.array(data)
    elif isinstance(data, list):
        lengths = [len(seq) for seq in data]
        if [lengths] != [list(recursive_seq_lens[-1])]:
            raise ValueError(
                f"sequences of lengths {lengths} were given, but the last level of "
                f"recursive_seq_lens is {list(recursive_seq_lens[-1])}"
            )
        flat = [word for seq in data for word in seq]
        data = np.array(flat, "int64").reshape(len(flat), -1)
    made = LoDTensor(np.array(data))
    made.set_recursive_sequence_lengths(recursive_seq_lens)
    if not made.has_valid_recursive_sequence_lengths():
        raise ValueError(
            f"sequence lengths {recursive_seq_lens} do not cover the "
            f"{len(made)} rows of the data"
        )
    return made


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]],
    base_shape: Sequence[int],
    place: Place | None,
    low: int,
    high: int,
) -> LoDTensor:
    """A LoDTensor of random int64 from low to high, both included."""
    rows = sum(recursive_seq_lens[-1])
    data = np.random.randint(low, high + 1, [rows, *base_shape]).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
