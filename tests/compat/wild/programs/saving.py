"""Every way of saving and loading; prune, parse_from_string, clones."""

import os
import shutil
import numpy as np
import paddle.fluid as fluid


def build(dropout=True):
    x = fluid.data("x", [None, 4])
    y = fluid.data("y", [None, 1])
    h = fluid.layers.fc(x, 5, act="relu", name="hidden")
    if dropout:
        h = fluid.layers.dropout(
            h, 0.3, is_test=False, dropout_implementation="upscale_in_train"
        )
    h = fluid.layers.batch_norm(h, name="bn")
    out = fluid.layers.fc(h, 1, name="out")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    return x, y, out, loss


def main():
    x, y, out, loss = build()
    before = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(0.01).minimize(loss)
    after = fluid.default_main_program().clone(for_test=True)
    main_p = fluid.default_main_program()
    print([op.type for op in before.global_block().ops])
    print([op.type for op in after.global_block().ops])
    print(
        [
            op.attr("is_test")
            for op in before.global_block().ops
            if op.has_attr("is_test")
        ],
        [
            op.attr("is_test")
            for op in main_p.global_block().ops
            if op.type in ("dropout", "batch_norm")
        ],
    )
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in sorted(main_p.all_parameters(), key=lambda p: p.name):
        if len(p.shape) > 1:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                rng.randn(*p.shape).astype("float32"), place
            )
    feed = {
        "x": rng.randn(6, 4).astype("float32"),
        "y": rng.randn(6, 1).astype("float32"),
    }
    base = exe.run(before, feed=feed, fetch_list=[loss])[0]
    print("base %.6f %.6f" % (base, exe.run(after, feed=feed, fetch_list=[loss])[0]))

    fluid.io.save_params(exe, "params")
    fluid.io.save_persistables(exe, "pers", main_p, filename="all")
    fluid.io.save_vars(exe, "vars", main_p, vars=main_p.all_parameters(), filename=None)
    fluid.io.save_vars(
        exe,
        "pred",
        main_program=main_p,
        predicate=lambda v: v.name.startswith("hidden") and v.persistable,
    )
    fluid.save(main_p, "ckpt/model")
    for d in ("params", "pers", "vars", "pred", "ckpt"):
        print(d, sorted(os.listdir(d)))
    names = fluid.io.save_inference_model("infer", ["x"], [out], exe)
    print(names, sorted(os.listdir("infer")))
    fluid.io.save_inference_model(
        "infer2",
        ["x", "y"],
        [out, loss],
        exe,
        main_program=before,
        model_filename="__model__",
        params_filename="__params__",
    )
    print(sorted(os.listdir("infer2")))
    fluid.io.save_inference_model("infer3", ["x"], [out], exe, program_only=True)
    print(sorted(os.listdir("infer3")))

    def zero():
        for p in main_p.list_vars():
            if p.persistable and p.name not in ("feed", "fetch"):
                t = fluid.global_scope().find_var(p.name).get_tensor()
                t.set(np.zeros(t.shape(), "float32"), place)

    def value():
        return exe.run(before, feed=feed, fetch_list=[loss])[0][0]

    def moments():
        return sum(
            float(
                np.abs(
                    np.array(fluid.global_scope().find_var(v.name).get_tensor())
                ).sum()
            )
            for v in main_p.list_vars()
            if "moment" in v.name and v.persistable
        )

    zero()
    print("zero %.6f" % value())
    fluid.io.load_params(exe, "params")
    print("params %.6f %.6f" % (value(), moments()))
    zero()
    fluid.io.load_persistables(exe, "pers", main_p, filename="all")
    print("pers %.6f" % value())
    zero()
    fluid.io.load_vars(exe, "vars", main_p, vars=main_p.all_parameters())
    print("vars %.6f" % value())
    zero()
    fluid.load(main_p, "ckpt/model", exe)
    print("fluid.load %.6f" % value())
    zero()
    fluid.load(main_p, "params", exe, var_list=main_p.all_parameters())
    print("fluid.load of params %.6f" % value())
    state = fluid.io.load_program_state("params", var_list=main_p.all_parameters())
    print(sorted(state), sorted(fluid.io.load_program_state("ckpt/model"))[:4])
    state["out.b_0"] = state["out.b_0"] + 1
    fluid.io.set_program_state(main_p, state)
    print("state %.6f" % value())

    with fluid.scope_guard(fluid.Scope()):
        prog, feeds, fetches = fluid.io.load_inference_model("infer", exe)
        (o,) = exe.run(prog, feed={feeds[0]: feed["x"]}, fetch_list=fetches)
        print(
            feeds,
            [f.name for f in fetches],
            "%.6f" % o.sum(),
            [op.type for op in prog.global_block().ops],
        )
        prog, feeds, fetches = fluid.io.load_inference_model(
            dirname="infer2",
            executor=exe,
            model_filename="__model__",
            params_filename="__params__",
        )
        print(feeds, "%.6f" % exe.run(prog, feed=feed, fetch_list=fetches)[1])
        with open("infer/__model__", "rb") as f:
            p2 = fluid.Program.parse_from_string(f.read())
        print(
            p2.num_blocks,
            sorted(v.name for v in p2.list_vars() if v.persistable),
            p2.global_block().var("x").shape,
        )
    text = main_p.desc.serialize_to_string()
    again = fluid.Program.parse_from_string(text)
    print(len(again.global_block().ops) == len(main_p.global_block().ops))
    print(
        "reparsed %.6f"
        % exe.run(
            fluid.Program.parse_from_string(before.desc.serialize_to_string()),
            feed=feed,
            fetch_list=[loss.name],
        )[0]
    )
    pruned = main_p._prune(targets=[out])
    print([op.type for op in pruned.global_block().ops])
    pruned = (
        main_p.clone(for_test=True)._prune_with_input(["hidden.tmp_2"], [out])
        if hasattr(main_p, "_prune_with_input")
        else None
    )
    print([op.type for op in pruned.global_block().ops] if pruned else None)
    inf = main_p._inference_optimize(prune_read_op=True)
    print([op.type for op in inf.global_block().ops][:3])
    print(
        fluid.io.get_program_parameter(main_p)[0].name,
        sorted(v.name for v in fluid.io.get_program_persistable_vars(main_p))[:3],
    )
    print(
        fluid.io.is_parameter(main_p.global_block().var("out.w_0")),
        fluid.io.is_persistable(out),
        fluid.io.is_belong_to_optimizer(main_p.global_block().var("out.w_0_moment1_0")),
    )
    print(
        fluid.io.get_parameter_value(main_p.global_block().var("out.w_0"), exe).shape,
        fluid.io.get_parameter_value_by_name("out.b_0", exe).shape,
    )


if __name__ == "__main__":
    main()
