"""nce and hierarchical_sigmoid against their formulas."""

import numpy as np
import pytest
from opcase import OpCase, integers, normal, run_op, suite, uniform

from fluidx.kernels import SelectedRows
from fluidx.layers.sampling import alias_table

CLASSES = 7
NOISE = [3, 1, 4, 1]
DIST = np.array([0.1, 0.2, 0.25, 0.15, 0.1, 0.15, 0.05])


def nce_inputs(**more):
    return {
        "Input": normal(3, 4),
        "Label": integers(3, 2, high=CLASSES, seed=1),
        "Weight": normal(CLASSES, 4, seed=2),
        **more,
    }


def share_of(sampler):
    c = np.arange(CLASSES)
    return {
        0: np.full(CLASSES, 1 / CLASSES),
        1: np.log((c + 2) / (c + 1)) / np.log(CLASSES),
        2: DIST,
    }[sampler]


def nce(x, attrs):
    labels = np.concatenate([x["Label"], np.tile(NOISE, (3, 1))], axis=1)
    logits = np.einsum("nd,nsd->ns", x["Input"], x["Weight"][labels])
    if "Bias" in x:
        logits = logits + x["Bias"].reshape(-1)[labels]
    o = 1 / (1 + np.exp(-logits))
    b = share_of(attrs["sampler"])[labels] * attrs["num_neg_samples"]
    true = -np.log(o / (o + b))[:, :2].sum(1, keepdims=True)
    noise = -np.log(b / (o + b))[:, 2:].sum(1, keepdims=True)
    cost = (true + noise) * x.get("SampleWeight", 1.0)
    return {"Cost": cost, "SampleLogits": o, "SampleLabels": labels}


def nce_case(name, sampler, sparse=False, **more):
    attrs = {
        "num_total_classes": CLASSES,
        "num_neg_samples": len(NOISE),
        "custom_neg_classes": NOISE,
        "sampler": sampler,
        "is_sparse": sparse,
    }
    # samples are drawn again in every run: differences are taken of fixed ones
    return OpCase("nce", nce_inputs(**more), attrs, nce, name=name, grad_tol=1e-5)


BIAS = {"Bias": normal(CLASSES, 1, seed=3)}
CUSTOM = {
    "CustomDistProbs": DIST,
    "CustomDistAlias": np.arange(CLASSES),
    "CustomDistAliasProbs": np.ones(CLASSES),
}


def path(x, attrs):
    """The turns from the root to a class: bits of class + classes, from the top."""
    found = []
    for label in x["Label"].reshape(-1):
        place = int(label) + attrs["num_classes"]
        steps = range(place.bit_length() - 1)
        found.append([((place >> (j + 1)) - 1, place >> j & 1) for j in steps])
    return found


def hsigmoid(x, attrs):
    if "PathTable" in x:
        pairs = zip(x["PathTable"], x["PathCode"])
        paths = [[(n, c) for n, c in zip(t, k) if n >= 0] for t, k in pairs]
        depth = x["PathTable"].shape[1]
    else:
        paths = path(x, attrs)
        depth = int(attrs["num_classes"] - 1).bit_length()
    out = np.zeros((len(x["X"]), 1))
    for row, turns in enumerate(paths):
        out[row] = np.log(2) * (depth - len(turns))  # nodes behind the end
        for node, turn in turns:
            z = x["W"][node] @ x["X"][row]
            if "Bias" in x:
                z = z + x["Bias"].reshape(-1)[node]
            out[row] += np.log1p(np.exp(z)) - turn * z
    return {"Out": out, "W_Out": x["W"]}


TREE = {
    "PathTable": np.array([[0, 1, 3], [0, 2, -1], [4, -1, -1]]),
    "PathCode": np.array([[0, 1, 1], [1, 0, -1], [1, -1, -1]]),
}


def tree_case(name, nodes, classes, sparse=False, **more):
    inputs = {
        "X": normal(3, 4),
        "W": normal(nodes, 4, seed=2),
        "Label": np.array([[0], [3], [5]]),
        **more,
    }
    attrs = {"num_classes": classes, "is_sparse": sparse}
    return OpCase("hierarchical_sigmoid", inputs, attrs, hsigmoid, name=name)


test_sampled = suite(
    [
        nce_case("uniform", 0, **BIAS),
        nce_case("log-uniform", 1),
        nce_case("custom", 2, **BIAS, **CUSTOM),
        nce_case("weighted", 0, SampleWeight=uniform(3, 1, low=0.5, high=2.0)),
        nce_case("sparse", 1, True, **BIAS),
        tree_case("complete", 5, 6, Bias=normal(5, 1, seed=3)),
        tree_case("full", 7, 8),
        tree_case("custom", 5, 5, Bias=normal(5, 1, seed=3), **TREE),
        tree_case("sparse", 5, 5, True, **TREE),
    ]
)


@pytest.mark.parametrize("sampler", [0, 1, 2])
def test_samples_follow_the_noise_distribution(sampler):
    count = 4000
    inputs = nce_inputs()
    if sampler == 2:
        alias, probs = alias_table(list(DIST))
        inputs |= {
            "CustomDistProbs": DIST,
            "CustomDistAlias": np.array(alias, "int32"),
            "CustomDistAliasProbs": np.array(probs),
        }
    attrs = {
        "num_total_classes": CLASSES,
        "num_neg_samples": count,
        "sampler": sampler,
        "seed": 5,
    }
    labels = run_op("nce", inputs, attrs)["SampleLabels"][:, 2:]
    got = np.bincount(labels.reshape(-1), minlength=CLASSES) / labels.size
    wanted = share_of(sampler)
    if sampler == 1:
        wanted[-1] = 0  # as in the reference, the last class is never drawn
    # 12000 draws: three standard deviations are at most 0.014
    assert np.abs(got - wanted).max() < 0.014
    again = run_op("nce", inputs, attrs)["SampleLabels"][:, 2:]
    assert np.array_equal(labels, again)


def test_sparse_gradients_hold_only_the_rows_that_were_used():
    attrs = {
        "num_total_classes": CLASSES,
        "num_neg_samples": 2,
        "custom_neg_classes": [3, 1],
        "is_sparse": True,
    }
    inputs = nce_inputs(Label=np.array([[0, 1], [3, 3], [5, 1]]))
    outs = run_op("nce", inputs, attrs)
    given = {**inputs, **outs, "Cost@GRAD": np.ones((3, 1))}
    sparse = run_op("nce_grad", given, attrs)["Weight@GRAD"]
    dense = run_op("nce_grad", given, attrs | {"is_sparse": False})["Weight@GRAD"]
    assert isinstance(sparse, SelectedRows)
    assert sparse.rows.tolist() == [0, 1, 3, 5]
    np.testing.assert_allclose(sparse.to_dense(), dense, rtol=1e-12)


def test_logits_are_cut():
    case = tree_case("cut", 5, 6)
    inputs = {**case.inputs, "X": case.inputs["X"] * 1000}
    pre = run_op(case.op, inputs, case.attrs)["PreOut"]
    assert pre.max() == pytest.approx(40)


def test_wrong_labels():
    inputs = nce_inputs(Label=np.full((3, 2), CLASSES))
    with pytest.raises(IndexError, match=r"nce: label 7 is not in \[0, 7\)"):
        run_op("nce", inputs, {"num_total_classes": CLASSES})
    case = tree_case("wrong", 5, 6)
    with pytest.raises(IndexError, match=r"label 6 is not in \[0, 6\)"):
        run_op(case.op, {**case.inputs, "Label": np.full((3, 1), 6)}, case.attrs)
