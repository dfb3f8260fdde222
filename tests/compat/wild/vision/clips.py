"""Clips: conv3d, ConvLSTM, non-local, NetVLAD, TSN, CRNN."""

import sys
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L


def tsn(x):
    v = L.reshape(x, [-1, 1, 8, 8])
    f = L.conv2d(v, 4, 3, padding=1, act="relu", name="c")
    f = L.pool2d(f, 8, "avg", global_pooling=True)
    f = L.reduce_mean(L.reshape(f, [-1, 3, 4]), dim=1)
    return f


def c3d(x):
    v = L.transpose(L.unsqueeze(L.squeeze(x, [2]), [1]), [0, 1, 2, 3, 4])
    f = L.conv3d(v, 4, [2, 3, 3], padding=[0, 1, 1], act="relu", name="c3")
    f = L.pool3d(f, [1, 2, 2], "max", [1, 2, 2])
    f = L.batch_norm(f, data_layout="NCHW")
    f = L.conv3d_transpose(f, 2, filter_size=2, stride=2, name="d3")
    return L.reduce_mean(L.reshape(f, [0, 2, -1]), dim=2)


def nonlocal_(x):
    v = L.conv2d(L.reshape(x, [-1, 3, 8, 8]), 4, 3, padding=1, name="n0")
    t = L.reshape(L.conv2d(v, 2, 1, name="n1"), [0, 2, -1])
    p = L.reshape(L.pool2d(L.conv2d(v, 2, 1, name="n2"), 2, "max", 2), [0, 2, -1])
    g = L.reshape(L.pool2d(L.conv2d(v, 2, 1, name="n3"), 2, "max", 2), [0, 2, -1])
    a = L.softmax(L.matmul(L.transpose(t, [0, 2, 1]), p) * 2**-0.5, axis=-1)
    o = L.transpose(L.matmul(a, L.transpose(g, [0, 2, 1])), [0, 2, 1])
    o = L.conv2d(L.reshape(o, [0, 2, 8, 8]), 4, 1, name="n4")
    o = L.batch_norm(
        o, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))
    )
    return L.reduce_mean(o + v, dim=[2, 3])


def vlad(x):
    f = L.reshape(x, [-1, 3, 64])
    a = L.softmax(
        L.batch_norm(
            L.reshape(
                L.fc(f, 2, num_flatten_dims=2, name="assign", bias_attr=False), [-1, 2]
            )
        )
    )
    a = L.reshape(a, [-1, 3, 2])
    c = L.create_parameter([64, 2], "float32", name="centers")
    s = L.reduce_sum(a, 1, keep_dim=True)
    v = L.matmul(L.transpose(f, [0, 2, 1]), a) - L.elementwise_mul(
        L.expand(L.unsqueeze(c, [0]), [2, 1, 1]), s
    )
    return L.l2_normalize(L.reshape(L.l2_normalize(v, 1), [-1, 128]), 1)


def crnn(x):
    v = L.reshape(x, [-1, 3, 8, 8])
    f = L.conv2d(v, 4, 3, padding=1, act="relu", name="k")
    s = L.im2sequence(f, filter_size=[8, 1], stride=[1, 1])
    g, _ = L.dynamic_lstm(L.fc(s, 12, name="pre"), 12, name="ls")
    return L.sequence_pool(g, "max")


def convlstm(x):
    v = L.transpose(x, [1, 0, 2, 3, 4])
    v.stop_gradient = False
    rnn = L.StaticRNN()
    with rnn.step():
        i = rnn.step_input(v)
        h = rnn.memory(
            shape=[-1, 2, 8, 8], batch_ref=v, ref_batch_dim_idx=1, init_value=0.0
        )
        c = rnn.memory(
            shape=[-1, 2, 8, 8], batch_ref=v, ref_batch_dim_idx=1, init_value=0.0
        )
        g = L.conv2d(
            L.concat([i, h], 1),
            8,
            3,
            padding=1,
            param_attr=fluid.ParamAttr(name="cl_w"),
            bias_attr=fluid.ParamAttr(name="cl_b"),
        )
        a, b, f, o = L.split(g, 4, dim=1)
        nc = L.sigmoid(f) * c + L.sigmoid(a) * L.tanh(b)
        nh = L.sigmoid(o) * L.tanh(nc)
        rnn.update_memory(h, nh)
        rnn.update_memory(c, nc)
        rnn.step_output(nh)
    return L.reduce_mean(L.reshape(L.slice(rnn(), [0], [2], [3]), [2, 2, 64]), dim=-1)


def main(kind):
    x = fluid.data("x", [2, 3, 1, 8, 8])
    x.stop_gradient = False
    y = fluid.data("y", [2, 1], "int64")
    f = globals()[kind](x)
    logits = L.fc(f, 3, name="out")
    loss = L.mean(L.softmax_with_cross_entropy(logits, y))
    fluid.optimizer.Momentum(
        0.1, 0.9, regularization=fluid.regularizer.L2Decay(1e-3)
    ).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in sorted(
        fluid.default_main_program().all_parameters(), key=lambda v: v.name
    ):
        if len(p.shape) > 1:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.3).astype("float32"), fluid.CPUPlace()
            )
    for i in range(4):
        r = exe.run(
            feed={
                "x": rng.rand(2, 3, 1, 8, 8).astype("float32"),
                "y": rng.randint(0, 3, (2, 1)),
            },
            fetch_list=[loss, logits, "x@GRAD"],
        )
        print(
            "%s %d %.5f %.4f %.5f"
            % (kind, i, r[0], np.abs(r[1]).sum(), np.abs(r[2]).sum())
        )


if __name__ == "__main__":
    main(sys.argv[1])
