"""Reading pickles that hold numpy arrays and plain containers, and nothing else.

``.pdparams`` and ``.pdopt`` are pickles. Python's own unpickler calls whatever a file
names; this one is a small machine of its own. It knows the opcodes that containers,
numbers, text and numpy arrays are written with (protocols 0 to 5), and the handful
of names that numpy's arrays refer to. Everything else is a ModelFileError: nothing
is ever imported or called.

Memory stays within a few times the size of the file: arrays are views of bytes that
the file holds, each byte of the file counts once, and keys are plain, so that no
nesting can cost more than it took to write.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import ModelFileError
from .unpickle_opcodes import MARK, OPCODES, Refused

__all__ = ["loads"]

#: as numpy writes them: kind and size
_DTYPES = {
    *("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"),
    *("f2", "f4", "f8", "c8", "c16"),
}


def loads(data: bytes, what: str = "pickle") -> Any:
    """The object that pickle bytes hold; `what` is how errors call them.

    Arrays may be read-only views of `data`.
    """
    machine = Machine(data)
    try:
        return machine.run()
    except Refused as refused:
        message = str(refused)
    except (IndexError, KeyError, struct.error):
        message = "it is damaged or cut off"
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        message = str(error)
    raise ModelFileError(f"{what}, at byte {machine.at}: {message}")


class _Name:
    """A name that a pickle may refer to, and what calling it means."""

    def __init__(self, call: Callable[..., Any] | None = None) -> None:
        self.call = call


class _Array:
    """An array or dtype under way: made, but not yet told what it is."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None


class _Dtype:
    """A dtype; pickles tell its byte order afterwards."""

    __slots__ = ("value",)

    def __init__(self, value: np.dtype[Any]) -> None:
        self.value = value


class Machine:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        # bytes that may still be decoded, and made into arrays
        self.text_left = self.array_left = len(data)
        self.names = self._known_names()

    def run(self) -> Any:
        data, opcodes = self.data, OPCODES
        while True:
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                return _finished(self.stack.pop())
            step = opcodes.get(code)
            if step is None:
                raise Refused(f"opcode {bytes([code])!r} is not one of plain data")
            step(self)

    # ------------------------------------------------ bytes

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise Refused(f"{count} bytes asked for, {len(self.data) - self.at} left")
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value  # type: ignore[no-any-return]

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise Refused("a line does not end")
        return self.take(end + 1 - self.at)[:-1]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self) -> list[Any]:
        """What stands on the stack above the last mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise Refused("there is no mark")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    # ------------------------------------------------ names

    def _known_names(self) -> dict[tuple[str, str], _Name]:
        arrays = _Name(self._reconstruct)
        buffer = _Name(self._frombuffer)
        scalar = _Name(self._scalar)
        found = {
            ("numpy", "ndarray"): _Name(),
            ("numpy", "dtype"): _Name(self._dtype),
            ("_codecs", "encode"): _Name(self._encode),
            ("collections", "OrderedDict"): _Name(self._ordered),
        }
        for core in ("core", "_core"):
            found[f"numpy.{core}.multiarray", "_reconstruct"] = arrays
            found[f"numpy.{core}.numeric", "_frombuffer"] = buffer
            found[f"numpy.{core}.multiarray", "scalar"] = scalar
        for builtins in ("builtins", "__builtin__"):
            found[builtins, "bytes"] = _Name(self._no_bytes)
            found[builtins, "bytearray"] = _Name(self._no_bytes)
        return found

    def name(self, module: str, name: str) -> None:
        found = self.names.get((module, name))
        if found is None:
            raise Refused(f"it refers to {module}.{name}, which is not plain data")
        self.push(found)

    def reduce(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if not isinstance(called, _Name) or called.call is None:
            raise Refused("it calls what cannot be called")
        if not isinstance(arguments, tuple):
            raise Refused("a call without arguments")
        self.push(called.call(*arguments))

    def build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(state, tuple):
            raise Refused(f"a state of {state.__class__.__name__}")
        if isinstance(made, _Dtype):
            _set_order(made, state)
        elif isinstance(made, _Array) and made.value is None:
            _, shape, dtype, fortran, raw = state
            made.value = self._view(raw, dtype, shape, "F" if fortran else "C")
        else:
            raise Refused(f"a state for {made.__class__.__name__}")

    def _no_bytes(self, *arguments: Any) -> bytes:
        if arguments:
            raise Refused("bytes of something")
        return b""

    def _ordered(self, *arguments: Any) -> dict[Any, Any]:
        if arguments not in ((), ([],)):
            raise Refused("a dict of something")
        return {}

    def _encode(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise Refused(f"text in {encoding!r:.40}")
        self._charge(len(text), arrays=False)
        return text.encode("latin1")

    def _charge(self, count: int, arrays: bool) -> None:
        left = self.array_left if arrays else self.text_left
        if count > left:
            raise Refused("its arrays are larger than the file")
        if arrays:
            self.array_left -= count
        else:
            self.text_left -= count

    def _dtype(self, code: str, align: Any = False, copy: Any = True) -> _Dtype:
        if not isinstance(code, str) or code not in _DTYPES:
            raise Refused("a dtype that is no number")
        return _Dtype(np.dtype(code))

    def _reconstruct(self, kind: Any, shape: Any, code: Any) -> _Array:
        if kind is not self.names["numpy", "ndarray"]:
            raise Refused("an array of another class")
        return _Array()

    def _frombuffer(self, raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        made = _Array()
        made.value = self._view(raw, dtype, shape, order)
        return made

    def _scalar(self, dtype: Any, raw: Any) -> Any:
        return self._view(raw, dtype, (), "C")[()]

    def _view(self, raw: Any, dtype: Any, shape: Any, order: Any) -> Any:
        """An array over bytes that the file gave."""
        if isinstance(raw, str):  # what Python 2 wrote
            raw = self._encode(raw)
        if not isinstance(raw, (bytes, bytearray)) or not isinstance(dtype, _Dtype):
            raise Refused("an array without bytes or dtype")
        if not isinstance(shape, tuple) or not all(type(d) is int for d in shape):
            raise Refused("an array without a shape")
        if order not in ("C", "F"):
            raise Refused("an array of an unknown order")
        self._charge(len(raw), arrays=True)
        return np.frombuffer(raw, dtype.value).reshape(shape, order=order)


def _set_order(made: _Dtype, state: tuple[Any, ...]) -> None:
    if len(state) < 2 or state[1] not in ("<", ">", "|", "="):
        raise Refused("a dtype with an unknown byte order")
    if any(part is not None for part in state[2:5]):
        raise Refused("a dtype with fields")
    if state[1] in "<>":
        made.value = made.value.newbyteorder(state[1])


def _finished(value: Any) -> Any:
    """The result with arrays in place of what stood for them, two levels deep.

    Each container is looked at once, however often it is referred to. What lies
    deeper than parameters in a dict, or fields in a list of samples, is of no use here.
    """
    done: dict[int, Any] = {}
    if isinstance(value, dict):
        return {k: _inner(v, done) for k, v in value.items()}
    if isinstance(value, list):
        return [_inner(v, done) for v in value]
    return _inner(value, done)


def _inner(value: Any, done: dict[int, Any]) -> Any:
    if not isinstance(value, (dict, list, tuple)):
        return _plain(value)
    if id(value) not in done:
        if isinstance(value, dict):
            done[id(value)] = {k: _plain(v) for k, v in value.items()}
        else:
            done[id(value)] = value.__class__(map(_plain, value))
    return done[id(value)]


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        if value.value is None:
            raise Refused("an array without elements")
        return value.value
    if isinstance(value, (_Name, _Dtype)) or value is MARK:
        raise Refused("something that is no value")
    return value
