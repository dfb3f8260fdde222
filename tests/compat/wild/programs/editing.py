"""Editing programs: feed ops, renaming, an ensemble of two, surgery."""

import os
import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers as L, core
from paddle.fluid.framework import Program


def save_two(exe):
    for i, (n, act) in enumerate((("ma", "tanh"), ("mb", "relu"))):
        m, s = Program(), Program()
        with fluid.program_guard(m, s), fluid.unique_name.guard():
            x = fluid.data("x", [None, 4])
            h = L.fc(
                x,
                3,
                act=act,
                param_attr=fluid.ParamAttr(
                    initializer=fluid.initializer.NumpyArrayInitializer(
                        np.linspace(-1, 1, 12).reshape(4, 3).astype("float32") * (i + 1)
                    )
                ),
            )
            h = L.dropout(h, 0.5)
            y = L.fc(
                h,
                2,
                act="softmax",
                param_attr=fluid.initializer.Constant(0.3 + i),
                bias_attr=fluid.initializer.NumpyArrayInitializer(
                    np.array([0.1, -0.1], "float32")
                ),
            )
        with fluid.scope_guard(fluid.Scope()):
            exe.run(s)
            fluid.io.save_inference_model(
                n, ["x"], [y], exe, main_program=m, params_filename="p" if i else None
            )


def inspect(path):
    with open(os.path.join(path, "__model__"), "rb") as f:
        prog = Program.parse_from_string(f.read())
    block = prog.global_block()
    print([(o.type, o.attr("col") if o.has_attr("col") else None) for o in block.ops])
    feeds = [o.output("Out")[0] for o in block.ops if o.type == "feed"]
    fetches = [o.input("X")[0] for o in block.ops if o.type == "fetch"]
    print(
        feeds,
        fetches,
        [
            v.name
            for v in prog.list_vars()
            if v.persistable
            and v.type
            not in (
                core.VarDesc.VarType.FEED_MINIBATCH,
                core.VarDesc.VarType.FETCH_LIST,
            )
        ]
        != [],
    )
    for i in reversed(range(len(block.ops))):
        if block.ops[i].type in ("feed", "fetch"):
            block._remove_op(i)
    print([o.type for o in block.ops])
    block._rename_var(block.ops[0].output("Out")[0], "renamed")
    print(block.ops[0].output("Out"), block.ops[1].input("X"), block.has_var("renamed"))
    return prog, feeds, fetches


def ensemble(exe):
    merged = Program()
    outs = []
    for n, p in (("ma", None), ("mb", "p")):
        with fluid.scope_guard(fluid.Scope()):
            prog, feeds, fetches = fluid.io.load_inference_model(
                n, exe, params_filename=p
            )
            target = fetches[0].name
            values = {
                v.name: np.array(fluid.global_scope().find_var(v.name).get_tensor())
                for v in prog.list_vars()
                if fluid.io.is_persistable(v)
            }
        for v in list(prog.list_vars()):
            if v.name in ("feed", "fetch") or v.name == "x":
                continue
            prog.global_block()._rename_var(v.name, n + "/" + v.name)
        block = merged.global_block()
        for v in prog.list_vars():
            if v.name not in ("feed", "fetch") and not block.has_var(v.name):
                block._clone_variable(v, force_persistable=False)
        for op in prog.global_block().ops:
            if op.type not in ("feed", "fetch"):
                block.append_op(
                    type=op.type,
                    inputs={k: op.input(k) for k in op.input_names},
                    outputs={
                        k: [block.var(v) for v in op.output(k)] for k in op.output_names
                    },
                    attrs=op.all_attrs(),
                )
        for k, v in values.items():
            fluid.global_scope().var(n + "/" + k).get_tensor().set(v, fluid.CPUPlace())
        outs.append(block.var(n + "/" + target))
    with fluid.program_guard(merged):
        mean = L.scale(L.sums(outs), 0.5)
        top, idx = L.topk(mean, 1)
    r = exe.run(
        merged, feed={"x": np.eye(4, dtype="float32")}, fetch_list=outs + [mean, idx]
    )
    for v in r:
        print(np.round(v, 4).tolist())
    fluid.io.save_inference_model("both", ["x"], [mean], exe, main_program=merged)
    print(sorted(os.listdir("both")))


def surgery(exe):
    with fluid.scope_guard(fluid.Scope()):
        prog, feeds, fetches = fluid.io.load_inference_model("ma", exe)
        block = prog.global_block()
        for i in reversed(range(len(block.ops))):
            if block.ops[i].type in ("feed", "fetch"):
                block._remove_op(i)
        cut = [o.output("Out")[0] for o in block.ops if o.type == "tanh"][0]
        (feature,) = exe.run(
            prog, feed={"x": np.ones((1, 4), "float32")}, fetch_list=[cut]
        )
        print(feature.shape, "%.5f" % feature.sum())
        pruned = prog.clone(for_test=True)._prune(targets=[block.var(cut)])
        print(
            [
                o.type
                for o in pruned.global_block().ops
                if o.type not in ("feed", "fetch")
            ]
        )
        start = Program()
        with fluid.program_guard(prog, start):
            with fluid.unique_name.guard("new_"):
                y = fluid.data("y", [None, 1], "int64")
                feat = block.var(cut)
                feat.stop_gradient = True
                logits = L.fc(
                    feat,
                    3,
                    param_attr=fluid.ParamAttr(
                        name="head", initializer=fluid.initializer.Constant(0.2)
                    ),
                )
                loss = L.mean(L.softmax_with_cross_entropy(logits, y))
                fluid.optimizer.SGD(0.5).minimize(
                    loss, startup_program=start, parameter_list=["head"]
                )
        exe.run(start)
        for i in range(3):
            print(
                "%.5f"
                % exe.run(
                    prog,
                    feed={
                        "x": np.eye(4, dtype="float32")[:3],
                        "y": np.arange(3).reshape(-1, 1),
                    },
                    fetch_list=[loss],
                )[0]
            )


def with_feed_ops(exe):
    m = Program()
    with fluid.program_guard(m, Program()):
        x = fluid.data("x", [None, 2])
        y = L.scale(x, 3.0)
    fluid.io.prepend_feed_ops(m, ["x"])
    fluid.io.append_fetch_ops(m, [y.name])
    print([o.type for o in m.global_block().ops])
    print(
        exe.run(m, feed={"x": np.ones((1, 2), "float32")}, fetch_list=[y])[0].tolist()
    )
    again = Program.parse_from_string(m.desc.serialize_to_string())
    print(
        exe.run(
            again,
            feed={"x": np.ones((1, 2), "float32")},
            fetch_list=[again.global_block().var(y.name)],
        )[0].tolist()
    )


if __name__ == "__main__":
    exe = fluid.Executor(fluid.CPUPlace())
    save_two(exe)
    inspect("ma")
    ensemble(exe)
    surgery(exe)
    with_feed_ops(exe)
