"""StaticRNN, DynamicRNN with attention, while_loop, cond, case, IfElse."""

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as pd


def const(v):
    return fluid.ParamAttr(initializer=fluid.initializer.Constant(v))


def run(main, startup, feed, fetch, **kw):
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        res = []
        for _ in range(3):
            res.append(exe.run(main, feed=feed, fetch_list=fetch, **kw))
        return res


def static_rnn():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [4, 3, 5])
        x.stop_gradient = False
        h0 = fluid.data("h0", [3, 6])
        rnn = pd.StaticRNN()
        with rnn.step():
            w = rnn.step_input(x)
            prev = rnn.memory(init=h0)
            mem2 = rnn.memory(shape=[-1, 6], batch_ref=x, init_value=0.1)
            h = pd.fc(
                [w, prev],
                6,
                act="tanh",
                param_attr=[
                    fluid.ParamAttr("wx", initializer=fluid.initializer.Constant(0.1)),
                    fluid.ParamAttr("wh", initializer=fluid.initializer.Constant(0.2)),
                ],
                bias_attr=False,
            )
            g = pd.sigmoid(h + mem2)
            rnn.update_memory(prev, h)
            rnn.update_memory(mem2, g)
            rnn.step_output(h)
            rnn.output(g)
        hs, gs = rnn()
        last = pd.slice(hs, axes=[0], starts=[-1], ends=[100])
        loss = pd.mean(last) + pd.mean(gs)
        fluid.optimizer.SGD(0.5).minimize(loss)
    rng = np.random.RandomState(0)
    for r in run(
        main,
        startup,
        {
            "x": rng.randn(4, 3, 5).astype("float32"),
            "h0": rng.randn(3, 6).astype("float32"),
        },
        [loss, "wh@GRAD", last],
    ):
        print("static %.6f %.6f %s" % (r[0], np.abs(r[1]).sum(), r[2].shape))


def dynamic_attention():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        src = pd.data("src", [4], lod_level=1)
        trg = pd.data("trg", [4], lod_level=1)
        encoded = pd.fc(src, 5, act="tanh", param_attr=const(0.3))
        boot = pd.fc(
            pd.sequence_last_step(encoded), 5, act="tanh", param_attr=const(0.1)
        )
        proj = pd.fc(encoded, 5, bias_attr=False, param_attr=const(-0.2))

        def attention(vec, proj_, state):
            s = pd.fc(
                state,
                5,
                bias_attr=False,
                param_attr=fluid.ParamAttr(
                    "att_s", initializer=fluid.initializer.Constant(0.2)
                ),
            )
            s = pd.sequence_expand(x=s, y=proj_)
            mixed = pd.concat([proj_, s], axis=1)
            weights = pd.fc(
                mixed,
                1,
                act="tanh",
                bias_attr=False,
                param_attr=fluid.ParamAttr(
                    "att_w", initializer=fluid.initializer.Constant(0.4)
                ),
            )
            weights = pd.sequence_softmax(weights)
            weights = pd.reshape(weights, shape=[-1])
            scaled = pd.elementwise_mul(x=vec, y=weights, axis=0)
            return pd.sequence_pool(input=scaled, pool_type="sum")

        rnn = pd.DynamicRNN()
        with rnn.block():
            w = rnn.step_input(trg)
            vec = rnn.static_input(encoded)
            p = rnn.static_input(proj)
            mem = rnn.memory(init=boot, need_reorder=True)
            ctx = attention(vec, p, mem)
            h, _, _ = pd.gru_unit(
                pd.fc(
                    [ctx, w],
                    15,
                    bias_attr=False,
                    param_attr=[
                        fluid.ParamAttr(
                            "c1", initializer=fluid.initializer.Constant(0.1)
                        ),
                        fluid.ParamAttr(
                            "c2", initializer=fluid.initializer.Constant(0.05)
                        ),
                    ],
                ),
                mem,
                15,
                param_attr=fluid.ParamAttr(
                    "gu", initializer=fluid.initializer.Constant(0.15)
                ),
            )
            rnn.update_memory(mem, h)
            rnn.output(
                pd.fc(
                    h,
                    3,
                    act="softmax",
                    param_attr=fluid.ParamAttr(
                        "out_w",
                        initializer=fluid.initializer.NumpyArrayInitializer(
                            np.linspace(-1, 1, 15).reshape(5, 3).astype("float32")
                        ),
                    ),
                )
            )
        out = rnn()
        lab = pd.data("lab", [1], dtype="int64", lod_level=1)
        loss = pd.mean(pd.cross_entropy(out, lab))
        fluid.optimizer.Adagrad(0.1).minimize(loss)
    rng = np.random.RandomState(0)

    def lt(a, l):
        return fluid.create_lod_tensor(a, l, fluid.CPUPlace())

    feed = {
        "src": lt(rng.randn(7, 4).astype("float32"), [[2, 4, 1]]),
        "trg": lt(rng.randn(6, 4).astype("float32"), [[3, 1, 2]]),
        "lab": lt(np.arange(6).reshape(-1, 1) % 3, [[3, 1, 2]]),
    }
    for r in run(main, startup, feed, [loss, "att_w@GRAD", out], return_numpy=False):
        print(
            "dyn %.6f %.6f %s"
            % (
                np.array(r[0]),
                np.abs(np.array(r[1])).sum(),
                r[2].recursive_sequence_lengths(),
            )
        )


def loops():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        n = fluid.data("n", [1], "int64")
        x = fluid.data("x", [None, 3])
        i = pd.fill_constant([1], "int64", 0)
        acc = pd.zeros_like(x)
        i2, acc2 = pd.while_loop(
            lambda i, a: pd.less_than(i, n),
            lambda i, a: [i + 1, a + x * pd.cast(i, "float32")],
            [i, acc],
        )
        pred = pd.less_than(pd.reduce_sum(x), pd.fill_constant([1], "float32", 0.0))
        c = pd.cond(
            pred,
            lambda: pd.fill_constant([2, 2], "float32", 1.0) * 3.0,
            lambda: pd.reduce_mean(x) * pd.ones([2, 2], "float32"),
        )
        s = pd.switch_case(
            pd.cast(n, "int32"),
            {1: lambda: x * 1.0, 3: lambda: x * 3.0},
            default=lambda: x * 0.5,
        )
        k = pd.case(
            [
                (
                    pd.equal(n, pd.fill_constant([1], "int64", 3)),
                    lambda: (x, pd.reduce_max(x)),
                ),
                (pred, lambda: (-x, pd.reduce_min(x))),
            ],
            default=lambda: (x * x, pd.reduce_prod(x)),
        )
        ie = pd.IfElse(
            pd.greater_than(
                pd.reduce_sum(x, dim=1, keep_dim=True),
                pd.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0),
            )
        )
        with ie.true_block():
            ie.output(ie.input(x) * 10.0)
        with ie.false_block():
            ie.output(ie.input(x) - 1.0)
        merged = ie()[0]
        # arrays inside While
        arr = pd.create_array("float32")
        j = pd.zeros([1], "int64", force_cpu=True)
        pd.array_write(x, j, arr)
        lim = pd.fill_constant([1], "int64", 3)
        cond = pd.less_than(j, lim)
        w = pd.While(cond)
        with w.block():
            prev = pd.array_read(arr, j)
            pd.increment(j, 1, in_place=True)
            pd.array_write(pd.softmax(prev * 2.0), j, arr)
            pd.less_than(j, lim, cond=cond)
        cat, idx = pd.tensor_array_to_tensor(arr, axis=0)
        ln = pd.array_length(arr)
    rng = np.random.RandomState(0)
    for n_ in (1, 3, 5):
        out = run(
            main,
            startup,
            {
                "n": np.array([n_], "int64"),
                "x": (rng.randn(2, 3) * (1 if n_ != 5 else -1)).astype("float32"),
            },
            [i2, acc2, c, s, k[0], k[1], merged, cat, idx, ln],
        )[0]
        print("loop", [np.round(o, 4).ravel().tolist() for o in out])


def nested_grad():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [2, 3])
        x.stop_gradient = False
        w = pd.create_parameter(
            [3, 3],
            "float32",
            name="w",
            default_initializer=fluid.initializer.Constant(0.2),
        )
        i = pd.fill_constant([1], "int64", 0)
        n = pd.fill_constant([1], "int64", 3)
        h = pd.cond(
            pd.less_than(i, n), lambda: pd.tanh(pd.matmul(x, w)), lambda: x * 2.0
        )
        h = pd.cond(
            pd.less_than(n, i), lambda: pd.tanh(pd.matmul(h, w)), lambda: h * 2.0
        )
        loss = pd.reduce_sum(h * h)
        g = fluid.gradients(loss, [x, w])
    for r in run(
        main,
        startup,
        {"x": np.arange(6).reshape(2, 3).astype("float32") * 0.1},
        [loss] + g,
    )[:1]:
        print(
            "nested %.6f" % r[0],
            np.array2string(r[1], precision=5),
            np.array2string(r[2], precision=5),
        )


if __name__ == "__main__":
    static_rnn()
    dynamic_attention()
    loops()
    nested_grad()
