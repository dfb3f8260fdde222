"""What the reference makes of detection_map: ways to overlap, states, random images."""

import json
import os

import numpy as np
from array_ops import case
from edges import short
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))
OUTS = ["AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"]
BOX = [0.1, 0.1, 0.5, 0.5]
LEFT, FAR = [0.1, 0.1, 0.3, 0.5], [0.6, 0.6, 0.9, 0.9]
ATTRS = {
    "class_num": 3,
    "background_label": 0,
    "overlap_threshold": 0.5,
    "evaluate_difficult": True,
    "ap_type": "integral",
}


def seq(rows, offsets, width=6, dtype="float32"):
    return {"data": np.array(rows, dtype).reshape(-1, width), "lod": [offsets]}


def ask(found, true, sizes=None, state=None, dtype="float32", **attrs):
    """One image unless sizes (offsets of both) are given."""
    ends = sizes or ([0, len(found)], [0, len(true)])
    width = len(true[0]) if len(true) else 6
    inputs = {
        "DetectRes": seq(found, ends[0], dtype=dtype),
        "Label": seq(true, ends[1], width, dtype),
    }
    inputs.update(state or {})
    return case("detection_map", inputs, dict(ATTRS, **attrs), OUTS)


def state(flag, counts, hits, misses, offsets, dtype="float32"):
    return {
        "HasState": np.array([flag], "int32"),
        "PosCount": np.array(counts, "int32").reshape(-1, 1),
        "TruePos": seq(hits, offsets, 2, dtype),
        "FalsePos": seq(misses, offsets, 2, dtype),
    }


def overlaps():
    one = [[1] + BOX]
    yield ask([[1, 0.9] + BOX], one)
    yield ask([[1, 0.9] + BOX, [1, 0.8] + BOX], one)
    yield ask([[1, 0.8] + BOX, [1, 0.9, 0.1, 0.1, 0.5, 0.45]], one)
    yield ask([[1, 0.8] + BOX, [1, 0.8, 0.1, 0.1, 0.5, 0.45]], one)
    yield ask([[2, 0.9] + BOX], one)
    yield ask([[1.7, 0.9] + BOX, [-0.5, 0.9] + BOX], [[1.2] + BOX])
    for threshold in (0.5, 0.25):
        half, whole = [0, 0, 1, 0.5], [0, 0, 1, 1]
        yield ask([[1, 0.8] + half], [[1] + whole], overlap_threshold=threshold)
    for found, true in (
        ([0, 0, 2, 2], [0, 0, 1, 1]),
        ([0, 0, 2, 2], [0, 0, 2, 2]),
        ([-1, -1, 1, 1], [0, 0, 1, 1]),
        ([0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]),
        ([0.1, 0.1, 0.5, 0.1], BOX),
        ([0.5, 0.5, 0.1, 0.1], BOX),
        ([0.5, 0.5, 0.1, 0.1], [0.5, 0.5, 0.1, 0.1]),
        ([0.5, 0.5, 0.1, 0.1], [0.1, 0.1, 0.5, 0.7]),
        ([float("nan"), 0.1, 0.5, 0.5], BOX),
        (BOX, [float("nan"), 0.1, 0.5, 0.5]),
        ([1e-8, 1e-8, 1e8, 1e8], [1e-8, 1e-8, 1, 1]),
    ):
        yield ask([[1, 0.8] + found], [[1] + true])
    yield ask([[1, 0.9] + BOX] * 2, [[1] + BOX] * 2)
    yield ask([[1, 0.9] + BOX, [1, 0.8] + BOX], [[1] + BOX, [1, 0.1, 0.1, 0.5, 0.45]])
    yield ask([[1, float("inf")] + BOX, [1, 0.5] + BOX], one)
    yield ask([[1, 1e8] + BOX, [1, 1e-8] + BOX], one)
    yield ask([], one)
    yield ask([[1, 0.9] + BOX], [])
    yield ask([], [])


def difficult():
    for easy in (True, False):
        yield ask([[1, 0.9] + BOX], [[1, 1] + BOX], evaluate_difficult=easy)
        found = [[1, 0.9] + BOX, [1, 0.8] + BOX, [1, 0.7] + FAR]
        true = [[1, 1] + BOX, [1, 0] + FAR]
        yield ask(found, true, evaluate_difficult=easy)
        yield ask(found, [t[:1] + t[2:] for t in true], evaluate_difficult=easy)
        true = [[1, 1] + BOX, [1, 0] + BOX]
        yield ask(found, true, evaluate_difficult=easy)
    for flag in (0.4, -1, 1e-7, 1e-5):
        yield ask([[1, 0.9] + BOX], [[1, flag] + BOX], evaluate_difficult=False)


def averages():
    both = [[1, 0.9] + BOX, [2, 0.8] + FAR, [1, 0.95] + FAR]
    true = [[1] + LEFT, [1] + BOX, [2] + BOX]
    for ap_type in ("integral", "11point"):
        for background in (-1, 0, 1, 2):
            attrs = {"background_label": background, "ap_type": ap_type}
            yield ask(both, true, **attrs)
    for many in (1, 2, 3, 6, 7, 9, 10):
        ten = [[1, i * 0.1, 0, i * 0.1 + 0.08, 0.5] for i in range(10)]
        found = [[1, 0.9 - 0.01 * i] + ten[i][1:] for i in range(many)]
        for dtype in ("float32", "float64"):
            yield ask(found, ten, ap_type="11point", dtype=dtype)


def states():
    here = ([[1, 0.9] + BOX, [2, 0.9] + BOX], [[1] + BOX])
    hits = [[0.5, 1], [0.4, 0], [0.3, 1]]
    misses = [[0.5, 0], [0.4, 1], [0.3, 0]]
    for flag in (0, 1, 2, -1):
        yield ask(*here, state=state(flag, [1, 4, 2], hits, misses, [0, 0, 2, 3]))
    made = state(1, [1, 4, 2, 5], hits, misses, [0, 0, 2, 3, 3])
    yield ask(*here, state=made)
    made = state(1, [1, 4], hits, misses, [0, 0, 3])
    yield ask(*here, state=made)
    for background in (-1, 0, 2):
        for ap_type in ("integral", "11point"):
            made = state(1, [0, 1, 0], [], [], [0, 0, 0, 0])
            attrs = {"background_label": background, "ap_type": ap_type}
            yield ask(*here, state=made, **attrs)
    made = state(1, [0, 4, 0], [[0.5, 2.7], [0.4, 0.6]], misses[:2], [0, 0, 2, 2])
    yield ask(*here, state=made)
    made = state(1, [1, 4, 2], hits, misses, [0, 0, 2, 3], "float64")
    yield ask(*here, state=made, dtype="float64")
    made = state(1, [1, 4, 2], hits, misses, [0, 0, 2, 3])
    for absent in (["HasState"], ["PosCount", "TruePos", "FalsePos"], ["TruePos"]):
        some = {k: v for k, v in made.items() if k not in absent}
        yield ask(*here, state=some)
    yield ask([], [[1] + BOX], state=made)
    yield ask([[1, 0.9] + BOX], [], state=made)


def refused():
    one, other = [[1, 0.9] + BOX], [[1] + BOX]
    yield ask(one, other, ([0, 1], [0, 0, 1]))
    yield ask(one * 2, other * 2, ([0, 1], [0, 1]))
    yield ask(one, other, ap_type="x")
    yield ask(one, [[1] + BOX[1:]])
    yield ask(one, other, class_num=-1)
    plain = ask(one, other)
    inputs = dict(plain["inputs"], DetectRes=seq([-1], [0, 1], 1))
    yield dict(plain, inputs=inputs)
    inputs = dict(plain["inputs"], Label=seq(other, [0, 1], 5, "float64"))
    yield dict(plain, inputs=inputs)
    yield dict(plain, inputs={k: v["data"] for k, v in plain["inputs"].items()})
    inputs = {k: dict(v, lod=[[0, 1]] * 2) for k, v in plain["inputs"].items()}
    yield dict(plain, inputs=inputs)
    whole = {
        k: dict(v, data=v["data"].astype("int32")) for k, v in plain["inputs"].items()
    }
    yield dict(plain, inputs=whole)


def boxes(rng, many):
    low = rng.rand(many, 2) * 0.6
    return np.hstack([low, low + 0.1 + rng.rand(many, 2) * 0.4])


def images(rng, sizes, classes):
    """Labels, and detections that mostly are labels moved a little."""
    labels, found, ends, starts = [], [], [0], [0]
    for size in sizes:
        kinds = rng.randint(0, classes, (size, 1))
        true = boxes(rng, size)
        labels.append(np.hstack([kinds, rng.rand(size, 1) < 0.3, true]))
        moved = np.vstack([true + rng.randn(size, 4) * 0.03] * 2 + [boxes(rng, 3)])
        kinds = np.vstack([kinds, kinds, rng.randint(0, classes, (3, 1))])
        score = np.round(rng.rand(len(kinds), 1), 1)
        kept = rng.rand(len(kinds)) < 0.7
        found.append(np.hstack([kinds, score, moved])[kept])
        ends.append(ends[-1] + int(kept.sum()))
        starts.append(starts[-1] + size)
    return np.vstack(found), np.vstack(labels), (ends, starts)


def random():
    rng = np.random.RandomState(8)
    for ap_type in ("integral", "11point"):
        for easy in (True, False):
            for background in (0, 3):
                attrs = {"ap_type": ap_type, "evaluate_difficult": easy}
                attrs.update(class_num=4, background_label=background)
                found, true, ends = images(rng, (4, 0, 6, 2), 4)
                yield ask(found, true, ends, overlap_threshold=0.4, **attrs)
                found, true, ends = images(rng, (5, 3), 4)
                score = np.round(rng.rand(12, 1), 1)
                flag = rng.randint(0, 2, (12, 1))
                hits, misses = np.hstack([score, flag]), np.hstack([score, 1 - flag])
                made = state(1, [3, 0, 5, 4], hits, misses, [0, 5, 5, 9, 12])
                yield ask(found, true, ends, made, overlap_threshold=0.6, **attrs)


def cases():
    for some in (overlaps, difficult, averages, states, refused, random):
        yield from some()


if __name__ == "__main__":
    path = os.path.join(HERE, "detection_map.json")
    record(list(cases()), path)
    with open(path) as file:
        found = short(json.load(file))
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(f) for f in found) + "\n]\n")
