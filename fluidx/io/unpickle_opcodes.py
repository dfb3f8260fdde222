"""The opcodes of plain data for the machine of `unpickle`: what each does."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["MARK", "OPCODES", "Refused"]

MARK = object()
_MAX_INTEGER = 16


class Refused(Exception):
    """What the machine will not do."""


class Machine(Protocol):
    """What the opcodes need of the machine."""

    stack: list[Any]
    memo: dict[int, Any]

    def take(self, count: int) -> bytes: ...
    def number(self, form: str) -> int: ...
    def line(self) -> bytes: ...
    def push(self, value: Any) -> None: ...
    def mark(self) -> list[Any]: ...
    def name(self, module: str, name: str) -> None: ...
    def reduce(self) -> None: ...
    def build(self) -> None: ...


def _set_items(made: Any, items: list[Any]) -> None:
    if not isinstance(made, dict) or len(items) % 2:
        raise Refused("items for something that is no dict")
    for key, value in zip(items[::2], items[1::2]):
        # others may take for ever to hash, or all hash alike
        if not isinstance(key, str):
            raise Refused(f"a {key.__class__.__name__} as a key")
        made[key] = value


def _append(made: Any, items: list[Any]) -> None:
    if not isinstance(made, list):
        raise Refused("items for something that is no list")
    made += items


def _pop_tuple(count: int) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        if len(m.stack) < count:
            raise Refused("the stack is empty")
        items = tuple(m.stack[-count:])
        del m.stack[-count:]
        m.push(items)

    return step


def _text(form: str) -> Callable[[Machine], None]:
    return lambda m: m.push(m.take(m.number(form)).decode("utf-8"))


def _old_text(form: str) -> Callable[[Machine], None]:
    return lambda m: m.push(m.take(m.number(form)).decode("latin1"))


def _raw(form: str) -> Callable[[Machine], None]:
    return lambda m: m.push(m.take(m.number(form)))


def _push(make: Callable[[], Any]) -> Callable[[Machine], None]:
    return lambda m: m.push(make())


def _integer(form: str) -> Callable[[Machine], None]:
    return lambda m: m.push(m.number(form))


def _long(m: Machine) -> None:
    size = m.number("<B")
    if size > _MAX_INTEGER:
        raise Refused(f"an integer of {size} bytes")
    m.push(int.from_bytes(m.take(size), "little", signed=True))


def _decimal(m: Machine) -> None:
    line = m.line()
    if line in (b"00", b"01"):
        m.push(line == b"01")
        return
    if len(line) > 2 * _MAX_INTEGER:
        raise Refused("a long integer")
    m.push(int(line.removesuffix(b"L")))


def _float(m: Machine) -> None:
    m.push(struct.unpack(">d", m.take(8))[0])


def _put(form: str) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        m.memo[m.number(form)] = m.stack[-1]

    return step


def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _get(form: str) -> Callable[[Machine], None]:
    return lambda m: m.push(m.memo[m.number(form)])


def _stack_name(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise Refused("a name that is no text")
    m.name(module, name)


def _dict_of(m: Machine) -> None:
    made: dict[Any, Any] = {}
    _set_items(made, m.mark())
    m.push(made)


def _set_item(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _set_items(m.stack[-1], [key, value])


def _set_many(m: Machine) -> None:
    items = m.mark()
    _set_items(m.stack[-1], items)


def _append_one(m: Machine) -> None:
    item = m.stack.pop()
    _append(m.stack[-1], [item])


def _append_many(m: Machine) -> None:
    items = m.mark()
    _append(m.stack[-1], items)


def _frame(m: Machine) -> None:
    m.take(8)  # how much comes: of no use here


def _drop(m: Machine) -> None:
    m.stack.pop()


def _protocol(m: Machine) -> None:
    version = m.number("<B")
    if version > 5:
        raise Refused(f"protocol {version} is not known")


def _decimal_float(m: Machine) -> None:
    m.push(float(m.line()[:40]))


def _unicode_line(m: Machine) -> None:
    m.push(m.line().decode("raw-unicode-escape"))


def _put_line(m: Machine) -> None:
    m.memo[int(m.line()[:20])] = m.stack[-1]


def _get_line(m: Machine) -> None:
    m.push(m.memo[int(m.line()[:20])])


OPCODES: dict[int, Callable[[Machine], None]] = {
    0x80: _protocol,
    0x95: _frame,
    ord("("): lambda m: m.push(MARK),
    ord("0"): _drop,
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
    ord("c"): lambda m: m.name(m.line().decode(), m.line().decode()),
    0x93: _stack_name,
    ord("R"): lambda m: m.reduce(),
    ord("b"): lambda m: m.build(),
}
