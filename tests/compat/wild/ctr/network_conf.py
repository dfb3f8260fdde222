"""Click-through-rate networks on the same inputs: wide&deep, DeepFM, DCN, xDeepFM, DIN."""

import math

import paddle.fluid as fluid

SPARSE_SLOTS = 4
DENSE_DIM = 3
VOCAB = 50
EMB = 4


def inputs():
    dense = fluid.layers.data(name="dense_input", shape=[DENSE_DIM], dtype="float32")
    sparse = [
        fluid.layers.data(name="C" + str(i), shape=[1], lod_level=1, dtype="int64")
        for i in range(1, SPARSE_SLOTS + 1)
    ]
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    return dense, sparse, label


def _embedding(input, size, name):
    return fluid.layers.embedding(
        input=input,
        is_sparse=True,
        size=[VOCAB, size],
        param_attr=fluid.ParamAttr(
            name=name, initializer=fluid.initializer.Uniform(-0.1, 0.1)
        ),
    )


def _dnn(x, sizes, act="relu"):
    for i, size in enumerate(sizes):
        x = fluid.layers.fc(
            input=x,
            size=size,
            act=act,
            param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.Normal(scale=1 / math.sqrt(x.shape[1]))
            ),
        )
    return x


def wide_deep(dense, sparse):
    embs = [_embedding(s, EMB, "SparseFeatFactors") for s in sparse]
    wide = [_embedding(s, 1, "wide_w") for s in sparse]
    pooled = [fluid.layers.sequence_pool(e, "sum") for e in embs]
    deep = _dnn(fluid.layers.concat(pooled + [dense], axis=1), [16, 8])
    wide = fluid.layers.sums([fluid.layers.sequence_pool(w, "sum") for w in wide])
    return fluid.layers.fc(deep, 1) + wide + fluid.layers.fc(dense, 1)


def deepfm(dense, sparse):
    first = [
        fluid.layers.sequence_pool(_embedding(s, 1, "first_w"), "sum") for s in sparse
    ]
    y_first = fluid.layers.reduce_sum(fluid.layers.concat(first, 1), 1, keep_dim=True)
    feats = [
        fluid.layers.sequence_pool(_embedding(s, EMB, "factors"), "sum") for s in sparse
    ]
    dense_w = fluid.layers.create_parameter([DENSE_DIM, EMB], "float32", "dense_w")
    dense_e = fluid.layers.elementwise_mul(
        fluid.layers.reshape(dense, [-1, DENSE_DIM, 1]), dense_w
    )
    feats = fluid.layers.concat(
        [fluid.layers.reshape(f, [-1, 1, EMB]) for f in feats] + [dense_e], axis=1
    )
    summed_square = fluid.layers.square(fluid.layers.reduce_sum(feats, 1))
    squared_sum = fluid.layers.reduce_sum(fluid.layers.square(feats), 1)
    y_second = 0.5 * fluid.layers.reduce_sum(
        summed_square - squared_sum, 1, keep_dim=True
    )
    flat = fluid.layers.reshape(feats, [-1, (SPARSE_SLOTS + DENSE_DIM) * EMB])
    y_dnn = fluid.layers.fc(_dnn(flat, [16, 16]), 1)
    return y_first + y_second + y_dnn


def dcn(dense, sparse):
    feats = [
        fluid.layers.sequence_pool(_embedding(s, EMB, s.name + "_emb"), "average")
        for s in sparse
    ]
    x0 = fluid.layers.concat(feats + [fluid.layers.log(dense + 1.0)], axis=-1)
    d = x0.shape[1]
    x, l2 = x0, []
    for i in range(2):
        w = fluid.layers.create_parameter(
            [d],
            dtype="float32",
            name="cross_w_%d" % i,
            default_initializer=fluid.initializer.Normal(0.0, 0.1),
        )
        b = fluid.layers.create_parameter(
            [d], "float32", "cross_b_%d" % i, is_bias=True
        )
        xw = fluid.layers.reduce_sum(x * w, dim=1, keep_dim=True)
        x = x0 * xw + b + x
        l2.append(fluid.layers.reduce_sum(fluid.layers.square(w)))
    deep = _dnn(x0, [16, 8])
    out = fluid.layers.fc(fluid.layers.concat([deep, x], axis=-1), 1)
    return out, 0.01 * fluid.layers.sums(l2)


def xdeepfm(dense, sparse):
    feats = [
        fluid.layers.reshape(
            fluid.layers.sequence_pool(_embedding(s, EMB, "emb"), "sum"), [-1, 1, EMB]
        )
        for s in sparse
    ]
    x0 = fluid.layers.concat(feats, axis=1)
    xs, xk, last = [], x0, SPARSE_SLOTS
    for i, size in enumerate([5, 3]):
        # outer products of all pairs of rows, compressed by a 1x1 convolution
        a = fluid.layers.expand(
            fluid.layers.unsqueeze(xk, [2]), [1, 1, SPARSE_SLOTS, 1]
        )
        b = fluid.layers.expand(fluid.layers.unsqueeze(x0, [1]), [1, last, 1, 1])
        z = fluid.layers.reshape(a * b, [-1, last * SPARSE_SLOTS, 1, EMB])
        xk = fluid.layers.conv2d(
            z,
            num_filters=size,
            filter_size=1,
            bias_attr=False,
            param_attr=fluid.ParamAttr(
                name="cin_w_%d" % i,
                regularizer=fluid.regularizer.L2DecayRegularizer(1e-3),
            ),
        )
        xk = fluid.layers.reshape(xk, [-1, size, EMB])
        xs.append(fluid.layers.reduce_sum(xk, dim=2))
        last = size
    cin = fluid.layers.fc(fluid.layers.concat(xs, 1), 1)
    flat = fluid.layers.concat([fluid.layers.flatten(x0), dense], axis=1)
    return cin + fluid.layers.fc(_dnn(flat, [12], act="tanh"), 1)


def din(dense, sparse):
    """The first slot is the target, the second the history that it looks at."""
    hist = _embedding(sparse[1], EMB, "item_emb")
    target = fluid.layers.sequence_pool(_embedding(sparse[0], EMB, "item_emb"), "first")
    target_expand = fluid.layers.sequence_expand(target, hist)
    both = fluid.layers.concat(
        [hist, target_expand, hist - target_expand, hist * target_expand], axis=1
    )
    att = fluid.layers.fc(both, size=8, act="sigmoid", name="att_1")
    att = fluid.layers.fc(att, size=1, name="att_2")
    att = fluid.layers.sequence_softmax(fluid.layers.scale(att, scale=EMB**-0.5))
    weighted = fluid.layers.elementwise_mul(hist, att, axis=0)
    user = fluid.layers.sequence_pool(weighted, "sum")
    rest = [
        fluid.layers.sequence_pool(_embedding(s, EMB, "rest"), "max")
        for s in sparse[2:]
    ]
    x = fluid.layers.concat([user, target] + rest + [dense], axis=1)
    x = fluid.layers.fc(x, 8)
    x = fluid.layers.prelu(x, mode="all")
    return fluid.layers.fc(x, 1)
