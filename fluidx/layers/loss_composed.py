"""Losses made of other layers."""

from __future__ import annotations

from typing import Any

from fluidx.ir import Variable
from fluidx.layers.control_flow import equal
from fluidx.layers.emit import FLOATS, check_dtype, check_variable
from fluidx.layers.lookup import one_hot
from fluidx.layers.loss import softmax_with_cross_entropy
from fluidx.layers.manipulation import expand, reshape, transpose
from fluidx.layers.math_op_patch import astype
from fluidx.layers.nn import matmul
from fluidx.layers.ops import square
from fluidx.layers.reduce import reduce_mean, reduce_sum

__all__ = ["dice_loss", "npair_loss"]


def dice_loss(
    input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None
) -> Variable:
    """1 - 2 * overlap / (sum of input + sum of label), averaged: shape [1].

    input: probabilities [N, ..., classes]. label: class numbers [N, ..., 1].
    Milletari et al. (2016). Mirrors ``fluid.layers.dice_loss``.

    >>> import fluidx as fluid
    >>> x = fluid.data("dice_loss_x", [None, 3])
    >>> y = fluid.data("dice_loss_y", [None, 1], "int64")
    >>> fluid.layers.dice_loss(x, y).shape
    (1,)
    """
    check_dtype(input, "input", "dice_loss", FLOATS)
    # Variable's operators, which math_op_patch adds, are not known to a type checker
    x: Any = input
    wanted: Any = one_hot(label, depth=input.shape[-1])
    dims = list(range(1, len(input.shape)))
    overlap: Any = reduce_sum(x * wanted, dims)
    size: Any = reduce_sum(input, dims)
    size = size + reduce_sum(wanted, dims)
    return reduce_mean(1 - overlap * 2 / (size + epsilon))


def npair_loss(
    anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002
) -> Variable:
    """Pulls each anchor to its positive, away from those of other labels: [1].

    anchor, positive: [N, width], N known. labels: [N] (is reshaped in place). Sohn
    (2016). Mirrors ``fluid.layers.npair_loss``.

    >>> import fluidx as fluid
    >>> x = fluid.data("npair_loss_x", [6, 4])
    >>> y = fluid.data("npair_loss_y", [6, 4])
    >>> z = fluid.data("npair_loss_z", [6])
    >>> fluid.layers.npair_loss(x, y, z).shape
    (1,)
    """
    check_dtype(anchor, "anchor", "npair_loss", FLOATS)
    check_dtype(positive, "positive", "npair_loss", FLOATS)
    check_variable(labels, "labels", "npair_loss")
    size = labels.shape[0]
    if size < 1:
        raise ValueError(
            f"npair_loss: the size of labels must be known, got {list(labels.shape)}"
        )
    column = reshape(labels, [size, 1], inplace=True)
    grid = expand(column, [1, size])
    same: Any = astype(equal(grid, transpose(grid, [1, 0])), "float32")
    wanted = same / reduce_sum(same, dim=1, keep_dim=True)
    length: Any = reduce_mean(reduce_sum(square(anchor), 1))
    length = length + reduce_mean(reduce_sum(square(positive), 1))
    penalty = length * 0.25 * l2_reg
    likeness = matmul(anchor, positive, transpose_y=True)
    each = softmax_with_cross_entropy(likeness, wanted, soft_label=True)
    cost = reduce_mean(reduce_sum(wanted * each, 0))
    return penalty + cost  # type: ignore[no-any-return]
