"""How much memory a program's variables take (``fluid.contrib.memory_usage``)."""

from __future__ import annotations

from math import prod

from fluidx.ir import Program
from fluidx.kernels import VarType, to_numpy

__all__ = ["memory_usage"]

_UNITS = ("B", "KB", "MB")


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """A lower and an upper estimate of what one run takes, and their unit.

    Counted is what ops write; unknown sizes count as the batch size. The executor
    frees variables after their last use, so that a run may stay below. TypeError,
    ValueError: no program, a batch size that is not positive. Mirrors
    ``fluid.contrib.memory_usage``, its allowance of 5 to 10 % included.
    """
    if not isinstance(program, Program):
        kind = program.__class__.__name__
        raise TypeError(f"memory_usage takes a Program, got {kind}")
    if batch_size <= 0:
        raise ValueError(f"memory_usage: batch_size must be positive, got {batch_size}")
    block = program.global_block()
    names = {n for op in block.ops for n in op.output_arg_names}
    total = 0.0
    for name in names:
        var = block._find_var_recursive(name)
        if var is None or var.type is not VarType.LOD_TENSOR:
            continue
        sizes = [batch_size if d < 0 else d for d in var.shape]
        total += prod(sizes) * to_numpy(var.dtype).itemsize
    unit = 0
    while total > 1024 and unit < len(_UNITS) - 1:
        total /= 1024
        unit += 1
    return total * 1.05, total * 1.1, _UNITS[unit]
