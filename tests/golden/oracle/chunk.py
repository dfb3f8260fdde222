"""What the reference counts as chunks: random labels, every scheme, and odd inputs."""

import os

import numpy as np
from array_ops import case
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))
OUTS = [
    "Precision",
    "Recall",
    "F1-Score",
    "NumInferChunks",
    "NumLabelChunks",
    "NumCorrectChunks",
]
TAGS = {"IOB": 2, "IOE": 2, "IOBES": 4, "plain": 1}


def seq(data, lod):
    return {"data": data, "lod": lod}


def labels(rng, *shape, high):
    return rng.randint(0, high, shape).astype("int64")


def alike(rng, truth, high):
    """The same labels, some of them changed."""
    found = truth.copy()
    found[rng.rand(*truth.shape) < 0.2] = rng.randint(0, high)
    return found


def cases():
    rng = np.random.RandomState(4)
    for scheme, tags in TAGS.items():
        for types, excluded in ((3, []), (1, []), (3, [1]), (3, [0, 2])):
            high = types * tags + 1
            attrs = {"num_chunk_types": types, "chunk_scheme": scheme}
            attrs["excluded_chunk_types"] = excluded
            for lod in ([[0, 12, 13, 40]], [[0, 0, 20, 20, 40]]):
                true = labels(rng, 40, 1, high=high)
                found = alike(rng, true, high)
                x = {"Inference": seq(found, lod), "Label": seq(true, lod)}
                yield case("chunk_eval", x, attrs, OUTS)
            true = labels(rng, 4, 9, high=high)
            found = alike(rng, true, high)
            sizes = np.array([9, 3, 0, 7], "int64")
            x = {"Inference": found, "Label": true, "SeqLength": sizes}
            yield case("chunk_eval", x, attrs, OUTS)
    attrs = {"num_chunk_types": 2, "chunk_scheme": "IOB"}
    true = np.array([[0], [1], [4], [2], [3], [3]], "int64")
    lod = [[0, 6]]

    def ask(found, true, lod=lod, more=None, **changed):
        x = {"Inference": found, "Label": true}
        if lod:
            x = {k: seq(v, lod) for k, v in x.items()}
        return case("chunk_eval", dict(x, **(more or {})), dict(attrs, **changed), OUTS)

    yield ask(true, true)
    yield ask(np.full_like(true, 4), true)
    yield ask(true, np.full_like(true, 4))
    yield ask(np.full_like(true, 4), np.full_like(true, 4))
    yield ask(true + 1, true)
    yield ask(true, true, chunk_scheme="BIO")
    yield ask(true, true, None)
    yield ask(true.reshape(-1), true.reshape(-1))
    yield ask(true.astype("int32"), true.astype("int32"))
    yield ask(true, true, [[0, 2], [0, 2, 6]])
    size = {"SeqLength": np.array([2, 3], "int64")}
    yield ask(true.reshape(2, 3), true.reshape(2, 3), None, size)
    yield ask(true.reshape(2, 3, 1), true.reshape(2, 3, 1), None, size)
    size = {"SeqLength": np.array([[2], [3]], "int64")}
    yield ask(true.reshape(2, 3), true.reshape(2, 3), None, size)


if __name__ == "__main__":
    record(list(cases()), os.path.join(HERE, "chunk.json"))
