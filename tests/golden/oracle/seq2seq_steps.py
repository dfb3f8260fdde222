"""Runs under the reference: trains small translators, searches with them, and writes
all numbers of all steps to seq2seq_steps.json.xz. PYTHON seq2seq_steps.py
"""

import json
import lzma
import os
import shutil
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, WIDTH, SIZE, BATCH, STEPS, BEAM = 9, 4, 6, 4, 30, 4
BOS, EOS = 0, 1


def attention_cell(fluid, inner):
    """`inner` on the word beside what it attends to; its states are inner's."""
    layers = fluid.layers

    class Cell(layers.RNNCell):
        def call(self, inputs, states, memory):
            hidden = layers.utils.flatten(states)[0]
            query = layers.unsqueeze(layers.fc(hidden, SIZE, param_attr="query"), [1])
            scores = layers.matmul(query, memory, transpose_y=True)
            seen = layers.matmul(layers.softmax(scores), memory)
            both = layers.concat([inputs, layers.squeeze(seen, [1])], 1)
            return inner(both, states)

        @property
        def state_shape(self):
            return inner.state_shape

    return Cell()


def rate(fluid):
    return lambda x: fluid.layers.fc(
        x, WORDS, len(x.shape) - 1, param_attr="rate.w", bias_attr="rate.b"
    )


def embed(fluid, name):
    return lambda ids: fluid.embedding(ids, [WORDS, WIDTH], param_attr=name)


def encode(fluid, kind):
    source = fluid.data("source", [None, None], "int64")
    lengths = fluid.data("lengths", [None], "int64")
    make = getattr(fluid.layers, kind)
    cell = make(SIZE, name="encoder")
    words = embed(fluid, "source_words")(source)
    memory, last = fluid.layers.rnn(cell, words, sequence_length=lengths)
    return memory, last, attention_cell(fluid, make(SIZE, name="decoder"))


def train_by_helper(fluid, kind):
    layers = fluid.layers
    memory, last, cell = encode(fluid, kind)
    target = fluid.data("target", [None, None], "int64")
    steps = fluid.data("steps", [None], "int64")
    helper = layers.TrainingHelper(embed(fluid, "target_words")(target), steps)
    decoder = layers.BasicDecoder(cell, helper, rate(fluid))
    outputs, _ = layers.dynamic_decode(decoder, last, memory=memory)
    return outputs.cell_outputs, steps


def train_by_rnn(fluid, kind):
    memory, last, cell = encode(fluid, kind)
    target = fluid.data("target", [None, None], "int64")
    steps = fluid.data("steps", [None], "int64")
    words = embed(fluid, "target_words")(target)
    outputs, _ = fluid.layers.rnn(cell, words, last, steps, memory=memory)
    return rate(fluid)(outputs), steps


def cost(fluid, logits, steps):
    layers = fluid.layers
    label = fluid.data("label", [None, None], "int64")
    each = layers.softmax_with_cross_entropy(logits, layers.unsqueeze(label, [2]))
    mask = layers.sequence_mask(steps, layers.shape(logits)[1], "float32")
    each = layers.squeeze(each, [2]) * mask
    return layers.reduce_sum(each) / layers.reduce_sum(mask)


def search(fluid, kind):
    memory, last, cell = encode(fluid, kind)
    decoder = fluid.layers.BeamSearchDecoder(
        cell, BOS, EOS, BEAM, embed(fluid, "target_words"), rate(fluid)
    )
    ids, states, lengths = fluid.layers.dynamic_decode(
        decoder,
        last,
        max_step_num=6,
        is_test=True,
        return_length=True,
        memory=decoder.tile_beam_merge_with_batch(memory, BEAM),
    )
    return [ids, states.log_probs, states.lengths, lengths]


def padded(rows):
    made = np.full((len(rows), max(map(len, rows))), EOS, "int64")
    for i, row in enumerate(rows):
        made[i, : len(row)] = row
    return made, np.array([len(row) for row in rows], "int64")


def batch(step):
    rng = np.random.RandomState(step)
    sources = [rng.randint(2, WORDS, n).tolist() for n in rng.randint(1, 6, BATCH)]
    source, lengths = padded(sources)
    target, steps = padded([[BOS] + row[::-1] for row in sources])
    label, _ = padded([row[::-1] + [EOS] for row in sources])
    named = {"source": source, "lengths": lengths, "target": target}
    return dict(named, steps=steps, label=label)


#: name -> how it is trained, its cells, its optimizer
MODELS = {
    "gru_by_helper": (train_by_helper, "GRUCell", lambda o: o.Adam(0.05)),
    "gru_by_rnn": (train_by_rnn, "GRUCell", lambda o: o.Adam(0.05)),
    "lstm_by_helper": (train_by_helper, "LSTMCell", lambda o: o.Momentum(0.2, 0.9)),
}


def numbers(fluid, name):
    """The loss of each step, all parameters after the last, what is found with them,
    and what a saved model with others finds."""
    build, kind, optimizer = MODELS[name]
    main, startup, found = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = cost(fluid, *build(fluid, kind))
        optimizer(fluid.optimizer).minimize(loss)
    with fluid.program_guard(found, fluid.Program()), fluid.unique_name.guard():
        fetched = search(fluid, kind)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    made = {"losses": []}
    with fluid.scope_guard(scope):
        exe.run(startup)
        names = sorted(p.name for p in main.all_parameters())
        _set(scope, names, exe.place, 0.5)
        for step in range(STEPS):
            (value,) = exe.run(main, feed=batch(step), fetch_list=[loss])
            made["losses"].append(float(value[0]))
        made["parameters"] = {
            each: np.array(scope.find_var(each).get_tensor()).ravel().tolist()
            for each in names
        }
        feed = {k: v for k, v in batch(77).items() if k in ("source", "lengths")}
        values = exe.run(found, feed=feed, fetch_list=fetched)
        made["found"] = [value.tolist() for value in values]
        _set(scope, names, exe.place, 1.0)  # it says more
        folder = tempfile.mkdtemp()
        fluid.io.save_inference_model(folder, sorted(feed), fetched, exe, found)
    with fluid.scope_guard(fluid.Scope()):
        loaded, _, targets = fluid.io.load_inference_model(folder, exe)
        values = exe.run(loaded, feed=feed, fetch_list=targets)
    shutil.rmtree(folder)
    made["found_by_a_saved_model"] = [value.tolist() for value in values]
    return made


def _set(scope, names, place, scale):
    rng = np.random.RandomState(5)
    for each in names:
        tensor = scope.find_var(each).get_tensor()
        value = rng.normal(0, scale, tensor.shape()).astype("float32")
        tensor.set(value, place)


if __name__ == "__main__":
    import paddle.fluid

    path = os.path.join(HERE, "seq2seq_steps.json.xz")
    with lzma.open(path, "wt") as out:
        found = {name: numbers(paddle.fluid, name) for name in MODELS}
        json.dump(found, out, sort_keys=True)
    for name in MODELS:
        print(name, found[name]["losses"])
        print(found[name]["found"][0], found[name]["found_by_a_saved_model"][0])
    print(os.path.getsize(path), "bytes")
