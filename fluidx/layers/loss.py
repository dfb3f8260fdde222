"""Losses: one value per sample, unless said otherwise."""

from __future__ import annotations

from typing import Any

from fluidx.arguments import as_number
from fluidx.ir import Variable
from fluidx.layer_helper import LayerHelper
from fluidx.layers.emit import FLOATS, INTEGERS, check_dtype, check_variable, emit

__all__ = [
    "cross_entropy",
    "huber_loss",
    "log_loss",
    "mse_loss",
    "sigmoid_cross_entropy_with_logits",
    "smooth_l1",
    "softmax_with_cross_entropy",
    "square_error_cost",
]


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """-log of the probability of the label: [..., 1].

    input: probabilities [..., classes] (of a softmax). label: int64 class numbers
    [..., 1], or with soft_label a distribution like input. ignore_index: samples of
    this label cost nothing. Mirrors ``fluid.layers.cross_entropy``.

    >>> import fluidx as fluid, numpy as np
    >>> prob = fluid.layers.assign(np.array([[0.25, 0.75], [0.5, 0.5]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1], [0]], "int64"))
    >>> loss = fluid.layers.cross_entropy(prob, label)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[loss])[0]
    >>> np.exp(-made).round(4).tolist()  # the probability of each label
    [[0.75], [0.5]]
    """
    check_dtype(input, "input", "cross_entropy", FLOATS)
    if soft_label:
        check_dtype(label, "label", "cross_entropy", FLOATS)
        attrs = {"soft_label": True, "ignore_index": ignore_index}
        inputs = {"X": input, "Label": label}
        return emit("cross_entropy", inputs, attrs, slot="Y")
    check_dtype(label, "label", "cross_entropy", INTEGERS)
    return emit(
        "cross_entropy2",
        {"X": input, "Label": label},
        {"ignore_index": ignore_index},
        slot="Y",
        extra={"XShape": input.dtype, "MatchX": input.dtype},
    )


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """Cross entropy of the softmax of `logits` along `axis`, in one op.

    label: int64, of size 1 along `axis`, or with soft_label like logits.
    return_softmax: (loss, softmax) instead of the loss. Mirrors
    ``fluid.layers.softmax_with_cross_entropy``.

    >>> import fluidx as fluid, numpy as np
    >>> logits = fluid.layers.assign(np.array([[0, 0], [7, 7]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1], [0]], "int64"))
    >>> loss = fluid.layers.softmax_with_cross_entropy(logits, label)
    >>> made = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[loss])[0]
    >>> made.round(4)  # log 2: two classes, equally likely
    array([[0.6931],
           [0.6931]], dtype=float32)
    """
    layer = "softmax_with_cross_entropy"
    check_dtype(logits, "logits", layer, FLOATS)
    check_dtype(label, "label", layer, FLOATS if soft_label else INTEGERS)
    helper = LayerHelper(layer)
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    helper.append_op(
        layer,
        {"Logits": logits, "Label": label},
        {"Softmax": softmax, "Loss": loss},
        {
            "soft_label": soft_label,
            "ignore_index": ignore_index,
            "numeric_stable_mode": numeric_stable_mode,
            "axis": axis,
        },
    )
    return (loss, softmax) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(
    x: Variable,
    label: Variable,
    ignore_index: int = -100,
    name: str | None = None,
    normalize: bool = False,
) -> Variable:
    """Cross entropy of independent yes / no labels, like x in shape.

    label: probabilities. normalize: divide by the number of labels that are not
    ignored. Mirrors ``fluid.layers.sigmoid_cross_entropy_with_logits``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[0, 0]], "float32"))
    >>> label = fluid.layers.assign(np.array([[0, 1]], "float32"))
    >>> y = fluid.layers.sigmoid_cross_entropy_with_logits(x, label)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)  # log 2
    array([[0.6931, 0.6931]], dtype=float32)
    """
    layer = "sigmoid_cross_entropy_with_logits"
    check_dtype(x, "x", layer, FLOATS)
    check_dtype(label, "label", layer, FLOATS)
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return emit(layer, {"X": x, "Label": label}, attrs, name=name)


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label) squared, element by element.

    Mirrors ``fluid.layers.square_error_cost``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 5]], "float32"))
    >>> label = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> y = fluid.layers.square_error_cost(x, label)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[4.0, 1.0]]
    """
    check_dtype(input, "input", "square_error_cost", FLOATS)
    check_dtype(label, "label", "square_error_cost", FLOATS)
    helper = LayerHelper("square_error_cost")
    minus = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("elementwise_sub", {"X": input, "Y": label}, {"Out": minus})
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("square", {"X": minus}, {"Out": made})
    return made


def mse_loss(input: Variable, label: Variable) -> Variable:
    """Mean of the squared differences, shape [1]. Mirrors ``fluid.layers.mse_loss``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([1, 5], "float32"))
    >>> label = fluid.layers.assign(np.array([3, 5], "float32"))
    >>> y = fluid.layers.mse_loss(x, label)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [2.0]
    """
    from fluidx.layers.reduce import reduce_mean

    return reduce_mean(square_error_cost(input, label))


def log_loss(
    input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None
) -> Variable:
    """-label log(input + eps) - (1 - label) log(1 - input + eps), shapes [N, 1].

    Mirrors ``fluid.layers.log_loss``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[0.5], [0.9]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1], [1]], "float32"))
    >>> y = fluid.layers.log_loss(x, label)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].round(4)
    array([[0.6929],
           [0.1052]], dtype=float32)
    """
    check_dtype(input, "input", "log_loss", FLOATS)
    check_dtype(label, "label", "log_loss", FLOATS)
    return emit(
        "log_loss",
        {"Predicted": input, "Labels": label},
        {"epsilon": epsilon},
        slot="Loss",
        name=name,
    )


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the square of small differences, linear beyond `delta`; shapes [N, 1].

    Huber (1964). Mirrors ``fluid.layers.huber_loss``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1], [5]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1.5], [1]], "float32"))
    >>> y = fluid.layers.huber_loss(x, label, delta=1.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[0.125], [3.5]]
    """
    check_dtype(input, "input", "huber_loss", FLOATS)
    check_dtype(label, "label", "huber_loss", FLOATS)
    helper = LayerHelper("huber_loss")
    residual = helper.create_variable_for_type_inference(input.dtype)
    made = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        "huber_loss",
        {"X": input, "Y": label},
        {"Out": made, "Residual": residual},
        {"delta": as_number(delta, "delta", "huber_loss")},
    )
    return made


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """Smooth L1 distance of the rows of x and y: [N, 1].

    inside_weight multiplies differences, outside_weight their losses. sigma (1.0):
    quadratic below 1 / sigma ** 2. Girshick (2015). ``fluid.layers.smooth_l1``.

    >>> import fluidx as fluid, numpy as np
    >>> x = fluid.layers.assign(np.array([[1, 5]], "float32"))
    >>> label = fluid.layers.assign(np.array([[1.5, 1]], "float32"))
    >>> y = fluid.layers.smooth_l1(x, label)
    >>> fluid.Executor(fluid.CPUPlace()).run(fetch_list=[y])[0].tolist()
    [[3.625]]
    """
    check_variable(x, "x", "smooth_l1")
    check_variable(y, "y", "smooth_l1")
    helper = LayerHelper("smooth_l1_loss")
    diff = helper.create_variable_for_type_inference(x.dtype)
    made = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Y": y}
    if inside_weight is not None:
        inputs["InsideWeight"] = inside_weight
    if outside_weight is not None:
        inputs["OutsideWeight"] = outside_weight
    attrs = {"sigma": 1.0 if sigma is None else as_number(sigma, "sigma", "smooth_l1")}
    helper.append_op("smooth_l1_loss", inputs, {"Diff": diff, "Out": made}, attrs)
    return made
