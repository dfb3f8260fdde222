"""Conditional WGAN with clipped weights; saliency by gradients()."""

import os
import numpy as np
import six
import paddle.fluid as fluid
import paddle.fluid.layers as layers

place = fluid.CPUPlace()


def fill(programs, seed, scale=0.3):
    rng = np.random.RandomState(seed)
    seen = {}
    for prog in programs:
        for p in prog.global_block().all_parameters():
            seen.setdefault(p.name, p)
    for n in sorted(seen):
        fluid.global_scope().find_var(n).get_tensor().set(
            (rng.randn(*seen[n].shape) * scale).astype("float32"), place
        )


def spectral_fc(x, size, name):
    w = layers.create_parameter([x.shape[1], size], "float32", name=name + ".w_0")
    return layers.matmul(x, w)


def D(x, y, name="D"):
    if True:
        onehot = layers.one_hot(y, 3)
        h = layers.concat([x, onehot], 1)
        h = spectral_fc(h, 6, name + "1")
        h = layers.leaky_relu(h, 0.2)
        h = layers.fc(h, 1, param_attr="D2.w_0", bias_attr="D2.b_0")
    return h


def cbn(x, y, num, name):
    bn = layers.batch_norm(x, name=name)
    gamma = layers.embedding(
        y,
        [num, x.shape[1]],
        param_attr=fluid.ParamAttr(
            name=name + "_gamma", initializer=fluid.initializer.Constant(1.0)
        ),
    )
    beta = layers.embedding(
        y,
        [num, x.shape[1]],
        param_attr=fluid.ParamAttr(
            name=name + "_beta", initializer=fluid.initializer.Constant(0.0)
        ),
    )
    return layers.elementwise_add(layers.elementwise_mul(bn, gamma), beta)


def G(z, y, name="G"):
    with fluid.unique_name.guard(name + "_"):
        h = layers.fc(z, 6)
        h = layers.relu(cbn(h, y, 3, "cbn1"))
        return layers.fc(h, 2, act="tanh")


def wgan():
    d_program, g_program, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(d_program, startup):
        x = layers.data("x", [2])
        f = layers.data("f", [2])
        y = layers.data("y", [1], dtype="int64")
        d_loss = layers.mean(D(f, y)) - layers.mean(D(x, y))
        opt = fluid.optimizer.RMSPropOptimizer(0.01)
        opt.minimize(d_loss)
        # clip the weights behind the update
        for p in d_program.global_block().all_parameters():
            if p.trainable and p.name.endswith(".w_0"):
                layers.assign(layers.clip(p, -0.5, 0.5), output=p)
    with fluid.program_guard(g_program, startup):
        z = layers.data("z", [3])
        y = layers.data("y", [1], dtype="int64")
        fake = G(z, y)
        infer = g_program.clone(for_test=True)
        g_loss = layers.scale(layers.mean(D(fake, y)), scale=-1.0)
        fluid.optimizer.RMSPropOptimizer(0.01).minimize(
            g_loss,
            parameter_list=[
                p.name
                for p in g_program.all_parameters()
                if p.name.startswith(("G_", "cbn"))
            ],
        )
    print(sorted(p.name for p in d_program.all_parameters()))
    print(sorted(p.name for p in g_program.all_parameters()))
    exe = fluid.Executor(place)
    exe.run(startup)
    fill([d_program, g_program], 1)
    rng = np.random.RandomState(0)
    for it in six.moves.xrange(4):
        for _ in range(2):
            yv = rng.randint(0, 3, (6, 1)).astype("int64")
            zv = rng.randn(6, 3).astype("float32")
            fk = exe.run(infer, feed={"z": zv, "y": yv}, fetch_list=[fake])[0]
            dl = exe.run(
                d_program,
                feed={"x": rng.rand(6, 2).astype("float32"), "f": fk, "y": yv},
                fetch_list=[d_loss],
            )[0]
            for p in d_program.global_block().all_parameters():
                if p.name.endswith(".b_0"):
                    t = fluid.global_scope().find_var(p.name).get_tensor()
                    t.set(np.clip(np.array(t), -0.1, 0.1), place)
        gl = exe.run(g_program, feed={"z": zv, "y": yv}, fetch_list=[g_loss])[0]
        print("%d d %.6f g %.6f" % (it, dl[0], gl[0]))


def saliency():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1, 6, 6])
        label = fluid.data("label", [None, 1], "int64")
        x.stop_gradient = False
        c = layers.conv2d(x, 3, 3, act="relu")
        c = layers.pool2d(c, 2, "avg", 2)
        prob = layers.fc(c, 4, act="softmax")
        loss = layers.cross_entropy(prob, label)
        (gx,) = fluid.backward.gradients(loss, x)
        (gc,) = fluid.gradients(
            [
                layers.reduce_sum(
                    layers.gather_nd(
                        layers.transpose(prob, [1, 0]),
                        fluid.layers.assign(np.array([[2]], "int32")),
                    )
                )
            ],
            [c],
        )
        adv = layers.clip(x + 0.1 * layers.sign(gx), 0.0, 1.0)
        cam = layers.relu(
            layers.reduce_sum(
                layers.reduce_mean(gc, dim=[2, 3], keep_dim=True) * c, dim=1
            )
        )
    exe = fluid.Executor(place)
    exe.run(startup)
    fill([main], 3)
    rng = np.random.RandomState(0)
    a, b, c_ = exe.run(
        main,
        feed={
            "x": rng.rand(2, 1, 6, 6).astype("float32"),
            "label": np.array([[1], [3]]),
        },
        fetch_list=[adv, gx, cam],
    )
    print(
        "%.6f %.6f" % (a.sum(), np.abs(b).sum()),
        np.array2string(c_.ravel(), precision=5),
    )


if __name__ == "__main__":
    wgan()
    saliency()
