"""Gradient accumulation by hand; clipping of all forms."""

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.backward import append_backward
from paddle.fluid.layer_helper import LayerHelper


def net():
    x = fluid.data("x", [None, 6], "float32")
    y = fluid.data("y", [None, 1], "int64")
    h = layers.fc(
        x,
        8,
        act="sigmoid",
        param_attr=fluid.ParamAttr(name="w0"),
        bias_attr=fluid.ParamAttr(name="b0"),
    )
    logits = layers.fc(
        h,
        3,
        param_attr=fluid.ParamAttr(name="w1"),
        bias_attr=fluid.ParamAttr(name="b1"),
    )
    return layers.mean(layers.softmax_with_cross_entropy(logits, y))


def fill(program):
    rng = np.random.RandomState(9)
    for p in program.global_block().all_parameters():
        t = fluid.global_scope().find_var(p.name).get_tensor()
        t.set(rng.normal(0, 0.5, p.shape).astype("float32"), fluid.CPUPlace())


def data(n):
    rng = np.random.RandomState(4)
    for _ in range(n):
        x = rng.randn(5, 6).astype("float32")
        yield {"x": x, "y": x[:, :3].argmax(1).reshape(5, 1).astype("int64")}


def accumulate(every=3):
    main, startup, apply_prog = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = net()
        pg = append_backward(loss)
        sums = {}
        for p, g in pg:
            s = layers.create_global_var(
                shape=p.shape,
                value=0.0,
                dtype="float32",
                persistable=True,
                name=p.name + "_acc",
            )
            layers.assign(s + g, output=s)
            sums[p.name] = s
    with fluid.program_guard(apply_prog, startup):
        block = apply_prog.global_block()
        new_pg = []
        for p, _ in pg:
            q = block.create_parameter(name=p.name, shape=p.shape, dtype=p.dtype)
            s = block.create_var(
                name=sums[p.name].name, shape=p.shape, dtype="float32", persistable=True
            )
            new_pg.append((q, s / float(every)))
        opt = fluid.optimizer.Adam(0.05)
        opt.apply_gradients(new_pg)
        for p, _ in pg:
            s = block.var(sums[p.name].name)
            layers.assign(layers.zeros_like(s), s)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill(main)
    for i, feed in enumerate(data(9)):
        (l,) = exe.run(main, feed=feed, fetch_list=[loss])
        print("acc %d %.6f" % (i, l))
        if (i + 1) % every == 0:
            exe.run(apply_prog)
    print(
        "%.6f"
        % np.abs(np.array(fluid.global_scope().find_var("w1").get_tensor())).sum()
    )


def clipped(kind):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = net()
        clip = None
        if kind == "set_value":
            fluid.clip.set_gradient_clip(
                fluid.clip.GradientClipByValue(max=0.02, min=-0.01)
            )
        elif kind == "set_norm_list":
            fluid.clip.set_gradient_clip(
                fluid.clip.GradientClipByNorm(clip_norm=0.05),
                param_list=["w0", "b0", "w1", "b1"],
            )
        elif kind == "set_global":
            fluid.clip.set_gradient_clip(
                clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=0.1), program=main
            )
        elif kind == "arg":
            clip = fluid.clip.GradientClipByGlobalNorm(0.2)
        elif kind == "need_clip":
            clip = fluid.clip.GradientClipByNorm(
                0.05, need_clip=lambda p: p.name.startswith("w")
            )
        elif kind == "error_clip":
            v = main.global_block().var(main.global_block().ops[2].output("Out")[0])
            v._set_error_clip(fluid.clip.ErrorClipByValue(max=0.005))
        elif kind == "manual":
            opt = fluid.optimizer.SGD(0.5)
            pg = opt.backward(loss)
            norm = layers.sqrt(
                layers.sums([layers.reduce_sum(layers.square(g)) for _, g in pg])
            )
            scale = 0.1 / layers.elementwise_max(
                norm, layers.fill_constant([1], "float32", 0.1)
            )
            opt.apply_gradients([(p, g * scale) for p, g in pg])
        if kind != "manual":
            fluid.optimizer.SGD(0.5, grad_clip=clip).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    fill(main)
    for i, feed in enumerate(data(3)):
        l, g0, g1 = exe.run(main, feed=feed, fetch_list=[loss, "w0@GRAD", "b1@GRAD"])
        print("%s %d %.6f %.6f %.6f" % (kind, i, l, np.abs(g0).sum(), np.abs(g1).sum()))
    w = np.concatenate(
        [
            np.array(fluid.global_scope().find_var(n).get_tensor()).ravel()
            for n in ["w0", "b0", "w1", "b1"]
        ]
    )
    print(
        kind,
        "norm %.6f" % np.linalg.norm(w),
        [
            op.type
            for op in main.global_block().ops
            if "sgd" in op.type or "clip" in op.type
        ][:6],
    )


if __name__ == "__main__":
    for f, a in [(accumulate, 3)] + [
        (clipped, k)
        for k in [
            "none",
            "set_value",
            "set_norm_list",
            "set_global",
            "arg",
            "need_clip",
            "error_clip",
            "manual",
        ]
    ]:
        with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            f(a)
