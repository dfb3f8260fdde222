"""Layers over ragged sequences (LoD tensors)."""

from __future__ import annotations

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, one_of

__all__ = ["sequence_first_step", "sequence_last_step", "sequence_pool"]

_KINDS = ("SUM", "AVERAGE", "SQRT", "MAX", "LAST", "FIRST")


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0
) -> Variable:
    """One row for each sequence: of its last LoD level, that level goes.

    pool_type: sum, average, sqrt (sum over the root of the length), max, last or
    first. pad_value: the row of an empty sequence. BuildError if input has no LoD.
    Mirrors ``fluid.layers.sequence_pool``.

    >>> import fluidx as fluid
    >>> words = fluid.data("seq_in", [None, 8], lod_level=1)
    >>> fluid.layers.sequence_pool(words, "sum").lod_level
    0
    """
    check_dtype(input, "input", "sequence_pool", FLOATS)
    if not isinstance(pool_type, str):
        raise TypeError(f"sequence_pool: pool_type must be a string, got {pool_type!r}")
    kind = one_of(pool_type.upper(), "pool_type", "sequence_pool", _KINDS)
    helper = LayerHelper("sequence_pool")
    made = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "sequence_pool",
        {"X": input},
        {"Out": made, "MaxIndex": index},
        {"pooltype": kind, "is_test": is_test, "pad_value": float(pad_value)},
    )
    if kind == "MAX":
        index.stop_gradient = True
    return made


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence. Mirrors ``fluid.layers.sequence_first_step``."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence. Mirrors ``fluid.layers.sequence_last_step``."""
    return sequence_pool(input, "last")
