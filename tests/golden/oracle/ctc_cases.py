"""Networks with CTC, as OCR scripts build them. For both systems; see
dynamic_rnn_cases.py.
"""

import numpy as np

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _waves(*shape):
    return np.round(np.sin(np.arange(int(np.prod(shape)))), 3).reshape(shape)


def _wanted(fluid, name, shape, lod=0):
    x = fluid.data(name, list(shape), "float32", lod)
    x.stop_gradient = False
    return x


@case
def loss(fluid):
    x = _wanted(fluid, "x", [None, 5], 1)
    label = fluid.data("label", [None, 1], "int32", 1)
    cost = fluid.layers.warpctc(x, label, blank=4, norm_by_times=True)
    total = fluid.layers.reduce_sum(cost)
    feed = {
        "x": (_waves(9, 5).astype("float32"), [[5, 4]]),
        "label": (np.array([[1], [1], [2], [3]], "int32"), [[3, 1]]),
    }
    return feed, [cost] + fluid.gradients(total, [x])


@case
def loss_padded(fluid):
    x = _wanted(fluid, "x", [None, None, 5])
    label = fluid.data("label", [None, None], "int32")
    times = fluid.data("times", [None], "int64")
    counts = fluid.data("counts", [None], "int64")
    cost = fluid.layers.warpctc(
        x, label, input_length=times, label_length=counts, blank=0
    )
    feed = {
        "x": _waves(5, 2, 5).astype("float32"),
        "label": np.array([[1, 1, 2], [3, 0, 0]], "int32"),
        "times": np.array([5, 4]),
        "counts": np.array([3, 1]),
    }
    return feed, [cost] + fluid.gradients(fluid.layers.reduce_sum(cost), [x])


@case
def decoded(fluid):
    x = fluid.data("x", [None, 4], "float32", 1)
    ids = fluid.layers.ctc_greedy_decoder(x, blank=3, name="named")
    label = fluid.data("label", [None, 1], "int64", 1)
    distance, count = fluid.layers.edit_distance(ids, label, normalized=True)
    feed = {
        "x": (_waves(12, 4).astype("float32"), [[5, 4, 3]]),
        "label": (np.array([[1], [0], [2], [3]]), [[2, 1, 1]]),
    }
    return feed, [ids, distance, count]


@case
def nothing_decoded(fluid):
    x = fluid.data("x", [None, 3], "float32", 1)
    ids = fluid.layers.ctc_greedy_decoder(x, blank=0)
    label = fluid.data("label", [None, 1], "int64", 1)
    distance, count = fluid.layers.edit_distance(ids, label, normalized=False)
    feed = {
        "x": (np.tile([[1, 0, 0]], (5, 1)).astype("float32"), [[3, 2]]),
        "label": (np.array([[1], [2], [2]]), [[1, 2]]),
    }
    return feed, [ids, distance, count]


@case
def decoded_padded(fluid):
    x = fluid.data("x", [None, 6, 4], "float32")
    length = fluid.data("n", [None, 1], "int64")
    ids, counts = fluid.layers.ctc_greedy_decoder(x, 0, length, padding_value=9)
    feed = {"x": _waves(2, 6, 4).astype("float32"), "n": np.array([[6], [3]])}
    return feed, [ids, counts]


@case
def ocr(fluid):
    """A convolution whose columns are read by a GRU in both directions."""
    layers = fluid.layers
    images = fluid.data("images", [None, 1, 8, 16])
    label = fluid.data("label", [None, 1], "int32", 1)
    conv = layers.conv2d(images, 4, 3, padding=1, act="relu")
    conv = layers.pool2d(conv, 2, pool_stride=2)
    columns = layers.im2sequence(conv, filter_size=[4, 1], stride=[1, 1])
    forward = layers.dynamic_gru(layers.fc(columns, 9), 3)
    back = layers.dynamic_gru(layers.fc(columns, 9), 3, is_reverse=True)
    out = layers.fc([forward, back], 5)
    cost = layers.reduce_sum(layers.warpctc(out, label, 4, norm_by_times=True))
    layers.edit_distance(
        layers.cast(layers.ctc_greedy_decoder(out, 4), "int64"),
        layers.cast(label, "int64"),
    )
    fluid.optimizer.SGD(0.1).minimize(cost)
    return {}, []
