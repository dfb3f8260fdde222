"""Two tasks, two optimizers over parameter lists, learned weights."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr
from paddle.fluid.regularizer import L2Decay, L1Decay


def trunk(x):
    with fluid.name_scope("trunk"):
        h = fluid.layers.fc(
            x,
            size=8,
            act="tanh",
            param_attr=ParamAttr(
                name="trunk_w", learning_rate=0.5, regularizer=L2Decay(1e-3)
            ),
            bias_attr=ParamAttr(
                name="trunk_b", initializer=fluid.initializer.Constant(0.1)
            ),
        )
        return fluid.layers.layer_norm(h, begin_norm_axis=1)


def main():
    main_prog = fluid.default_main_program()
    startup = fluid.default_startup_program()
    x = fluid.data(name="x", shape=[None, 5], dtype="float32")
    y1 = fluid.data(name="y1", shape=[None, 1], dtype="float32")
    y2 = fluid.data(name="y2", shape=[None, 1], dtype="int64")
    shared = trunk(x)
    with fluid.name_scope("head_a"):
        pred = fluid.layers.fc(shared, 1, param_attr="a_w", bias_attr="a_b")
        loss1 = fluid.layers.reduce_mean(fluid.layers.huber_loss(pred, y1, delta=1.0))
    with fluid.name_scope("head_b"):
        logits = fluid.layers.fc(
            shared,
            3,
            param_attr=ParamAttr("b_w", regularizer=L1Decay(1e-4)),
            bias_attr=False,
        )
        loss2, sm = fluid.layers.softmax_with_cross_entropy(
            logits, y2, return_softmax=True
        )
        loss2 = fluid.layers.mean(loss2)
    s1 = fluid.layers.create_parameter(
        [1],
        "float32",
        name="log_var_1",
        default_initializer=fluid.initializer.Constant(0.0),
    )
    s2 = fluid.layers.create_parameter(
        [1],
        "float32",
        name="log_var_2",
        default_initializer=fluid.initializer.Constant(0.2),
    )
    total = (
        loss1 * fluid.layers.exp(-1.0 * s1) + s1 + loss2 * fluid.layers.exp(-s2) + s2
    )
    test_prog = main_prog.clone(for_test=True)
    prog1 = main_prog.clone()
    prog2 = main_prog.clone()
    with fluid.program_guard(prog1, startup):
        opt1 = fluid.optimizer.Adam(
            learning_rate=fluid.layers.exponential_decay(0.05, 5, 0.5, staircase=True)
        )
        ops1, pg1 = opt1.minimize(
            prog1.global_block().var(total.name),
            parameter_list=["trunk_w", "trunk_b", "a_w", "a_b", "log_var_1"],
        )
    with fluid.program_guard(prog2, startup):
        opt2 = fluid.optimizer.RMSPropOptimizer(
            0.01, rho=0.9, centered=True, momentum=0.5
        )
        ops2, pg2 = opt2.minimize(
            prog2.global_block().var(total.name),
            no_grad_set=set(["trunk_w", "trunk_b"]),
            parameter_list=[
                p
                for p in prog2.all_parameters()
                if p.name.startswith(("b_", "log_var_2"))
            ],
        )
    print([(p.name, g.name) for p, g in pg1])
    print(sorted((p.name, g.name) for p, g in pg2))
    print([op.type for op in prog2.global_block().ops if op.attr("op_role") & 2])
    print(sorted(v.name for v in prog1.list_vars() if v.persistable))
    print([op.attr("op_namescope") for op in main_prog.global_block().ops][:4])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    rng = np.random.RandomState(1)
    for n in ["trunk_w", "a_w", "b_w"]:
        t = fluid.global_scope().find_var(n).get_tensor()
        t.set((rng.randn(*t.shape()) * 0.5).astype("float32"), fluid.CPUPlace())
    for step in range(10):
        xs = rng.randn(7, 5).astype("float32")
        feed = {
            "x": xs,
            "y1": xs[:, :1] * 2 - xs[:, 1:2],
            "y2": np.argmax(xs[:, :3], 1).reshape(-1, 1),
        }
        prog = prog1 if step % 2 == 0 else prog2
        out = exe.run(prog, feed=feed, fetch_list=[total, loss1, loss2, s1, s2])
        print(step, " ".join("%.6f" % float(o) for o in out))
    out = exe.run(test_prog, feed=feed, fetch_list=[sm, pred])
    print(np.array2string(out[0], precision=4, suppress_small=True))
    print(out[1].shape, out[1].dtype)
    print(opt1._global_learning_rate(prog1).name)


if __name__ == "__main__":
    main()
