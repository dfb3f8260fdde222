"""Batches for programs that read: what a `read` op gives is fed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from fluidx.dataloader.program import ReaderVariable
from fluidx.dataloader.queue import BatchQueue
from fluidx.ir import Program
from fluidx.ir.errors import RunError

__all__ = ["OPS", "Reads"]

#: they are part of a program's signature, like feed and fetch, and are not run
OPS = ("create_py_reader", "create_double_buffer_reader", "read")


class Reads:
    """The `read` ops of programs, found once per version."""

    def __init__(self) -> None:
        self._found: weakref.WeakKeyDictionary[
            Program, tuple[int, list[tuple[BatchQueue, list[str]]]]
        ] = weakref.WeakKeyDictionary()

    def fed(self, program: Program, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        """The feed, with a batch of each reader of the program.

        EOFException: a reader has no next batch. RunError: it was not started, or its
        generator failed.
        """
        known = self._found.get(program)
        if known is None or known[0] != program._version:
            known = self._found[program] = (program._version, _reads(program))
        for queue, names in known[1]:
            feed = {**feed, **dict(zip(names, queue.take()))}
        return feed


def _reads(program: Program) -> list[tuple[BatchQueue, list[str]]]:
    found = []
    for op in program.global_block().ops:
        if op.type != "read":
            continue
        reader = op.block._find_var_recursive(op.input("Reader")[0])
        if not isinstance(reader, ReaderVariable):
            raise RunError(
                f"op read: {op.input('Reader')[0]!r} is no reader that this process "
                "made; feed " + ", ".join(op.output("Out")) + " instead"
            )
        found.append((reader.batches, op.output("Out")))
    return found
