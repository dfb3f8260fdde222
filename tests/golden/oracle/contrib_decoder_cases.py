"""Networks with `fluid.contrib.decoder`. For both systems; see dynamic_rnn_cases.py."""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    made = np.sin(1.7 * np.arange(int(np.prod(shape))) + len(shape)).reshape(shape)
    return np.round(2 * made, 3).astype("float32")


def _attr(fluid, name, *shape):
    start = fluid.initializer.NumpyArrayInitializer(_waves(*shape))
    return fluid.ParamAttr(name=name, initializer=start)


def _given(fluid, **shapes):
    """Starting values for parameters that a decoder makes itself."""
    block = fluid.default_startup_program().global_block()
    for name, shape in shapes.items():
        values = [float(v) for v in _waves(*shape).ravel()]
        block.append_op(
            type="assign_value",
            outputs={"Out": [block.var(name.replace("__", "."))]},
            attrs={"shape": list(shape), "dtype": 5, "fp32_values": values},
        )


def _source(fluid):
    source = fluid.data("source", [None, 1], "int64", 1)
    words = fluid.layers.embedding(source, [6, 3], param_attr=_attr(fluid, "s", 6, 3))
    hidden = fluid.layers.fc(
        words, 4, act="tanh", param_attr=_attr(fluid, "enc", 3, 4), bias_attr=False
    )
    return words, fluid.layers.sequence_last_step(hidden)


def _cell(fluid, start, two=False, further=()):
    contrib, layers = fluid.contrib.decoder, fluid.layers
    states = {"h": contrib.InitState(init=start, need_reorder=True)}
    if two:
        states["c"] = contrib.InitState(init_boot=start, shape=[-1, 4], value=0.5)
    inputs = dict.fromkeys(("x",) + tuple(further))
    cell = contrib.StateCell(inputs=inputs, states=states, out_state="h")

    @cell.state_updater
    def updater(cell):
        # a state that took its LoD of the word could not be expanded again
        seen = [cell.get_state("h"), cell.get_input("x")]
        seen += [cell.get_state("c")] if two else []
        seen += [cell.get_input(name) for name in further]
        attrs = [_attr(fluid, "cell%d" % i, v.shape[-1], 4) for i, v in enumerate(seen)]
        made = layers.fc(seen, 4, act="tanh", param_attr=attrs, bias_attr=False)
        if two:
            kept = layers.elementwise_add(cell.get_state("c") * 0.5, made)
            cell.set_state("c", kept)
            made = layers.elementwise_mul(made, layers.tanh(kept))
        cell.set_state("h", made)

    return cell


def _train(fluid, two, static=False, both=False):
    layers = fluid.layers
    words, start = _source(fluid)
    cell = _cell(fluid, start, two)
    target = fluid.data("target", [None, 1], "int64", 1)
    seen = layers.embedding(target, [7, 3], param_attr=_attr(fluid, "t", 7, 3))
    decoder = fluid.contrib.decoder.TrainingDecoder(state_cell=cell)
    with decoder.block():
        now = decoder.step_input(seen)
        if static:
            around = decoder.static_input(words)
            now = layers.elementwise_add(now, layers.sequence_pool(around, "average"))
        decoder.state_cell.compute_state(inputs={"x": now})
        out = decoder.state_cell.get_state("h")
        rated = layers.fc(
            out,
            7,
            act="softmax",
            param_attr=_attr(fluid, "out", 4, 7),
            bias_attr=False,
        )
        decoder.state_cell.update_states()
        decoder.output(*([rated, out] if both else [rated]))
    found = decoder() if both else [decoder()]
    rated = found[0]
    label = fluid.data("label", [None, 1], "int64", 1)
    loss = layers.mean(layers.cross_entropy(input=rated, label=label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    block = fluid.default_main_program().global_block()
    slopes = [block.var(n + "@GRAD") for n in ("cell0", "cell1", "out", "enc")]
    feed = {
        "source": (np.array([[1], [2], [3], [4], [5]]), [[2, 3]]),
        "target": (np.array([[0], [3], [0], [2], [6]]), [[2, 3]]),
        "label": (np.array([[3], [1], [2], [6], [1]]), [[2, 3]]),
    }
    return feed, found + [loss] + slopes


@case
def training(fluid):
    return _train(fluid, two=False)


@case
def training_two_states(fluid):
    return _train(fluid, two=True, both=True)


@case
def training_with_static_input(fluid):
    return _train(fluid, two=True, static=True)


def _search(fluid, two=False, further=(), **options):
    _, start = _source(fluid)
    cell = _cell(fluid, start, two, further)
    known = {name: fluid.data(name, [None, 2]) for name in further}
    ids = fluid.data("ids", [None, 1], "int64", 2)
    scores = fluid.data("scores", [None, 1], "float32", 2)
    decoder = fluid.contrib.decoder.BeamSearchDecoder(
        state_cell=cell,
        init_ids=ids,
        init_scores=scores,
        target_dict_dim=7,
        word_dim=3,
        input_var_dict=known,
        end_id=1,
        **options,
    )
    decoder.decode()
    _given(fluid, embedding_1__w_0=(7, 3), fc_2__w_0=(4, 7))
    feed = {
        "source": (np.array([[1], [2], [3], [4], [5]]), [[2, 2, 1]]),
        "ids": (np.zeros((3, 1), "int64"), [[1, 1, 1], [1, 1, 1]]),
        "scores": (np.zeros((3, 1), "float32"), [[1, 1, 1], [1, 1, 1]]),
    }
    feed.update((name, _waves(3, 2)) for name in further)
    return feed, list(decoder())


@case
def search(fluid):
    return _search(fluid, topk_size=7, max_len=6, beam_size=3)


@case
def search_two_states(fluid):
    return _search(fluid, two=True, topk_size=4, max_len=5, beam_size=2)


@case
def search_with_input(fluid):
    return _search(fluid, False, ["known"], topk_size=5, max_len=5, beam_size=2)


@case
def search_greedily(fluid):
    return _search(fluid, topk_size=3, max_len=4, sparse_emb=False)


@case
def search_by_hand(fluid):
    """`block` without `decode`: a beam of words by a table, stopped by hand."""
    layers = fluid.layers
    contrib = fluid.contrib.decoder
    start = fluid.data("start", [None, 5])
    cell = contrib.StateCell(
        inputs={"word": None}, states={"h": contrib.InitState(start)}, out_state="h"
    )

    @cell.state_updater
    def updater(cell):
        cell.set_state("h", cell.get_state("h") * 0.5 + cell.get_input("word"))

    init_ids = fluid.data("ids", [None, 1], "int64", 2)
    init_scores = fluid.data("scores", [None, 1], "float32", 2)
    decoder = contrib.BeamSearchDecoder(
        cell, init_ids, init_scores, 5, 5, max_len=6, beam_size=2, end_id=4
    )
    with decoder.block():
        ids = decoder.read_array(init=init_ids, is_ids=True)
        scores = decoder.read_array(init=init_scores, is_scores=True)
        word = layers.embedding(ids, [5, 5], param_attr=_attr(fluid, "table", 5, 5))
        state = cell.get_state("h")
        cell.set_state("h", layers.sequence_expand(state, scores))
        cell.compute_state({"word": word})
        rated = layers.softmax(layers.lod_reset(cell.out_state(), scores))
        likely, which = layers.topk(rated, k=3)
        whole = layers.elementwise_add(
            layers.log(likely), layers.reshape(scores, [-1]), axis=0
        )
        chosen, best = layers.beam_search(ids, scores, which, whole, 2, end_id=4)
        with layers.Switch() as switch:
            with switch.case(layers.is_empty(chosen)):
                decoder.early_stop()
            with switch.default():
                decoder.state_cell.update_states()
                decoder.update_array(ids, chosen)
                decoder.update_array(scores, best)
    feed = {
        "start": _waves(2, 5),
        "ids": (np.zeros((2, 1), "int64"), [[1, 1], [1, 1]]),
        "scores": (np.zeros((2, 1), "float32"), [[1, 1], [1, 1]]),
    }
    return feed, list(decoder())
