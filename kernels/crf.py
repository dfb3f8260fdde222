"""Linear-chain conditional random fields: `linear_chain_crf` and `crf_decoding`.

Lafferty, McCallum and Pereira, 2001. Transition (tags + 2, tags): row 0 are the weights
of a sequence's first tag, row 1 those of its last, row 2 + i those from tag i to all
tags. Sequences come by LoD, Emission (rows, tags), or padded, Emission (N, longest,
tags) with Length. LogLikelihood holds, per sequence, *minus* the log likelihood of the
labels: it is a cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import VarType, is_floating
from .grad import grad_op
from .infer import InferContext
from .lod import host
from .packed import Packed
from .registry import op
from .schema import In, Out

__all__: list[str] = []


def _infer_shapes(op: InferContext) -> Any:
    """Emission; InferError where the inputs do not fit each other."""
    x, transition = op.input("Emission"), op.shape("Transition")
    op.check(is_floating(x.dtype), f"Emission must hold floats, got {x.dtype.name}")
    padded = op.has("Length")
    op.check(
        len(x.shape) == (3 if padded else 2),
        f"Emission must have {3 if padded else 2} dimensions"
        f"{' beside Length' if padded else ''}, got shape {x.shape}",
    )
    tags = x.shape[-1]
    op.check(
        len(transition) == 2 and tags in (-1, transition[1]),
        f"Transition must be ({tags} + 2, {tags}), got {transition}",
    )
    op.check(
        -1 in transition or transition[0] == transition[1] + 2,
        f"Transition must have two more rows than columns, got {transition}",
    )
    return x


def _infer(op: InferContext) -> None:
    x = _infer_shapes(op)
    op.set("Alpha", x.shape, x.dtype)
    op.set("EmissionExps", x.shape, x.dtype)
    op.set("TransitionExps", like=op.input("Transition"))
    op.set("LogLikelihood", (x.shape[0], 1), x.dtype)


linear_chain_crf = op(
    "linear_chain_crf",
    ins=[
        In("Emission"),
        In("Transition"),
        In("Label", no_grad=True),
        In("Length", dispensable=True, no_grad=True),
    ],
    outs=[
        Out("Alpha", intermediate=True),
        Out("EmissionExps", intermediate=True),
        Out("TransitionExps", intermediate=True),
        Out("LogLikelihood"),
    ],
    infer=_infer,
    grad=grad_op(
        needs=[
            *("Emission", "Transition", "Label", "Length"),
            *("Alpha", "EmissionExps", "TransitionExps"),
        ],
        shape_only=["Emission"],
    ),
    lod=None,
)


def _sequences(name: str, x: Any, length: Any, lod: Any) -> tuple[Packed, int]:
    """The steps, and how many sequences there are."""
    if length is None:
        packed = Packed.of(name, "Emission", lod, len(x))
        return packed, len(packed.sequences)
    lengths = host(length).reshape(-1).astype("i8")
    count, longest = x.shape[:2]
    if len(lengths) != count or (lengths < 0).any() or (lengths > longest).any():
        raise ValueError(
            f"{name}: Length must say for each of {count} sequences how many of the "
            f"{longest} steps it has, got {lengths.tolist()[:20]}"
        )
    return Packed(np.arange(count) * longest, lengths), count


def _tags(name: str, label: Any, tags: int, packed: Packed) -> Any:
    """Each packed row's label. ValueError: one that is no tag."""
    found = host(label).reshape(-1).astype("i8")[packed.order]
    if len(found) and not (found.min() >= 0 and found.max() < tags):
        raise ValueError(
            f"{name}: Label must be in [0, {tags}), got {found.min()} to {found.max()}"
        )
    return found


class _Weights:
    """exp of Transition's three parts, each scaled so that none overflows."""

    def __init__(self, xp: Any, transition: Any) -> None:
        parts = (transition[0], transition[1], transition[2:])
        tops = [p.max() if p.size else xp.zeros((), p.dtype) for p in parts]
        self.start, self.end, self.moves = (xp.exp(p - t) for p, t in zip(parts, tops))
        #: what the exponentials leave out
        self.start_top, self.end_top, self.moves_top = tops


@linear_chain_crf.kernel
def _(xp: Any, x: Any, transition: Any, label: Any, length: Any, *, lod: Any) -> Any:
    name = "linear_chain_crf"
    packed, count = _sequences(name, x, length, lod)
    tags = x.shape[-1]
    rows = x.reshape(-1, tags)
    top = rows.max(axis=1, keepdims=True) if len(rows) else rows[:, :1]
    exps = xp.exp(rows - top)
    order = xp.asarray(packed.order)
    weights = _Weights(xp, transition)
    alpha, log_sum = _forward(xp, weights, exps.take(order, axis=0), packed)
    kept = xp.zeros_like(rows)
    kept[order] = alpha
    cost = xp.zeros(count, x.dtype)
    owners = xp.asarray(packed.owners)
    last = _last_rows(packed)
    ends = alpha[xp.asarray(last)] @ weights.end
    xp.add.at(cost, owners, log_sum + top[order, 0])
    cost[owners[xp.asarray(last)]] += xp.log(ends)
    labels = _tags(name, label, tags, packed)
    scores = rows[order, xp.asarray(labels)]
    first, before = packed.first, labels[packed.earlier]
    at_start = transition[0, xp.asarray(labels[:first])] - weights.start_top
    scores[:first] += at_start
    moved = transition[xp.asarray(before + 2), xp.asarray(labels[first:])]
    scores[first:] += moved - weights.moves_top
    at_end = transition[1, xp.asarray(labels[last])] - weights.end_top
    scores[xp.asarray(last)] += at_end
    xp.subtract.at(cost, owners, scores)
    return (
        kept.reshape(x.shape),
        exps.reshape(x.shape),
        xp.exp(transition),
        cost[:, None],
    )


def _forward(xp: Any, weights: _Weights, exps: Any, packed: Packed) -> Any:
    """Packed forward probabilities that add up to 1, and the logs of their sums."""
    alpha = xp.empty_like(exps)
    sums = xp.empty((len(exps), 1), exps.dtype)
    before = weights.start
    for step in packed.steps:
        now = alpha[step]
        xp.multiply(before[: len(now)] if before.ndim == 2 else before, exps[step], now)
        sums[step] = now.sum(axis=1, keepdims=True)
        now /= sums[step]
        before = now @ weights.moves
    return alpha, xp.log(sums[:, 0])


def _last_rows(packed: Packed) -> Any:
    """The packed row of each sequence's last step."""
    rows = np.ones(len(packed.order), bool)
    rows[packed.earlier] = False
    return np.flatnonzero(rows)


@linear_chain_crf.grad_kernel
def _(
    xp: Any,
    x: Any,
    transition: Any,
    label: Any,
    length: Any,
    alpha: Any,
    exps: Any,
    transition_exps: Any,
    d_cost: Any,
    *,
    lod: Any,
) -> Any:
    name = "linear_chain_crf_grad"
    packed, _ = _sequences(name, exps, length, lod)
    tags = transition.shape[1]
    order = xp.asarray(packed.order)
    alpha = alpha.reshape(-1, tags).take(order, axis=0)
    exps = exps.reshape(-1, tags).take(order, axis=0)
    head = d_cost.reshape(-1)[xp.asarray(packed.owners)][:, None]
    weights = _Weights(xp, transition)
    beta = _backward(xp, weights, exps, packed)
    marginals = alpha * beta
    marginals /= marginals.sum(axis=1, keepdims=True)
    labels = _tags(name, label, tags, packed)
    rows = xp.arange(len(labels))
    marginals[rows, xp.asarray(labels)] -= 1
    marginals *= head
    d_transition = xp.zeros_like(transition)
    first, last = packed.first, xp.asarray(_last_rows(packed))
    d_transition[0] = marginals[:first].sum(axis=0)
    d_transition[1] = marginals[last].sum(axis=0)
    # expected moves: before (i) * move (i, j) * what comes (j), each pair of rows apart
    before = alpha.take(xp.asarray(packed.earlier), axis=0)
    coming = exps[first:] * beta[first:]
    totals = ((before @ weights.moves) * coming).sum(axis=1, keepdims=True)
    d_transition[2:] = (before * (head[first:] / totals)).T @ coming * weights.moves
    pairs = (xp.asarray(labels[packed.earlier] + 2), xp.asarray(labels[first:]))
    xp.subtract.at(d_transition, pairs, head[first:, 0])
    d_x = xp.zeros((x.size // tags, tags), exps.dtype)
    d_x[order] = marginals
    return d_x.reshape(x.shape), d_transition


def _backward(xp: Any, weights: _Weights, exps: Any, packed: Packed) -> Any:
    """Packed backward probabilities, each row scaled to a sum of 1."""
    beta = xp.empty_like(exps)
    beta[:] = weights.end
    later: slice | None = None
    for step in reversed(packed.steps):
        if later is not None:
            count = later.stop - later.start
            into = slice(step.start, step.start + count)
            beta[into] = (exps[later] * beta[later]) @ weights.moves.T
        beta[step] /= beta[step].sum(axis=1, keepdims=True)
        later = step
    return beta


def _infer_decoding(op: InferContext) -> None:
    x = _infer_shapes(op)
    shape = x.shape[:2] if op.has("Length") else (x.shape[0], 1)
    op.set("ViterbiPath", shape, VarType.INT64, x.lod_level)


crf_decoding = op(
    "crf_decoding",
    ins=[
        In("Emission"),
        In("Transition"),
        In("Label", dispensable=True),
        In("Length", dispensable=True),
    ],
    outs=[Out("ViterbiPath")],
    infer=_infer_decoding,
    grad=None,
)


@crf_decoding.kernel
def _(xp: Any, x: Any, transition: Any, label: Any, length: Any, *, lod: Any) -> Any:
    """The most likely tags; with Label: 1 where the label is that tag, else 0.

    Padded steps hold 0.
    """
    packed, _ = _sequences("crf_decoding", x, length, lod)
    tags = x.shape[-1]
    order = xp.asarray(packed.order)
    scores = x.reshape(-1, tags).take(order, axis=0)
    path = xp.asarray(_viterbi(xp, scores, transition, packed))
    if label is not None:
        path = path == label.reshape(-1)[order]
    made = xp.zeros(x.size // tags, "int64")
    made[order] = path
    return made.reshape(x.shape[:2] if length is not None else (-1, 1))


def _viterbi(xp: Any, scores: Any, transition: Any, packed: Packed) -> Any:
    """Each packed row's best tag. `scores` is used up."""
    came = xp.zeros(scores.shape, "int64")
    before = None
    for step in packed.steps:
        now = scores[step]
        if before is None:
            now += transition[0]
        else:
            ways = before[: len(now), :, None] + transition[2:]
            came[step] = ways.argmax(axis=1)
            now += ways.max(axis=1)
        before = now
    came = host(came)
    best = np.zeros(len(scores), "i8")
    last = _last_rows(packed)
    best[last] = host((scores[xp.asarray(last)] + transition[1]).argmax(axis=1))
    for step in reversed(packed.steps[1:]):
        rows = np.arange(step.start, step.stop)
        best[packed.earlier[rows - packed.first]] = came[rows, best[rows]]
    return best
