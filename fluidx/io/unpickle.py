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

__all__ = ["loads"]

_MARK = object()
_MAX_INTEGER = 16
_ARRAY_KINDS = "biufc"


def loads(data: bytes, what: str = "pickle") -> Any:
    """The object that pickle bytes hold; `what` is how errors call them.

    Arrays may be read-only views of `data`.
    """
    machine = _Machine(data)
    try:
        return machine.run()
    except _Refused as refused:
        message = str(refused)
    except (IndexError, KeyError, struct.error):
        message = "it is damaged or cut off"
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        message = str(error)
    raise ModelFileError(f"{what}, at byte {machine.at}: {message}")


class _Refused(Exception):
    """What the machine will not do."""


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


class _Machine:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        # bytes that may still be decoded, and made into arrays
        self.text_left = self.array_left = len(data)
        self.names = self._known_names()

    def run(self) -> Any:
        data, opcodes = self.data, _OPCODES
        while True:
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                return _finished(self.stack.pop())
            step = opcodes.get(code)
            if step is None:
                raise _Refused(f"opcode {bytes([code])!r} is not one of plain data")
            step(self)

    # ------------------------------------------------ bytes

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise _Refused(f"{count} bytes asked for, {len(self.data) - self.at} left")
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value  # type: ignore[no-any-return]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        if end < 0 or end - self.at > 1000:
            raise _Refused("a line does not end")
        return self.take(end + 1 - self.at)[:-1].decode()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def mark(self) -> list[Any]:
        """What stands on the stack above the last mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise _Refused("there is no mark")
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
            raise _Refused(f"it refers to {module}.{name}, which is not plain data")
        self.push(found)

    def reduce(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if not isinstance(called, _Name) or called.call is None:
            raise _Refused("it calls what cannot be called")
        if not isinstance(arguments, tuple):
            raise _Refused("a call without arguments")
        self.push(called.call(*arguments))

    def build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(state, tuple):
            raise _Refused(f"a state of {state.__class__.__name__}")
        if isinstance(made, _Dtype):
            _set_order(made, state)
        elif isinstance(made, _Array) and made.value is None:
            _, shape, dtype, fortran, raw = state
            made.value = self._view(raw, dtype, shape, "F" if fortran else "C")
        else:
            raise _Refused(f"a state for {made.__class__.__name__}")

    def _no_bytes(self, *arguments: Any) -> bytes:
        if arguments:
            raise _Refused("bytes of something")
        return b""

    def _ordered(self, *arguments: Any) -> dict[Any, Any]:
        if arguments not in ((), ([],)):
            raise _Refused("a dict of something")
        return {}

    def _encode(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
            raise _Refused(f"text in {encoding!r:.40}")
        self._charge(len(text), arrays=False)
        return text.encode("latin1")

    def _charge(self, count: int, arrays: bool) -> None:
        left = self.array_left if arrays else self.text_left
        if count > left:
            raise _Refused("its arrays are larger than the file")
        if arrays:
            self.array_left -= count
        else:
            self.text_left -= count

    def _dtype(self, code: str, align: Any = False, copy: Any = True) -> _Dtype:
        if not isinstance(code, str) or len(code) > 4:
            raise _Refused("a dtype that is no number")
        made = np.dtype(code)
        if made.kind not in _ARRAY_KINDS:
            raise _Refused(f"dtype {made} is no number")
        return _Dtype(made)

    def _reconstruct(self, kind: Any, shape: Any, code: Any) -> _Array:
        if kind is not self.names["numpy", "ndarray"]:
            raise _Refused("an array of another class")
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
            raise _Refused("an array without bytes or dtype")
        if not isinstance(shape, tuple) or not all(type(d) is int for d in shape):
            raise _Refused("an array without a shape")
        if order not in ("C", "F"):
            raise _Refused("an array of an unknown order")
        self._charge(len(raw), arrays=True)
        return np.frombuffer(raw, dtype.value).reshape(shape, order=order)


def _set_order(made: _Dtype, state: tuple[Any, ...]) -> None:
    if len(state) < 2 or state[1] not in ("<", ">", "|", "="):
        raise _Refused("a dtype with an unknown byte order")
    if any(part is not None for part in state[2:5]):
        raise _Refused("a dtype with fields")
    if state[1] in "<>":
        made.value = made.value.newbyteorder(state[1])


def _finished(value: Any) -> Any:
    """The result with arrays in place of what stood for them, two levels deep.

    Containers may contain themselves, or one another thousandfold: what lies deeper
    than parameters in a dict is of no use here.
    """
    if isinstance(value, dict):
        return {_plain(k): _inner(v) for k, v in value.items()}
    return _inner(value)


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return value.__class__(map(_plain, value))
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        if value.value is None:
            raise _Refused("an array without elements")
        return value.value
    if isinstance(value, (_Name, _Dtype)) or value is _MARK:
        raise _Refused("something that is no value")
    return value


# ---------------------------------------------------------------- opcodes


def _set_items(made: Any, items: list[Any]) -> None:
    if not isinstance(made, dict) or len(items) % 2:
        raise _Refused("items for something that is no dict")
    for key, value in zip(items[::2], items[1::2]):
        # hashing a nested tuple may take for ever
        if not isinstance(key, (str, int, float, bytes, bool)) and key is not None:
            raise _Refused(f"a {key.__class__.__name__} as a key")
        made[key] = value


def _append(made: Any, items: list[Any]) -> None:
    if not isinstance(made, list):
        raise _Refused("items for something that is no list")
    made += items


def _pop_tuple(count: int) -> Callable[[_Machine], None]:
    def step(m: _Machine) -> None:
        if len(m.stack) < count:
            raise _Refused("the stack is empty")
        items = tuple(m.stack[-count:])
        del m.stack[-count:]
        m.push(items)

    return step


def _text(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.take(m.number(form)).decode("utf-8"))


def _old_text(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.take(m.number(form)).decode("latin1"))


def _raw(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.take(m.number(form)))


def _push(make: Callable[[], Any]) -> Callable[[_Machine], None]:
    return lambda m: m.push(make())


def _integer(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.number(form))


def _long(m: _Machine) -> None:
    size = m.number("<B")
    if size > _MAX_INTEGER:
        raise _Refused(f"an integer of {size} bytes")
    m.push(int.from_bytes(m.take(size), "little", signed=True))


def _decimal(m: _Machine) -> None:
    line = m.line()
    if line in ("00", "01"):
        m.push(line == "01")
        return
    if len(line) > 2 * _MAX_INTEGER:
        raise _Refused("a long integer")
    m.push(int(line.removesuffix("L")))


def _float(m: _Machine) -> None:
    m.push(struct.unpack(">d", m.take(8))[0])


def _put(form: str) -> Callable[[_Machine], None]:
    def step(m: _Machine) -> None:
        m.memo[m.number(form)] = m.stack[-1]

    return step


def _memoize(m: _Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _get(form: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.memo[m.number(form)])


def _stack_name(m: _Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise _Refused("a name that is no text")
    m.name(module, name)


def _dict_of(m: _Machine) -> None:
    made: dict[Any, Any] = {}
    _set_items(made, m.mark())
    m.push(made)


def _set_item(m: _Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _set_items(m.stack[-1], [key, value])


def _set_many(m: _Machine) -> None:
    items = m.mark()
    _set_items(m.stack[-1], items)


def _append_one(m: _Machine) -> None:
    item = m.stack.pop()
    _append(m.stack[-1], [item])


def _append_many(m: _Machine) -> None:
    items = m.mark()
    _append(m.stack[-1], items)


def _protocol(m: _Machine) -> None:
    version = m.number("<B")
    if version > 5:
        raise _Refused(f"protocol {version} is not known")


def _decimal_float(m: _Machine) -> None:
    m.push(float(m.line()))


def _unicode_line(m: _Machine) -> None:
    m.push(m.line())


def _put_line(m: _Machine) -> None:
    m.memo[int(m.line()[:20])] = m.stack[-1]


def _get_line(m: _Machine) -> None:
    m.push(m.memo[int(m.line()[:20])])


_OPCODES: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    0x95: lambda m: m.take(8) and None,  # FRAME: how much comes, of no use here
    ord("("): lambda m: m.push(_MARK),
    ord("0"): lambda m: m.stack.pop() and None,
    ord("N"): _push(lambda: None),
    0x88: _push(lambda: True),
    0x89: _push(lambda: False),
    ord("K"): _integer("<B"),
    ord("M"): _integer("<H"),
    ord("J"): _integer("<i"),
    ord("I"): _decimal,
    ord("L"): _decimal,
    0x8A: _long,
    ord("G"): _float,
    ord("F"): _decimal_float,
    ord("X"): _text("<I"),
    0x8C: _text("<B"),
    0x8D: _text("<Q"),
    ord("V"): _unicode_line,
    ord("T"): _old_text("<I"),
    ord("U"): _old_text("<B"),
    ord("B"): _raw("<I"),
    ord("C"): _raw("<B"),
    0x8E: _raw("<Q"),
    0x96: _raw("<Q"),
    ord("}"): _push(dict),
    ord("]"): _push(list),
    ord(")"): _push(tuple),
    ord("d"): _dict_of,
    ord("l"): lambda m: m.push(m.mark()),
    ord("t"): lambda m: m.push(tuple(m.mark())),
    0x85: _pop_tuple(1),
    0x86: _pop_tuple(2),
    0x87: _pop_tuple(3),
    ord("s"): _set_item,
    ord("u"): _set_many,
    ord("a"): _append_one,
    ord("e"): _append_many,
    ord("q"): _put("<B"),
    ord("r"): _put("<I"),
    ord("p"): _put_line,
    0x94: _memoize,
    ord("h"): _get("<B"),
    ord("j"): _get("<I"),
    ord("g"): _get_line,
    ord("c"): lambda m: m.name(m.line(), m.line()),
    0x93: _stack_name,
    ord("R"): lambda m: m.reduce(),
    ord("b"): lambda m: m.build(),
}
