"""Looking into programs: attributes, roles, counts, intermediate values."""

import os
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import debugger
from paddle.fluid.contrib import summary, memory_usage, op_freq_statistic
from collections import Counter, OrderedDict


def net():
    img = fluid.layers.data("img", [1, 8, 8])
    label = fluid.layers.data("label", [1], dtype="int64")
    c = fluid.layers.conv2d(img, 4, 3, act="relu", name="conv")
    c = fluid.layers.batch_norm(c)
    p = fluid.layers.pool2d(c, 2, "max", 2)
    out = fluid.layers.fc(p, 3, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
    return out, loss


def flops(prog):
    total = 0
    for op in prog.global_block().ops:
        if op.type == "conv2d":
            w = prog.global_block().var(op.input("Filter")[0]).shape
            o = prog.global_block().var(op.output("Output")[0]).shape
            total += int(np.prod(w)) * o[2] * o[3]
            print(
                op.type,
                op.attr("strides"),
                op.attr("paddings"),
                op.attr("dilations"),
                op.attr("groups"),
                op.attr("data_format"),
                op.attr("use_cudnn"),
            )
        elif op.type == "mul":
            total += int(np.prod(prog.global_block().var(op.input("Y")[0]).shape))
            print(op.type, op.attr("x_num_col_dims"), op.attr("y_num_col_dims"))
        elif op.type == "pool2d":
            print(
                op.type,
                op.attr("pooling_type"),
                op.attr("ksize"),
                op.attr("global_pooling"),
                op.attr("adaptive"),
                op.attr("exclusive"),
                op.attr("ceil_mode"),
            )
        elif op.type == "batch_norm":
            print(
                op.type,
                "%.6f %.3f" % (op.attr("epsilon"), op.attr("momentum")),
                op.attr("is_test"),
                op.attr("data_layout"),
                sorted(op.output_names),
            )
    return total


def main():
    out, loss = net()
    prog = fluid.default_main_program()
    test = prog.clone(for_test=True)
    print("flops", flops(prog))
    print(
        "params",
        sum(int(np.prod(p.shape)) for p in prog.global_block().all_parameters()),
        [p.trainable for p in prog.all_parameters()],
    )
    opt = fluid.optimizer.Adam(0.01)
    ops, pg = opt.minimize(loss)
    print(
        len(ops), [o.type for o in ops][:3], [(p.name, g.name, g.shape) for p, g in pg]
    )
    print(sorted(Counter(op.type for op in prog.global_block().ops).items()))
    roles = OrderedDict()
    for op in prog.global_block().ops:
        roles.setdefault(op.attr("op_role"), []).append(op.type)
    print([(k, len(v)) for k, v in roles.items()])
    print(
        [op.attr("op_role_var") for op in prog.global_block().ops if op.type == "adam"][
            :2
        ]
    )
    print(
        [
            op.attr("op_role_var")
            for op in prog.global_block().ops
            if op.type in ("conv2d", "conv2d_grad")
        ]
    )
    print(
        [v.name for v in opt._accumulators["moment1"].values()]
        if hasattr(opt, "_accumulators")
        else None
    )
    w = prog.global_block().var("conv.w_0")
    print(
        w.name,
        w.shape,
        w.optimize_attr,
        w.regularizer,
        w.is_distributed,
        w.stop_gradient,
        w.persistable,
        w.type == fluid.core.VarDesc.VarType.LOD_TENSOR,
    )
    g = prog.global_block().var("conv.w_0@GRAD")
    print(
        g.shape,
        g.dtype,
        g.persistable,
        prog.global_block().var(fluid.framework.grad_var_name("conv.w_0")) is g or True,
    )
    before = [op.type for op in test.global_block().ops]
    print(before)
    lo, hi, unit = memory_usage(test, batch_size=10)
    print(unit, lo < hi)
    consumers = {}
    for i, op in enumerate(prog.global_block().ops):
        for n in op.input_arg_names:
            consumers.setdefault(n, []).append((i, op.type))
    print(consumers["conv.tmp_1"], consumers["conv.w_0"])
    sub = [
        v
        for v in prog.list_vars()
        if v.persistable and not isinstance(v, fluid.framework.Parameter)
    ]
    print(sorted(v.name for v in sub))
    prog.random_seed = 7
    print(
        prog.random_seed,
        prog.clone().random_seed,
        prog.num_blocks,
        prog.current_block() is prog.global_block() or prog.current_block().idx,
    )
    for blk in prog.blocks:
        print(blk.idx, len(blk.ops), len(blk.vars) == len(list(prog.list_vars())))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for n, s in (("conv.w_0", (4, 1, 3, 3)), ("fc_0.w_0", (36, 3))):
        fluid.global_scope().find_var(n).get_tensor().set(
            np.linspace(-1, 1, int(np.prod(s))).reshape(s).astype("float32"),
            fluid.CPUPlace(),
        )
    inter = [
        v
        for op in prog.global_block().ops[:6]
        for v in op.output_arg_names
        if not prog.global_block().var(v).persistable
    ]
    vals = exe.run(
        prog,
        feed={
            "img": np.linspace(0, 1, 128).reshape(2, 1, 8, 8).astype("float32"),
            "label": np.array([[0], [2]]),
        },
        fetch_list=inter,
    )
    for n, v in zip(inter, vals):
        print(n, v.shape, "%.4f" % np.abs(v).sum())


if __name__ == "__main__":
    main()
