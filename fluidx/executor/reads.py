"""Batches for programs that read: what a `read` op gives is fed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from fluidx.dataloader.program import ReaderVariable
from fluidx.dataloader.queue import BatchQueue
from fluidx.ir import Operator, Program
from fluidx.ir.errors import EOFException, RunError
from fluidx.tensor import Place

__all__ = ["OPS", "Reads"]

#: they are part of a program's signature, like feed and fetch, and are not run
OPS = ("create_py_reader", "create_double_buffer_reader", "read")

Feed = Mapping[str, Any]


class _Read:
    """A `read` op: where it takes from, what it gives, and what stands before it."""

    def __init__(self, queue: BatchQueue, names: list[str], index: int) -> None:
        self.queue = queue
        self.names = names
        self._index = index
        self._before: Program | None = None

    def before(self, program: Program) -> Program | None:
        """The ops before it as a program of their own; None: there are none.

        A reader that is made behind the layers that use it appends its `read` behind
        them: ops before it that need what it gives are no part of these.
        """
        ops = program.global_block().ops[: self._index]
        if all(op.type in OPS for op in ops):
            return None
        if self._before is None:
            made = self._before = program.clone()
            block, unread = made.global_block(), set(self.names)
            kept = []
            for op in block.ops[: self._index]:
                if not unread.isdisjoint(_taken(op)):
                    unread.update(op.output_arg_names)  # it needs what is not read
                elif op.type not in OPS:
                    kept.append(op)
            block.ops = kept
            made._touch()
        return self._before


def _taken(op: Operator) -> set[str]:
    """What an op reads, or an op of its blocks."""
    names = set(op.input_arg_names)
    for block in op.sub_blocks:
        names.update(*map(_taken, block.ops))
    return names


class Reads:
    """The `read` ops of programs, found once per version."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._found: weakref.WeakKeyDictionary[Program, tuple[int, list[_Read]]]
        self._found = weakref.WeakKeyDictionary()

    def fed(
        self,
        program: Program,
        feed: Feed,
        run: Callable[[Program, Feed], Any] | None = None,
    ) -> Feed:
        """The feed, with a batch of each reader of the program.

        EOFException: a reader has no next batch. RunError: it was not started, or its
        generator failed. run: called at such an end with the ops that stand before the
        `read`. In the reference's Executor these have run by then, and schedules of
        the learning rate count from there: the run that ends a pass is a step to them.
        """
        known = self._found.get(program)
        if known is None or known[0] != program._version:
            known = self._found[program] = (program._version, _reads(program))
        for read in known[1]:
            try:
                batch = read.queue.take(self._place)
            except EOFException:
                before = None if run is None else read.before(program)
                if before is not None and run is not None:
                    run(before, feed)
                raise
            feed = {**feed, **dict(zip(read.names, batch))}
        return feed


def _reads(program: Program) -> list[_Read]:
    found = []
    for index, op in enumerate(program.global_block().ops):
        if op.type != "read":
            continue
        reader = op.block._find_var_recursive(op.input("Reader")[0])
        if not isinstance(reader, ReaderVariable):
            raise RunError(
                f"op read: {op.input('Reader')[0]!r} is no reader that this process "
                "made; feed " + ", ".join(op.output("Out")) + " instead"
            )
        found.append(_Read(reader.batches, op.output("Out"), index))
    return found
