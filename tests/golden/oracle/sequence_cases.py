"""Networks of sequence layers, for both systems.

Every function takes the `fluid` module and builds into the default programs, as in
layer_cases.py.
"""


def _x(fluid, shape, dtype="float32", name="x", lod=1):
    return fluid.data(name, list(shape), dtype, lod)


def convolutions(fluid):
    x = _x(fluid, (None, 8))
    conv = fluid.layers.sequence_conv
    conv(x, 6)
    conv(x, 6, 4, act="tanh")
    conv(x, 6, 3, padding_start=0, bias_attr=False, name="c")
    conv(x, 6, 5, padding=False, param_attr="w", bias_attr="b")
    fluid.layers.row_conv(x, 3)
    fluid.layers.row_conv(x, 2, param_attr="r", act="relu")
    fluid.layers.row_conv(_x(fluid, (None, 4, 8), name="batch", lod=0), 1)


def sentiment(fluid):
    words = _x(fluid, (None, 1), "int64", "words")
    label = _x(fluid, (None, 1), "int64", "label", 0)
    layers, nets = fluid.layers, fluid.nets
    vectors = layers.embedding(words, [50, 8])
    three = nets.sequence_conv_pool(vectors, 6, 3, act="tanh", pool_type="sqrt")
    four = nets.sequence_conv_pool(vectors, 6, 4)
    logits = layers.fc([three, four], 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    fluid.optimizer.Adagrad(0.1).minimize(loss)


def softmax(fluid):
    x = _x(fluid, (None, 1))
    y = fluid.layers.sequence_softmax(x)
    fluid.layers.sequence_softmax(y, use_cudnn=True, name="s")


def expansions(fluid):
    x = _x(fluid, (None, 4), lod=0)
    one, two = _x(fluid, (None, 4), name="one"), _x(fluid, (None, 1), name="two", lod=2)
    layers = fluid.layers
    layers.sequence_expand(x, two, ref_level=0)
    layers.sequence_expand(one, two, ref_level=1, name="e")
    layers.sequence_expand(x, one)
    layers.sequence_expand_as(x, one)
    layers.sequence_expand_as(one, one, name="a")


def moves(fluid):
    x, y = _x(fluid, (None, 4)), _x(fluid, (None, 4), name="y")
    offset = _x(fluid, (None, 1), "int64", "offset", 0)
    length = _x(fluid, (None, 1), "int64", "length", 0)
    layers = fluid.layers
    layers.sequence_concat([x, y])
    layers.sequence_concat([x, y, x], name="c")
    layers.sequence_reverse(x)
    layers.sequence_reverse(x, name="r")
    layers.sequence_reshape(x, 8)
    layers.sequence_slice(x, offset, length)
    layers.sequence_slice(x, offset, length, name="s")
    layers.sequence_first_step(x)
    layers.sequence_last_step(x)
    wide = _x(fluid, (3, 9), name="wide", lod=0)
    ids = _x(fluid, (None, 1), "int64", "ids")
    layers.sequence_scatter(wide, ids, _x(fluid, (None, 1), name="updates"))
    layers.sequence_scatter(wide, ids, _x(fluid, (None, 1), name="more"), name="t")


def paddings(fluid):
    x = _x(fluid, (None, 4))
    layers = fluid.layers
    zero = layers.assign(_zeros())
    layers.sequence_pad(x, zero)
    padded, length = layers.sequence_pad(x, zero, maxlen=7, name="p")
    layers.sequence_unpad(padded, length)
    layers.sequence_unpad(padded, length, name="u")
    layers.sequence_mask(length)
    layers.sequence_mask(length, 5, "float32")
    limit = layers.fill_constant([1], "int32", 6)
    layers.sequence_mask(length, limit, "bool", name="m")


def _zeros():
    import numpy

    return numpy.zeros(1, "float32")


def words(fluid):
    x = _x(fluid, (None, 1), "int64")
    layers = fluid.layers
    layers.sequence_enumerate(x, 3)
    layers.sequence_enumerate(x, 2, 7, name="e")

    small = _x(fluid, (None, 1), "int32", "small")
    layers.sequence_enumerate(small, 2)


def levels(fluid):
    x, y = _x(fluid, (None, 4)), _x(fluid, (None, 1), name="y", lod=2)
    layers = fluid.layers
    layers.lod_reset(x, y)
    layers.lod_reset(x, target_lod=[0, 2, 5])
    layers.lod_append(x, [0, 1, 5])
    layers.lod_append(x, (0, 1, 5))
    layers.lod_append(x, y)


def cases():
    """Every network of this file by name, in order."""
    return {
        name: value
        for name, value in globals().items()
        if callable(value) and not name.startswith("_") and name != "cases"
    }
