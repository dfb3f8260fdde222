"""`memory_optimize` and `release_memory`: accepted, without effect.

The reference deprecated both, and its `memory_optimize` logs a warning; buffers are
reused when a program is run. Mirrors
``fluid.transpiler.memory_optimization_transpiler``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from fluidx.ir import Program

__all__ = ["memory_optimize", "release_memory"]


def _checked(name: str, program: object) -> None:
    if not isinstance(program, Program):
        raise TypeError(f"{name}: expected a Program, got {program.__class__.__name__}")


def memory_optimize(
    input_program: Program,
    skip_opt_set: Iterable[str] | None = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Does nothing but log that: the executor frees and reuses buffers by itself."""
    _checked("memory_optimize", input_program)
    logging.warning(
        "fluid.memory_optimize() is deprecated and changes nothing: values are freed "
        "after their last use"
    )


def release_memory(
    input_program: Program, skip_opt_set: Iterable[str] | None = None
) -> None:
    """Does nothing: the executor frees variables after their last use."""
    _checked("release_memory", input_program)
