"""EMA, ModelAverage, LookAhead, Recompute, AMP and the lesser optimizers."""

import numpy as np
import paddle.fluid as fluid


def net():
    x = fluid.data("x", [None, 6])
    y = fluid.data("y", [None, 1], "int64")
    h1 = fluid.layers.fc(x, 8, act="relu", param_attr="w1", bias_attr="b1")
    h2 = fluid.layers.fc(h1, 8, act="tanh", param_attr="w2", bias_attr="b2")
    logits = fluid.layers.fc(h2, 3, param_attr="w3", bias_attr="b3")
    return [h1, h2], fluid.layers.mean(
        fluid.layers.softmax_with_cross_entropy(logits, y)
    )


def feeds(n):
    rng = np.random.RandomState(0)
    for _ in range(n):
        x = rng.randn(8, 6).astype("float32")
        yield {"x": x, "y": x[:, :3].argmax(1).reshape(-1, 1).astype("int64")}


def fill(main):
    rng = np.random.RandomState(1)
    for n in ["w1", "w2", "w3"]:
        v = fluid.global_scope().find_var(n).get_tensor()
        v.set((rng.randn(*v.shape()) * 0.4).astype("float32"), fluid.CPUPlace())


def go(name, make, steps=4):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(
        main, startup
    ), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        cps, loss = net()
        test = main.clone(for_test=True)
        extra = make(loss, cps)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fill(main)
        if name == "lookahead":
            # slow params were copied from the start values
            for n in ["w1", "w2", "w3"]:
                fluid.global_scope().find_var(n + "@SLOW").get_tensor().set(
                    np.array(fluid.global_scope().find_var(n).get_tensor()),
                    fluid.CPUPlace(),
                )
        for f in feeds(steps):
            (l,) = exe.run(main, feed=f, fetch_list=[loss])
            print(name, "%.5f" % np.asarray(l).item())
            if name == "ema":
                pass
        if hasattr(extra, "apply"):
            print(name, "plain %.5f" % exe.run(test, feed=f, fetch_list=[loss])[0])
            with extra.apply(exe):
                print(
                    name, "applied %.5f" % exe.run(test, feed=f, fetch_list=[loss])[0]
                )
            print(name, "restored %.5f" % exe.run(test, feed=f, fetch_list=[loss])[0])
            if "ema" in name:
                return
            with extra.apply(exe, need_restore=False):
                pass
            print(name, "kept %.5f" % exe.run(test, feed=f, fetch_list=[loss])[0])
            extra.restore(exe)
            print(name, "back %.5f" % exe.run(test, feed=f, fetch_list=[loss])[0])


def ema(loss, cps):
    fluid.optimizer.SGD(0.3).minimize(loss)
    steps = fluid.layers.cast(
        fluid.layers.autoincreased_step_counter(counter_name="ema_steps"), "float32"
    )
    e = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps)
    e.update()
    return e


def ema2(loss, cps):
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    e = fluid.optimizer.ExponentialMovingAverage(0.8)
    e.update()
    return e


def average(loss, cps):
    fluid.optimizer.Momentum(0.2, 0.9).minimize(loss)
    return fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)


def lookahead(loss, cps):
    fluid.optimizer.LookaheadOptimizer(
        fluid.optimizer.SGD(0.3), alpha=0.5, k=2
    ).minimize(loss)


def recompute(loss, cps):
    o = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(0.02))
    o._set_checkpoints(cps)
    o.minimize(loss)


def amp(loss, cps):
    o = fluid.contrib.mixed_precision.decorate(
        fluid.optimizer.SGD(0.1),
        init_loss_scaling=8.0,
        use_dynamic_loss_scaling=True,
        amp_lists=fluid.contrib.mixed_precision.AutoMixedPrecisionLists(
            custom_black_list={"mul", "matmul", "elementwise_add"}
        ),
    )
    o.minimize(loss)
    print(o.get_loss_scaling().name)


def simple(opt):
    def f(loss, cps):
        opt().minimize(loss)

    return f


if __name__ == "__main__":
    O = fluid.optimizer
    for name, f in [
        ("ema", ema),
        ("ema2", ema2),
        ("average", average),
        ("lookahead", lookahead),
        ("recompute", recompute),
        (
            "lamb",
            simple(
                lambda: O.Lamb(
                    0.05,
                    lamb_weight_decay=0.02,
                    exclude_from_weight_decay_fn=lambda p: p.name.startswith("b"),
                )
            ),
        ),
        ("ftrl", simple(lambda: O.Ftrl(0.1, l1=0.01, l2=0.01))),
        ("adamax", simple(lambda: O.Adamax(0.05))),
        ("adadelta", simple(lambda: O.Adadelta(1.0, epsilon=1e-5, rho=0.9))),
        ("decayed", simple(lambda: O.DecayedAdagrad(0.1, decay=0.9))),
        ("lars", simple(lambda: O.LarsMomentum(0.5, 0.9, lars_weight_decay=0.01))),
        ("rms", simple(lambda: O.RMSProp(0.02, momentum=0.9, centered=False))),
        (
            "nesterov",
            simple(
                lambda: O.MomentumOptimizer(
                    0.1,
                    0.9,
                    use_nesterov=True,
                    regularization=fluid.regularizer.L1Decay(0.01),
                )
            ),
        ),
        ("adagrad", simple(lambda: O.Adagrad(0.1, initial_accumulator_value=0.1))),
        (
            "adamw",
            simple(
                lambda: fluid.contrib.extend_with_decoupled_weight_decay(O.Adam)(
                    learning_rate=0.02, weight_decay=0.1
                )
            ),
        ),
    ]:
        go(name, f)
