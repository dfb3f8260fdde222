"""What layers with sub-blocks share: which variables go in and out, nested results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fluidx.ir import Block, Program, Variable
from fluidx.kernels import EMPTY, VarType
from fluidx.layers.emit import check_variable

__all__ = [
    "check_callable",
    "check_condition",
    "flatten",
    "outside",
    "pack",
    "step_scopes",
    "structure",
    "sub_block",
]


@contextlib.contextmanager
def sub_block(program: Program) -> Iterator[Block]:
    """Ops built inside go into a new sub-block of the current block."""
    made = program._create_block()
    try:
        yield made
    finally:
        program._rollback()


def outside(block: Block) -> tuple[list[str], list[str]]:
    """Variables from around: those read before the block writes them, those written."""
    parent = block.parent
    assert parent is not None
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in block.ops:
        reads.update((n, None) for n in op.input_arg_names if n not in writes)
        writes.update((n, None) for n in op.output_arg_names)

    def around(names: dict[str, None]) -> list[str]:
        return [
            n
            for n in names
            if n != EMPTY
            and n not in block.vars
            and parent._find_var_recursive(n) is not None
        ]

    return around(reads), around(writes)


def step_scopes(block: Block) -> Variable:
    """The variable in which an op keeps what its block computed."""
    return block.create_var(type=VarType.STEP_SCOPES)


def check_condition(value: Any, arg: str, layer: str) -> Variable:
    """A bool Variable of one element; TypeError or ValueError otherwise."""
    var = check_variable(value, arg, layer)
    if var.dtype != VarType.BOOL:
        raise TypeError(f"{layer}: {arg} must be of BOOL, got {var.dtype.name}")
    if any(d not in (1, -1) for d in var.shape):
        raise ValueError(
            f"{layer}: {arg} must have one element, its shape is {list(var.shape)}"
        )
    return var


def check_callable(value: Any, arg: str, layer: str) -> Callable[..., Any]:
    """TypeError unless it can be called."""
    if not callable(value):
        raise TypeError(f"{layer}: {arg} must be callable, got {value!r:.60}")
    return value  # type: ignore[no-any-return]


def flatten(value: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts, in order (dicts: by key)."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flatten(value[key])]
    return [value]


def structure(value: Any) -> Any:
    """The nesting alone, to be compared: leaves become None."""
    if isinstance(value, (list, tuple)):
        return [structure(item) for item in value]
    if isinstance(value, dict):
        return {key: structure(item) for key, item in value.items()}
    return None


def pack(like: Any, leaves: Sequence[Any]) -> Any:
    """Nested like `like`, with these leaves."""
    rest = iter(leaves)
    return _packed(like, rest)


def _packed(like: Any, rest: Iterator[Any]) -> Any:
    if isinstance(like, dict):
        return {key: _packed(like[key], rest) for key in sorted(like)}
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return like.__class__(*(_packed(item, rest) for item in like))
    if isinstance(like, (list, tuple)):
        return like.__class__(_packed(item, rest) for item in like)
    return next(rest)
