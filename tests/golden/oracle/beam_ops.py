"""Asks the reference about `beam_search` and `gather_tree`: beam_ops.json.

And about `beam_search_decode`, whose inputs are arrays: beam_decodes.json.
"""

import json
import multiprocessing
import os

import numpy as np
from op_probe import record

HERE = os.path.dirname(os.path.abspath(__file__))
OUTS = ["selected_ids", "selected_scores", "parent_idx"]


def step(pre_ids, pre_scores, ids, scores, lod, beam, end=0, acc=True, level=0):
    def seq(value, dtype):
        return {"data": np.array(value, dtype), "lod": lod}

    inputs = {
        "pre_ids": seq(np.reshape(pre_ids, (-1, 1)), "int64"),
        "pre_scores": seq(np.reshape(pre_scores, (-1, 1)), "float32"),
    }
    if ids is not None:
        inputs["ids"] = seq(ids, "int64")
    inputs["scores"] = seq(scores, "float32")
    attrs = {"level": level, "beam_size": beam, "end_id": end, "is_accumulated": acc}
    return {"op": "beam_search", "inputs": inputs, "attrs": attrs, "outs": OUTS}


def steps():
    lod = [[0, 2, 4], [0, 1, 2, 3, 4]]
    ids = np.arange(1, 13).reshape(4, 3)
    scores = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.9, 0.5, 0.1], [0.5, 0.5, 0.5]]
    four, low = [5, 5, 5, 5], [0.1, 0.2, 0.3, 0.4]
    yield step(four, low, ids, scores, lod, 2)
    yield step([5, 0, 0, 0], low, ids, scores, lod, 3)
    yield step([0, 0, 0, 0], low, ids, scores, lod, 2)
    yield step(four, low, ids, scores, lod, 2, acc=False)
    yield step(four, low, None, scores, lod, 2, acc=False)
    yield step(four, low, None, scores, lod, 1, end=1)
    yield step(four, low, ids % 4, scores, lod, 2)
    yield step(four, low, ids, scores, lod, 9)
    for beam in (1, 2, 3, 4, 5):
        yield step(four, low, ids, np.full((4, 3), 0.5), lod, beam)
        yield step(
            [0, 5, 5, 0], [0.5, 0.2, 0.3, 0.5], ids, np.full((4, 3), 0.5), lod, beam
        )
    two = dict(pre_ids=four[:2], pre_scores=low[:2], ids=ids[:2], scores=scores[:2])
    for other in (
        [[0, 0, 2], [0, 1, 2]],
        [[0, 2, 2], [0, 1, 2]],
        [[0, 2], [0, 0, 2]],
        [[0, 1, 2], [0, 1, 2]],
    ):
        yield step(lod=other, beam=2, **two)
    yield step(lod=[[0, 2, 2], [0, 1, 2]], beam=2, level=1, **two)
    far = np.array([[1e9, -1e-9, 3], [np.inf, -np.inf, 2]])
    yield step(four[:2], [1e9, 1e-9], ids[:2], far, [[0, 2], [0, 1, 2]], 3)
    random = np.random.RandomState(0)
    for seed in range(40):
        sources, beam, width = random.randint(1, 4, 3)
        prefixes = random.randint(1, 5, sources)
        count = prefixes.sum()
        # quarters: many are equal
        scores = random.randint(0, 4, (count, width)) / 4.0 - 1
        ids = random.randint(0, 5, (count, width))
        yield step(
            random.randint(0, 3, count),
            random.randint(0, 4, count) / 4.0 - 1,
            ids,
            scores if seed % 4 else np.exp(scores),
            [[0] + np.cumsum(prefixes).tolist(), list(range(count + 1))],
            int(beam),
            acc=bool(seed % 4),
        )


def trees():
    ids = np.arange(24).reshape(4, 2, 3)
    for dtype in ("int64", "int32"):
        parents = (np.arange(24) * 7 % 3).reshape(4, 2, 3).astype(dtype)
        inputs = {"Ids": ids.astype(dtype), "Parents": parents}
        yield {"op": "gather_tree", "inputs": inputs, "attrs": {}, "outs": ["Out"]}
    one = {"Ids": ids[:1, :, :1], "Parents": ids[:1, :, :1] * 0}
    yield {"op": "gather_tree", "inputs": one, "attrs": {}, "outs": ["Out"]}


# --- decoding --------------------------------------------------------------------


def search(random, sources, beam, words, length, end=0):
    """What a search selected in each step: ids, scores, LoD."""
    ids, scores = np.ones(sources, "i8"), np.zeros(sources)
    lod = [list(range(sources + 1))] * 2
    found = [(ids, scores, lod)]
    owner = np.arange(sources)
    for _ in range(length):
        picked, by_row = [], [[] for _ in ids]
        for source in range(sources):
            rows = np.flatnonzero(owner == source)
            if len(rows) and (ids[rows] == end).all():
                continue
            options = []
            for row in rows:
                if ids[row] == end:
                    options.append((scores[row], row, end))
                    continue
                for word in random.permutation(words)[:beam]:
                    options.append((scores[row] - random.rand(), row, word))
            for score, row, word in sorted(options, reverse=True)[:beam]:
                by_row[row].append((word, score))
        prefixes = [0] + np.cumsum(np.bincount(owner, minlength=sources)).tolist()
        counts = [len(items) for items in by_row]
        picked = [item for items in by_row for item in items]
        owner = np.repeat(owner, counts)
        ids = np.array([w for w, _ in picked], "i8")
        scores = np.array([s for _, s in picked], "f4")
        found.append((ids, scores, [prefixes, [0] + np.cumsum(counts).tolist()]))
        if not picked:
            break
    return found


def decode(steps, beam, end, pipe):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    import paddle.fluid as fluid

    place, feed = fluid.CPUPlace(), {}
    ids = scores = None
    for t, (a, b, lod) in enumerate(steps):
        i = fluid.layers.fill_constant([1], "int64", t)
        x = fluid.data("i%d" % t, [None, 1], "int64", 2)
        y = fluid.data("s%d" % t, [None, 1], "float32", 2)
        ids = fluid.layers.array_write(x, i, ids)
        scores = fluid.layers.array_write(y, i, scores)
        for name, value, dtype in (("i", a, "int64"), ("s", b, "float32")):
            tensor = feed[name + str(t)] = fluid.LoDTensor()
            tensor.set(np.array(value, dtype).reshape(-1, 1), place)
            tensor.set_lod(lod)
    out = fluid.layers.beam_search_decode(ids, scores, beam_size=beam, end_id=end)
    exe = fluid.Executor(place)
    made = exe.run(feed=feed, fetch_list=list(out), return_numpy=False)
    pipe.send([[np.array(x).ravel().tolist(), x.lod()] for x in made])


def decodes():
    random = np.random.RandomState(1)
    for _ in range(30):
        sources, beam = int(random.randint(1, 4)), int(random.randint(1, 4))
        steps = search(random, sources, beam, 4 + beam, int(random.randint(1, 7)))
        ours, theirs = multiprocessing.Pipe(False)
        job = multiprocessing.Process(target=decode, args=(steps, beam, 0, theirs))
        job.start()
        theirs.close()
        try:
            answer = ours.recv()
        except EOFError:
            answer = None  # it crashes where a source has fewer than `beam` prefixes
        job.join()
        plain = [
            [np.ravel(a).tolist(), np.float32(b).ravel().tolist(), lod]
            for a, b, lod in steps
        ]
        if answer is not None:
            yield {"steps": plain, "beam": beam, "answer": answer}


if __name__ == "__main__":
    record(list(steps()) + list(trees()), os.path.join(HERE, "beam_ops.json"))
    found = list(decodes())
    with open(os.path.join(HERE, "beam_decodes.json"), "w") as file:
        json.dump({"decodes": found}, file, separators=(",", ":"))
    print(len(found), os.path.getsize(os.path.join(HERE, "beam_decodes.json")))
