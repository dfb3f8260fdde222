"""A hash of what a program says.

What counts: the random seed, and per block its place, its variables and its ops in
order. What does not: the order of variables, slots and attributes, attributes that only
repeat the default, empty slots, where an op was written, how often the program changed,
what saved bytes said beyond it, and hints to a future optimizer (regularizer, learning
rate factor). A FLOAT attribute counts as the 32-bit number that it is.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from .attrs import is_block
from .roles import NAMESCOPE
from .text import own_attrs
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program

__all__ = ["content", "fingerprint"]


def fingerprint(program: Program) -> str:
    """64 hex digits: SHA-256 over `content`."""
    text = json.dumps(content(program), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def content(program: Program) -> dict[str, Any]:
    """All that the fingerprint covers, as plain JSON data."""
    return {
        "seed": program.random_seed,
        "blocks": [_block(block) for block in program.blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "parent": block.parent_idx,
        "forward": block.forward_block_idx,
        "vars": {name: _var(var) for name, var in block.vars.items()},
        "ops": [_op(op) for op in block.ops],
    }


def _var(var: Variable) -> list[Any]:
    facts: list[Any] = [
        int(var.type),
        int(var.dtype),
        list(var.shape),
        var.lod_level,
        bool(var.persistable),
        bool(var.stop_gradient),
        bool(var.is_data),
        bool(var.need_check_feed),
    ]
    if isinstance(var, Parameter):
        facts.append([bool(var.trainable), bool(var.is_distributed)])
    return facts


def _op(op: Operator) -> list[Any]:
    return [
        op.type,
        {slot: args for slot, args in op.inputs.items() if args},
        {slot: args for slot, args in op.outputs.items() if args},
        {name: _value(value) for name, value in own_attrs(op).items()},
        [op.role, op.role_var, op.attrs.get(NAMESCOPE, "/")],
    ]


def _value(value: Any) -> Any:
    if is_block(value):
        return {"block": value.idx}
    if isinstance(value, list):
        return [_value(v) for v in value]
    return value
