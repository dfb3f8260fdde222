"""Editing a block in one pass: edits are anchored to ops and applied once.

    edit = Editor(block)
    edit.after(op, edit.op("send", {"X": [g]}, {}, {"epmap": [endpoint]}))
    edit.remove(other)
    edit.commit()

Cost is linear in the ops, however many edits there are. Nothing is inferred: a pass
declares the variables that it uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from .block import Block
from .errors import Where
from .operator import Operator
from .roles import NAMESCOPE, ROLE

__all__ = ["Editor", "make_op"]


def make_op(
    block: Block,
    type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    role: int = 0,
    where: Where | None = None,
) -> Operator:
    """An op for `block`, not inserted, not inferred; defaults filled in.

    where: the user's line that this op goes back to.
    """
    op = Operator(block, type, inputs, outputs, attrs, where)
    op.attrs.setdefault(ROLE, int(role))
    op.attrs.setdefault(NAMESCOPE, "/")
    op.fill_defaults()
    return op


class Editor:
    """Collects edits of one block; `commit` rebuilds its op list once."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._before: dict[int, list[Operator]] = defaultdict(list)
        self._after: dict[int, list[Operator]] = defaultdict(list)
        self._replaced: dict[int, list[Operator]] = {}
        self._head: list[Operator] = []
        self._tail: list[Operator] = []

    def op(self, type: str, *args: Any, **kwargs: Any) -> Operator:
        """`make_op` for this block."""
        return make_op(self.block, type, *args, **kwargs)

    def before(self, anchor: Operator, *ops: Operator) -> None:
        """Insert in front of an op, behind what was put there before."""
        self._before[id(anchor)] += ops

    def after(self, anchor: Operator, *ops: Operator) -> None:
        """Insert behind an op, behind what was put there before."""
        self._after[id(anchor)] += ops

    def replace(self, anchor: Operator, *ops: Operator) -> None:
        """Put these ops in place of one; what is anchored to it stays around."""
        self._replaced[id(anchor)] = list(ops)

    def remove(self, anchor: Operator) -> None:
        """Drop an op; what is anchored to it stays."""
        self._replaced[id(anchor)] = []

    def prepend(self, *ops: Operator) -> None:
        self._head += ops

    def append(self, *ops: Operator) -> None:
        self._tail += ops

    def commit(self) -> None:
        """Apply all edits."""
        made = list(self._head)
        for op in self.block.ops:
            key = id(op)
            made += self._before.get(key, ())
            made += self._replaced.get(key, (op,))
            made += self._after.get(key, ())
        self.block.ops = made + self._tail
        self.block.program._touch()
        self.__init__(self.block)  # type: ignore[misc]
