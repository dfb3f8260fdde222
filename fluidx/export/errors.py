"""What export refuses, and how it says so."""

from __future__ import annotations

from fluidx.ir import Operator
from fluidx.ir.errors import EnforceNotMet

__all__ = ["ExportError", "Problem", "Unsupported"]


class Unsupported(Exception):
    """A rule cannot express this use of its op; becomes a line of an `ExportError`."""


class Problem:
    """One op, or several of one kind, that cannot be exported."""

    def __init__(self, op: Operator, reason: str) -> None:
        self.type = op.type
        self.reason = reason
        self.where = op.where
        self.count = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        text = f"op {self.type}{times}: {self.reason}"
        return f"{text}\n    built at {self.where}" if self.where else text


class ExportError(EnforceNotMet):
    """The program cannot be exported; `problems` holds every op that stands in the way.

    >>> error = ExportError([])
    >>> error.problems
    []
    """

    def __init__(self, problems: list[Problem], message: str = "") -> None:
        self.problems = problems
        lines = [f"  {problem}" for problem in problems]
        title = message or f"{len(problems)} kinds of ops cannot be exported to ONNX:"
        super().__init__("\n".join([title, *lines]))
