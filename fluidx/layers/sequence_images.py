"""Windows of images as sequences, distances of answers, sequences in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import check_dtype, check_variable, int_list, pair

__all__ = ["edit_distance", "im2sequence", "reorder_lod_tensor_by_rank"]


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """A sequence for each image: its windows, row by row, one to a row of the result.

    input: (n, c, h, w). padding: one number, (high, wide), or (top, left, bottom,
    right). The result is (windows, c * filter) with one LoD level. input_image_size:
    (n, 2), heights and widths that images had before something shrank them by
    `out_stride`; their windows are then as many as fit into that (a single image
    counts whole). There is no gradient with it. Mirrors ``fluid.layers.im2sequence``.

    >>> import fluidx as fluid
    >>> lines = fluid.data("im2seq_in", [None, 3, 32, 100])
    >>> fluid.layers.im2sequence(lines, filter_size=[32, 1]).shape
    (-1, 96)
    """
    check_dtype(input, "input", "im2sequence", (VarType.FP32, VarType.FP64))
    pads = int_list(padding, "padding", "im2sequence")
    if len(pads) == 1 and not isinstance(padding, (list, tuple)):
        pads *= 2
    if len(pads) == 2:
        pads *= 2
    if len(pads) != 4:
        raise ValueError(
            f"im2sequence: padding must be one, two or four numbers, got {padding!r}"
        )
    inputs = {"X": input}
    attrs: dict[str, Any] = {
        "kernels": pair(filter_size, "filter_size", "im2sequence"),
        "strides": pair(stride, "stride", "im2sequence"),
        "paddings": pads,
    }
    if input_image_size is not None:
        inputs["Y"] = check_variable(
            input_image_size, "input_image_size", "im2sequence"
        )
        attrs["out_stride"] = pair(out_stride, "out_stride", "im2sequence")
    helper = LayerHelper("im2sequence", name=name)
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("im2sequence", inputs, {"Out": made}, attrs)
    return made


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """How many insertions, deletions and substitutions turn input into label.

    input, label: int64 ids, (ids, 1) with one LoD level; or padded (n, longest) with
    `input_length` and `label_length` (n,). normalized: divided by the length of the
    label, which must not be empty. ignored_tokens: ids left out before (LoD only).
    Returns float32 (n, 1), declared int64 as in the reference, and n as int64 (1,).
    Levenshtein (1966); mirrors ``fluid.layers.edit_distance``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "int64"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 3])
    >>> rows = fluid.layers.assign(np.array([[1], [3]], "int64"))
    >>> true = fluid.layers.lod_reset(rows, target_lod=[0, 2])
    >>> y, count = fluid.layers.edit_distance(x, true, normalized=False)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y, count])
    >>> [v.tolist() for v in made]  # one deletion
    [[[1.0]], [1]]
    """
    for arg, value in (("input", input), ("label", label)):
        check_dtype(value, arg, "edit_distance", (VarType.INT64,))
    if (input_length is None) != (label_length is None):
        raise ValueError(
            "edit_distance: takes input_length and label_length together, or neither"
        )
    helper = LayerHelper("edit_distance")
    if ignored_tokens:
        tokens = int_list(list(ignored_tokens), "ignored_tokens", "edit_distance")
        if input_length is not None:
            raise ValueError(
                "edit_distance: ignored_tokens needs sequences with LoD; input and "
                "label are padded, with input_length and label_length"
            )
        input = _without(helper, input, tokens)
        label = _without(helper, label, tokens)
    inputs = {"Hyps": input, "Refs": label}
    if input_length is not None and label_length is not None:
        inputs["HypsLength"] = check_variable(
            input_length, "input_length", "edit_distance"
        )
        inputs["RefsLength"] = check_variable(
            label_length, "label_length", "edit_distance"
        )
    distance = helper.create_variable_for_type_inference("int64")
    count = helper.create_variable_for_type_inference("int64")
    outputs = {"Out": distance, "SequenceNum": count}
    helper.append_op("edit_distance", inputs, outputs, {"normalized": normalized})
    return distance, count


def _without(helper: LayerHelper, ids: Variable, tokens: list[int]) -> Variable:
    made = helper.create_variable_for_type_inference("int64")
    helper.append_op("sequence_erase", {"X": ids}, {"Out": made}, {"tokens": tokens})
    return made


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """The sequences of x (without LoD: its rows) in the order of a rank table.

    Mirrors ``fluid.layers.reorder_lod_tensor_by_rank``.

    >>> import fluidx as fluid, numpy as np
    >>> rows = fluid.layers.assign(np.array([[1], [2], [3]], "float32"))
    >>> x = fluid.layers.lod_reset(rows, target_lod=[0, 1, 3])
    >>> table = fluid.layers.control_flow.lod_rank_table(x)  # longest first
    >>> y = fluid.layers.reorder_lod_tensor_by_rank(x, table)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist(), made.lod()
    ([[2.0], [3.0], [1.0]], [[0, 2, 3]])
    """
    check_variable(x, "x", "reorder_lod_tensor_by_rank")
    table = check_variable(rank_table, "rank_table", "reorder_lod_tensor_by_rank")
    if table.type != VarType.LOD_RANK_TABLE:
        raise TypeError(
            f"reorder_lod_tensor_by_rank: rank_table must be a rank table, "
            f"{table.name} is {table.type.name}"
        )
    helper = LayerHelper("reorder_lod_tensor_by_rank")
    made = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "RankTable": table}
    helper.append_op("reorder_lod_tensor_by_rank", inputs, {"Out": made})
    return made
