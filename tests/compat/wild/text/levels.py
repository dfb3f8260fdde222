"""Two levels of LoD, rank tables, GRU4Rec, CTC with edit distances."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L
from paddle.fluid.layers import control_flow as cf


def lt(a, lens):
    return fluid.create_lod_tensor(a, lens, fluid.CPUPlace())


def fill(seed=0):
    rng = np.random.RandomState(seed)
    for p in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        fluid.global_scope().find_var(p.name).get_tensor().set(
            (rng.randn(*p.shape) * 0.3).astype("float32"), fluid.CPUPlace()
        )


def hierarchical():
    word = L.data("word", [1], dtype="int64", lod_level=2)
    label = L.data("label", [1], dtype="int64")
    emb = L.embedding(word, [20, 6], param_attr="emb")
    emb = L.lod_reset(emb, y=L.data("flat", [1], dtype="int64", lod_level=1))
    proj = L.fc(emb, 12, param_attr="p", bias_attr="pb")
    g = L.dynamic_gru(proj, 4, param_attr="g", bias_attr="gb")
    sent = L.lod_reset(
        L.sequence_pool(g, "max"), y=L.data("docs", [1], dtype="int64", lod_level=1)
    )
    lstmp, cell = L.dynamic_lstmp(
        L.fc(sent, 16, param_attr="p2", bias_attr=False),
        16,
        3,
        use_peepholes=True,
        bias_attr="lpb",
        proj_activation="tanh",
    )
    att = L.sequence_softmax(L.fc(lstmp, 1, param_attr="a", bias_attr=False))
    doc = L.sequence_pool(L.elementwise_mul(lstmp, att, axis=0), "sum")
    rnn = L.DynamicRNN()
    with rnn.block():
        s = rnn.step_input(sent)
        mem = rnn.memory(shape=[4], dtype="float32", value=0.1)
        n = L.fc([s, mem], 4, act="tanh", param_attr=["r0", "r1"], bias_attr="rb")
        rnn.update_memory(mem, n)
        rnn.output(n)
    last = L.sequence_last_step(rnn())
    out = L.fc([doc, last], 3, param_attr=["o0", "o1"], bias_attr="ob")
    loss = L.mean(L.softmax_with_cross_entropy(out, label))
    fluid.optimizer.RMSProp(0.02).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fill()
    rng = np.random.RandomState(1)
    for i in range(4):
        docs = [[rng.randint(1, 4) for _ in range(rng.randint(1, 4))] for _ in range(3)]
        lens = [l for d in docs for l in d]
        ids = rng.randint(0, 20, (sum(lens), 1)).astype("int64")
        (l,) = exe.run(
            feed={
                "word": lt(ids, [[len(d) for d in docs], lens]),
                "flat": lt(ids, [lens]),
                "docs": lt(np.zeros((len(lens), 1), "int64"), [[len(d) for d in docs]]),
                "label": rng.randint(0, 3, (3, 1)),
            },
            fetch_list=[loss],
        )
        print("doc %d %.6f" % (i, l))


def tables():
    x = L.data("x", [2], lod_level=1)
    x.stop_gradient = False
    table = cf.lod_rank_table(x, level=0)
    length = cf.max_sequence_len(table)
    arr = cf.lod_tensor_to_array(x, table)
    i = L.fill_constant([1], "int64", 0)
    i.stop_gradient = True
    first = L.array_read(arr, i)
    n = L.array_length(arr)
    re = cf.reorder_lod_tensor_by_rank(x, table)
    out = cf.create_array("float32")
    cond = L.less_than(i, length)
    w = cf.While(cond)
    with w.block():
        v = L.array_read(arr, i)
        L.array_write(L.scale(v, 2.0), i, out)
        L.increment(i, in_place=True)
        L.less_than(i, length, cond=cond)
    back = cf.array_to_lod_tensor(out, table)
    exe = fluid.Executor()
    feed = {"x": lt(np.arange(14).reshape(7, 2).astype("float32"), [[2, 4, 1]])}
    r = exe.run(feed=feed, fetch_list=[length, first, n, re, back], return_numpy=False)
    for v in r:
        print(v.recursive_sequence_lengths(), np.array(v).ravel().tolist())


def gru4rec():
    src = L.data("src", [1], dtype="int64", lod_level=1)
    dst = L.data("dst", [1], dtype="int64", lod_level=1)
    e = L.embedding(
        src,
        [15, 5],
        param_attr=fluid.ParamAttr("e", learning_rate=10.0),
        is_sparse=False,
    )
    f = L.fc(e, 15, param_attr=fluid.ParamAttr("f", learning_rate=1.0), bias_attr="fb")
    h = L.dynamic_gru(
        f,
        5,
        param_attr="h",
        bias_attr="hb",
        origin_mode=True,
        candidate_activation="relu",
    )
    p = L.fc(h, 15, act="softmax", param_attr="o", bias_attr="ob")
    cost = L.cross_entropy(p, dst)
    bpr = L.bpr_loss(p, dst)
    acc = L.accuracy(p, dst, k=3)
    loss = L.mean(cost) + 0.1 * L.mean(bpr)
    fluid.optimizer.Adagrad(0.05).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fill(3)
    rng = np.random.RandomState(2)
    for i in range(4):
        lens = rng.randint(1, 5, 3).tolist()
        a = rng.randint(0, 15, (sum(lens), 1)).astype("int64")
        r = exe.run(
            feed={"src": lt(a, [lens]), "dst": lt((a + 1) % 15, [lens])},
            fetch_list=[loss, acc, p],
            return_numpy=False,
        )
        print("rec %d %.5f %.4f %s" % (i, np.array(r[0]), np.array(r[1]), r[2].lod()))


def ctc():
    x = L.data("x", [6], lod_level=1)
    lab = L.data("lab", [1], dtype="int32", lod_level=1)
    logits = L.fc(x, 5, param_attr="w", bias_attr="b")
    cost = L.warpctc(logits, lab, blank=4, norm_by_times=True)
    loss = L.reduce_sum(cost)
    dec = L.ctc_greedy_decoder(logits, blank=4)
    err, num = L.edit_distance(
        dec, L.cast(lab, "int64"), ignored_tokens=[0], normalized=False
    )
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fill(5)
    rng = np.random.RandomState(4)
    ev = fluid.metrics.EditDistance("ed")
    for i in range(4):
        feed = {
            "x": lt(rng.randn(11, 6).astype("float32"), [[5, 6]]),
            "lab": lt(rng.randint(0, 4, (5, 1)).astype("int32"), [[2, 3]]),
        }
        l, e, n, d = exe.run(
            feed=feed, fetch_list=[loss, err, num, dec], return_numpy=False
        )
        ev.update(np.array(e), np.array(n))
        print(
            "ctc %d %.5f %s %s %s"
            % (
                i,
                np.array(l),
                np.array(e).ravel().tolist(),
                np.array(n).tolist(),
                d.recursive_sequence_lengths(),
            )
        )
    print("%.4f %.4f" % ev.eval(), "%.4f" % ev.eval()[0][0])


if __name__ == "__main__":
    for f in (hierarchical, tables, gru4rec, ctc):
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(
            fluid.Program(), fluid.Program()
        ), fluid.unique_name.guard():
            f()
