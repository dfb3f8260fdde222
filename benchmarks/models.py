"""Six training steps, timed; the same file runs on fluidx and on the reference.

    python benchmarks/models.py [--module paddle.fluid] [NAME ...]

Prints one JSON object: name -> median milliseconds per step. (Python 3.7 syntax: the
reference needs it.)
"""

import argparse
import importlib
import json
import time

import numpy as np

RNG = np.random.RandomState(0)


def floats(*shape):
    return RNG.rand(*shape).astype("float32")


def ids(high, *shape):
    return RNG.randint(0, high, shape).astype("int64")


def tiny(fluid):
    """Linear regression, batch 20, SGD: 13 ops, all overhead."""
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    cost = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
    loss = fluid.layers.mean(cost)
    fluid.optimizer.SGD(0.01).minimize(loss)
    return loss, {"x": floats(20, 13), "y": floats(20, 1)}


def classified(fluid, h, classes, act=None):
    y = fluid.data("y", [None, 1], "int64")
    p = fluid.layers.fc(h, classes, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(p, y))


def mlp(fluid):
    """784-200-200-10, batch 128, Adam."""
    h = fluid.data("x", [None, 784])
    for _ in range(2):
        h = fluid.layers.fc(h, 200, act="relu")
    loss = classified(fluid, h, 10)
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss, {"x": floats(128, 784), "y": ids(10, 128, 1)}


def lenet(fluid):
    """Two conv-pool pairs with a batch norm between, batch 64, Adam."""
    x = fluid.data("x", [None, 1, 28, 28])
    h = fluid.nets.simple_img_conv_pool(x, 20, 5, 2, 2, act="relu")
    h = fluid.layers.batch_norm(h)
    h = fluid.nets.simple_img_conv_pool(h, 50, 5, 2, 2, act="relu")
    loss = classified(fluid, h, 10)
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss, {"x": floats(64, 1, 28, 28), "y": ids(10, 64, 1)}


def ctr_network(fluid, rows=100001):
    """26 sparse slots of width 10 share a table; 13 dense features; 3 x fc 400."""
    dense = fluid.data("d", [None, 13])
    parts = []
    for i in range(26):
        slot = fluid.data("C%d" % i, [None, 1], "int64")
        vector = fluid.layers.embedding(
            slot, [rows, 10], is_sparse=True, param_attr=fluid.ParamAttr(name="emb")
        )
        parts.append(fluid.layers.reshape(vector, [-1, 10]))
    h = fluid.layers.concat([*parts, dense], axis=1)
    for width in (400, 400, 400):
        h = fluid.layers.fc(h, width, act="relu")
    return classified(fluid, h, 2)


def ctr_feed(batch, rows=100001):
    feed = {"d": floats(batch, 13), "y": ids(2, batch, 1)}
    feed.update(("C%d" % i, ids(rows, batch, 1)) for i in range(26))
    return feed


def ctr(fluid):
    """The network above, batch 1000, SGD with sparse gradients."""
    loss = ctr_network(fluid)
    fluid.optimizer.SGD(0.01).minimize(loss)
    return loss, ctr_feed(1000)


def resnet(fluid):
    """Four residual pairs of 3x3 conv 64-64 + batch norm, 28x28, batch 16, Adam."""
    h = fluid.data("x", [None, 64, 28, 28])
    conv = dict(num_filters=64, filter_size=3, padding=1, bias_attr=False)
    for _ in range(4):
        kept = h
        h = fluid.layers.batch_norm(fluid.layers.conv2d(h, **conv), act="relu")
        h = fluid.layers.batch_norm(fluid.layers.conv2d(h, **conv))
        h = fluid.layers.elementwise_add(h, kept, act="relu")
    h = fluid.layers.pool2d(h, pool_type="avg", global_pooling=True)
    loss = classified(fluid, h, 10)
    fluid.optimizer.Adam(0.001).minimize(loss)
    return loss, {"x": floats(16, 64, 28, 28), "y": ids(10, 16, 1)}


HEADS, WIDTH, WORDS, LENGTH = 8, 512, 1000, 64


def dropped(fluid, x):
    return fluid.layers.dropout(
        x, 0.1, is_test=False, dropout_implementation="upscale_in_train"
    )


def attention(fluid, query, memory, bias):
    """Multi-head attention of `query` to `memory`, dropout on the weights."""
    layers = fluid.layers

    def heads(x):
        x = layers.fc(x, WIDTH, num_flatten_dims=2)
        return layers.transpose(layers.reshape(x, [0, 0, HEADS, -1]), [0, 2, 1, 3])

    q, k, v = heads(query), heads(memory), heads(memory)
    product = layers.matmul(q, k, transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5)
    weights = layers.softmax(layers.elementwise_add(product, bias))
    mixed = layers.transpose(layers.matmul(dropped(fluid, weights), v), [0, 2, 1, 3])
    joined = layers.reshape(mixed, [0, 0, WIDTH])
    return layers.fc(joined, WIDTH, num_flatten_dims=2)


def feed_forward(fluid, x):
    x = fluid.layers.fc(x, 4 * WIDTH, num_flatten_dims=2, act="relu")
    return fluid.layers.fc(dropped(fluid, x), WIDTH, num_flatten_dims=2)


def normed(fluid, x):
    return fluid.layers.layer_norm(x, begin_norm_axis=2)


def embedded(fluid, name):
    words = fluid.data(name, [None, LENGTH], "int64")
    x = fluid.embedding(words, [WORDS, WIDTH])
    return dropped(fluid, fluid.layers.scale(x, WIDTH**0.5))


def transformer(fluid):
    """An encoder and a decoder block (norms first), 16 x 64 words, Adam."""
    layers = fluid.layers
    shape = [None, HEADS, LENGTH, LENGTH]
    biases = [fluid.data(n, shape) for n in ("source_bias", "target_bias")]

    def residual(x, change):
        return layers.elementwise_add(x, dropped(fluid, change))

    x = embedded(fluid, "source")
    h = normed(fluid, x)
    x = residual(x, attention(fluid, h, h, biases[0]))
    memory = normed(fluid, residual(x, feed_forward(fluid, normed(fluid, x))))
    x = embedded(fluid, "target")
    h = normed(fluid, x)
    x = residual(x, attention(fluid, h, h, biases[1]))
    x = residual(x, attention(fluid, normed(fluid, x), memory, biases[0]))
    x = normed(fluid, residual(x, feed_forward(fluid, normed(fluid, x))))

    logits = layers.fc(layers.reshape(x, [-1, WIDTH]), WORDS)
    label = fluid.data("label", [None, 1], "int64")
    smooth = layers.label_smooth(fluid.one_hot(layers.squeeze(label, [1]), WORDS))
    cost = layers.softmax_with_cross_entropy(logits, smooth, soft_label=True)
    loss = layers.mean(cost)
    fluid.optimizer.Adam(0.0001).minimize(loss)
    every = (16, HEADS, LENGTH, LENGTH)
    later = np.triu(np.full(every[2:], -1e9, "float32"), 1)
    feed = {"source_bias": np.zeros(every, "float32"), "label": ids(WORDS, 1024, 1)}
    feed["target_bias"] = np.ascontiguousarray(np.broadcast_to(later, every))
    feed.update((name, ids(WORDS, 16, LENGTH)) for name in ("source", "target"))
    return loss, feed


#: name -> (network, timed steps, steps before)
MODELS = {
    "tiny": (tiny, 1000, 20),
    "mlp": (mlp, 200, 10),
    "lenet": (lenet, 60, 5),
    "ctr": (ctr, 40, 5),
    "resnet": (resnet, 8, 2),
    "transformer": (transformer, 6, 2),
}


def measure(fluid, name):
    """Median milliseconds per training step, the loss fetched each time."""
    build, steps, before = MODELS[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, feed = build(fluid)
    times = []
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for _ in range(before + steps):
            begin = time.perf_counter()
            exe.run(main, feed=feed, fetch_list=[loss])
            times.append(time.perf_counter() - begin)
    return float(np.median(times[before:])) * 1e3


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--module", default="fluidx")
    options = parser.parse_args()
    module = importlib.import_module(options.module)
    print(json.dumps({n: measure(module, n) for n in options.names or MODELS}))
