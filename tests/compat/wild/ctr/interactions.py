"""DIN with a mask, FM with CIN and cross net, NCF; sparse lazy Adam."""

import sys
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

N, D = 20, 4


def emb(ids, size, name, dim=D):
    return fluid.embedding(
        ids,
        size=[size, dim],
        is_sparse=True,
        padding_idx=0,
        param_attr=fluid.ParamAttr(name=name, initializer=fluid.initializer.Xavier()),
    )


def din():
    hist = fluid.data("hist", [None, 5], "int64")
    target = fluid.data("target", [None], "int64")
    length = fluid.data("len", [None], "int64")
    he = emb(hist, N, "item")
    te = emb(target, N, "item")
    mask = layers.cast(layers.not_equal(hist, layers.zeros_like(hist)), "float32")
    te_ = layers.expand(layers.unsqueeze(te, [1]), [1, 5, 1])
    x = layers.concat([te_, he, te_ - he, te_ * he], axis=2)
    a = layers.fc(x, 8, num_flatten_dims=2, act="sigmoid", name="att1")
    a = layers.fc(a, 1, num_flatten_dims=2, name="att2")
    a = layers.squeeze(a, [2]) + (mask - 1.0) * 1e9
    a = layers.softmax(a * (D**-0.5))
    out = layers.squeeze(layers.matmul(layers.unsqueeze(a, [1]), he), [1])
    return layers.fc(layers.concat([out, te], 1), 1, name="out"), [
        "hist",
        "target",
        "len",
    ]


def fm():
    hist = fluid.data("hist", [None, 5], "int64")
    e = emb(hist, N, "item")
    first = layers.reduce_sum(emb(hist, N, "first", 1), dim=1)
    sq = layers.square(layers.reduce_sum(e, 1))
    ss = layers.reduce_sum(layers.square(e), 1)
    second = 0.5 * layers.reduce_sum(sq - ss, 1, keep_dim=True)
    deep = layers.reshape(e, [-1, 5 * D])
    for i in range(2):
        deep = layers.fc(deep, 6, act="relu", name="deep%d" % i)
    # CIN
    x0 = e
    last = e
    finals = []
    for i, s in enumerate([3, 2]):
        x0s = layers.reshape(layers.transpose(x0, [0, 2, 1]), [-1, D, 5, 1])
        ls = layers.reshape(
            layers.transpose(last, [0, 2, 1]), [-1, D, 1, last.shape[1]]
        )
        z = layers.matmul(x0s, ls)
        z = layers.reshape(z, [-1, D, 5 * last.shape[1]])
        z = layers.transpose(z, [0, 2, 1])
        z = layers.reshape(z, [-1, 5 * last.shape[1], 1, D])
        z = layers.conv2d(z, s, 1, bias_attr=False, name="cin%d" % i)
        last = layers.reshape(z, [-1, s, D])
        finals.append(last)
    cin = layers.reduce_sum(layers.concat(finals, 1), -1)
    # cross net
    flat = layers.reshape(e, [-1, 5 * D])
    xl = flat
    for i in range(2):
        w = layers.create_parameter([5 * D, 1], "float32", name="cross_w%d" % i)
        b = layers.create_parameter(
            [5 * D], "float32", name="cross_b%d" % i, is_bias=True
        )
        xl = layers.elementwise_add(flat * layers.matmul(xl, w) + xl, b, axis=-1)
    return layers.fc(layers.concat([first, second, deep, cin, xl], 1), 1, name="out"), [
        "hist"
    ]


def ncf():
    user = layers.data("user", [1], dtype="int64")
    item = layers.data("target1", [1], dtype="int64")

    def e(x, n, name):
        return layers.embedding(x, [n, D], is_sparse=True, param_attr=name)

    gmf = layers.elementwise_mul(e(user, 10, "gmf_u"), e(item, N, "gmf_i"))
    mlp = layers.concat([e(user, 10, "mlp_u"), e(item, N, "mlp_i")], axis=1)
    h = layers.cast(
        layers.elementwise_mod(
            layers.concat([user, item * 7], 1), layers.fill_constant([1], "int64", 50)
        ),
        "int64",
    )
    hashed = layers.reshape(
        layers.embedding(layers.reshape(h, [-1, 2, 1]), [50, 2], param_attr="hash_e"),
        [-1, 4],
    )
    for i, s in enumerate([6, 3]):
        mlp = layers.fc(mlp, s, act="relu", name="mlp%d" % i)
    return layers.fc(layers.concat([gmf, mlp, hashed], 1), 1, name="out"), [
        "user",
        "target1",
    ]


def main(kind):
    logit, names = globals()[kind]()
    label = fluid.data("label", [None, 1], "float32")
    loss = layers.reduce_mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
    prob = layers.sigmoid(logit)
    two = layers.concat([1.0 - prob, prob], 1)
    auc, batch_auc, stat = layers.auc(
        two, layers.cast(label, "int64"), num_thresholds=127, slide_steps=2
    )
    fluid.optimizer.AdamOptimizer(0.05, lazy_mode=True, regularization=None).minimize(
        loss
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(5)
    for p in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        v = fluid.global_scope().find_var(p.name).get_tensor()
        v.set((rng.randn(*p.shape) * 0.3).astype("float32"), fluid.CPUPlace())
    for i in range(5):
        n = 5
        hist = rng.randint(1, N, (6, n)).astype("int64")
        ln = rng.randint(1, n + 1, 6)
        for k in range(6):
            hist[k, ln[k] :] = 0
        all_ = {
            "hist": hist,
            "target": rng.randint(1, N, 6).astype("int64"),
            "len": ln.astype("int64"),
            "user": rng.randint(0, 10, (6, 1)),
            "target1": rng.randint(0, N, (6, 1)),
        }
        feed = {k: all_[k] for k in names}
        feed["label"] = (hist.sum(1, keepdims=True) % 2).astype("float32")
        l, a, b = exe.run(feed=feed, fetch_list=[loss, auc, batch_auc])
        print(kind, i, "%.6f %.5f %.5f" % (l, a, b))
    print(
        [s.shape for s in stat],
        sorted(
            op.type
            for op in fluid.default_main_program().global_block().ops
            if op.type in ("adam", "sum", "lookup_table_v2_grad", "lookup_table_grad")
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1])
