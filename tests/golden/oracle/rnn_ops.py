"""What the reference makes of its recurrent ops: LSTM, GRU, their units; CRF."""

import json
import os

import numpy as np
from array_ops import case, count
from op_probe import record
from sequence_ops import ONE, seq

HERE = os.path.dirname(os.path.abspath(__file__))
UNEVEN = [[0, 1, 4, 6]]
#: what an op keeps for its gradient, in an order of its own: asked for, not recorded
WORK = {
    "lstm": ["BatchGate", "BatchCellPreAct"],
    "lstmp": ["BatchGate", "BatchCellPreAct", "BatchHidden"],
    "gru": ["BatchGate", "BatchResetHiddenPrev", "BatchHidden"],
}


def some(seed, *shape):
    """Numbers between -1 and 1 that look like weights."""
    values = np.random.RandomState(seed).uniform(-1, 1, shape)
    return np.round(values, 3).astype("float32")


def lstms():
    d = 2
    for lod, n in ((ONE, 5), (UNEVEN, 6), ([[0, 3]], 3)):
        for peepholes in (True, False):
            x = {
                "Input": seq(some(1, n, 4 * d), lod),
                "Weight": some(2, d, 4 * d),
                "Bias": some(3, 1, 7 * d if peepholes else 4 * d),
            }
            attrs = {"use_peepholes": peepholes}
            yield lstm(x, attrs, n, d)
            yield lstm(x, dict(attrs, is_reverse=True), n, d)
    x = {
        "Input": seq(some(1, 6, 8), UNEVEN),
        "H0": some(4, 3, d),
        "C0": some(5, 3, d),
        "Weight": some(2, d, 8),
        "Bias": some(3, 1, 14),
    }
    yield lstm(x, {}, 6, d)
    yield lstm(x, {"is_reverse": True}, 6, d)
    for gate, cell, candidate in (
        ("sigmoid", "relu", "identity"),
        ("tanh", "sigmoid", "relu"),
        ("identity", "identity", "sigmoid"),
    ):
        attrs = {"gate_activation": gate, "cell_activation": cell}
        yield lstm(x, dict(attrs, candidate_activation=candidate), 6, d)


def lstm(x, attrs, n, d):
    return case(
        "lstm",
        x,
        attrs,
        ["Hidden", "Cell", *WORK["lstm"]],
        grads={"Hidden": count(n, d)},
    )


def lstmps():
    d, p = 3, 2
    for given in (False, True):
        x = {"Input": seq(some(1, 6, 4 * d), UNEVEN)}
        if given:
            x.update(H0=some(4, 3, p), C0=some(5, 3, d))
        x.update(Weight=some(2, p, 4 * d), ProjWeight=some(6, d, p))
        for attrs in (
            {},
            {"is_reverse": True},
            {"proj_activation": "identity"},
            {"cell_clip": 0.2, "proj_clip": 0.1},
            {"use_peepholes": False, "proj_activation": "relu"},
        ):
            width = 7 * d if attrs.get("use_peepholes", True) else 4 * d
            y = dict(x, Bias=some(3, 1, width))
            grads = {"Projection": count(6, p)}
            yield case(
                "lstmp", y, attrs, ["Projection", "Cell", *WORK["lstmp"]], grads=grads
            )


def grus():
    d = 2
    for lod, n in ((ONE, 5), (UNEVEN, 6)):
        x = {"Input": seq(some(1, n, 3 * d), lod), "Weight": some(2, d, 3 * d)}
        full = dict(x, Bias=some(3, 1, 3 * d))
        start = {"Input": x["Input"], "H0": some(4, len(lod[0]) - 1, d)}
        start.update(Weight=x["Weight"], Bias=full["Bias"])
        for y in (x, full, start):
            for attrs in (
                {},
                {"is_reverse": True},
                {"origin_mode": True},
                {"gate_activation": "tanh", "activation": "relu"},
            ):
                outs = ["Hidden", *WORK["gru"]]
                heads = {"Hidden": count(n, d) / 8}
                yield case("gru", y, attrs, outs, grads=heads)


def units():
    d = 2
    for bias in (0.0, 1.0):
        x = {"X": some(1, 3, 4 * d), "C_prev": some(2, 3, d)}
        for grads in (
            {"C": count(3, d), "H": count(3, d)},
            {"H": count(3, d), "C": np.zeros((3, d), "float32")},
        ):
            yield case("lstm_unit", x, {"forget_bias": bias}, ["C", "H"], grads=grads)
    x = {"Input": some(1, 3, 3 * d), "HiddenPrev": some(2, 3, d)}
    x["Weight"] = some(3, d, 3 * d)
    outs = ["Gate", "ResetHiddenPrev", "Hidden"]
    for y in (x, dict(x, Bias=some(4, 1, 3 * d))):
        for attrs in (
            {},
            {"origin_mode": True},
            {"activation": 3, "gate_activation": 2},
            {"activation": 0, "gate_activation": 1},
        ):
            yield case("gru_unit", y, attrs, outs, grads={"Hidden": count(3, d)})


CRF = ["Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"]


def odd():
    """Numbers that the ops may or may not take."""
    first = next(c for c in lstmps())
    for value in (np.float32(1e7), np.float32(1e-7), np.float32("nan")):
        x = dict(first["inputs"])
        data = x["Input"]["data"].copy()
        data[0, 0] = value
        x["Input"] = seq(data, UNEVEN)
        yield case("lstmp", x, {}, ["Projection", "Cell", *WORK["lstmp"]])
        y = dict(CRF_X, Transition=some(2, 5, 3) * value)
        yield case("crf_decoding", y, {}, ["ViterbiPath"])
        x = {"Input": data[:3], "HiddenPrev": some(2, 3, 4), "Weight": some(3, 4, 12)}
        yield case("gru_unit", x, {}, ["Gate", "ResetHiddenPrev", "Hidden"])
    for made in (lstms, lstmps, grus, units, crfs):
        seen = set()
        for found in made():
            if found["op"] in seen:
                continue
            seen.add(found["op"])
            x = {k: whole(v) for k, v in found["inputs"].items()}
            yield case(found["op"], x, found["attrs"], found["outs"])


CRF_X = {"Emission": seq(some(1, 6, 3), UNEVEN)}


def whole(value):
    if isinstance(value, dict):
        return seq(whole(value["data"]), value["lod"])
    return (value * 4).astype("int64")


def crfs():
    labels = np.array([[0], [2], [1], [1], [0], [2]], "int64")
    transition = some(2, 5, 3)
    for lod in (UNEVEN, [[0, 6]]):
        emission = seq(some(1, 6, 3), lod)
        x = {"Emission": emission, "Transition": transition}
        x["Label"] = seq(labels, lod)
        grads = {"LogLikelihood": count(len(lod[0]) - 1, 1)}
        yield case("linear_chain_crf", x, {}, CRF, grads=grads)
        y = {"Emission": emission, "Transition": transition}
        yield case("crf_decoding", y, {}, ["ViterbiPath"])
        yield case("crf_decoding", dict(y, Label=x["Label"]), {}, ["ViterbiPath"])
    padded = {"Emission": some(1, 3, 4, 3), "Transition": transition}
    lengths = np.array([[4], [1], [3]], "int64")
    label = np.array([[0, 2, 1, 0], [1, 0, 0, 0], [2, 2, 1, 0]], "int64")
    x = dict(padded, Label=label[:, :, None], Length=lengths)
    grads = {"LogLikelihood": count(3, 1)}
    yield case("linear_chain_crf", x, {}, CRF, grads=grads)
    yield case("crf_decoding", dict(padded, Length=lengths), {}, ["ViterbiPath"])
    y = dict(padded, Label=label, Length=lengths)
    yield case("crf_decoding", y, {}, ["ViterbiPath"])
    far = {"Emission": seq(some(1, 6, 3) * 40, UNEVEN)}
    far.update(Transition=transition * 10, Label=seq(labels, UNEVEN))
    grads = {"LogLikelihood": count(3, 1)}
    yield case("linear_chain_crf", far, {}, CRF, grads=grads)


def without_work(path):
    """Take the slots of `WORK` out of the records."""
    with open(path) as file:
        records = json.load(file)
    for found in records:
        for slot in WORK.get(found["case"]["op"], ()):
            found["answer"].get("outs", {}).pop(slot, None)
            found["answer"].get("infer", {}).pop(slot, None)
    with open(path, "w") as file:
        json.dump(records, file)


if __name__ == "__main__":
    path = os.path.join(HERE, "rnn_ops.json")
    record([*lstms(), *lstmps(), *grus(), *units(), *odd()], path)
    without_work(path)
    record(list(crfs()), os.path.join(HERE, "crf_ops.json"))
