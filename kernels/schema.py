"""What an op looks like from outside: slots and attributes."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = ["In", "Out", "Attr", "AttrType"]


class AttrType(enum.IntEnum):
    """Kinds of attribute, numbered as in the reference's ProgramDesc."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOLEAN = 6
    BOOLEANS = 7
    BOOL = 6  # the names that ``core.AttrType`` has
    BOOLS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11


_SHORTHAND = {
    int: AttrType.INT,
    float: AttrType.FLOAT,
    str: AttrType.STRING,
    bool: AttrType.BOOLEAN,
}


@dataclass(frozen=True)
class In:
    """An input slot.

    name: as in the reference. duplicable: holds a list of variables.
    dispensable: may be absent (the kernel then gets None).
    no_grad: no gradient flows to it (ids, labels, running statistics).
    """

    name: str
    duplicable: bool = False
    dispensable: bool = False
    no_grad: bool = False


@dataclass(frozen=True)
class Out:
    """An output slot; `intermediate` ones exist for the gradient op only."""

    name: str
    duplicable: bool = False
    intermediate: bool = False
    dispensable: bool = False


@dataclass(frozen=True)
class Attr:
    """An attribute: its kind (`AttrType`, or int / float / str / bool) and default.

    default None: the op must be given a value.
    """

    name: str
    kind: Any
    default: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", AttrType(_SHORTHAND.get(self.kind, self.kind)))
