"""`DataFeedDesc`: what a data feed reads, as protobuf text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["DataFeedDesc", "FeedDesc", "SlotDesc", "from_text"]

_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*("(?:[^"\\]|\\.)*"|[\w.+-]+|[{}:])')


class SlotDesc:
    """One slot of a feed; fields that were never given stay out of the text."""

    def __init__(self, name: str, type: str) -> None:
        self.name = name
        self.type = type
        self.is_dense: bool | None = None
        self.is_used: bool | None = None
        self.shape: list[int] = []

    def lines(self) -> Iterator[str]:
        yield f'name: "{self.name}"'
        yield f'type: "{self.type}"'
        for key in ("is_dense", "is_used"):
            value = getattr(self, key)
            if value is not None:
                yield f"{key}: {str(value).lower()}"
        for size in self.shape:
            yield f"shape: {size}"


class FeedDesc:
    """A feed: its class, batch size, slots and pipe command."""

    def __init__(self, name: str = "MultiSlotDataFeed") -> None:
        self.name = name
        self.batch_size: int | None = None
        self.slots: list[SlotDesc] | None = None
        self.pipe_command = "cat"
        self.rank_offset: str | None = None
        self.pv_batch_size: int | None = None

    def text(self) -> str:
        """In protobuf's text form."""
        lines = [f'name: "{self.name}"']
        if self.batch_size is not None:
            lines.append(f"batch_size: {self.batch_size}")
        if self.slots is not None:
            lines.append("multi_slot_desc {")
            for slot in self.slots:
                inner = [f"    {line}" for line in slot.lines()]
                lines += ["  slots {", *inner, "  }"]
            lines.append("}")
        lines.append(f'pipe_command: "{self.pipe_command}"')
        if self.rank_offset is not None:
            lines.append(f'rank_offset: "{self.rank_offset}"')
        if self.pv_batch_size is not None:
            lines.append(f"pv_batch_size: {self.pv_batch_size}")
        return "\n".join(lines) + "\n"


def _fields(text: str) -> list[tuple[str, Any]]:
    """(name, value) pairs; a value is a string, or such a list for a message."""
    stack: list[list[tuple[str, Any]]] = [[]]
    at, name = 0, ""
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"no protobuf text: {text[at:].strip():.40}")
        at, token = found.end(), found[1]
        if token == "{":
            inner: list[tuple[str, Any]] = []
            stack[-1].append((name, inner))
            stack.append(inner)
            name = ""
        elif token == "}":
            if len(stack) == 1:
                raise ValueError("no protobuf text: a } too many")
            stack.pop()
        elif token == ":":
            continue
        elif name:
            value = token[1:-1] if token[0] == '"' else token
            stack[-1].append((name, value))
            name = ""
        else:
            name = token
    if len(stack) != 1 or name:
        raise ValueError("no protobuf text: it ends in the middle")
    return stack[0]


def from_text(text: str) -> FeedDesc:
    """Parse `FeedDesc.text`. ValueError: it is none, or has unknown fields."""
    made = FeedDesc()
    for key, value in _fields(text):
        if key == "multi_slot_desc":
            made.slots = made.slots or []
            made.slots += [_slot(fields) for _, fields in value]
        elif key in ("batch_size", "pv_batch_size"):
            setattr(made, key, int(value))
        elif key in ("name", "pipe_command", "rank_offset"):
            setattr(made, key, value)
        elif key != "thread_num":
            raise ValueError(f"a data feed has no field {key!r}")
    return made


def _slot(fields: list[tuple[str, Any]]) -> SlotDesc:
    made = SlotDesc("", "")
    for key, value in fields:
        if key in ("name", "type"):
            setattr(made, key, value)
        elif key in ("is_dense", "is_used"):
            setattr(made, key, value in ("true", "1"))
        elif key == "shape":
            made.shape.append(int(value))
        else:
            raise ValueError(f"a slot has no field {key!r}")
    return made


class DataFeedDesc:
    """A description read from a file of protobuf text (``fluid.DataFeedDesc``)."""

    def __init__(self, proto_file: str) -> None:
        with open(proto_file) as file:
            self._desc = from_text(file.read())
        self._slots = {slot.name: slot for slot in self._desc.slots or ()}

    def set_batch_size(self, batch_size: int) -> None:
        """Set the number of samples of a batch."""
        self._desc.batch_size = batch_size

    def set_dense_slots(self, dense_slots_name: Sequence[str]) -> None:
        """Mark slots as dense. KeyError: there is no such slot."""
        for name in dense_slots_name:
            self._slots[name].is_dense = True

    def set_use_slots(self, use_slots_name: Sequence[str]) -> None:
        """Mark slots as used. KeyError: there is no such slot."""
        for name in use_slots_name:
            self._slots[name].is_used = True

    def desc(self) -> str:
        """The description as protobuf text."""
        return self._desc.text()
