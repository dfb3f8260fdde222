"""Asks the reference about `warpctc` and `ctc_align`: ctc_ops.json."""

import os

import numpy as np
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))


def loss(x, times, ids, counts, padded=False, **attrs):
    """times, counts: lengths of the sequences and of their labels."""
    x, ids = np.array(x, "f4"), np.array(ids, "i4").reshape(-1, 1)
    head = np.arange(1, len(times) + 1, dtype="f4").reshape(-1, 1)
    case = {"op": "warpctc", "outs": ["WarpCTCGrad", "Loss"], "grads": {"Loss": head}}
    case["attrs"] = dict({"blank": 0, "norm_by_times": False}, **attrs)

    def ends(lengths):
        return [[0] + np.cumsum(lengths).tolist()]

    if padded:
        wide = np.full((max(times), len(times), x.shape[1]), 7, "f4")
        label = np.zeros((len(times), max(counts)), "i4")
        for i in range(len(times)):
            start, first = sum(times[:i]), sum(counts[:i])
            wide[: times[i], i] = x[start : start + times[i]]
            label[i, : counts[i]] = ids[first : first + counts[i], 0]
        case["inputs"] = {
            "Logits": wide,
            "Label": label,
            "LogitsLength": np.array(times, "i8"),
            "LabelLength": np.array(counts, "i8"),
        }
    else:
        case["inputs"] = {
            "Logits": {"data": x, "lod": ends(times)},
            "Label": {"data": ids, "lod": ends(counts)},
        }
    return case


def losses():
    random = np.random.RandomState(0)

    def x(rows, classes=4):
        return np.round(random.randn(rows, classes), 2)

    for padded in (False, True):
        for attrs in ({}, {"norm_by_times": True}, {"blank": 3}):
            ids = [1, 2, 2, 0] if attrs.get("blank") else [1, 2, 2, 3]
            yield loss(x(7), [4, 3], ids, [3, 1], padded, **attrs)
        yield loss(x(7), [2, 5], [1, 2, 2, 3], [3, 1], padded)  # does not fit
        yield loss(x(7), [3, 4], [2, 2, 1], [2, 1], padded)
        yield loss(x(5), [1, 4], [2, 2, 1, 2], [1, 3], padded)
        yield loss(x(7), [4, 3], [1, 2], [2, 0], padded)
        yield loss(x(3) * 0, [3], [1, 2], [2], padded)
        yield loss(x(5) * 2, [5], [1, 1], [2], padded)
        yield loss(x(11, 6), [5, 6], [1, 2, 3, 3, 4, 5, 5], [3, 4], padded)
    yield loss(x(7), [0, 7], [1, 2, 2, 3], [1, 3])
    whole = loss(x(3), [3], [1], [1])
    whole["inputs"]["Logits"]["data"] = np.arange(12).reshape(3, 4)
    del whole["grads"]
    yield whole


def aligned(ids, lod=None, length=None, **attrs):
    inputs, outs = {"Input": np.array(ids)}, ["Output"]
    if lod:
        inputs["Input"] = {"data": np.array(ids).reshape(-1, 1), "lod": [lod]}
    else:
        inputs["InputLength"] = np.array(length)
        outs.append("OutputLength")
    return {"op": "ctc_align", "inputs": inputs, "attrs": attrs, "outs": outs}


PATH = np.array([0, 1, 1, 0, 2, 2, 0, 4, 0, 4, 5, 0, 6, 6, 0, 0, 7, 7, 7, 0])
ROWS = [[0, 1, 1, 0, 2], [3, 3, 0, 3, 0], [0, 0, 0, 0, 0]]


def paths():
    for lod in ([0, 11, 18, 20], [0, 11, 11, 20], [0, 17, 20], [0, 20]):
        yield aligned(PATH, lod, blank=0, merge_repeated=True)
        yield aligned(PATH, lod, blank=0, merge_repeated=False)
        yield aligned(PATH.astype("i4"), lod, blank=7)
    yield aligned(PATH * 0, [0, 11, 18, 20], blank=0)
    length = [[5], [3], [4]]
    yield aligned(ROWS, length=length, blank=0, padding_value=9)
    yield aligned(ROWS, length=length, blank=0, padding_value=-1, merge_repeated=False)
    yield aligned(ROWS, length=[5, 0, 1], blank=3)
    yield aligned(np.array(ROWS, "i4"), length=np.array(length, "i4"), blank=1)


if __name__ == "__main__":
    record(list(losses()) + list(paths()), os.path.join(HERE, "ctc_ops.json"))
