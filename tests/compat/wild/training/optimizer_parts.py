"""Optimizer internals: an own subclass, accumulators, gated updates."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L, framework, unique_name
from paddle.fluid.optimizer import Optimizer
from paddle.fluid.layer_helper import LayerHelper
from paddle.fluid.initializer import Constant


class SignSGD(Optimizer):
    """A user's own optimizer, from ops."""

    def __init__(self, learning_rate, regularization=None, name=None):
        super(SignSGD, self).__init__(
            learning_rate=learning_rate, regularization=regularization, name=name
        )
        self.type = "sign_sgd"

    def _create_accumulators(self, block, parameters):
        for p in parameters:
            self._add_accumulator("momentum", p)

    def _append_optimize_op(self, block, param_and_grad):
        p, g = param_and_grad
        m = self._get_accumulator("momentum", p)
        lr = self._create_param_lr(param_and_grad)
        new_m = L.scale(m, 0.9) + L.scale(g, 0.1)
        L.assign(new_m, m)
        step = L.elementwise_mul(L.sign(new_m), lr)
        return block.append_op(
            type="elementwise_sub", inputs={"X": p, "Y": step}, outputs={"Out": p}
        )


def net():
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 1])
    h = L.fc(
        x,
        5,
        act="tanh",
        param_attr=fluid.ParamAttr(name="w0", learning_rate=0.1),
        bias_attr=fluid.ParamAttr(name="b0", learning_rate=0.0),
    )
    o = L.fc(
        h,
        1,
        param_attr=fluid.ParamAttr(name="w1", learning_rate=2.0),
        bias_attr=fluid.ParamAttr(name="b1", trainable=False),
    )
    return L.mean(L.square_error_cost(o, y))


def feeds(n):
    rng = np.random.RandomState(0)
    for _ in range(n):
        x = rng.randn(6, 4).astype("float32")
        yield {"x": x, "y": x[:, :1] * x[:, 1:2]}


def run(name, build, check=None, n=5):
    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start), unique_name.guard(), fluid.scope_guard(
        fluid.Scope()
    ):
        loss = net()
        extra = build(loss) or []
        exe = fluid.Executor()
        exe.run(start)
        rng = np.random.RandomState(2)
        for p in sorted(main.all_parameters(), key=lambda p: p.name):
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.5).astype("float32"), fluid.CPUPlace()
            )
        for i, f in enumerate(feeds(n)):
            r = exe.run(main, feed=f, fetch_list=[loss] + extra)
            print(name, i, " ".join("%.6f" % np.abs(v).sum() for v in r))
        print(
            name,
            [
                "%.5f"
                % np.abs(
                    np.array(fluid.global_scope().find_var(p.name).get_tensor())
                ).sum()
                for p in sorted(main.all_parameters(), key=lambda p: p.name)
            ],
        )
        if check:
            check(main, exe)


def split(loss):
    opt = fluid.optimizer.Adam(0.05, beta1=0.8, epsilon=1e-6)
    pg = opt.backward(loss, parameter_list=["w0", "w1"])
    print([(p.name, g.name) for p, g in pg])
    noisy = [(p, L.clip(g, -0.05, 0.05) if p.name == "w0" else g) for p, g in pg]
    ops = opt.apply_gradients(noisy)
    print([o.type for o in ops])
    m = opt._get_accumulator(
        "moment1", fluid.default_main_program().global_block().var("w1")
    )
    print(m.name, m.shape, m.persistable)
    return [m]


def own(loss):
    opt = SignSGD(0.02, regularization=fluid.regularizer.L1Decay(0.01))
    opt.minimize(loss)
    return [
        opt._get_accumulator(
            "momentum", fluid.default_main_program().global_block().var("w0")
        )
    ]


def conditional(loss):
    main = fluid.default_main_program()
    opt = fluid.optimizer.SGD(0.1)
    pg = opt.backward(loss)
    flag = L.less_than(
        L.reduce_sum(L.abs(pg[0][1])), L.fill_constant([1], "float32", 1.0)
    )
    gate = L.cast(flag, "float32")
    opt.apply_gradients([(p, L.elementwise_mul(g, gate)) for p, g in pg])
    steps = L.create_global_var([1], 0.0, "float32", persistable=True, name="skipped")
    with L.Switch() as sw:
        with sw.case(L.logical_not(flag)):
            L.assign(steps + 1.0, steps)
    best = L.create_global_var([1], 1e9, "float32", persistable=True, name="best")
    L.assign(L.elementwise_min(best, loss), best)
    return [gate, steps, best]


def two_lrs(loss):
    a = fluid.optimizer.SGD(L.exponential_decay(0.1, 2, 0.5))
    b = fluid.optimizer.Momentum(0.05, 0.9)
    a.minimize(loss, parameter_list=["w0"])
    b.minimize(loss, parameter_list=["w1"], no_grad_set={"w0"})
    return [a._global_learning_rate(), b._global_learning_rate()]


def lr_var(loss):
    lr = L.create_global_var([1], 0.1, "float32", persistable=True, name="my_lr")
    fluid.optimizer.Adagrad(lr, regularization=fluid.regularizer.L2Decay(0.1)).minimize(
        loss
    )
    L.assign(lr * 0.5, lr)
    return [lr]


def dpsgd_like(loss):
    fluid.optimizer.Dpsgd(0.05, clip=10.0, batch_size=16.0, sigma=0.0).minimize(loss)


def gradient_merge(loss):
    opt = fluid.optimizer.SGD(0.1)
    opt.minimize(loss)


def regularized(loss):
    l2 = L.sums(
        [
            L.reduce_sum(L.square(p))
            for p in fluid.default_main_program().all_parameters()
            if p.name.startswith("w")
        ]
    )
    fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.01, lr_power=-0.5).minimize(
        loss + 0.01 * l2
    )
    return [l2]


if __name__ == "__main__":
    for n, b in (
        ("split", split),
        ("own", own),
        ("cond", conditional),
        ("two", two_lrs),
        ("lrvar", lr_var),
        ("merge", gradient_merge),
        ("reg", regularized),
    ):
        run(n, b)
