"""Connectionist temporal classification: the loss, and the best path's label."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import INTEGERS, check_dtype, check_variable
from fluidx.layers.manipulation import squeeze
from fluidx.layers.nn import topk

__all__ = ["ctc_greedy_decoder", "warpctc"]


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """-log of the probability that a sequence reads as its label: (sequences, 1).

    input: logits (rows, classes) with LoD, or padded (time, batch, classes) with
    input_length. label: ids, int32 or int64 (ids, 1) with LoD, or padded (batch, ids)
    with label_length. blank: the class that stands for nothing. norm_by_times: the
    gradient (not the loss) is divided by the sequence's length. A label that does not
    fit into its sequence costs nothing. Mirrors ``fluid.layers.warpctc``.

    >>> import fluidx as fluid
    >>> rows = fluid.data("ctc_rows", [None, 6], lod_level=1)
    >>> ids = fluid.data("ctc_ids", [None, 1], "int32", lod_level=1)
    >>> fluid.layers.warpctc(rows, ids, blank=5).shape
    (-1, 1)
    """
    check_variable(input, "input", "warpctc")
    check_dtype(label, "label", "warpctc", INTEGERS)
    inputs: dict[str, Any] = {"Logits": input, "Label": label}
    if input_length is not None and label_length is not None:
        inputs["LogitsLength"] = check_dtype(
            input_length, "input_length", "warpctc", INTEGERS
        )
        inputs["LabelLength"] = check_dtype(
            label_length, "label_length", "warpctc", INTEGERS
        )
    helper = LayerHelper("warpctc")
    loss = helper.create_variable_for_type_inference(input.dtype)
    slope = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "warpctc",
        inputs,
        {"WarpCTCGrad": slope, "Loss": loss},
        {"blank": blank, "norm_by_times": norm_by_times},
    )
    return loss


def ctc_greedy_decoder(
    input: Variable,
    blank: int,
    input_length: Variable | None = None,
    padding_value: int = 0,
    name: str | None = None,
) -> Any:
    """The label that the most probable class of each row reads as.

    input: (rows, classes) with LoD gives int64 ids (ids, 1) with LoD, a single -1 if
    no id is left at all. Padded, (batch, time, classes) with input_length: ids (batch,
    time), padding_value behind them, and their numbers (batch, 1). Mirrors
    ``fluid.layers.ctc_greedy_decoder``.

    >>> import fluidx as fluid
    >>> rows = fluid.data("greedy_rows", [4, 5, 6])
    >>> length = fluid.data("greedy_length", [4, 1], "int64")
    >>> ids, counts = fluid.layers.ctc_greedy_decoder(rows, 0, length)
    >>> ids.shape, counts.shape
    ((4, 5), (4, 1))
    """
    check_variable(input, "input", "ctc_greedy_decoder")
    helper = LayerHelper("ctc_greedy_decoder", name=name)
    _, best = topk(input, k=1)
    made = helper.create_variable_for_type_inference("int64")
    attrs: dict[str, Any] = {"blank": blank, "merge_repeated": True}
    if input_length is None:
        helper.append_op("ctc_align", {"Input": best}, {"Output": made}, attrs)
        return made
    check_dtype(input_length, "input_length", "ctc_greedy_decoder", INTEGERS)
    counts = helper.create_variable_for_type_inference("int64")
    best = squeeze(best, [2])
    helper.append_op(
        "ctc_align",
        {"Input": best, "InputLength": input_length},
        {"Output": made, "OutputLength": counts},
        {**attrs, "padding_value": padding_value},
    )
    return made, counts
