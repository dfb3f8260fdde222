"""Cutting tensors into blocks of whole rows.

Mirrors ``slice_variable``, ``VarBlock`` and ``same_or_split_var`` of
``fluid.transpiler.distribute_transpiler``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

__all__ = ["VarBlock", "row_counts", "same_or_split_var", "slice_variable"]


class VarBlock:
    """Block ``offset`` (counted, not a position) of a variable, ``size`` elements."""

    def __init__(self, varname: str, offset: int, size: int) -> None:
        self.varname = varname
        self.offset = offset
        self.size = size

    def __str__(self) -> str:
        return f"{self.varname}:{self.offset}:{self.size}"


def row_counts(shape: Sequence[int], count: int, min_block_size: int) -> list[int]:
    """Rows of each block when a tensor is cut for `count` servers.

    Blocks are equal but for the last one; none is smaller than `min_block_size`
    elements unless the whole tensor is.

    >>> row_counts([1000, 1000], 3, 8192), row_counts([13, 2000], 2, 8192)
    ([334, 334, 332], [7, 6])
    """
    elements = prod(shape)
    if not elements:
        return [shape[0] if shape else 0]
    width = prod(shape[1:])
    blocks = min(count, max(1, elements // min_block_size))
    rows = -(-elements // blocks)  # elements per block, rounded up
    rows = -(-rows // width)
    return [min(rows, shape[0] - at) for at in range(0, shape[0], rows)]


def slice_variable(
    var_list: Sequence[Any], slice_count: int, min_block_size: int
) -> list[VarBlock]:
    """The blocks of each variable when cut for `slice_count` servers."""
    blocks = []
    for var in var_list:
        width = prod(var.shape[1:])
        rows = row_counts(var.shape, slice_count, min_block_size)
        blocks += [VarBlock(var.name, i, n * width) for i, n in enumerate(rows)]
    return blocks


def same_or_split_var(p_name: str, var_name: str) -> bool:
    """Whether `p_name` is the variable `var_name` or a block of it."""
    return p_name == var_name or p_name.startswith(var_name + ".block")
