"""Costs over many classes that look at few of them: `nce` and `hierarchical_sigmoid`.

With ``is_sparse`` the gradient of the weights is a `SelectedRows` of the classes that
were looked at. The remote-table attributes are declared for programs that hold them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .context import RunContext
from .dtypes import VarType
from .grad import grad_op
from .infer import InferContext
from .registry import op
from .rows import add_rows, check_ids
from .schema import Attr, AttrType, In, Out
from .selected_rows import SelectedRows

__all__: list[str] = []

_REMOTE = (
    Attr("is_sparse", bool, False),
    Attr("remote_prefetch", bool, False),
    Attr("trainer_id", int, 0),
    Attr("height_sections", AttrType.LONGS, []),
    Attr("epmap", AttrType.STRINGS, []),
    Attr("table_names", AttrType.STRINGS, []),
)


def _row_grad(xp: Any, like: Any, rows: Any, values: Any, is_sparse: bool) -> Any:
    """The gradient of a table of which `rows` were used, some several times."""
    if is_sparse:
        return SelectedRows(rows, values, like.shape[0]).merged(xp)
    dense = xp.zeros((like.shape[0], values.shape[1]), values.dtype)
    add_rows(xp, dense, rows, values)
    return dense.reshape(like.shape)


def _infer_grad(weights: str, bias: str, inputs: str) -> Any:
    def rule(op: InferContext) -> None:
        for slot in (weights, bias, inputs):
            if op.wants(slot + "@GRAD"):
                op.set_each(slot + "@GRAD", op.inputs(slot))
        if op.wants(weights + "@GRAD") and op.attr("is_sparse"):
            like = op.input(weights)
            op.set(
                weights + "@GRAD", like.shape, like.dtype, kind=VarType.SELECTED_ROWS
            )

    return rule


# --- nce -----------------------------------------------------------------------------

UNIFORM, LOG_UNIFORM, CUSTOM = range(3)


def _infer_nce(op: InferContext) -> None:
    x, label, weight = op.shape("Input"), op.shape("Label"), op.shape("Weight")
    op.check(len(x) == 2, f"Input has shape {x}, not (batch, width)")
    op.check(
        len(weight) == 2 and weight[0] == op.attr("num_total_classes"),
        f"Weight has shape {weight}, not (num_total_classes, width) with "
        f"{op.attr('num_total_classes')} classes",
    )
    known = -1 not in (x[1], weight[1])
    op.check(not known or x[1] == weight[1], f"Input {x} and Weight {weight} differ")
    true = label[1] if len(label) == 2 else 1
    chosen = op.attr("custom_neg_classes")
    count = len(chosen) or op.attr("num_neg_samples")
    width = -1 if true < 0 else true + count
    dtype = op.input("Input").dtype
    op.set("Cost", (x[0], 1), dtype)
    op.set("SampleLogits", (x[0], width), dtype)
    op.set("SampleLabels", (x[0], width), VarType.INT64)


nce = op(
    "nce",
    ins=[
        In("Input"),
        In("Label", no_grad=True),
        In("Weight"),
        In("Bias", dispensable=True),
        In("SampleWeight", dispensable=True, no_grad=True),
        In("CustomDistProbs", dispensable=True, no_grad=True),
        In("CustomDistAlias", dispensable=True, no_grad=True),
        In("CustomDistAliasProbs", dispensable=True, no_grad=True),
    ],
    outs=[
        Out("Cost"),
        Out("SampleLogits", intermediate=True),
        Out("SampleLabels", intermediate=True),
    ],
    attrs=[
        Attr("num_total_classes", int),
        Attr("num_neg_samples", int, 10),
        Attr("sampler", int, UNIFORM),
        Attr("seed", int, 0),
        *_REMOTE,
        Attr("custom_neg_classes", AttrType.INTS, []),
    ],
    infer=_infer_nce,
    grad=grad_op(
        needs=[
            "Input",
            "Label",
            "Weight",
            "Bias",
            "SampleWeight",
            "CustomDistProbs",
            "CustomDistAlias",
            "CustomDistAliasProbs",
            "SampleLogits",
            "SampleLabels",
        ],
        shape_only=["Label", "Bias"],
        of=["Cost"],
    ),
    random=True,
    lod=None,
)


def _draw(
    xp: Any,
    generator: Any,
    shape: tuple[int, int],
    sampler: int,
    classes: int,
    alias: Any,
    alias_probs: Any,
) -> Any:
    """Classes drawn from the noise distribution."""
    u = generator.random(shape)
    if sampler == LOG_UNIFORM:  # P(c) falls like 1 / c (Zipf)
        drawn = xp.exp(u * math.log(classes)) - 1
        return xp.minimum(drawn.astype("int64"), classes - 1)
    drawn = xp.minimum((u * classes).astype("int64"), classes - 1)
    if sampler == CUSTOM:  # Walker's alias method
        other = alias.astype("int64")[drawn]
        return xp.where(generator.random(shape) < alias_probs[drawn], drawn, other)
    return drawn


def _noise(
    xp: Any, labels: Any, sampler: int, classes: int, probs: Any, dtype: Any
) -> Any:
    """The probability of each label under the noise distribution.

    log_uniform covers all classes but the last, which it never draws; a true label
    gets what the formula says (``nce``).
    """
    if sampler == CUSTOM:
        return probs[labels].astype(dtype)
    if sampler == LOG_UNIFORM:
        c = labels.astype(dtype)
        return xp.log((c + 2) / (c + 1)) / math.log(classes)
    return 1.0 / classes


@nce.kernel
def _(
    xp: Any,
    x: Any,
    label: Any,
    weight: Any,
    bias: Any,
    sample_weight: Any,
    probs: Any,
    alias: Any,
    alias_probs: Any,
    *,
    ctx: RunContext,
    num_total_classes: int,
    num_neg_samples: int,
    sampler: int,
    seed: int,
    custom_neg_classes: Sequence[int],
) -> tuple[Any, Any, Any]:
    """Noise-contrastive estimation (Gutmann and Hyvarinen, 2010).

    Cost -log(o / (o + b)) of each true class and -log(b / (o + b)) of each noise
    class, with o = sigmoid(logit) and b = noise probability * number of samples.
    """
    true = label if label.ndim == 2 else label.reshape(len(x), -1)
    check_ids("nce", "label", true.reshape(-1), num_total_classes)
    if len(custom_neg_classes):
        chosen = xp.asarray(custom_neg_classes, "int64")
        noise = xp.broadcast_to(chosen, (len(x), len(chosen)))
    else:
        noise = _draw(
            xp,
            ctx.generator(seed),
            (len(x), num_neg_samples),
            sampler,
            num_total_classes,
            alias,
            alias_probs,
        )
    labels = xp.concatenate([true, noise], axis=1)
    logits = xp.matmul(weight[labels], x[:, :, None])[:, :, 0]
    if bias is not None:
        logits += bias.reshape(-1)[labels]
    o = 1 / (1 + xp.exp(-logits))
    share = _noise(xp, labels, sampler, num_total_classes, probs, x.dtype)
    b = share * num_neg_samples
    count = true.shape[1]
    # -log(o / (o + b)) for true classes, -log(b / (o + b)) for noise
    cost = xp.log(o + b)
    cost[:, :count] -= xp.log(o[:, :count])
    cost[:, count:] -= xp.log(xp.broadcast_to(b, o.shape)[:, count:])
    total = cost.sum(axis=1, keepdims=True)
    if sample_weight is not None:
        total *= sample_weight.reshape(-1, 1)
    return total, o, labels


@nce.grad_kernel
def _(
    xp: Any,
    x: Any,
    label: Any,
    weight: Any,
    bias: Any,
    sample_weight: Any,
    probs: Any,
    alias: Any,
    alias_probs: Any,
    o: Any,
    labels: Any,
    d_cost: Any,
    *,
    wants: tuple[bool, ...],
    num_total_classes: int,
    num_neg_samples: int,
    sampler: int,
    is_sparse: bool,
) -> tuple[Any, Any, Any]:
    share = _noise(xp, labels, sampler, num_total_classes, probs, x.dtype)
    b = share * num_neg_samples
    count = label.size // max(len(x), 1)
    g = (1 - o) / (o + b)
    g[:, :count] *= -xp.broadcast_to(b, o.shape)[:, :count]
    g[:, count:] *= o[:, count:]
    g *= d_cost.reshape(-1, 1)
    if sample_weight is not None:
        g *= sample_weight.reshape(-1, 1)
    rows = labels.reshape(-1)
    d_x = d_weight = d_bias = None
    if wants[0]:
        d_x = xp.matmul(g[:, None, :], weight[labels])[:, 0]
    if wants[1]:
        values = (g[:, :, None] * x[:, None, :]).reshape(len(rows), x.shape[1])
        d_weight = _row_grad(xp, weight, rows, values, is_sparse)
    if wants[2] and bias is not None:
        d_bias = _row_grad(xp, bias, rows, g.reshape(-1, 1), False)
    return d_x, d_weight, d_bias


nce.grad_def.infer = _infer_grad("Weight", "Bias", "Input")


# --- hierarchical_sigmoid ------------------------------------------------------------

_LIMIT = 40.0  # logits are cut to this, as ``hierarchical_sigmoid`` does


def _infer_hsigmoid(op: InferContext) -> None:
    x, w = op.shape("X"), op.shape("W")
    op.check(len(x) == 2, f"X has shape {x}, not (batch, width)")
    op.check(len(w) == 2, f"W has shape {w}, not (nodes, width)")
    known = -1 not in (x[1], w[1])
    op.check(not known or x[1] == w[1], f"X {x} and W {w} differ in width")
    op.set("Out", (x[0], 1), op.input("X").dtype)
    op.set("W_Out", like=op.input("W"))


hierarchical_sigmoid = op(
    "hierarchical_sigmoid",
    ins=[
        In("X"),
        In("W"),
        In("Label", no_grad=True),
        In("PathTable", dispensable=True, no_grad=True),
        In("PathCode", dispensable=True, no_grad=True),
        In("Bias", dispensable=True),
    ],
    outs=[
        Out("Out"),
        Out("PreOut", intermediate=True),
        Out("W_Out", intermediate=True),
    ],
    attrs=[Attr("num_classes", int, 2), *_REMOTE],
    infer=_infer_hsigmoid,
    grad=grad_op(
        needs=["X", "W", "Label", "PathTable", "PathCode", "Bias", "PreOut"],
        shape_only=["Bias"],
    ),
    lod=None,
    shares=True,
)


def _paths(
    xp: Any, label: Any, table: Any, code: Any, classes: int
) -> tuple[Any, Any, Any]:
    """Inner nodes on the way to each class, whether they count, and the turns.

    Without a custom tree: the complete binary tree of the classes, by the bits of
    label + classes.
    """
    if table is not None:
        return xp.maximum(table, 0), table >= 0, code > 0
    place = label.reshape(-1, 1) + classes
    steps = xp.arange(max(1, (classes - 1).bit_length()))
    nodes = (place >> (steps + 1)) - 1
    return xp.maximum(nodes, 0), nodes >= 0, ((place >> steps) & 1) > 0


@hierarchical_sigmoid.kernel
def _(
    xp: Any,
    x: Any,
    w: Any,
    label: Any,
    table: Any,
    code: Any,
    bias: Any,
    *,
    num_classes: int,
) -> tuple[Any, Any, Any]:
    """Cost of the turns on the way to each class (Morin and Bengio, 2005).

    PreOut is log(1 + exp(logit)). Nodes beyond the end of a path add log 2 to the
    cost, as in ``hierarchical_sigmoid``; that has no gradient.
    """
    if table is None:
        check_ids("hierarchical_sigmoid", "label", label.reshape(-1), num_classes)
    nodes, counts, turns = _paths(xp, label, table, code, num_classes)
    check_ids("hierarchical_sigmoid", "node", nodes.reshape(-1), w.shape[0])
    logits = xp.matmul(w[nodes], x[:, :, None])[:, :, 0]
    if bias is not None:
        logits += bias.reshape(-1)[nodes]
    logits = xp.where(counts, xp.clip(logits, -_LIMIT, _LIMIT), 0).astype(x.dtype)
    pre = xp.log1p(xp.exp(logits))
    cost = pre.sum(axis=1, keepdims=True)
    cost -= xp.where(turns, logits, 0).sum(axis=1, keepdims=True)
    return cost, pre, w


@hierarchical_sigmoid.grad_kernel
def _(
    xp: Any,
    x: Any,
    w: Any,
    label: Any,
    table: Any,
    code: Any,
    bias: Any,
    pre: Any,
    d_out: Any,
    *,
    wants: tuple[bool, ...],
    num_classes: int,
    is_sparse: bool,
) -> tuple[Any, Any, Any]:
    nodes, counts, turns = _paths(xp, label, table, code, num_classes)
    g = (1 - xp.exp(-pre)) - turns.astype(pre.dtype)
    g *= counts
    g *= d_out.reshape(-1, 1)
    d_x = d_w = d_bias = None
    if wants[0]:
        d_x = xp.matmul(g[:, None, :], w[nodes])[:, 0]
    used = counts.reshape(-1)
    rows = nodes.reshape(-1)[used]
    if wants[1]:
        values = (g[:, :, None] * x[:, None, :]).reshape(len(used), x.shape[1])[used]
        d_w = _row_grad(xp, w, rows, values, is_sparse)
    if wants[2] and bias is not None:
        d_bias = _row_grad(xp, bias, rows, g.reshape(-1, 1)[used], False)
    return d_x, d_w, d_bias


hierarchical_sigmoid.grad_def.infer = _infer_grad("W", "Bias", "X")
