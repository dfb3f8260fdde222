"""Errors that say which op, which variable, what was expected, and where it began."""

from __future__ import annotations

import linecache
from typing import NamedTuple

__all__ = [
    "EOFException",
    "EnforceNotMet",
    "BuildError",
    "FeedError",
    "RunError",
    "Where",
    "describe",
]


class Where(NamedTuple):
    """A line of the user's own code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        shown = f": {source}" if source else ""
        return f"{self.file}:{self.line} in {self.function}{shown}"


class EnforceNotMet(RuntimeError):
    """Base of fluidx's own errors; named like ``core.EnforceNotMet``."""


class EOFException(Exception):
    """A reader has given all it has (``core.EOFException``); reset it to go on."""


class BuildError(EnforceNotMet, ValueError):
    """An op or variable cannot be part of this program."""


class FeedError(EnforceNotMet, ValueError):
    """What was fed does not fit the program."""


class RunError(EnforceNotMet):
    """An op failed while the program ran."""


def describe(kind: str, message: str, where: Where | None) -> str:
    """One readable message: what, why, and the line that built the op."""
    text = f"{kind}: {message}"
    return f"{text}\n  built at {where}" if where else text
