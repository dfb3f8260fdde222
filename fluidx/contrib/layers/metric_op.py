"""Sums from which metrics of click-through models follow."""

from __future__ import annotations

from fluidx.initializer import Constant
from fluidx.ir import Variable
from fluidx.kernels import VarType
from fluidx.layer_helper import LayerHelper

__all__ = ["ctr_metric_bundle"]


def ctr_metric_bundle(
    input: Variable, label: Variable
) -> tuple[Variable, Variable, Variable, Variable, Variable, Variable]:
    """Append ops that sum up, over all runs, what CTR metrics are made of.

    input, label: float32 (batch, 1): predicted and real clicks. Returns the sums, each
    persistable and of shape (1,): squared error, absolute error, predictions, sigmoid
    of the predictions, labels, and instances. Divided by the last: MSE, MAE, predicted
    and actual CTR.

    ValueError: the shapes differ.
    """
    if input.shape != label.shape:
        raise ValueError(
            f"ctr_metric_bundle: input has shape {list(input.shape)}, label "
            f"{list(label.shape)}"
        )
    helper = LayerHelper("ctr_metric_bundle")
    kept = dict.fromkeys(("abserr", "sqrerr", "prob", "q", "pos", "ins"))
    sums = {n: _variable(helper, [1], persistable=True) for n in kept}
    difference, squashed, ones = (_variable(helper, [-1, 1]) for _ in range(3))
    steps = {
        n: _variable(helper, [1])
        for n in ("prob", "abserr", "sqrerr", "q", "pos", "ins")
    }
    for name in ("abserr", "sqrerr", "prob", "q"):
        _zero(helper, sums[name], steps[name])
    _zero(helper, steps["pos"], steps["ins"], sums["pos"], sums["ins"])

    def add_up(name: str, type: str, x: Variable) -> None:
        attrs = {"dim": [0], "keep_dim": False} if type == "reduce_sum" else {}
        helper.append_op(type, {"X": [x]}, {"Out": [steps[name]]}, attrs)
        both = {"X": [steps[name]], "Y": [sums[name]]}
        helper.append_op("elementwise_add", both, {"Out": [sums[name]]})

    helper.append_op(
        "elementwise_sub", {"X": [input], "Y": [label]}, {"Out": [difference]}
    )
    add_up("sqrerr", "squared_l2_norm", difference)
    add_up("abserr", "l1_norm", difference)
    add_up("prob", "reduce_sum", input)
    helper.append_op("sigmoid", {"X": [input]}, {"Out": [squashed]})
    add_up("q", "reduce_sum", squashed)
    add_up("pos", "reduce_sum", label)
    helper.append_op(
        "fill_constant_batch_size_like",
        {"Input": [label]},
        {"Out": [ones]},
        {"shape": [-1, 1], "dtype": int(VarType.FP32), "value": 1.0},
    )
    add_up("ins", "reduce_sum", ones)
    order = ("sqrerr", "abserr", "prob", "q", "pos", "ins")
    one, two, three, four, five, six = (sums[n] for n in order)
    return one, two, three, four, five, six


def _variable(
    helper: LayerHelper, shape: list[int], persistable: bool = False
) -> Variable:
    return helper.create_global_variable(
        persistable=persistable, dtype="float32", shape=shape
    )


def _zero(helper: LayerHelper, *variables: Variable) -> None:
    for variable in variables:
        helper.set_variable_initializer(variable, Constant(0.0, force_cpu=True))
