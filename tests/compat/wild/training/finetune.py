"""Fine-tuning: load_vars with predicates, frozen layers, program states."""

import os
import numpy as np
import paddle
import paddle.fluid as fluid


def backbone(x):
    c = fluid.layers.conv2d(
        x,
        4,
        3,
        padding=1,
        param_attr=fluid.ParamAttr(name="conv1_weights"),
        bias_attr=False,
    )
    c = fluid.layers.batch_norm(
        c,
        act="relu",
        param_attr=fluid.ParamAttr(name="bn1_scale"),
        bias_attr=fluid.ParamAttr("bn1_offset"),
        moving_mean_name="bn1_mean",
        moving_variance_name="bn1_variance",
    )
    c = fluid.layers.pool2d(c, 2, "max", 2)
    c = fluid.layers.conv2d(
        c,
        6,
        3,
        padding=1,
        act="relu",
        param_attr=fluid.ParamAttr(name="conv2_weights"),
        bias_attr=fluid.ParamAttr(name="conv2_bias"),
    )
    return fluid.layers.pool2d(c, pool_type="avg", global_pooling=True)


def head(x, n, name):
    return fluid.layers.fc(
        x,
        n,
        param_attr=fluid.ParamAttr(name=name + "_weights"),
        bias_attr=fluid.ParamAttr(name=name + "_offset"),
    )


def fill(prog, seed):
    rng = np.random.RandomState(seed)
    for p in sorted(prog.all_parameters(), key=lambda v: v.name):
        if len(p.shape) > 1:
            fluid.global_scope().var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.3).astype("float32"), fluid.CPUPlace()
            )


def pretrain(path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1, 8, 8])
        y = fluid.data("y", [None, 1], "int64")
        logits = head(backbone(x), 5, "fc_old")
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, y))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill(main, 0)
    rng = np.random.RandomState(1)
    for i in range(4):
        (l,) = exe.run(
            main,
            feed={
                "x": rng.rand(6, 1, 8, 8).astype("float32"),
                "y": rng.randint(0, 5, (6, 1)).astype("int64"),
            },
            fetch_list=[loss],
        )
    print("pretrain %.6f" % l)
    fluid.io.save_persistables(exe, path, main)
    fluid.save(main, path + "_new")
    print(sorted(os.listdir(path)))
    print(sorted(f for f in os.listdir(".") if f.startswith(path + "_new")))


def finetune(path, how):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1, 8, 8])
        y = fluid.data("y", [None, 1], "int64")
        feat = backbone(x)
        if how == "stop":
            feat.stop_gradient = True
        logits = head(feat, 3, "fc_new")
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, y))
        acc = fluid.layers.accuracy(fluid.layers.softmax(logits), y)
        test = main.clone(for_test=True)
        if how == "trainable":
            for p in main.global_block().all_parameters():
                if p.name.startswith("conv1"):
                    p.trainable = False
        opt = fluid.optimizer.SGD(0.2)
        if how == "no_grad_set":
            opt.minimize(
                loss,
                no_grad_set={
                    "conv1_weights",
                    main.global_block().var("conv2_weights").name,
                },
            )
        else:
            opt.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill(main, 5)

    def if_exist(var):
        b = os.path.exists(os.path.join(path, var.name))
        if b and how == "trainable":
            print("will load", var.name, var.shape)
        return b

    if how == "state":
        state = fluid.load_program_state(path + "_new")
        print(sorted(state.keys()))
        state = {k: v for k, v in state.items() if not k.startswith("fc")}
        state["not_there"] = np.zeros(2, "float32")
        fluid.set_program_state(main, state)
    elif how == "vars_list":
        fluid.io.load_vars(
            exe,
            path,
            main,
            vars=[
                v
                for v in main.list_vars()
                if isinstance(v, fluid.framework.Parameter) and "fc" not in v.name
            ],
        )
    else:
        fluid.io.load_vars(exe, path, main_program=main, predicate=if_exist)
    rng = np.random.RandomState(2)
    before = np.array(fluid.global_scope().find_var("conv1_weights").get_tensor())
    for i in range(4):
        feed = {
            "x": rng.rand(6, 1, 8, 8).astype("float32"),
            "y": rng.randint(0, 3, (6, 1)).astype("int64"),
        }
        l, a = exe.run(main, feed=feed, fetch_list=[loss, acc])
        print(how, i, "%.6f %.4f" % (l, a))
    (t,) = exe.run(test, feed=feed, fetch_list=[loss])
    after = np.array(fluid.global_scope().find_var("conv1_weights").get_tensor())
    print("test %.6f conv1 moved %s" % (t, bool(np.abs(before - after).max() > 0)))
    print([op.type for op in main.global_block().ops if op.type.endswith("_grad")])


if __name__ == "__main__":
    with fluid.scope_guard(fluid.Scope()):
        pretrain("pre")
    for how in ["stop", "trainable", "no_grad_set", "state", "vars_list"]:
        with fluid.scope_guard(fluid.Scope()):
            with fluid.unique_name.guard():
                finetune("pre", how)
