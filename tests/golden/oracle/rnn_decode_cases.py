"""Networks with decoders: `dynamic_decode`, beam search, helpers. For both systems;
see dynamic_rnn_cases.py."""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    made = np.sin(1.7 * np.arange(int(np.prod(shape))) + len(shape)).reshape(shape)
    return np.round(made, 3).astype("float32")


def _attr(fluid, name, *shape):
    start = fluid.initializer.NumpyArrayInitializer(2 * _waves(*shape))
    return fluid.ParamAttr(name=name, initializer=start)


def _embedding(fluid, words=7, width=3):
    attr = _attr(fluid, "words", words, width)
    return lambda ids: fluid.embedding(ids, [words, width], param_attr=attr)


def _logits(fluid, hidden=4, words=7):
    weights, bias = _attr(fluid, "out.w", hidden, words), _attr(fluid, "out.b", words)
    return lambda x: fluid.layers.fc(
        x, words, len(x.shape) - 1, param_attr=weights, bias_attr=bias
    )


def _gru(fluid, hidden=4, width=3):
    """Its parameters are made ahead of its first call, with known values."""
    helper = fluid.layer_helper.LayerHelper("given")
    for part, columns in (("_gate", 2 * hidden), ("_candidate", hidden)):
        attr = _attr(fluid, "cell" + part, width + hidden, columns)
        helper.create_parameter(attr, [width + hidden, columns], "float32")
    return fluid.layers.GRUCell(hidden, fluid.ParamAttr("cell"), name="decoder")


def _lstm(fluid, hidden=4, width=3):
    rows = width + hidden
    attr = _attr(fluid, "cell", rows, 4 * hidden)
    return fluid.layers.LSTMCell(hidden, attr, name="decoder")


def _all(structure):
    """The variables of nested results."""
    if isinstance(structure, (list, tuple)):
        return [v for part in structure for v in _all(part)]
    return [structure]


def _beam(fluid, cell, inits, size=3, words=7, **options):
    decoder = fluid.layers.BeamSearchDecoder(
        cell, 0, 1, size, _embedding(fluid, words), _logits(fluid, words=words)
    )
    return fluid.layers.dynamic_decode(decoder, inits=inits, **options)


@case
def beam_of_gru(fluid):
    init = fluid.data("init", [None, 4])
    found = _beam(fluid, _gru(fluid), init, max_step_num=6)
    return {"init": 3 * _waves(3, 4)}, _all(found)


@case
def beam_of_lstm(fluid):
    init = [fluid.data("h", [None, 4]), fluid.data("c", [None, 4])]
    found = _beam(fluid, _lstm(fluid), init, max_step_num=9, return_length=True)
    return {"h": 3 * _waves(3, 4), "c": _waves(3, 4)}, _all(found)


@case
def beam_in_test(fluid):
    init = [fluid.data("h", [None, 4]), fluid.data("c", [None, 4])]
    found = _beam(
        fluid,
        _lstm(fluid),
        init,
        size=2,
        max_step_num=9,
        output_time_major=True,
        is_test=True,
        return_length=True,
    )
    return {"h": 3 * _waves(3, 4), "c": _waves(3, 4)}, _all(found)


@case
def beam_imputed(fluid):
    """Two steps only: later all beams of a row are alike, and any may come first."""
    init = fluid.data("init", [None, 4])
    found = _beam(
        fluid, _gru(fluid), init, max_step_num=1, impute_finished=True, is_test=True
    )
    return {"init": 3 * _waves(3, 4)}, _all(found)


def _training(fluid, time_major=False, **options):
    inputs = fluid.data("x", [5, None, 3] if time_major else [None, 5, 3])
    inputs.stop_gradient = False
    lengths = fluid.data("n", [None], "int64")
    init = fluid.data("init", [None, 4])
    helper = fluid.layers.TrainingHelper(inputs, lengths, time_major=time_major)
    decoder = fluid.layers.BasicDecoder(_gru(fluid), helper, _logits(fluid))
    found = fluid.layers.dynamic_decode(decoder, inits=init, **options)
    x = _waves(5, 3, 3) if time_major else _waves(3, 5, 3)
    return {"x": x, "n": np.array([4, 2, 5]), "init": _waves(3, 4)}, found, inputs


@case
def training(fluid):
    feed, (outputs, states, lengths), inputs = _training(fluid, return_length=True)
    logits = outputs.cell_outputs
    loss = fluid.layers.reduce_sum(logits * logits)
    block = fluid.default_main_program().global_block()
    names = ("cell_gate", "cell_candidate", "out.w", "out.b")
    wanted = [inputs] + [block.var(n) for n in names]
    slopes = fluid.gradients(loss, wanted)
    return feed, _all([outputs, states, lengths]) + slopes


@case
def training_time_major(fluid):
    feed, (outputs, states), _ = _training(
        fluid, time_major=True, output_time_major=True
    )
    return feed, _all([outputs, states])


@case
def training_imputed(fluid):
    feed, found, _ = _training(fluid, impute_finished=True, return_length=True)
    return feed, _all(found)


@case
def training_in_test(fluid):
    feed, found, _ = _training(
        fluid, impute_finished=True, is_test=True, return_length=True, max_step_num=3
    )
    return feed, _all(found)


@case
def greedy(fluid):
    init = fluid.data("init", [None, 4])
    start = fluid.layers.fill_constant_batch_size_like(init, [-1], "int64", 0)
    helper = fluid.layers.GreedyEmbeddingHelper(_embedding(fluid), start, 1)
    decoder = fluid.layers.BasicDecoder(_gru(fluid), helper, _logits(fluid))
    found = fluid.layers.dynamic_decode(
        decoder, inits=init, max_step_num=7, return_length=True
    )
    return {"init": 3 * _waves(4, 4)}, _all(found)


@case
def sampled(fluid):
    """With a temperature so low that the best one is always drawn."""
    init = fluid.data("init", [None, 4])
    start = fluid.layers.fill_constant_batch_size_like(init, [-1], "int64", 0)
    helper = fluid.layers.SampleEmbeddingHelper(
        _embedding(fluid), start, 1, softmax_temperature=0.001, seed=3
    )
    decoder = fluid.layers.BasicDecoder(_lstm(fluid), helper, _logits(fluid))
    found = fluid.layers.dynamic_decode(
        decoder, inits=decoder.cell.get_initial_states(init), max_step_num=4
    )
    return {"init": 3 * _waves(4, 4)}, _all(found)


@case
def sampled_plainly(fluid):
    init = fluid.data("init", [None, 4])
    start = fluid.layers.fill_constant_batch_size_like(init, [-1], "int64", 0)
    helper = fluid.layers.SampleEmbeddingHelper(_embedding(fluid), start, 1)
    decoder = fluid.layers.BasicDecoder(_gru(fluid), helper, _logits(fluid))
    fluid.layers.dynamic_decode(decoder, inits=init, max_step_num=4)
    return {}, []


def _own_cell(fluid, shapes, width=4):
    """A cell over nested states, which looks at a memory that is given with a call."""
    layers = fluid.layers

    class Own(layers.RNNCell):
        def call(self, inputs, states, memory=None):
            old = fluid.layers.utils.flatten(states)
            whole = layers.concat([inputs] + old, 1)
            new = []
            for i, state in enumerate(old):
                size = state.shape[-1]
                attr = _attr(fluid, "own%d" % i, whole.shape[-1], size)
                made = layers.fc(whole, size, act="tanh", param_attr=attr)
                new.append(made + 0.5 * state)
            out = new[0] * new[0]
            if memory is not None:
                query = layers.unsqueeze(new[0], [1])
                weights = layers.softmax(layers.matmul(query, memory, transpose_y=True))
                out = out + layers.squeeze(layers.matmul(weights, memory), [1])
            return out, layers.utils.pack_sequence_as(states, new)

        @property
        def state_shape(self):
            return shapes

    return Own()


NESTED = {
    "a_dict": [{"b": [4], "a": [4]}],
    "deep": [[4], [[2], {"k": [3]}]],
}


@case
def own_cell_in_rnn(fluid):
    x = fluid.data("x", [None, 4, 3])
    x.stop_gradient = False
    n = fluid.data("n", [None], "int32")
    cell = _own_cell(fluid, NESTED["deep"])
    out, states = fluid.layers.rnn(cell, x, sequence_length=n)
    loss = fluid.layers.mean(out * out)
    found = [out] + fluid.layers.utils.flatten(states) + fluid.gradients(loss, [x])
    return {"x": _waves(3, 4, 3), "n": np.array([4, 1, 2], "int32")}, found


@case
def own_cell_with_memory(fluid):
    x = fluid.data("x", [None, 4, 3])
    memory = fluid.data("memory", [None, 5, 4])
    memory.stop_gradient = False
    cell = _own_cell(fluid, NESTED["a_dict"])
    out, states = fluid.layers.rnn(cell, x, is_reverse=True, memory=memory)
    loss = fluid.layers.mean(out * out)
    found = [out] + fluid.layers.utils.flatten(states)
    found += fluid.gradients(loss, [memory])
    return {"x": _waves(3, 4, 3), "memory": _waves(3, 5, 4)}, found


@case
def beam_of_own_cell(fluid):
    memory = fluid.data("memory", [None, 5, 4])
    cell = _own_cell(fluid, NESTED["deep"])
    decoder = fluid.layers.BeamSearchDecoder(
        cell, 0, 1, 3, _embedding(fluid), _logits(fluid)
    )
    tiled = decoder.tile_beam_merge_with_batch(memory, 3)
    ids, states = fluid.layers.dynamic_decode(
        decoder,
        inits=cell.get_initial_states(memory),
        max_step_num=6,
        is_test=True,
        memory=tiled,
    )
    found = [ids, tiled, states.log_probs, states.lengths]
    found += fluid.layers.utils.flatten(states.cell_states)
    return {"memory": 2 * _waves(2, 5, 4)}, found


@case
def beam_without_functions(fluid):
    """The ids are the inputs, the cell's outputs the logits."""
    layers = fluid.layers

    class Table(layers.RNNCell):
        def call(self, ids, states):
            table = layers.create_parameter(
                [5, 5], "float32", attr=_attr(fluid, "table", 5, 5)
            )
            return layers.gather(table, ids), states + 1.0

    decoder = layers.BeamSearchDecoder(Table(), 2, 4, 2)
    init = fluid.data("init", [None, 1])
    ids, states = layers.dynamic_decode(decoder, inits=init, max_step_num=5)
    return {"init": _waves(2, 1)}, [ids] + _all(states)


@case
def nested_training_inputs(fluid):
    layers = fluid.layers

    class Pair(layers.RNNCell):
        def call(self, inputs, states):
            made = layers.tanh(inputs["x"] + inputs["y"][0] * states)
            return [made, made * 2.0], made

    x, y = fluid.data("x", [None, 4, 2]), fluid.data("y", [None, 4, 2])
    x.stop_gradient = False
    n = fluid.data("n", [None], "int32")

    class Helper(layers.TrainingHelper):
        def sample(self, time, outputs, states):
            return layers.argmax(outputs[1], axis=-1)

    decoder = layers.BasicDecoder(Pair(), Helper({"y": [y], "x": x}, n))
    outputs, states, lengths = layers.dynamic_decode(
        decoder, inits=fluid.data("init", [None, 2]), return_length=True
    )
    # of one output: in a loss of both, the reference gives both the same gradient
    loss = layers.reduce_sum(outputs.cell_outputs[0] * outputs.cell_outputs[0])
    found = _all([outputs, states, lengths]) + fluid.gradients(loss, [x])
    feed = {"x": _waves(3, 4, 2), "y": _waves(3, 4, 2) + 1, "init": _waves(3, 2)}
    return dict(feed, n=np.array([2, 0, 4], "int32")), found


@case
def own_decoder(fluid):
    """Halves its numbers until all are below one; without finalize()."""
    layers = fluid.layers

    class Halves(layers.Decoder):
        def initialize(self, inits):
            below = layers.less_than(inits, layers.ones([1], "float32"))
            return inits, [inits * 0.0], below

        def step(self, time, inputs, states, factor=1.0):
            half = inputs * 0.5 * factor
            below = layers.less_than(half, layers.ones([1], "float32"))
            steps = layers.cast(time, "float32")
            return (half, states[0]), [states[0] + steps], half, below

    start = fluid.data("start", [None])
    found = layers.dynamic_decode(
        Halves(), start, output_time_major=True, return_length=True, factor=0.9
    )
    return {"start": np.array([9.0, 0.5, 3.0], "float32")}, _all(found)
