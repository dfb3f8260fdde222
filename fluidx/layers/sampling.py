"""Costs over many classes: noise-contrastive estimation, hierarchical sigmoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidx.arguments import as_integer
from fluidx.initializer import NumpyArrayInitializer
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, check_dtype, one_of
from fluidx.param_attr import ParamAttr

__all__ = ["hsigmoid", "nce"]

_SAMPLERS = ("uniform", "log_uniform", "custom_dist")


def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """Noise-contrastive estimation: the true classes against a few drawn ones.

    input: (batch, width). label: int64 (batch, true classes). num_neg_samples: drawn
    per row (10). sampler: "uniform", "log_uniform" (frequent classes first) or
    "custom_dist" with `custom_dist`, a probability per class. sample_weight: (batch,
    1). seed 0: new samples in every run. is_sparse: the gradient of the weights holds
    only the rows that were used. Returns the cost, (batch, 1), divided by
    num_neg_samples + 1. Gutmann and Hyvarinen (2010); ``fluid.layers.nce``.

    >>> import fluidx as fluid
    >>> x = fluid.data("nce_in", [None, 8])
    >>> label = fluid.data("nce_label", [None, 1], "int64")
    >>> fluid.layers.nce(x, label, 1000, num_neg_samples=5).shape
    (-1, 1)
    """
    helper = LayerHelper("nce", name=name, param_attr=param_attr, bias_attr=bias_attr)
    check_dtype(input, "input", "nce", FLOATS)
    check_dtype(label, "label", "nce", (VarType.INT64,))
    one_of(sampler, "sampler", "nce", _SAMPLERS)
    classes = as_integer(num_total_classes, "num_total_classes", "nce")
    count = 10
    if num_neg_samples is not None:
        count = as_integer(num_neg_samples, "num_neg_samples", "nce")
    inputs: dict[str, Any] = {"Input": input, "Label": label}
    inputs["Weight"] = helper.create_parameter(
        helper.param_attr, [classes, input.shape[1]], input.dtype
    )
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [classes, 1], input.dtype, is_bias=True
        )
    if sampler == "custom_dist":
        inputs.update(_noise(helper, custom_dist, classes))
    if sample_weight is not None:
        inputs["SampleWeight"] = check_dtype(
            sample_weight, "sample_weight", "nce", FLOATS
        )
    temporary = helper.create_variable_for_type_inference
    cost = temporary(input.dtype)
    outputs = {
        "Cost": cost,
        "SampleLogits": temporary(input.dtype),
        "SampleLabels": temporary(label.dtype),
    }
    attrs = {
        "num_total_classes": classes,
        "num_neg_samples": count,
        "seed": seed,
        "sampler": _SAMPLERS.index(sampler),
        "is_sparse": bool(is_sparse),
        "remote_prefetch": bool(is_sparse),
    }
    helper.append_op("nce", inputs, outputs, attrs)
    return cost / (count + 1)


def _noise(
    helper: LayerHelper, given: Sequence[float] | None, classes: int
) -> dict[str, Variable]:
    """The noise distribution and its alias table, as constant parameters."""
    if given is None or len(given) != classes:
        raise ValueError(
            f"nce: sampler custom_dist needs custom_dist with {classes} "
            f"probabilities, got {given!r:.60}"
        )
    alias, probs = alias_table(given)
    columns = {
        "CustomDistProbs": np.array(given, "float32"),
        "CustomDistAlias": np.array(alias, "int32"),
        "CustomDistAliasProbs": np.array(probs, "float32"),
    }
    made: dict[str, Variable] = {}
    for slot, values in columns.items():
        var = helper.create_parameter(
            ParamAttr(),
            list(values.shape),
            values.dtype,
            default_initializer=NumpyArrayInitializer(values),
        )
        var.stop_gradient = True
        made[slot] = var
    return made


def alias_table(given: Sequence[float]) -> tuple[list[int], list[float]]:
    """Walker's alias method: (other class, probability to stay) per class.

    A class that is always kept has alias -1.

    >>> alias_table([0.25, 0.75])
    ([1, -1], [0.5, 1.0])
    """
    count = len(given)
    share = [p * count for p in given]
    large = [i for i, p in enumerate(share) if p > 1]
    small = [i for i, p in enumerate(share) if p < 1]
    alias, probs = [-1] * count, [1.0] * count
    while large and small:
        big, little = large.pop(0), small.pop(0)
        alias[little], probs[little] = big, share[little]
        share[big] = share[big] + share[little] - 1
        if share[big] > 1:
            large.append(big)
        elif share[big] < 1:
            small.append(big)
    return alias, probs


def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Hierarchical sigmoid: the turns on the way through a tree of classes.

    input: (batch, width). label: int64 (batch, 1). Without is_custom the tree is the
    complete binary one over num_classes, with num_classes - 1 inner nodes. is_custom:
    path_table, int64 (batch, depth), holds the inner nodes on each row's way (-1
    behind its end), path_code the turns (0 or 1); num_classes is then the number of
    inner nodes. is_sparse: the gradient of the weights holds only the rows that were
    used (custom trees only, as in the reference). Returns the cost, (batch, 1). Morin
    and Bengio (2005); ``fluid.layers.hsigmoid``.

    >>> import fluidx as fluid
    >>> x = fluid.data("tree_in", [None, 8])
    >>> label = fluid.data("tree_label", [None, 1], "int64")
    >>> fluid.layers.hsigmoid(x, label, 1000).shape
    (-1, 1)
    """
    helper = LayerHelper(
        "hierarchical_sigmoid", name=name, param_attr=param_attr, bias_attr=bias_attr
    )
    check_dtype(input, "input", "hsigmoid", FLOATS)
    check_dtype(label, "label", "hsigmoid", (VarType.INT64,))
    nodes = _nodes(num_classes, path_table, path_code, is_custom)
    sparse = bool(is_sparse and is_custom)
    weights = helper.create_parameter(
        helper.param_attr, [nodes, input.shape[1]], input.dtype
    )
    inputs: dict[str, Any] = {"X": input, "W": weights, "Label": label}
    if path_table is not None:
        inputs |= {"PathTable": path_table, "PathCode": path_code}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(
            helper.bias_attr, [nodes, 1], input.dtype, is_bias=True
        )
    out = helper.create_variable_for_type_inference(input.dtype)
    pre_out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "hierarchical_sigmoid",
        inputs,
        {"Out": out, "PreOut": pre_out, "W_Out": weights},
        {
            "num_classes": int(num_classes),
            "is_sparse": sparse,
            "remote_prefetch": sparse,
        },
    )
    return out


def _nodes(
    num_classes: int, table: Variable | None, code: Variable | None, custom: bool
) -> int:
    """How many inner nodes the tree has; ValueError for a tree that is none."""
    if not custom:
        num_classes = as_integer(num_classes, "num_classes", "hsigmoid")
        if num_classes < 2:
            raise ValueError(f"hsigmoid: num_classes must be 2 or more: {num_classes}")
        return num_classes - 1
    for arg, value in (("path_table", table), ("path_code", code)):
        if value is None:
            raise ValueError(f"hsigmoid: is_custom needs {arg}")
        check_dtype(value, arg, "hsigmoid", (VarType.INT64,))
    return int(num_classes)
