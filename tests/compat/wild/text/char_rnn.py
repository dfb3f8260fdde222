"""Language models that carry states: StaticRNN, GRUCell, lstm_unit."""

import math
import sys
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.contrib.layers import *  # noqa
from paddle.fluid import ParamAttr
from paddle.fluid.layers.control_flow import StaticRNN as PaddingRNN

V, H, T, B = 11, 6, 5, 3
text = "the quick brown fox jumps over the lazy dog " * 4


def cell_static(x_emb, init_h, init_c):
    x = layers.transpose(x_emb, [1, 0, 2])
    w = layers.create_parameter(
        [2 * H, 4 * H],
        "float32",
        name="lw",
        default_initializer=fluid.initializer.UniformInitializer(-0.1, 0.1),
    )
    b = layers.create_parameter(
        [4 * H],
        "float32",
        name="lb",
        default_initializer=fluid.initializer.Constant(0.0),
    )
    rnn = PaddingRNN()
    with rnn.step():
        inp = rnn.step_input(x)
        h = rnn.memory(init=init_h)
        c = rnn.memory(init=init_c)
        g = layers.elementwise_add(layers.matmul(layers.concat([inp, h], 1), w), b)
        i = layers.slice(g, axes=[1], starts=[0], ends=[H])
        j = layers.slice(g, axes=[1], starts=[H], ends=[2 * H])
        f = layers.slice(g, axes=[1], starts=[2 * H], ends=[3 * H])
        o = layers.slice(g, axes=[1], starts=[3 * H], ends=[4 * H])
        nc = c * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
        nh = layers.tanh(nc) * layers.sigmoid(o)
        rnn.update_memory(h, nh)
        rnn.update_memory(c, nc)
        rnn.step_output(nh)
        rnn.step_output(nc)
    outs = rnn()
    hs = layers.transpose(outs[0], perm=[1, 0, 2])
    last_h = layers.slice(outs[0], axes=[0], starts=[T - 1], ends=[T])
    last_c = layers.slice(outs[1], axes=[0], starts=[T - 1], ends=[T])
    return hs, layers.reshape(last_h, [-1, H]), layers.reshape(last_c, [-1, H])


def cell_layers(kind):
    def f(x_emb, init_h, init_c):
        if kind == "lstm":
            cell = layers.LSTMCell(
                H, param_attr=ParamAttr(name="cw"), bias_attr=ParamAttr(name="cb")
            )
            out, st = layers.rnn(cell, x_emb, initial_states=[init_h, init_c])
            return out, st[0], st[1]
        if kind == "gru":
            cell = layers.GRUCell(
                H, param_attr=ParamAttr(name="cw"), bias_attr=ParamAttr(name="cb")
            )
            out, st = layers.rnn(
                cell,
                x_emb,
                initial_states=init_h,
                sequence_length=layers.fill_constant([B], "int32", T - 1),
                is_reverse=False,
            )
            return out, st, init_c
        hs = []
        h, c = init_h, init_c
        for t in range(T):
            xt = layers.squeeze(layers.slice(x_emb, [1], [t], [t + 1]), [1])
            h, c = layers.lstm_unit(
                xt,
                h,
                c,
                forget_bias=1.0,
                param_attr=ParamAttr(name="cw"),
                bias_attr=ParamAttr(name="cb"),
            )
            hs.append(h)
        return layers.stack(hs, axis=1), h, c

    return f


def main(kind):
    chars = sorted(set(text))
    idx = {ch: i % V for i, ch in enumerate(chars)}
    data = np.array([idx[ch] for ch in text], "int64")
    x = layers.data(name="x", shape=[B, T, 1], dtype="int64", append_batch_size=False)
    y = layers.data(name="y", shape=[B * T, 1], dtype="int64", append_batch_size=False)
    ih = layers.data(
        name="init_h", shape=[B, H], dtype="float32", append_batch_size=False
    )
    ic = layers.data(
        name="init_c", shape=[B, H], dtype="float32", append_batch_size=False
    )
    ih.stop_gradient = ic.stop_gradient = False
    emb = layers.embedding(
        x,
        size=[V, H],
        dtype="float32",
        is_sparse=False,
        param_attr=ParamAttr(name="embedding_para"),
    )
    emb = layers.reshape(emb, shape=[-1, T, H])
    emb = layers.dropout(
        emb, dropout_prob=0.0, dropout_implementation="upscale_in_train"
    )
    hs, lh, lc = (cell_static if kind == "static" else cell_layers(kind))(emb, ih, ic)
    sw = layers.create_parameter([H, V], "float32", name="softmax_weight")
    sb = layers.create_parameter([V], "float32", name="softmax_bias", is_bias=True)
    logits = layers.elementwise_add(layers.matmul(layers.reshape(hs, [-1, H]), sw), sb)
    loss = layers.softmax_with_cross_entropy(logits=logits, label=y, soft_label=False)
    loss = layers.reduce_sum(layers.reduce_mean(layers.reshape(loss, [-1, T]), dim=[0]))
    loss.persistable = True
    lh.persistable = True
    fluid.default_main_program().random_seed = 123
    lr = layers.create_global_var(
        name="learning_rate", shape=[1], value=1.0, dtype="float32", persistable=True
    )
    opt = fluid.optimizer.SGD(learning_rate=lr)
    clip = fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0)
    fluid.clip.set_gradient_clip(clip)
    opt.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        t = fluid.global_scope().find_var(p.name).get_tensor()
        t.set((rng.randn(*p.shape) * 0.4).astype("float32"), fluid.CPUPlace())
    n = len(data) // B
    rows = data[: n * B].reshape(B, n)
    for epoch in range(2):
        new_lr = 1.0 * (0.5 ** max(epoch + 1 - 1, 0.0))
        fluid.global_scope().find_var("learning_rate").get_tensor().set(
            np.array([new_lr], "float32"), fluid.CPUPlace()
        )
        h = np.zeros((B, H), "float32")
        c = np.zeros((B, H), "float32")
        total, iters = 0.0, 0
        for i in range(0, min(n - T - 1, 6 * T), T):
            a = rows[:, i : i + T].reshape(B, T, 1)
            b = rows[:, i + 1 : i + T + 1].reshape(-1, 1)
            out = exe.run(
                fluid.default_main_program(),
                feed={"x": a, "y": b, "init_h": h, "init_c": c},
                fetch_list=[loss, lh, lc, "learning_rate"],
                use_program_cache=True,
            )
            cost = np.array(out[0])
            h, c = np.array(out[1]), np.array(out[2])
            total += cost
            iters += T
            ppl = np.exp(total / iters)
            print(
                "%s epoch %d step %d ppl: %.5f lr: %.3f"
                % (kind, epoch, i // T, ppl[0], out[3][0])
            )
        print("h %.5f" % np.abs(h).sum())


if __name__ == "__main__":
    main(sys.argv[1])
