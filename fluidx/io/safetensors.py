"""Parameters as safetensors files, which today's other frameworks read and write.

The format: uint64 size of the header; the header, a JSON object from each name to
dtype, shape and where its bytes are; the bytes. Our own reader and writer: nothing to
install. What is read is checked against the file before memory is taken.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidx.ir import Program
from fluidx.kernels import VarType, as_dtype, to_numpy
from fluidx.tensor import global_scope

from .errors import ModelFileError
from .paths import open_read, open_write
from .tensors import Reader, memory_of
from .values import get_program_parameter, valid_program, value_of

__all__ = ["load_file", "program_params", "save_file"]

_CODES = {
    VarType.BOOL: "BOOL",
    VarType.UINT8: "U8",
    VarType.INT8: "I8",
    VarType.INT16: "I16",
    VarType.INT32: "I32",
    VarType.INT64: "I64",
    VarType.SIZE_T: "U64",
    VarType.FP16: "F16",
    VarType.BF16: "BF16",
    VarType.FP32: "F32",
    VarType.FP64: "F64",
}
_KINDS = {code: kind for kind, code in _CODES.items()}
_MAX_HEADER = 100_000_000
_ALIGNMENT = 8


def program_params(program: Program | None = None) -> dict[str, Any]:
    """The parameters of a program in the global scope, by name: what to save.

    >>> save_file(program_params(), "params.safetensors")  # doctest: +SKIP

    and back: ``set_program_state(program, load_file("params.safetensors"))``.
    """
    params = get_program_parameter(valid_program(program))
    return {v.name: value_of(v.name, global_scope())[0] for v in params}


def save_file(
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write arrays by name. ModelFileError: a dtype that the format lacks."""
    arrays = {name: np.asarray(value) for name, value in tensors.items()}
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {str(k): str(v) for k, v in metadata.items()}
    place = 0
    # large elements first: so that each tensor is aligned
    order = sorted(arrays, key=lambda n: (-arrays[n].dtype.itemsize, n))
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": _code(name, array),
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with open_write(filename) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name in order:
            file.write(memory_of(arrays[name]))


def load_file(filename: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of a safetensors file by name.

    MissingFileError, ModelFileError: there is none; it is damaged, or has a dtype that
    fluidx does not know.
    """
    path = os.fspath(filename)
    with open_read(path) as file:
        reader = Reader(file, repr(path))
        (size,) = struct.unpack("<Q", reader.take(8, "the header's size"))
        if size > _MAX_HEADER:
            raise reader.error(f"a header of {size} bytes")
        header = _header(reader.take(size, "the header"), reader)
        header.pop("__metadata__", None)
        entries = sorted(
            (_entry(name, facts, reader) for name, facts in header.items()),
            key=lambda entry: (entry[1], entry[2]),
        )
        found = {}
        place = 0
        for name, start, end, dtype, shape in entries:
            if start != place:
                raise reader.error(f"tensor {name!r} begins at {start}, not at {place}")
            found[name] = reader.array(shape, dtype)
            place = end
        reader.end()
    return {name: found[name] for name in header}


def _code(name: str, array: Any) -> str:
    try:
        return _CODES[as_dtype(array.dtype)]
    except (TypeError, KeyError):
        raise ModelFileError(f"{name!r}: dtype {array.dtype} cannot be saved") from None


def _header(text: bytes, reader: Reader) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise reader.error(f"the header is damaged: {error}") from None
    if not isinstance(found, dict):
        raise reader.error("the header is no object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _entry(
    name: str, facts: Any, reader: Reader
) -> tuple[str, int, int, np.dtype[Any], list[int]]:
    try:
        kind, shape = _KINDS[facts["dtype"]], facts["shape"]
        start, end = facts["data_offsets"]
        numbers = [start, end, *shape]
    except (KeyError, TypeError, ValueError):
        raise reader.error(f"tensor {name!r} is not described") from None
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
        raise reader.error(f"tensor {name!r} has a size that is no size")
    dtype = to_numpy(kind)
    if len(shape) > 64 or end - start != math.prod(shape) * dtype.itemsize:
        raise reader.error(f"tensor {name!r}: {end - start} bytes for {dtype}{shape}")
    return name, start, end, dtype, shape
