"""Layers of linear-chain conditional random fields."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, check_variable

__all__ = ["crf_decoding", "linear_chain_crf"]


def linear_chain_crf(
    input: Variable,
    label: Variable,
    param_attr: Any = None,
    length: Variable | None = None,
) -> Variable:
    """What the labels of each sequence cost under a CRF: minus their log likelihood.

    input: the tags' scores, [rows, tags] of one LoD level with `label` int64 [rows, 1];
    or padded, [N, longest, tags] with label [N, longest, 1] and length int64 [N, 1].
    Returns [sequences, 1]. The parameter [tags + 2, tags] holds the weights of first
    tags, of last tags, and from tag to tag; give it a name, by which `crf_decoding`
    finds it. Lafferty, McCallum and Pereira, 2001. Mirrors
    ``fluid.layers.linear_chain_crf``.

    >>> import fluidx as fluid
    >>> scores = fluid.data("crf_scores", [None, 5], lod_level=1)
    >>> tags = fluid.data("crf_tags", [None, 1], "int64", lod_level=1)
    >>> attr = fluid.ParamAttr(name="crfw")
    >>> cost = fluid.layers.linear_chain_crf(scores, tags, attr)
    >>> fluid.layers.crf_decoding(scores, attr).shape
    (-1, 1)
    """
    layer = "linear_chain_crf"
    check_dtype(input, "input", layer, FLOATS)
    check_dtype(label, "label", layer, (VarType.INT64,))
    helper = LayerHelper(layer, input=input, param_attr=param_attr)
    tags = input.shape[-1]
    transition = helper.create_parameter(
        helper.param_attr, [tags + 2, tags], input.dtype
    )
    slots = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    outs = {s: helper.create_variable_for_type_inference(input.dtype) for s in slots}
    inputs = {"Emission": input, "Transition": transition, "Label": label}
    if length is not None:
        inputs["Length"] = check_variable(length, "length", layer)
    helper.append_op(layer, inputs, outs)
    return outs["LogLikelihood"]


def crf_decoding(
    input: Variable,
    param_attr: Any,
    label: Variable | None = None,
    length: Variable | None = None,
) -> Variable:
    """The most likely tags of each sequence (Viterbi), int64.

    input, length: as for `linear_chain_crf`, whose parameter param_attr names. label:
    the result is 1 where it is the most likely tag, 0 elsewhere. Returns [rows, 1], or
    [N, longest] with `length`. ValueError: no such parameter. Mirrors
    ``fluid.layers.crf_decoding``; `linear_chain_crf` has an example.

    >>> import fluidx as fluid, numpy as np
    >>> scores = np.array([[5, 0], [0, 5], [0, 5]], "float32")
    >>> x = fluid.layers.lod_reset(fluid.layers.assign(scores), target_lod=[0, 3])
    >>> tags = fluid.layers.lod_reset(
    ...     fluid.layers.assign(np.array([[0], [1], [1]], "int64")), target_lod=[0, 3])
    >>> zeros = fluid.ParamAttr("crf_w", fluid.initializer.Constant(0.0))
    >>> cost = fluid.layers.linear_chain_crf(x, tags, param_attr=zeros)
    >>> y = fluid.layers.crf_decoding(x, param_attr=zeros)
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> made, = exe.run(fetch_list=[y], return_numpy=False)
    >>> np.array(made).tolist()  # nothing is learned yet: each row's best
    [[0], [1], [1]]
    """
    layer = "crf_decoding"
    check_dtype(input, "input", layer, FLOATS)
    helper = LayerHelper(layer, input=input, param_attr=param_attr)
    name = getattr(helper.param_attr, "name", None)
    if name is None:
        raise ValueError(
            f"{layer}: param_attr must name the parameter of linear_chain_crf, got "
            f"{param_attr!r:.60}"
        )
    inputs = {
        "Emission": input,
        "Transition": helper.get_parameter(name),
    }
    for slot, value in (("Label", label), ("Length", length)):
        if value is not None:
            inputs[slot] = check_variable(value, slot.lower(), layer)
    out = helper.create_variable_for_type_inference(VarType.INT64)
    helper.append_op(layer, inputs, {"ViterbiPath": out})
    return out
