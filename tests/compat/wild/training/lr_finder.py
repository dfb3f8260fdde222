"""Learning-rate finder, warmup and cosine, Switch, rates set by the scope."""

import math
import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers.ops as ops
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter
from paddle.fluid.layers import control_flow
from paddle.fluid.layers import tensor


def cosine_decay_with_warmup(learning_rate, step_each_epoch, epochs=4, warmup=2):
    global_step = _decay_step_counter()
    lr = fluid.layers.tensor.create_global_var(
        shape=[1], value=0.0, dtype="float32", persistable=True, name="learning_rate"
    )
    warmup_epoch = fluid.layers.fill_constant(
        shape=[1], dtype="float32", value=float(warmup), force_cpu=True
    )
    if True:
        epoch = ops.floor(global_step / step_each_epoch)
        with control_flow.Switch() as switch:
            with switch.case(epoch < warmup_epoch):
                decayed_lr = learning_rate * (global_step / (step_each_epoch * warmup))
                fluid.layers.tensor.assign(input=decayed_lr, output=lr)
            with switch.default():
                decayed_lr = (
                    learning_rate
                    * (
                        ops.cos(
                            (global_step - warmup * step_each_epoch)
                            * (math.pi / (epochs * step_each_epoch))
                        )
                        + 1
                    )
                    / 2
                )
                fluid.layers.tensor.assign(input=decayed_lr, output=lr)
    return lr


def lr_range_test(start, end, steps):
    counter = fluid.layers.autoincreased_step_counter(
        counter_name="@LR_FIND@", begin=0, step=1
    )
    counter = fluid.layers.cast(counter, "float32")
    mult = (end / start) ** (1.0 / steps)
    return fluid.layers.elementwise_mul(
        fluid.layers.fill_constant([1], "float32", start),
        fluid.layers.elementwise_pow(
            fluid.layers.fill_constant([1], "float32", mult), counter
        ),
    )


def net():
    x = fluid.data("x", [-1, 4])
    y = fluid.data("y", [-1, 1])
    w = np.linspace(-1, 1, 4 * 6).reshape(4, 6).astype("float32")
    h = fluid.layers.fc(
        x,
        6,
        act="relu",
        param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.NumpyArrayInitializer(w)
        ),
    )
    p = fluid.layers.fc(
        h,
        1,
        param_attr=fluid.initializer.NumpyArrayInitializer(
            np.full((6, 1), 0.3, "float32")
        ),
    )
    return fluid.layers.mean(fluid.layers.square_error_cost(p, y))


def batches(n):
    rng = np.random.RandomState(0)
    for _ in range(n):
        x = rng.randn(8, 4).astype("float32")
        yield {"x": x, "y": x.sum(1, keepdims=True)}


def run(name, make_lr, n=10):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(
        main, startup
    ), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = net()
        lr = make_lr()
        opt = fluid.optimizer.Momentum(
            lr, momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4)
        )
        opt.minimize(loss)
        lr_var = opt._global_learning_rate()
        exe = fluid.Executor()
        exe.run(startup)
        for i, feed in enumerate(batches(n)):
            v, l = exe.run(main, feed=feed, fetch_list=[loss, lr_var])
            print("%s %d lr %.8f loss %.5f" % (name, i, l[0], v[0]))
            if not np.isfinite(v[0]) or v[0] > 50:
                break


def polynomial_with_switch():
    step = fluid.layers.learning_rate_scheduler._decay_step_counter()
    lr = fluid.layers.create_global_var(
        [1], 0.05, "float32", persistable=True, name="sched_lr"
    )
    with fluid.layers.Switch() as switch:
        with switch.case(
            fluid.layers.less_than(
                step, fluid.layers.fill_constant([1], "float32", 3.0)
            )
        ):
            fluid.layers.assign(fluid.layers.fill_constant([1], "float32", 0.01), lr)
        with switch.case(fluid.layers.logical_and(step >= 3.0, step < 6.0)):
            fluid.layers.assign(fluid.layers.polynomial_decay(0.05, 10, 0.001, 0.9), lr)
        with switch.default():
            fluid.layers.assign(np.array([0.002], "float32"), lr)
    return lr


def set_by_scope():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = net()
        opt = fluid.optimizer.SGD(0.1)
        opt.minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        name = opt._global_learning_rate().name
        t = fluid.global_scope().find_var(name).get_tensor()
        print(name, np.array(t), t.shape(), t._dtype())
        for i, feed in enumerate(batches(4)):
            t.set(np.array([0.05 / (i + 1)], dtype="float32"), fluid.CPUPlace())
            v, l = exe.run(main, feed=feed, fetch_list=[loss.name, name])
            print("scope %d %.6f %s" % (i, v, l))


if __name__ == "__main__":
    run("finder", lambda: lr_range_test(1e-3, 1.0, 9))
    run("warmcos", lambda: cosine_decay_with_warmup(0.05, 2))
    run("switch", polynomial_with_switch)
    run(
        "linwarm",
        lambda: fluid.layers.linear_lr_warmup(
            fluid.layers.cosine_decay(0.1, 2, 5), 3, 0.0, 0.1
        ),
    )
    run("noam", lambda: fluid.layers.noam_decay(64, 4, learning_rate=0.5))
    run("inverse", lambda: fluid.layers.inverse_time_decay(0.1, 3, 0.5, staircase=True))
    run("natexp", lambda: fluid.layers.natural_exp_decay(0.1, 3, 0.5))
    set_by_scope()
