"""Conditional random fields answer as the reference does, with gradients."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite
from replay_oracle import oracle_suite

test_crf = oracle_suite("crf_ops")
test_decoding_of_odd_numbers = oracle_suite("rnn_ops", "crf_decoding")
test_costs_of_odd_numbers = oracle_suite("rnn_ops", "linear_chain_crf")


# --- by looking at all paths ----------------------------------------------------


def _score(x, w, path):
    steps = [w[2 + a, b] for a, b in pairwise(path)]
    inner = sum(x[t, tag] for t, tag in enumerate(path)) + sum(steps)
    return w[0, path[0]] + inner + w[1, path[-1]]


def _paths(x):
    return list(product(range(x.shape[1]), repeat=len(x)))


def _cost(inputs, attrs):
    costs = []
    for a, b in pairwise(LOD[0]):
        x, w = inputs["Emission"][a:b], inputs["Transition"]
        if a == b:
            costs.append(0.0)
            continue
        label = inputs["Label"][a:b, 0].astype(int)
        scores = [_score(x, w, p) for p in _paths(x)]
        costs.append(np.logaddexp.reduce(scores) - _score(x, w, label))
    return {"LogLikelihood": np.array(costs)[:, None]}


def _best(inputs, attrs):
    found = []
    for a, b in pairwise(LOD[0]):
        x, w = inputs["Emission"][a:b], inputs["Transition"]
        if b > a:
            found += max(_paths(x), key=lambda p, x=x, w=w: _score(x, w, p))
    return {"ViterbiPath": np.array(found)[:, None]}


LOD = [[0, 4, 4, 5, 8]]
TAGS = 3


def _case(scale=1.0, transition=1.0, **more):
    x = {
        "Emission": normal(8, TAGS) * scale,
        "Transition": normal(TAGS + 2, TAGS, seed=1) * transition,
        "Label": integers(8, 1, high=TAGS, seed=2),
    }
    lod = {"Emission": LOD, "Label": LOD}
    # the reference declares a row of LogLikelihood for each row, not each sequence
    given = {"lod": lod, "weights": ["LogLikelihood"], "infer": False, **more}
    return OpCase("linear_chain_crf", x, {}, _cost, grad_tol=1e-5, **given)


def _decoding(scale=1.0):
    case = _case(scale)
    del case.inputs["Label"]
    return OpCase("crf_decoding", case.inputs, {}, _best, lod={"Emission": LOD})


test_by_all_paths = suite(
    [
        _case(),
        # neither sums of exponentials nor scores overflow
        _case(scale=300.0, grad=(), rtol=2e-6, atol=1e-4),
        _case(transition=20.0, grad=(), rtol=2e-6, atol=1e-4),
        _case(scale=1e-8),
        _decoding(),
        _decoding(1e7),
        _decoding(1e-8),
    ]
)


@pytest.mark.parametrize("op", ["linear_chain_crf", "crf_decoding"])
def test_no_sequences(op):
    x = {"Emission": np.zeros((0, TAGS), "f4"), "Transition": np.zeros((5, TAGS), "f4")}
    if op == "linear_chain_crf":
        x["Label"] = np.zeros((0, 1), "i8")
    out = run_op(op, x, {}, lod={"Emission": [[0]]})
    shape = out["LogLikelihood" if op == "linear_chain_crf" else "ViterbiPath"].shape
    assert shape == (0, 1)


@pytest.mark.parametrize(("label", "told"), [(3, "0 to 3"), (-1, "-1 to 0")])
def test_labels_outside(label, told):
    case = _case()
    case.inputs["Label"] = np.zeros((8, 1), "i8")
    case.inputs["Label"][5] = label
    with pytest.raises(ValueError, match=rf"Label must be in \[0, 3\), got {told}"):
        run_op(case.op, case.inputs, {}, lod=case.lod)


def test_lengths_outside():
    x = {"Emission": normal(2, 4, TAGS), "Transition": normal(TAGS + 2, TAGS)}
    x["Length"] = np.array([[3], [5]])
    with pytest.raises(ValueError, match=r"how many of the 4 steps it has, got \[3, 5"):
        run_op("crf_decoding", x, {})
