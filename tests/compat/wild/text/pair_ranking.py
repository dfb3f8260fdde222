"""DSSM-like ranking with seven losses; every sequence op."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers, nets

V = 25


def tower(x, name):
    emb = layers.embedding(
        x,
        [V, 6],
        is_sparse=True,
        padding_idx=0,
        param_attr=fluid.ParamAttr(name="shared_emb"),
    )
    bow = layers.sequence_pool(emb, "sum")
    conv = nets.sequence_conv_pool(
        emb,
        num_filters=4,
        filter_size=3,
        act="tanh",
        pool_type="sqrt",
        param_attr=fluid.ParamAttr(name="seqconv"),
        bias_attr="seqconv_b",
    )
    mx = layers.sequence_pool(emb, "max")
    return layers.fc(
        [layers.softsign(bow), conv, mx],
        5,
        act="tanh",
        param_attr=["t0", "t1", "t2"],
        bias_attr="tb",
    )


def lod(rows):
    flat = np.concatenate(rows).reshape(-1, 1).astype("int64")
    return fluid.create_lod_tensor(flat, [[len(r) for r in rows]], fluid.CPUPlace())


def main():
    q = layers.data("q", [1], dtype="int64", lod_level=1)
    p = layers.data("p", [1], dtype="int64", lod_level=1)
    n = layers.data("n", [1], dtype="int64", lod_level=1)
    qv, pv, nv = tower(q, "q"), tower(p, "p"), tower(n, "n")
    cp, cn = layers.cos_sim(qv, pv), layers.cos_sim(qv, nv)
    one = layers.fill_constant_batch_size_like(cp, [-1, 1], "float32", 1.0)
    margin = layers.mean(layers.margin_rank_loss(one, cp, cn, margin=0.1))
    rank = layers.mean(layers.rank_loss(one, cp, cn))
    hinge = layers.reduce_mean(layers.relu(0.2 + cn - cp))
    scores = layers.softmax(layers.concat([cp, cn], axis=1))
    bpr = layers.mean(
        layers.bpr_loss(scores, layers.zeros_like(layers.cast(one, "int64")))
    )
    log = layers.mean(layers.log_loss(layers.sigmoid(cp - cn), one, epsilon=1e-4))
    kl = layers.kldiv_loss(
        layers.log(scores),
        layers.label_smooth(layers.one_hot(layers.cast(one, "int64"), 2), epsilon=0.1),
        reduction="batchmean",
    )
    ts = layers.mean(layers.teacher_student_sigmoid_loss(cp, one * 0.7))
    mse = layers.mse_loss(cp, one)
    loss = margin + rank + hinge + bpr + log + 0.1 * kl + 0.1 * ts + 0.1 * mse
    acc = layers.reduce_mean(layers.cast(layers.greater_than(cp, cn), "float32"))
    fluid.optimizer.Adagrad(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(2)
    for v in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        fluid.global_scope().find_var(v.name).get_tensor().set(
            (rng.randn(*v.shape) * 0.4).astype("float32"), fluid.CPUPlace()
        )
    for i in range(5):
        qs = [rng.randint(0, V, rng.randint(1, 6)) for _ in range(4)]
        ps = [np.concatenate([r, rng.randint(0, V, 1)]) for r in qs]
        ns = [rng.randint(0, V, rng.randint(1, 6)) for _ in range(4)]
        out = exe.run(
            feed={"q": lod(qs), "p": lod(ps), "n": lod(ns)},
            fetch_list=[loss, margin, rank, hinge, bpr, log, kl, ts, mse, acc],
        )
        print(i, " ".join("%.5f" % float(np.array(o)) for o in out))


def seq_ops():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        x = layers.data("x", [2], lod_level=1)
        ids = layers.data("ids", [1], dtype="int64", lod_level=1)
        y = layers.data("y", [2], lod_level=1)
        outs = [
            layers.sequence_reverse(x),
            layers.sequence_concat([x, y]),
            layers.sequence_expand_as(layers.sequence_first_step(x), y),
            layers.sequence_pad(
                x, layers.assign(np.array([-1.0], "float32")), maxlen=5
            )[0],
            layers.sequence_slice(
                x,
                layers.assign(np.array([[0], [1]], "int64")),
                layers.assign(np.array([[1], [1]], "int64")),
            ),
            layers.sequence_enumerate(ids, 2, pad_value=9),
            ids,
            layers.sequence_conv(x, 2, 3, param_attr=fluid.initializer.Constant(0.5)),
            layers.sequence_pool(x, "last"),
            layers.sequence_reshape(x, 1),
            layers.sequence_scatter(
                layers.fill_constant([2, 6], "float32", 1.0),
                ids,
                layers.reduce_sum(x, 1, keep_dim=True),
            ),
            layers.row_conv(x, 1, param_attr=fluid.initializer.Constant(0.5)),
            layers.im2sequence(
                layers.reshape(layers.range(0.0, 32.0, 1.0, "float32"), [2, 1, 4, 4]),
                2,
                2,
            ),
        ]
        outs.append(
            layers.sequence_unpad(
                *layers.sequence_pad(x, layers.assign(np.array([0.0], "float32")))
            )
        )
        outs.append(layers.edit_distance(ids, layers.sequence_reverse(ids))[0])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start)
    feed = {
        "x": fluid.create_lod_tensor(
            np.arange(10).reshape(5, 2).astype("float32"), [[2, 3]], fluid.CPUPlace()
        ),
        "ids": fluid.create_lod_tensor(
            np.array([[1], [2], [3], [2], [5]], "int64"), [[2, 3]], fluid.CPUPlace()
        ),
        "y": fluid.create_lod_tensor(
            np.ones((4, 2), "float32"), [[1, 3]], fluid.CPUPlace()
        ),
    }
    for o in exe.run(main, feed=feed, fetch_list=outs, return_numpy=False):
        print(
            o.recursive_sequence_lengths(),
            np.array(o).shape,
            np.array(o).ravel()[:14].tolist(),
        )


if __name__ == "__main__":
    main()
    with fluid.scope_guard(fluid.Scope()):
        seq_ops()
