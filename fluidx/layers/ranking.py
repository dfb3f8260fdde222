"""Losses that rank, cluster or compare distributions."""

from __future__ import annotations

from typing import Any

from fluidx.arguments import as_number
from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import (
    FLOATS,
    INTEGERS,
    check_dtype,
    check_variable,
    emit,
    is_number,
    one_of,
)

__all__ = [
    "bpr_loss",
    "center_loss",
    "kldiv_loss",
    "margin_rank_loss",
    "rank_loss",
    "sigmoid_focal_loss",
    "teacher_student_sigmoid_loss",
]


def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Bayesian personalised ranking: the label's score against each other: [..., 1].

    The mean over the other classes j of log(1 + exp(input[j] - input[label])).
    input: scores [..., classes]. label: int64 [..., 1]. Hidasi et al. (2016). Mirrors
    ``fluid.layers.bpr_loss``.

    >>> import fluidx as fluid
    >>> score = fluid.data("bpr_in", [None, 10])
    >>> label = fluid.data("bpr_label", [None, 1], "int64")
    >>> fluid.layers.bpr_loss(score, label).shape
    (-1, 1)
    """
    check_dtype(input, "input", "bpr_loss", FLOATS)
    check_dtype(label, "label", "bpr_loss", (VarType.INT64,))
    return emit("bpr_loss", {"X": input, "Label": label}, name=name, slot="Y")


def margin_rank_loss(
    label: Variable,
    left: Variable,
    right: Variable,
    margin: float = 0.1,
    name: str | None = None,
) -> Variable:
    """max(0, margin - label * (left - right)), all [N, 1]; label is 1 or -1.

    Mirrors ``fluid.layers.margin_rank_loss``.

    >>> import fluidx as fluid
    >>> label, a, b = (fluid.data(f"margin_{n}", [None, 1]) for n in "lab")
    >>> fluid.layers.margin_rank_loss(label, a, b).shape
    (-1, 1)
    """
    layer = "margin_rank_loss"
    for arg, value in (("label", label), ("left", left), ("right", right)):
        check_dtype(value, arg, layer, FLOATS)
    inputs = {"X1": left, "X2": right, "Label": label}
    extra = {"Activated": left.dtype}
    return emit(
        layer,
        inputs,
        {"margin": as_number(margin, "margin", "margin_rank_loss")},
        name=name,
        extra=extra,
    )


def rank_loss(
    label: Variable, left: Variable, right: Variable, name: str | None = None
) -> Variable:
    """log(1 + exp(left - right)) - label * (left - right), all [N, 1].

    label: the probability that left ranks above right. Burges et al. (2005). Mirrors
    ``fluid.layers.rank_loss``.

    >>> import fluidx as fluid
    >>> label, a, b = (fluid.data(f"rank_{n}", [None, 1]) for n in "lab")
    >>> fluid.layers.rank_loss(label, a, b).shape
    (-1, 1)
    """
    for arg, value in (("label", label), ("left", left), ("right", right)):
        check_dtype(value, arg, "rank_loss", FLOATS)
    inputs = {"Label": label, "Left": left, "Right": right}
    return emit("rank_loss", inputs, name=name, dtype=left.dtype)


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: Any,
    param_attr: Any,
    update_center: bool = True,
) -> Variable:
    """Half the squared distance to the centre of the label's class: [N, 1].

    input: [N, width]. label: int64 [N, 1]. The centres [num_classes, width] are a
    parameter without a gradient; with update_center each moves by alpha (a number or a
    Variable of shape [1]) times the mean way to its samples. Wen et al. (2016). Mirrors
    ``fluid.layers.center_loss``.

    >>> import fluidx as fluid
    >>> x = fluid.data("center_in", [None, 16])
    >>> label = fluid.data("center_label", [None, 1], "int64")
    >>> fluid.layers.center_loss(x, label, 10, 0.1, fluid.ParamAttr()).shape
    (-1, 1)
    """
    check_dtype(input, "input", "center_loss", FLOATS)
    check_dtype(label, "label", "center_loss", INTEGERS)
    helper = LayerHelper("center_loss", param_attr=param_attr)
    centers = helper.create_parameter(
        helper.param_attr, [num_classes, input.shape[1]], input.dtype
    )
    centers.stop_gradient = True
    if isinstance(alpha, Variable):
        rate = alpha
    elif is_number(alpha):
        # the reference keeps one for all layers, filled anew by each
        rate = helper.create_variable(
            name="centerloss_alpha",
            shape=[1],
            dtype=VarType.FP32,
            persistable=True,
            stop_gradient=True,
        )
        Constant(as_number(alpha, "alpha", "center_loss"))(rate, rate.block)
    else:
        raise TypeError(
            f"center_loss: alpha must be a number or a Variable, got {alpha!r}"
        )
    diff = helper.create_variable_for_type_inference(input.dtype)
    loss = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "center_loss",
        {"X": input, "Label": label, "Centers": centers, "CenterUpdateRate": rate},
        {"SampleCenterDiff": diff, "Loss": loss, "CentersOut": centers},
        {"cluster_num": num_classes, "need_update": bool(update_center)},
    )
    return loss


def kldiv_loss(
    x: Variable, target: Variable, reduction: str = "mean", name: str | None = None
) -> Variable:
    """Kullback-Leibler divergence target * (log(target) - x), 0 where target is not
    positive.

    x: logs of probabilities. target: probabilities, like x. reduction: "mean" over all
    elements, "batchmean" (sum / N), "sum": shape [1]; "none": like x. Mirrors
    ``fluid.layers.kldiv_loss``.

    >>> import fluidx as fluid
    >>> x, target = fluid.data("kl_x", [None, 5]), fluid.data("kl_t", [None, 5])
    >>> fluid.layers.kldiv_loss(x, target, "batchmean").shape
    (1,)
    """
    check_dtype(x, "x", "kldiv_loss", FLOATS)
    check_dtype(target, "target", "kldiv_loss", FLOATS)
    kinds = ("none", "batchmean", "sum", "mean")
    one_of(reduction, "reduction", "kldiv_loss", kinds)
    inputs, attrs = {"X": x, "Target": target}, {"reduction": reduction}
    return emit("kldiv_loss", inputs, attrs, name=name, slot="Loss")


def sigmoid_focal_loss(
    x: Variable,
    label: Variable,
    fg_num: Variable,
    gamma: float = 2.0,
    alpha: float = 0.25,
) -> Variable:
    """Cross entropy of yes / no labels in which well predicted ones count little.

    x: logits [N, classes]. label: int32 [N, 1]; c + 1 wants class c, 0 none of them, -1
    is ignored. fg_num: int32 [1], what all is divided by. The loss, like x, is
    -a (1 - p) ** gamma log(p) for the probability p of each element's own label, with
    a = alpha for a wanted class, 1 - alpha else. Lin et al. (2017). Mirrors
    ``fluid.layers.sigmoid_focal_loss``.

    >>> import fluidx as fluid
    >>> x = fluid.data("focal_in", [None, 80])
    >>> label = fluid.data("focal_label", [None, 1], "int32")
    >>> count = fluid.data("focal_count", [1], "int32")
    >>> fluid.layers.sigmoid_focal_loss(x, label, count).shape
    (-1, 80)
    """
    layer = "sigmoid_focal_loss"
    check_dtype(x, "x", layer, FLOATS)
    check_dtype(label, "label", layer, (VarType.INT32,))
    check_dtype(fg_num, "fg_num", layer, (VarType.INT32,))
    inputs = {"X": x, "Label": label, "FgNum": fg_num}
    return emit(
        layer,
        inputs,
        {
            "gamma": as_number(gamma, "gamma", "sigmoid_focal_loss"),
            "alpha": as_number(alpha, "alpha", "sigmoid_focal_loss"),
        },
    )


def teacher_student_sigmoid_loss(
    input: Variable,
    label: Variable,
    soft_max_up_bound: float = 15.0,
    soft_max_lower_bound: float = -15.0,
) -> Variable:
    """Cross entropy with a click and, where there is one, with a teacher's score.

    input: logits [N, 1]. label: [N, 1], -2: no click; -1: a click; in [0, 1): no click
    and that score; in [1, 2]: a click and that score plus 1. Inputs outside of the
    bounds get no gradient. Mirrors ``fluid.layers.teacher_student_sigmoid_loss``.

    >>> import fluidx as fluid
    >>> x, label = fluid.data("ts_x", [None, 1]), fluid.data("ts_label", [None, 1])
    >>> fluid.layers.teacher_student_sigmoid_loss(x, label).shape
    (-1, 1)
    """
    layer = "teacher_student_sigmoid_loss"
    check_dtype(input, "input", layer, FLOATS)
    check_variable(label, "label", layer)
    helper = LayerHelper(layer)
    made = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        layer,
        {"X": input, "Label": label},
        {"Y": made},
        {
            "soft_max_up_bound": as_number(
                soft_max_up_bound, "soft_max_up_bound", "teacher_student_sigmoid_loss"
            ),
            "soft_max_lower_bound": as_number(
                soft_max_lower_bound,
                "soft_max_lower_bound",
                "teacher_student_sigmoid_loss",
            ),
        },
    )
    return made
