"""Gradient merging, a fed rate, recomputation, AMP, averages by hand."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L
import paddle.fluid.contrib.mixed_precision as mp


tests = []


def net():
    x = fluid.data("x", [None, 6])
    y = fluid.data("y", [None, 1], "int64")
    h = L.fc(x, 8, act="relu", param_attr="w0", bias_attr="b0")
    h = L.batch_norm(
        h,
        param_attr="bs",
        bias_attr="bb",
        moving_mean_name="mm",
        moving_variance_name="mv",
    )
    o = L.fc(h, 3, param_attr="w1", bias_attr="b1")
    return h, L.mean(L.softmax_with_cross_entropy(o, y))


def data(n):
    rng = np.random.RandomState(0)
    for _ in range(n):
        x = rng.randn(8, 6).astype("float32")
        yield {"x": x, "y": x[:, :3].argmax(1).reshape(-1, 1).astype("int64")}


def start_values():
    rng = np.random.RandomState(1)
    for n, s in (("w0", (6, 8)), ("w1", (8, 3))):
        fluid.global_scope().find_var(n).get_tensor().set(
            (rng.randn(*s) * 0.4).astype("float32"), fluid.CPUPlace()
        )


def merge():
    """Update every second step only: layers.cond around the sums, as recipes had it."""
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        h, loss = net()
        tests.append(main.clone(for_test=True))
        opt = fluid.optimizer.SGD(0.2)
        pg = opt.backward(loss)
        step = L.autoincreased_step_counter(counter_name="@MERGE@", begin=1)
        now = L.equal(
            L.elementwise_mod(step, L.fill_constant([1], "int64", 2)),
            L.fill_constant([1], "int64", 0),
        )
        gate = L.cast(now, "float32")
        new = []
        for p, g in pg:
            acc = L.create_global_var(
                p.shape, 0.0, "float32", persistable=True, name=p.name + "@ACC"
            )
            total = acc + g
            new.append((p, total * gate * 0.5))
            L.assign(total * (1.0 - gate), acc)
        opt.apply_gradients(new)
    return main, start, loss, [gate]


def lr_feed():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        h, loss = net()
        tests.append(main.clone(for_test=True))
        lr = L.create_global_var([1], 0.1, "float32", persistable=True, name="lr")
        fluid.optimizer.Momentum(lr, 0.9).minimize(loss)
    return main, start, loss, [lr]


def recompute():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        h, loss = net()
        tests.append(main.clone(for_test=True))
        o = fluid.optimizer.RecomputeOptimizer(
            fluid.optimizer.Adam(
                0.02, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.3)
            )
        )
        o._set_checkpoints([h])
        o.minimize(loss)
    return main, start, loss, []


def bf():
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start):
        h, loss = net()
        tests.append(main.clone(for_test=True))
        o = mp.decorate(
            fluid.optimizer.Momentum(0.1, 0.9),
            mp.AutoMixedPrecisionLists(
                custom_black_list={
                    "mul",
                    "elementwise_add",
                    "softmax_with_cross_entropy",
                    "mean",
                    "relu",
                    "batch_norm",
                }
            ),
            init_loss_scaling=16.0,
            incr_every_n_steps=2,
            decr_every_n_nan_or_inf=1,
            incr_ratio=2.0,
            decr_ratio=0.5,
            use_dynamic_loss_scaling=True,
        )
        o.minimize(loss)
    return main, start, loss, [o.get_loss_scaling()]


if __name__ == "__main__":
    for f in (merge, lr_feed, recompute, bf):
        with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            main, start, loss, more = f()
            exe = fluid.Executor()
            exe.run(start)
            start_values()
            swa, n = None, 0
            for i, d in enumerate(data(6)):
                if f is lr_feed and i != 3:
                    d["lr"] = np.array([0.2 / (i + 1)], "float32")
                r = exe.run(main, feed=d, fetch_list=[loss] + more)
                w = np.array(fluid.global_scope().find_var("w1").get_tensor())
                swa = w if swa is None else swa + (w - swa) / (n + 1)
                n += 1
                if f is recompute:
                    fluid.global_scope().find_var("mm").get_tensor().set(
                        np.zeros(8, "float32"), fluid.CPUPlace()
                    )
                print(
                    f.__name__,
                    i,
                    " ".join("%.5f" % v for v in r),
                    "%.5f" % np.abs(w).sum(),
                    "%.5f"
                    % np.abs(
                        np.array(fluid.global_scope().find_var("mm").get_tensor())
                    ).sum(),
                )
            fluid.global_scope().find_var("w1").get_tensor().set(swa, fluid.CPUPlace())
            if f is not recompute:
                print("swa %.5f" % exe.run(tests[-1], feed=d, fetch_list=[loss])[0])
