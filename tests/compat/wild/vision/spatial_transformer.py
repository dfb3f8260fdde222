"""Spatial transformer, pixel shuffle, cropping, padding, channel tricks."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L


def stn(x):
    loc = L.pool2d(L.conv2d(x, 2, 3, padding=1, act="relu", name="loc"), 2, "max", 2)
    theta = L.fc(
        loc,
        6,
        param_attr=fluid.ParamAttr(
            "theta_w", initializer=fluid.initializer.Constant(0.0)
        ),
        bias_attr=fluid.ParamAttr(
            "theta_b",
            initializer=fluid.initializer.NumpyArrayInitializer(
                np.array([1.1, 0.1, 0.05, -0.1, 0.9, 0.02], "float32")
            ),
        ),
    )
    theta = L.reshape(theta, [-1, 2, 3])
    grid = L.affine_grid(theta, out_shape=[2, 1, 8, 8])
    return L.grid_sampler(x, grid)


def main():
    x = fluid.data("x", [2, 1, 8, 8])
    x.stop_gradient = False
    y = fluid.data("y", [2, 1], "int64")
    t = stn(x)
    big = L.pixel_shuffle(L.conv2d(t, 4, 3, padding="SAME", name="ps"), 2)
    cropped = L.crop_tensor(big, shape=[-1, 1, 8, 8], offsets=[0, 0, 4, 4])
    padded = L.pad(cropped, [0, 0, 0, 0, 1, 1, 2, 2], 0.5)
    p2 = L.pad2d(padded, [1, 0, 0, 1], "reflect")
    s2d = L.space_to_depth(
        L.expand(L.slice(p2, [2, 3], [0, 0], [10, 12]), [1, 4, 1, 1]), 2
    )
    ts = L.temporal_shift(s2d, seg_num=2, shift_ratio=0.25)
    sh = L.shuffle_channel(ts, 4)
    lrn = L.lrn(sh, n=3)
    un = L.reshape(L.im2sequence(lrn, 2, 2), [2, 64, -1])
    a = L.adaptive_pool2d(lrn, [2, 3], "max")
    mo = L.maxout(lrn, 8)
    pr = L.prelu(
        mo,
        "channel",
        param_attr=fluid.ParamAttr(
            name="prelu", initializer=fluid.initializer.Constant(0.3)
        ),
    )
    ac = L.affine_channel(
        pr,
        scale=L.create_parameter(
            [2],
            "float32",
            name="sc",
            default_initializer=fluid.initializer.Constant(1.5),
        ),
        bias=L.create_parameter([2], "float32", name="bi", is_bias=True),
    )
    dn = L.data_norm(L.flatten(ac), name="dn")
    logits = L.fc(
        L.concat([L.flatten(a), dn, L.reduce_mean(un, dim=2)], 1), 3, name="lg"
    )
    loss = L.mean(L.softmax_with_cross_entropy(logits, y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(3)
    print(ts.shape, mo.shape, un.shape)
    for n in ["loc.w_0", "ps.w_0", "lg.w_0"]:
        tt = fluid.global_scope().find_var(n).get_tensor()
        tt.set((rng.randn(*tt.shape()) * 0.4).astype("float32"), fluid.CPUPlace())
    for i in range(5):
        r = exe.run(
            feed={
                "x": rng.rand(2, 1, 8, 8).astype("float32"),
                "y": rng.randint(0, 3, (2, 1)),
            },
            fetch_list=[loss, t, lrn, un, "theta_b@GRAD", "prelu@GRAD"],
        )
        print(i, "%.5f" % r[0], ["%.4f" % np.abs(v).sum() for v in r[1:]], r[3].shape)


if __name__ == "__main__":
    main()
