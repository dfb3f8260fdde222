"""Layers of rank tables, which `DynamicRNN` is made of.

They stand in ``fluid.layers.control_flow`` only, as in the reference.
"""

from __future__ import annotations

from fluidx.ir import Variable, unique_name
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_variable

__all__ = [
    "array_to_lod_tensor",
    "lod_rank_table",
    "lod_tensor_to_array",
    "max_sequence_len",
    "shrink_memory",
]


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """The sequences of x (LoD) of this level, the longest first."""
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(
        name=unique_name.generate("lod_rank_table"), type=VarType.LOD_RANK_TABLE
    )
    helper.append_op("lod_rank_table", {"X": x}, {"Out": table}, {"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """The length of the longest sequence of a rank table: int64, shape [1]."""
    check_variable(rank_table, "rank_table", "max_sequence_len")
    helper = LayerHelper("max_seqence_len")  # the reference's name for it
    made = helper.create_variable_for_type_inference("int64")
    helper.append_op("max_sequence_len", {"RankTable": rank_table}, {"Out": made})
    return made


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """An array: at t, element t of all sequences of x that have one, by the table."""
    check_variable(x, "x", "lod_tensor_to_array")
    check_variable(table, "table", "lod_tensor_to_array")
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(
        name=unique_name.generate("lod_tensor_to_array"),
        type=VarType.LOD_TENSOR_ARRAY,
        dtype=x.dtype,
    )
    inputs = {"X": x, "RankTable": table}
    helper.append_op("lod_tensor_to_array", inputs, {"Out": array})
    return array


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """The sequences whose steps an array holds (see `lod_tensor_to_array`)."""
    check_variable(x, "x", "array_to_lod_tensor")
    check_variable(table, "table", "array_to_lod_tensor")
    helper = LayerHelper("array_to_lod_tensor")
    made = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "RankTable": table}
    helper.append_op("array_to_lod_tensor", inputs, {"Out": made})
    return made


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The rows of x, in the table's order, whose sequences have a step i."""
    for arg, value in (("x", x), ("i", i), ("table", table)):
        check_variable(value, arg, "shrink_memory")
    helper = LayerHelper("shrink_memory")
    made = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "I": i, "RankTable": table}
    helper.append_op("shrink_rnn_memory", inputs, {"Out": made})
    return made
