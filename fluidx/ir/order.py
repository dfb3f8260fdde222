"""Is everything declared, and made before it is read? (Part of `verify`.)"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from fluidx.kernels import EMPTY, GRAD, VarType

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program
    from .variable import Variable

__all__ = ["check_order"]

#: variables of these kinds are the engine's: no op needs to make them
_GIVEN = {
    VarType.FEED_MINIBATCH,
    VarType.FETCH_LIST,
    VarType.STEP_SCOPES,
    VarType.LOD_TENSOR_ARRAY,
    VarType.READER,
    VarType.RAW,
}
#: sub-blocks that run once, from top to bottom; others loop or see inner scopes
_STRAIGHT = {"conditional_block", "conditional_block_infer", "listen_and_serv"}


def check_order(
    program: Program,
    feeds: Collection[str] | None,
    problem: Callable[..., Any],
) -> Iterator[Any]:
    """Problems of kind "variable" and "order", made by ``problem``."""
    return _Order(program, feeds, problem).block(program.global_block(), set(), None)


class _Order:
    def __init__(
        self,
        program: Program,
        feeds: Collection[str] | None,
        problem: Callable[..., Any],
    ) -> None:
        self.program = program
        self.problem = problem
        self.writers: dict[str, list[str]] = {}
        for block in program.blocks:
            for index, op in enumerate(block.ops):
                place = f"op {index} ({op.type}) of block {block.idx}"
                for name in op.output_arg_names:
                    self.writers.setdefault(name, []).append(place)
        marked = any(v.is_data or v.need_check_feed for v in program.list_vars())
        self.feeds = set(feeds or ())
        if feeds is None and not marked:
            self.feeds = {
                v.name for v in program.list_vars() if v.name not in self.writers
            }

    def block(
        self, block: Block, made: set[str], owner: Operator | None
    ) -> Iterator[Any]:
        """Walk a block; `made` grows by what it makes."""
        if owner is not None and owner.type not in _STRAIGHT:
            made |= set(block.vars)
        made |= self.derived(block)
        for index, op in enumerate(block.ops):
            for side, names in (
                ("reads", op.input_arg_names),
                ("writes", op.output_arg_names),
            ):
                for name in dict.fromkeys(names):
                    text = self.undeclared(block, name, owner)
                    if text:
                        yield self.problem(
                            "variable",
                            op,
                            block,
                            index,
                            f"{side} {name!r}: {text}",
                            name,
                        )
                    elif side == "reads" and self.early(block, name, made):
                        yield self.problem(
                            "order", op, block, index, self.why_early(name), name
                        )
            if op.type == "listen_and_serv":  # its inputs are what it receives
                made |= set(op.input_arg_names)
            for inner in op.sub_blocks:
                if inner.idx > block.idx:
                    inside = set(made)
                    yield from self.block(inner, inside, op)
                    made |= inside - set(inner.vars) - self.derived(inner)
            made |= set(op.output_arg_names)

    def derived(self, block: Block) -> set[str]:
        """What the block that a gradient block differentiates has computed."""
        if block.forward_block_idx < 0:
            return set()
        return set(self.program.blocks[block.forward_block_idx].vars)

    def find(self, block: Block, name: str, owner: Operator | None) -> Variable | None:
        found = block._find_var_recursive(name)
        if found is None and owner is not None and owner.type.endswith("_grad"):
            # a gradient block sees the variables of the block it differentiates
            found = next(
                (b.vars[name] for b in self.program.blocks if name in b.vars), None
            )
        return found

    def undeclared(self, block: Block, name: str, owner: Operator | None) -> str:
        if name == EMPTY or self.find(block, name, owner) is not None:
            return ""
        if owner is not None and owner.type.endswith("_grad") and GRAD in name:
            return ""  # a gradient that nothing made: zero
        if any(
            name in op.inputs.get("blocking_queue", ())
            for op in block.ops
            if op.type == "create_py_reader"
        ):
            return ""  # the queue of a reader stands outside of the program
        return f"no such variable in block {block.idx} or around it"

    def early(self, block: Block, name: str, made: set[str]) -> bool:
        if name in made or name in self.feeds or name == EMPTY:
            return False
        var = block._find_var_recursive(name)
        if var is None or var.persistable or var.is_data or var.need_check_feed:
            return False
        return var.type not in _GIVEN

    def why_early(self, name: str) -> str:
        writers = self.writers.get(name)
        if writers:
            return f"reads {name!r} before it is made by {writers[0]}"
        return f"reads {name!r}, which no op makes; it is not persistable and not data"
