"""Networks that search with beams, as 1.x scripts do. For both systems; see
dynamic_rnn_cases.py.
"""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape, step=1.0):
    made = np.sin(np.arange(int(np.prod(shape))) * step).reshape(shape)
    return np.round(made, 3).astype("float32")


def _attr(fluid, name, value):
    numpy = fluid.initializer.NumpyArrayInitializer
    return fluid.ParamAttr(name, initializer=numpy(value.astype("float32")))


WORDS, SIZE, BEAM, END = 11, 5, 3, 10


def _one_step(fluid, state, ids, word):
    """The next state, and the probabilities of words."""
    emb = fluid.layers.embedding(
        ids,
        [WORDS, SIZE],
        param_attr=_attr(fluid, "emb", _waves(WORDS, SIZE, step=1.7)),
    )
    attrs = [
        _attr(fluid, n, _waves(SIZE, SIZE, step=s)) for n, s in (("a", 0.9), ("b", 2))
    ]
    state = fluid.layers.fc([state, emb], SIZE, act="tanh", param_attr=attrs)
    shown = fluid.layers.lod_reset(state, y=word)
    out = _attr(fluid, "out", 2 * _waves(SIZE, WORDS, step=1.3))
    return state, fluid.layers.fc(shown, WORDS, act="softmax", param_attr=out)


def _search(fluid, length, accumulated=True, parents=False):
    layers = fluid.layers
    context = fluid.data("context", [None, SIZE])
    limit = layers.fill_constant([1], "int64", length)
    counter = layers.zeros([1], "int64", force_cpu=True)
    states = layers.create_array("float32")
    layers.array_write(context, counter, states)
    ids, scores = layers.create_array("int64"), layers.create_array("float32")
    init_ids = fluid.data("init_ids", [None, 1], "int64", 2)
    init_scores = fluid.data("init_scores", [None, 1], "float32", 2)
    layers.array_write(init_ids, counter, ids)
    layers.array_write(init_scores, counter, scores)
    cond = layers.less_than(counter, limit)
    with layers.While(cond).block():
        pre_ids = layers.array_read(ids, counter)
        pre_state = layers.array_read(states, counter)
        pre_score = layers.array_read(scores, counter)
        expanded = layers.sequence_expand(pre_state, pre_score)
        state, share = _one_step(fluid, expanded, pre_ids, pre_score)
        best, indices = layers.topk(share, k=BEAM)
        if accumulated:
            flat = layers.reshape(pre_score, [-1])
            best = layers.elementwise_add(layers.log(best), flat, axis=0)
        found = layers.beam_search(
            pre_ids,
            pre_score,
            indices,
            best,
            BEAM,
            END,
            level=0,
            is_accumulated=accumulated,
            return_parent_idx=parents,
        )
        layers.increment(counter, 1, in_place=True)
        layers.array_write(state, counter, states)
        layers.array_write(found[0], counter, ids)
        layers.array_write(found[1], counter, scores)
        more = layers.less_than(counter, limit)
        some = layers.logical_not(layers.is_empty(found[0]))
        layers.logical_and(more, some, out=cond)
    return layers.beam_search_decode(ids, scores, BEAM, END), counter


def _feed(sources):
    ones = [[1] * sources, [1] * sources]
    return {
        "context": _waves(sources, SIZE, step=0.7),
        "init_ids": (np.ones((sources, 1), "int64"), ones),
        "init_scores": (np.ones((sources, 1), "float32"), ones),
    }


@case
def book(fluid):
    (ids, scores), counter = _search(fluid, 8)
    return _feed(3), [ids, scores, counter]


@case
def one_source_with_shares(fluid):
    (ids, scores), counter = _search(fluid, 6, accumulated=False, parents=True)
    return _feed(1), [ids, scores, counter]


@case
def until_all_have_ended(fluid):
    (ids, scores), counter = _search(fluid, 60)
    return _feed(2), [ids, scores, counter]


@case
def two_steps(fluid):
    (ids, scores), counter = _search(fluid, 2)
    return _feed(4), [ids, scores, counter]


def _step(fluid, **attrs):
    pre_ids = fluid.data("pre_ids", [None, 1], "int64", 2)
    pre_scores = fluid.data("pre_scores", [None, 1], "float32", 2)
    scores = fluid.data("scores", [None, 4], "float32", 2)
    found = fluid.layers.beam_search(
        pre_ids, pre_scores, None, scores, 2, 0, return_parent_idx=True, **attrs
    )
    lod = [[2, 2], [1, 1, 1, 1]]
    feed = {
        "pre_ids": (np.array([[4], [0], [0], [2]]), lod),
        "pre_scores": (_waves(4, 1), lod),
        "scores": (_waves(4, 4) + 1, lod),
    }
    return feed, list(found)


@case
def without_ids(fluid):
    return _step(fluid, is_accumulated=False, name="named")


@case
def without_ids_accumulated(fluid):
    return _step(fluid)


@case
def tree(fluid):
    ids, parents = (fluid.data(n, [4, 2, 3], "int64") for n in ("ids", "parents"))
    whole = fluid.layers.gather_tree(ids, parents)
    feed = {
        "ids": np.arange(24).reshape(4, 2, 3),
        "parents": (np.arange(24) * 7 % 3).reshape(4, 2, 3),
    }
    return feed, [whole]
