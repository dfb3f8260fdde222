"""Networks with the rest of the LoD layers, and with sequences inside of branches,
loops and StaticRNN. For both systems.

Each function takes the `fluid` module, builds into the default programs, and returns
the feed and what to fetch. A fed (values, lengths) is a LoD tensor.
"""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _ramp(*shape):
    return (np.arange(int(np.prod(shape))).reshape(shape) * 0.1).astype("float32")


def _column(*values):
    return np.array(values, "int64").reshape(-1, 1)


def _slopes(fluid, y, *xs):
    return fluid.gradients(fluid.layers.reduce_sum(y * y * y), list(xs))


def _wanted(fluid, name, shape, lod=0):
    x = fluid.data(name, list(shape), "float32", lod)
    x.stop_gradient = False
    return x


def _sequences(fluid):
    return _wanted(fluid, "x", [None, 2], 1)


X = {"x": (_ramp(6, 2), [[1, 3, 2]])}


# ------------------------------------------------ im2sequence, edit_distance


@case
def windows(fluid):
    x = _wanted(fluid, "x", [2, 2, 4, 5])
    y = fluid.layers.im2sequence(x, [2, 2], [1, 2], [1, 1, 0, 1])
    return {"x": _ramp(2, 2, 4, 5)}, [y, *_slopes(fluid, y, x)]


@case
def windows_padded(fluid):
    x = fluid.data("x", [None, 1, 2, 2])
    a = fluid.layers.im2sequence(x, [2, 2], padding=[1, 0], name="a")
    b = fluid.layers.im2sequence(x, 2, padding=[1, 0, 2, 1])
    return {"x": _ramp(1, 1, 2, 2)}, [a, b]


def _sized(fluid, sizes, **attrs):
    x, size = fluid.data("x", [None, 1, 4, 5]), fluid.data("size", [None, 2])
    y = fluid.layers.im2sequence(x, 2, input_image_size=size, **attrs)
    return {"x": _ramp(len(sizes), 1, 4, 5), "size": np.array(sizes, "float32")}, [y]


@case
def windows_of_sizes(fluid):
    return _sized(fluid, [[8, 10], [4, 6]], out_stride=[2, 2])


@case
def windows_of_odd_sizes(fluid):
    return _sized(fluid, [[7, 10], [10, 8]], out_stride=3)


@case
def windows_of_broken_sizes(fluid):
    return _sized(fluid, [[3.7, 4.6], [3, 3]], out_stride=1)


@case
def windows_of_small_sizes(fluid):
    return _sized(fluid, [[4, 5], [3, 2]], stride=2, padding=1)


@case
def windows_beyond_the_image(fluid):
    return _sized(fluid, [[6, 7], [2, 2]])


@case
def windows_of_one_image(fluid):
    return _sized(fluid, [[3, 3]])


HYPS = (_column(1, 2, 3, 4, 0, 5, 9, 9), [[4, 2, 2]])
REFS = (_column(1, 3, 3, 5, 0, 0, 7), [[3, 3, 1]])


def _ids(fluid):
    a = fluid.data("a", [None, 1], "int64", 1)
    return a, fluid.data("b", [None, 1], "int64", 1)


@case
def distances(fluid):
    a, b = _ids(fluid)
    edit = fluid.layers.edit_distance
    found = [*edit(a, b), *edit(a, b, normalized=False)]
    found += edit(a, b, ignored_tokens=[0, 9])
    return {"a": HYPS, "b": REFS}, [*found, *edit(a, b, ignored_tokens=[])]


@case
def distances_padded(fluid):
    a, b = (fluid.data(n, [None, None], "int64") for n in "ab")
    m, n = (fluid.data(k, [None], "int64") for k in ("m", "n"))
    edit = fluid.layers.edit_distance
    found = [*edit(a, b, True, None, m, n), *edit(a, b, False, None, m, n)]
    feed = {
        "a": np.array([[1, 2, 3, 4], [4, 5, 6, 7]]),
        "b": np.array([[1, 3, 3], [5, 6, 9]]),
        "m": np.array([4, 2]),
        "n": np.array([3, 2]),
    }
    return feed, found


@case
def distances_of_empty(fluid):
    a, b = _ids(fluid)
    found = fluid.layers.edit_distance(a, b, normalized=False)
    feed = {"a": (_column(1, 2, 3), [[3, 0, 0]]), "b": (_column(1, 3, 3), [[0, 3, 0]])}
    return feed, list(found)


# ------------------------------------------------ rows, arrays, samples


@case
def rows(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    one = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    e = fluid.layers.embedding(ids, [6, 3], is_sparse=True, param_attr=one)
    fluid.backward.append_backward(fluid.layers.reduce_sum(e * e))
    sparse = fluid.default_main_program().global_block().var("w@GRAD")
    merged = fluid.layers.merge_selected_rows(sparse)
    found = fluid.layers.get_tensor_from_selected_rows(merged)
    plain = fluid.layers.get_tensor_from_selected_rows(sparse, name="z")
    return {"ids": _column(4, 1, 4)}, [found, plain]


def _array(fluid, *values):
    array = fluid.layers.create_array("float32")
    for i, value in enumerate(values):
        index = fluid.layers.fill_constant([1], "int64", i)
        fluid.layers.array_write(value, index, array)
    return array


@case
def joined(fluid):
    x, y = _wanted(fluid, "x", [2, 3]), _wanted(fluid, "y", [2, 2])
    array = _array(fluid, x * 2, y * 3)
    z, sizes = fluid.layers.tensor_array_to_tensor(array, axis=1)
    feed = {"x": _ramp(2, 3), "y": _ramp(2, 2)}
    return feed, [z, sizes, *_slopes(fluid, z, x, y)]


@case
def stacked(fluid):
    x = _wanted(fluid, "x", [2, 3])
    array = _array(fluid, x * 2, x * 3)
    to_tensor = fluid.layers.tensor_array_to_tensor
    a, sizes = to_tensor(array, axis=1, use_stack=True, name="n")
    b, more = to_tensor(array, axis=0, use_stack=True)
    return {"x": _ramp(2, 3)}, [a, sizes, b, more, *_slopes(fluid, a, x)]


@case
def joined_from_a_loop(fluid):
    layers = fluid.layers
    x = _wanted(fluid, "x", [2, 3])
    array = layers.create_array("float32")
    i, n = (layers.fill_constant([1], "int64", v) for v in (0, 3))
    i.stop_gradient = True
    layers.array_write(x, i, array)
    more = layers.less_than(i, n)
    loop = layers.While(more)
    with loop.block():
        value = layers.array_read(array, i)
        layers.increment(i, 1)
        layers.array_write(value * x, i, array)
        layers.less_than(i, n, cond=more)
    z, sizes = layers.tensor_array_to_tensor(array, axis=0)
    return {"x": _ramp(2, 3)}, [z, sizes, *_slopes(fluid, z, x)]


def _sampled(fluid, **attrs):
    x = _wanted(fluid, "x", [None, 8])
    label = fluid.data("label", [None, 1], "int64")
    samples = fluid.data("samples", [None, 5], "int64")
    chances = fluid.data("chances", [None, 5])
    cost = fluid.layers.sampled_softmax_with_cross_entropy(
        x,
        label,
        4,
        use_customized_samples=True,
        customized_samples=samples,
        customized_probabilities=chances,
        **attrs,
    )
    feed = {
        "x": _ramp(2, 8),
        "label": _column(1, 5),
        "samples": np.array([[1, 2, 1, 3, 4], [5, 6, 7, 0, 7]]),
        "chances": np.array(
            [[0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1]], "float32"
        ),
    }
    return feed, [cost, *_slopes(fluid, cost, x)]


@case
def samples(fluid):
    return _sampled(fluid)


@case
def samples_with_hits(fluid):
    return _sampled(fluid, remove_accidental_hits=False)


@case
def samples_drawn(fluid):
    x = fluid.data("x", [2, 8])
    label = fluid.data("label", [2, 1], "int64")
    fluid.layers.sampled_softmax_with_cross_entropy(x, label, 4, seed=3)
    return {"x": _ramp(2, 8), "label": _column(1, 5)}, []


# ------------------------------------------------ sequences inside of blocks


def _branch(fluid, yes, no, which=True):
    x = _sequences(fluid)
    p = fluid.layers.fill_constant([1], "bool", which)
    y = fluid.layers.cond(p, lambda: yes(x), lambda: no(x))
    return X, [y, *_slopes(fluid, y, x)]


@case
def reversed_in_a_branch(fluid):
    back = fluid.layers.sequence_reverse
    return _branch(fluid, lambda x: back(x * 2), lambda x: x * 3)


@case
def reversed_in_the_other_branch(fluid):
    back = fluid.layers.sequence_reverse
    return _branch(fluid, lambda x: back(x * 2), lambda x: back(x) * x, False)


@case
def pooled_in_a_branch(fluid):
    pool, back = fluid.layers.sequence_pool, fluid.layers.sequence_reverse
    return _branch(fluid, lambda x: pool(back(x * 2), "max"), lambda x: pool(x, "sum"))


@case
def unpadded_in_a_branch(fluid):
    layers = fluid.layers

    def yes(x):
        zero = layers.assign(np.zeros(1, "float32"))
        padded, length = layers.sequence_pad(x * 2, zero)
        return layers.sequence_pool(
            layers.sequence_unpad(padded * padded, length), "sqrt"
        )

    return _branch(fluid, yes, lambda x: layers.sequence_pool(x, "sum"))


@case
def sliced_in_a_branch(fluid):
    layers = fluid.layers
    offset, length = (fluid.data(n, [3, 1], "int64") for n in ("o", "n"))

    def yes(x):
        part = layers.sequence_slice(x * x, offset, length)
        part = layers.lod_reset(part, target_lod=[0, 1, 3, 5])
        return layers.sequence_pool(layers.sequence_reverse(part), "first")

    _, fetch = _branch(fluid, yes, lambda x: layers.sequence_pool(x, "sum"))
    return dict(X, o=_column(0, 1, 0), n=_column(1, 2, 2)), fetch


@case
def softmax_in_a_branch(fluid):
    layers = fluid.layers
    w = _wanted(fluid, "w", [2, 1])

    def yes(x):
        share = layers.sequence_softmax(layers.matmul(x, w))
        return layers.sequence_pool(x * share, "sum")

    _, fetch = _branch(fluid, yes, lambda x: layers.sequence_pool(x, "sum"))
    return dict(X, w=_ramp(2, 1) + 0.5), fetch


@case
def reversed_in_a_case(fluid):
    x = _sequences(fluid)
    i = fluid.layers.fill_constant([1], "int32", 1)
    branches = {0: lambda: x * 1.0, 1: lambda: fluid.layers.sequence_reverse(x) * x}
    y = fluid.layers.switch_case(i, branches)
    return X, [y, *_slopes(fluid, y, x)]


def _rnn(fluid, step, s, *more):
    rnn = fluid.layers.StaticRNN()
    with rnn.step():
        part = rnn.step_input(s)
        memory = rnn.memory(
            shape=[-1, 2], batch_ref=s, init_value=0.5, ref_batch_dim_idx=1
        )
        new = step(part, memory)
        rnn.update_memory(memory, new)
        rnn.step_output(new)
    y = rnn()
    return [y, *_slopes(fluid, y, s, *more)]


@case
def reversed_in_steps(fluid):
    layers = fluid.layers
    x, s = _sequences(fluid), _wanted(fluid, "s", [4, 3, 2])

    def step(part, memory):
        wide = layers.sequence_reverse(x) * layers.sequence_expand(memory, x)
        back = layers.sequence_pool(layers.sequence_reverse(wide), "last")
        return back + part * memory

    return dict(X, s=_ramp(4, 3, 2)), _rnn(fluid, step, s)


@case
def unpadded_in_steps(fluid):
    layers = fluid.layers
    s, w = _wanted(fluid, "s", [4, 3, 3, 2]), _wanted(fluid, "w", [2, 2])

    def step(part, memory):
        length = layers.assign(np.array([1, 3, 2], "int64"))
        rows = layers.sequence_unpad(part, length)
        rows = layers.sequence_reverse(rows) * layers.sequence_expand(memory, rows)
        return layers.sequence_pool(rows, "sqrt") + layers.matmul(memory, w)

    feed = {"s": _ramp(4, 3, 3, 2), "w": _ramp(2, 2)}
    return feed, _rnn(fluid, step, s, w)
