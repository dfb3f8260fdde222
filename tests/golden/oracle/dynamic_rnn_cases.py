"""Networks with DynamicRNN, rank tables and what they are made of. For both systems.

Each function takes the `fluid` module, builds into the default programs, and returns
the feed and what to fetch. A fed (values, lengths) is a LoD tensor.
"""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _ramp(*shape):
    return (np.sin(np.arange(int(np.prod(shape)))).reshape(shape)).astype("float32")


def _wanted(fluid, name, shape, lod=0):
    x = fluid.data(name, list(shape), "float32", lod)
    x.stop_gradient = False
    return x


def _slopes(fluid, y, *xs):
    return fluid.gradients(fluid.layers.reduce_sum(y * y * y), list(xs))


def _weight(fluid, name, low=-0.5, high=0.6):
    made = np.linspace(low, high, 12).astype("float32").reshape(3, 4)
    numpy = fluid.initializer.NumpyArrayInitializer
    return fluid.ParamAttr(name, initializer=numpy(made))


X = {"x": (_ramp(6, 3), [[1, 3, 2]])}


# ------------------------------------------------ the ops by themselves


@case
def table(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    ranks = fluid.layers.control_flow.lod_rank_table(x)
    longest = fluid.layers.control_flow.max_sequence_len(ranks)
    steps = fluid.layers.control_flow.lod_tensor_to_array(x, ranks)
    i = fluid.layers.fill_constant([1], "int64", 1)
    second = fluid.layers.array_read(steps, i)
    head = fluid.layers.control_flow.shrink_memory(
        fluid.layers.sequence_pool(x, "first"), i, ranks
    )
    back = fluid.layers.control_flow.array_to_lod_tensor(steps, ranks)
    return X, [longest, second, head, back]


@case
def table_with_gradients(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    ranks = fluid.layers.control_flow.lod_rank_table(x)
    steps = fluid.layers.control_flow.lod_tensor_to_array(x, ranks)
    back = fluid.layers.control_flow.array_to_lod_tensor(steps, ranks)
    return X, [back] + _slopes(fluid, back, x)


@case
def table_of_nested(fluid):
    x = _wanted(fluid, "x", [None, 3], 2)
    ranks = fluid.layers.control_flow.lod_rank_table(x, 0)
    longest = fluid.layers.control_flow.max_sequence_len(ranks)
    steps = fluid.layers.control_flow.lod_tensor_to_array(x, ranks)
    i = fluid.layers.fill_constant([1], "int64", 1)
    second = fluid.layers.array_read(steps, i)
    back = fluid.layers.control_flow.array_to_lod_tensor(steps, ranks)
    feed = {"x": (_ramp(8, 3), [[1, 3, 2], [2, 1, 0, 2, 1, 2]])}
    return feed, [longest, second, back]


# ------------------------------------------------ DynamicRNN


@case
def plain(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        before = rnn.memory(shape=[4], value=0.5)
        after = fluid.layers.fc([now, before], 4, act="tanh")
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    last = fluid.layers.sequence_last_step(y)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(last))
    return {}, []


def _steps(fluid, x, **memory):
    rnn = fluid.layers.DynamicRNN(name="steps")
    with rnn.block():
        now = rnn.step_input(x)
        before = rnn.memory(**memory)
        mixed = fluid.layers.fc(now, 4, bias_attr=False, param_attr=_weight(fluid, "w"))
        after = fluid.layers.tanh(mixed + 0.5 * before)
        rnn.update_memory(before, after)
        rnn.output(after, mixed)
    return rnn()


def _with_slopes(fluid, x, out, *more):
    block = fluid.default_main_program().global_block()
    y = fluid.layers.concat(list(out), 1)
    return list(out) + _slopes(fluid, y, x, block.var("w"), *more)


@case
def values(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    out = _steps(fluid, x, shape=[4], value=0.5)
    return X, _with_slopes(fluid, x, out)


@case
def with_empty_sequences(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    out = _steps(fluid, x, shape=[4], value=0.5)
    return {"x": (_ramp(6, 3), [[0, 3, 0, 2, 1, 0]])}, _with_slopes(fluid, x, out)


@case
def even_sequences(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    out = _steps(fluid, x, shape=[4], value=-0.25)
    return {"x": (_ramp(6, 3), [[2, 2, 2]])}, _with_slopes(fluid, x, out)


@case
def initial(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    h = _wanted(fluid, "h", [None, 4])
    out = _steps(fluid, x, init=h, need_reorder=True)
    return dict(X, h=_ramp(3, 4)), _with_slopes(fluid, x, out, h)


@case
def initial_as_it_lies(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    h = _wanted(fluid, "h", [None, 4])
    out = _steps(fluid, x, init=h)
    return dict(X, h=_ramp(3, 4)), _with_slopes(fluid, x, out, h)


@case
def two_inputs(fluid):
    x, z = (_wanted(fluid, n, [None, 3], 1) for n in "xz")
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        a, b = rnn.step_input(x), rnn.step_input(z)
        before = rnn.memory(shape=[3], dtype="float32")
        after = a * b + before
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    feed = dict(X, z=(_ramp(6, 3) + 1, [[1, 3, 2]]))
    return feed, [y] + _slopes(fluid, y, x, z)


@case
def two_memories(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        h = rnn.memory(shape=[3], value=1.0)
        c = rnn.memory(shape=[3], value=2.0)
        new = now * c
        rnn.update_memory(c, h + new)
        rnn.update_memory(h, new)
        rnn.output(new, c)
    y, z = rnn()
    return X, [y, z] + _slopes(fluid, y + z, x)


@case
def without_memory(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        rnn.output(now * now)
    y = rnn()
    return X, [y] + _slopes(fluid, y, x)


@case
def static(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    s = _wanted(fluid, "s", [None, 3])
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now, still = rnn.step_input(x), rnn.static_input(s)
        before = rnn.memory(shape=[3])
        after = now * still + before
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    return dict(X, s=_ramp(3, 3) + 2), [y] + _slopes(fluid, y, x, s)


@case
def attention(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    source = _wanted(fluid, "s", [None, 3], 1)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x)
        encoder = rnn.static_input(source)
        before = rnn.memory(shape=[3], value=0.5)
        state = fluid.layers.sequence_expand(before, encoder)
        one = fluid.initializer.Constant(1.0)
        attr = fluid.ParamAttr("ones", initializer=one)
        score = fluid.layers.fc(encoder * state, 1, param_attr=attr, bias_attr=False)
        score = fluid.layers.sequence_softmax(score)
        scaled = fluid.layers.elementwise_mul(
            encoder, fluid.layers.reshape(score, [-1]), axis=0
        )
        context = fluid.layers.sequence_pool(scaled, "sum")
        after = fluid.layers.tanh(now + context)
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    feed = dict(X, s=(_ramp(7, 3) + 0.25, [[3, 2, 2]]))
    return feed, [y] + _slopes(fluid, y, x, source)


@case
def nested(fluid):
    """Sequences of sequences: a step takes a sequence."""
    x = _wanted(fluid, "x", [None, 3], 2)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        words = rnn.step_input(x)
        total = fluid.layers.sequence_pool(words, "sum")
        before = rnn.memory(shape=[3], value=0.5)
        after = total * total + before
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    feed = {"x": (_ramp(9, 3), [[1, 3, 2], [2, 1, 1, 2, 1, 2]])}
    return feed, [y] + _slopes(fluid, y, x)


@case
def at_the_inner_level(fluid):
    x = _wanted(fluid, "x", [None, 3], 2)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(x, level=1)
        before = rnn.memory(shape=[3], value=0.5)
        after = now * now + before
        rnn.update_memory(before, after)
        rnn.output(after)
    y = rnn()
    feed = {"x": (_ramp(9, 3), [[1, 3, 2], [2, 1, 1, 2, 1, 2]])}
    return feed, [y] + _slopes(fluid, y, x)


@case
def as_encoder(fluid):
    """One RNN after the other."""
    x = _wanted(fluid, "x", [None, 3], 1)
    out = fluid.layers.concat(_steps(fluid, x, shape=[4]), 1)
    again = fluid.layers.DynamicRNN()
    with again.block():
        now = again.step_input(out)
        before = again.memory(shape=[8])
        after = before * 0.5 + now
        again.update_memory(before, after)
        again.output(after)
    y = fluid.layers.sequence_pool(again(), "last")
    w = fluid.default_main_program().global_block().var("w")
    return X, [y] + _slopes(fluid, y, x, w)


@case
def an_output_unused(fluid):
    x = _wanted(fluid, "x", [None, 3], 1)
    out = _steps(fluid, x, shape=[4], value=0.5)
    w = fluid.default_main_program().global_block().var("w")
    return X, list(out) + _slopes(fluid, out[0], x, w)
