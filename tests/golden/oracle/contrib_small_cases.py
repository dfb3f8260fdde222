"""Networks with small layers of `fluid.contrib.layers`. For both systems; see
dynamic_rnn_cases.py."""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    made = np.sin(1.7 * np.arange(int(np.prod(shape))) + len(shape)).reshape(shape)
    return np.round(2 * made, 3).astype("float32")


def _inputs(fluid, *shapes):
    made = [fluid.data("x%d" % i, list(shape)) for i, shape in enumerate(shapes)]
    for x in made:
        x.stop_gradient = False
    feed = {
        x.name: _waves(*(3 if d is None else d for d in shape))
        for x, shape in zip(made, shapes)
    }
    return made, feed


def _with_slopes(fluid, out, xs):
    return [out] + fluid.gradients(fluid.layers.reduce_sum(out * out), xs)


@case
def relu_of_sum(fluid):
    (x, y), feed = _inputs(fluid, [None, 4], [None, 4])
    out = fluid.contrib.layers.fused_elemwise_activation(
        x, y, ["relu", "elementwise_add"]
    )
    return feed, _with_slopes(fluid, out, [x, y])


@case
def product_with_tanh(fluid):
    (x, y), feed = _inputs(fluid, [None, 2, 4], [2])
    out = fluid.contrib.layers.fused_elemwise_activation(
        x, y, "elementwise_mul,tanh", axis=1, save_intermediate_out=True
    )
    return feed, _with_slopes(fluid, out, [x, y])


@case
def scaled(fluid):
    (x, y), feed = _inputs(fluid, [None, 4], [4])
    out = fluid.contrib.layers.fused_elemwise_activation(
        x, y, ["elementwise_add", "scale"], scale=0.5, save_intermediate_out=False
    )
    return feed, _with_slopes(fluid, out, [x, y])


@case
def some_columns(fluid):
    xs, feed = _inputs(fluid, [None, 5], [None, 5], [None, 5])
    out = fluid.contrib.layers.partial_concat(xs, start_index=-3, length=2)
    return feed, _with_slopes(fluid, out, xs)


@case
def sum_of_columns(fluid):
    xs, feed = _inputs(fluid, [None, 5], [None, 5])
    out = fluid.contrib.layers.partial_sum(xs, start_index=2)
    return feed, _with_slopes(fluid, out, xs)


@case
def columns_of_one(fluid):
    (x,), feed = _inputs(fluid, [None, 5])
    return feed, [fluid.contrib.layers.partial_concat(x, 1, 3)]


def _pooled(fluid, **options):
    ids = fluid.data("ids", [None, 1], "int64", 1)
    start = fluid.initializer.NumpyArrayInitializer(_waves(7, 3))
    out = fluid.contrib.layers.fused_embedding_seq_pool(
        ids, [7, 3], param_attr=fluid.ParamAttr("table", initializer=start), **options
    )
    table = fluid.default_main_program().global_block().var("table")
    fed = (np.array([[1], [2], [3], [0], [6]]), [[2, 0, 3]])
    return {"ids": fed}, out, table


@case
def pooled(fluid):
    feed, out, table = _pooled(fluid, padding_idx=-5)
    return feed, _with_slopes(fluid, out, [table])


@case
def pooled_sparsely(fluid):
    feed, out, _ = _pooled(fluid, is_sparse=True)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.reduce_sum(out * out))
    return feed, [out]


@case
def pooled_named(fluid):
    ids = fluid.data("ids", [None, 1], "int64", 1)
    fluid.contrib.layers.fused_embedding_seq_pool(ids, [7, 3])
    return {}, []


@case
def shuffled(fluid):
    (x,), feed = _inputs(fluid, [None, 5])
    out = fluid.contrib.layers.shuffle_batch(x, seed=3)
    fluid.contrib.layers.shuffle_batch(out, fluid.data("seed", [1], "int64"))
    fluid.gradients(fluid.layers.reduce_sum(out * out), [x])
    return feed, []
