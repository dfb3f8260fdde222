"""What the reference makes of convolution, pooling, normalization and dropout.

Runs under the reference (PaddlePaddle 1.8.5, Python 3.7) and writes
vision_conv.json, vision_pool.json, vision_norm.json and vision_dropout.json beside
itself: per case the op, its attributes, inputs, the gradient that arrives, outputs
of each step and input gradients. One process per case: some cases may crash.
"""

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import paddle.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))


def rnd(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def run(case):
    """Build one op and its gradient, run `steps` times; what came out of each."""
    main = fluid.Program()
    block = main.global_block()
    inplace = case.get("inplace", {})
    kept = set(inplace.values())
    with fluid.program_guard(main, fluid.Program()):
        ins = {}
        for slot, value in case["inputs"].items():
            ins[slot] = block.create_var(
                name=slot,
                shape=value.shape,
                dtype=str(value.dtype),
                persistable=slot in kept,
                stop_gradient=slot not in case["wrt"],
            )
        outs = {}
        for slot, dtype in case["outs"].items():
            if slot in inplace:
                outs[slot] = ins[inplace[slot]]
            else:
                outs[slot] = block.create_var(name=slot, dtype=dtype)
        block.append_op(
            type=case["op"],
            inputs={k: [v] for k, v in ins.items()},
            outputs={k: [v] for k, v in outs.items()},
            attrs=case["attrs"],
        )
        head = outs[case["head"]]
        grads = []
        feed = {s: v for s, v in case["inputs"].items() if s not in kept}
        if case["wrt"]:
            d_head = block.create_var(
                name="D", shape=head.shape, dtype="float32", stop_gradient=True
            )
            feed["D"] = rnd(*head.shape, seed=5)
            grads = fluid.backward.gradients(
                [head], [ins[s] for s in case["wrt"]], [d_head]
            )
        names = [v.name for v in list(outs.values()) + grads]
        exe = fluid.Executor(fluid.CPUPlace())
        scope = fluid.Scope()
        steps = []
        with fluid.scope_guard(scope):
            for slot in kept:
                tensor = scope.var(slot).get_tensor()
                tensor.set(case["inputs"][slot], fluid.CPUPlace())
            for _ in range(case["steps"]):
                got = exe.run(main, feed=feed, fetch_list=names)
                keys = list(outs) + [s + "@GRAD" for s in case["wrt"]]
                steps.append(dict(zip(keys, got)))
    return {"d_out": feed.get("D"), "steps": steps}


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    array = np.array(value)
    if array.dtype == object:  # a variable that was never written
        return None
    numbers = [float(f"{v:.6g}") for v in array.ravel().tolist()]
    if array.dtype.kind in "iu":
        numbers = array.ravel().tolist()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": numbers}


def isolated(case):
    """`run` in a process of its own; None if it failed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = json.dumps(plain(run(case)))
        except BaseException as error:
            sys.stderr.write("{}: {}\n".format(case["name"], str(error)[-200:]))
            text = ""
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def case(name, op, inputs, attrs, outs, wrt, head, steps=1, **more):
    if not isinstance(outs, dict):
        outs = dict.fromkeys(outs, "float32")
    return dict(
        name=name,
        op=op,
        inputs=inputs,
        attrs=attrs,
        outs=outs,
        wrt=wrt,
        head=head,
        steps=steps,
        **more,
    )


def conv_cases():
    x, w = rnd(1, 2, 5, 6), rnd(2, 2, 3, 3, seed=1)
    nhwc = rnd(1, 5, 6, 2)
    thin, wide = rnd(4, 1, 3, 3, seed=1), rnd(2, 3, 3, 3, seed=1)

    def conv(name, op, x, w, **attrs):
        every = {
            "strides": [1, 1],
            "paddings": [0, 0],
            "dilations": [1, 1],
            "groups": 1,
        }
        every.update(attrs)
        ins = {"Input": x, "Filter": w}
        return case(name, op, ins, every, ["Output"], list(ins), "Output")

    same, valid = {"padding_algorithm": "SAME"}, {"padding_algorithm": "VALID"}
    yield conv("plain", "conv2d", x, w)
    yield conv("four pads", "conv2d", x, w, paddings=[0, 1, 2, 0])
    yield conv("stride", "conv2d", x, w, paddings=[1, 2], strides=[2, 3])
    yield conv("same", "conv2d", x, w, paddings=[3, 3], **same)
    yield conv("same, stride", "conv2d", x, w, strides=[2, 3], **same)
    yield conv("same, dilation", "conv2d", x, w, dilations=[2, 2], **same)
    yield conv("valid", "conv2d", x, w, paddings=[3, 3], **valid)
    yield conv("valid, dilation", "conv2d", x, w, dilations=[2, 2], **valid)
    yield conv("dilation", "conv2d", x, w, dilations=[2, 1])
    yield conv("groups", "conv2d", x, thin, groups=2)
    yield conv("nhwc", "conv2d", nhwc, w, data_format="NHWC")
    yield conv("depthwise", "depthwise_conv2d", x, thin, groups=2, paddings=[1, 1])
    yield conv("nhwc", "depthwise_conv2d", nhwc, thin[:2], groups=2, data_format="NHWC")
    t = "conv2d_transpose"
    yield conv("plain", t, x, wide)
    yield conv("stride", t, x, wide, strides=[2, 2], paddings=[1, 1])
    yield conv(
        "output_size",
        t,
        x,
        wide,
        strides=[2, 2],
        paddings=[1, 1],
        output_size=[10, 12],
    )
    yield conv("dilation", t, x, wide, dilations=[2, 2])
    yield conv("four pads", t, x, wide, paddings=[0, 1, 1, 0], strides=[2, 1])
    yield conv("groups", t, x, wide, groups=2)
    yield conv("same", t, x, wide, strides=[2, 2], **same)
    yield conv("same, dilation", t, x, wide, dilations=[2, 2], **same)
    yield conv("valid", t, x, wide, strides=[2, 2], paddings=[1, 1], **valid)
    yield conv("nhwc", t, nhwc, wide, data_format="NHWC")


def pool_cases():
    x = rnd(1, 1, 5, 5)

    def pool(name, x=x, **attrs):
        every = {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0]}
        every.update(attrs)
        return case(name, "pool2d", {"X": x}, every, ["Out"], ["X"], "Out")

    for kind in ("max", "avg"):
        for exclusive in (True, False) if kind == "avg" else (True,):
            p = {"pooling_type": kind, "exclusive": exclusive}
            k3 = dict(ksize=[3, 3], **p)
            yield pool("plain", **p)
            yield pool("overlap", strides=[1, 1], paddings=[1, 1], **k3)
            yield pool("ceil", ceil_mode=True, **p)
            yield pool("ceil, pads", ceil_mode=True, paddings=[1, 1], **k3)
            yield pool("four pads", ksize=[3, 2], paddings=[0, 1, 1, 0], **p)
            yield pool("same", padding_algorithm="SAME", paddings=[5, 5], **k3)
            yield pool("valid", padding_algorithm="VALID", paddings=[1, 1], **k3)
            yield pool(
                "valid, ceil",
                padding_algorithm="VALID",
                paddings=[1, 1],
                ceil_mode=True,
                **p,
            )
            if kind == "avg":  # maxima take windows at o * stride there
                adaptive = dict(adaptive=True, paddings=[1, 1], **p)
                yield pool("adaptive", ksize=[3, 2], **adaptive)
                yield pool("even", x=rnd(1, 2, 4, 6), ksize=[2, 3], **adaptive)
            yield pool("global", global_pooling=True, paddings=[1, 1], **p)
            yield pool("larger than input", ksize=[6, 6], paddings=[1, 1], **p)
            yield pool("nhwc", x=rnd(1, 3, 4, 2), data_format="NHWC", **p)
    m = {"pooling_type": "max"}
    outside = {
        "ceil_mode": True,
        "ksize": [2, 2],
        "strides": [3, 3],
        "paddings": [1, 1],
    }
    yield pool("window outside", pooling_type="max", **outside)
    yield pool("window outside", pooling_type="avg", exclusive=False, **outside)
    ones = np.ones((1, 1, 4, 4), "float32")
    yield pool("ties", x=ones, ksize=[3, 3], strides=[1, 1], **m)
    yield pool("ties of zeros", x=np.maximum(rnd(1, 2, 4, 4), 0), **m)
    yield pool("ties, global", x=ones, global_pooling=True, **m)


def norm_cases():
    bn = {
        "X": rnd(3, 2, 2, 2),
        "Scale": rnd(2, seed=1),
        "Bias": rnd(2, seed=2),
        "Mean": rnd(2, seed=3),
        "Variance": np.abs(rnd(2, seed=4)),
    }
    slots = ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"]
    inplace = {"MeanOut": "Mean", "VarianceOut": "Variance"}
    wrt = ["X", "Scale", "Bias"]

    def batch(name, attrs, wrt=wrt, **inputs):
        every = dict(momentum=0.8, **attrs)
        ins = dict(bn, **inputs)
        return case(
            name, "batch_norm", ins, every, slots, wrt, "Y", steps=2, inplace=inplace
        )

    yield batch("train", {})
    yield batch("test", {"is_test": True}, wrt=[])
    yield batch("global", {"use_global_stats": True})
    yield batch("trainable", {"is_test": True, "trainable_statistics": True}, wrt=[])
    yield batch("two dimensions", {}, X=rnd(4, 2))
    yield batch("three dimensions", {}, X=rnd(3, 2, 4))
    yield batch("five dimensions", {}, X=rnd(2, 2, 2, 2, 1))
    yield batch("one row", {}, X=rnd(1, 2))
    yield batch("one pixel", {}, X=rnd(1, 2, 1, 1))
    yield batch("nhwc", {"data_layout": "NHWC"}, X=rnd(2, 2, 3, 2))
    yield batch("epsilon", {"epsilon": 0.001})
    yield batch("momentum tensor", {}, MomentumTensor=np.array([0.5], "float32"))
    ln = ["Y", "Mean", "Variance"]
    x, s, b = rnd(2, 3, 4), rnd(12, seed=1), rnd(12, seed=2)
    whole = {"X": x, "Scale": s, "Bias": b}
    yield case("all", "layer_norm", whole, {}, ln, wrt, "Y")
    attrs = {"begin_norm_axis": 2, "epsilon": 0.0005}
    yield case("bare", "layer_norm", {"X": x}, attrs, ln, ["X"], "Y")
    ins = {"X": x, "Scale": s[:4]}
    yield case("scale", "layer_norm", ins, attrs, ln, ["X", "Scale"], "Y")
    out = ["Out", "MidOut"]
    x = rnd(1, 6, 1, 2)
    for n in (1, 3, 5, 9):
        attrs = {"n": n, "alpha": 0.5, "beta": 0.6}
        yield case(f"n {n}", "lrn", {"X": x}, attrs, out, ["X"], "Out")
    attrs = {"n": 3, "alpha": 0.5, "data_format": "NHWC"}
    yield case("nhwc", "lrn", {"X": rnd(1, 1, 2, 6)}, attrs, out, ["X"], "Out")
    out = ["Norm", "Out"]
    for axis in (1, -1):
        attrs = {"axis": axis, "epsilon": 0.1}
        yield case(
            f"axis {axis}", "norm", {"X": rnd(2, 3, 4)}, attrs, out, ["X"], "Out"
        )
    gn = {"X": rnd(2, 4, 1, 3), "Scale": rnd(4, seed=1), "Bias": rnd(4, seed=2)}
    yield case("plain", "group_norm", gn, {"groups": 2}, ln, wrt, "Y")
    zero = dict(gn, Scale=np.array([0, 1, 2, 0], "float32"))
    yield case("zero scale", "group_norm", zero, {"groups": 2}, ln, wrt, "Y")
    uneven = {"X": rnd(2, 5, 1, 3), "Scale": rnd(5, seed=1), "Bias": rnd(5, seed=2)}
    for groups in (2, 3):
        attrs = {"groups": groups}
        name = f"uneven {groups}"
        yield case(name, "group_norm", uneven, attrs, ln, wrt, "Y")
    attrs = {"groups": 2, "data_layout": "NHWC"}
    nhwc = dict(gn, X=rnd(2, 1, 3, 4))
    yield case("nhwc", "group_norm", nhwc, attrs, ln, wrt, "Y")
    # without Bias its gradient misses a term (it does not add up to 0)
    bare = {"X": gn["X"]}
    yield case("bare", "group_norm", bare, {"groups": 2}, ln, [], "Y")
    ins = {"X": rnd(2, 2, 1, 3), "Scale": rnd(2, seed=1), "Bias": rnd(2, seed=2)}
    saved = ["Y", "SavedMean", "SavedVariance"]
    yield case("plain", "instance_norm", ins, {}, saved, wrt, "Y")
    yield case("3-d", "instance_norm", dict(ins, X=rnd(2, 2, 4)), {}, saved, wrt, "Y")


def dropout_cases():
    outs = {"Out": "float32", "Mask": "uint8"}
    for how in ("downgrade_in_infer", "upscale_in_train"):
        for p in (0.0, 0.4, 1.0):
            attrs = {"dropout_prob": p, "dropout_implementation": how}
            ins = {"X": rnd(4, 5)}
            yield case("train", "dropout", ins, attrs, outs, ["X"], "Out")
            attrs = dict(attrs, is_test=True)
            yield case("test", "dropout", ins, attrs, outs, [], "Out")


def main():
    families = {
        "conv": conv_cases,
        "pool": pool_cases,
        "norm": norm_cases,
        "dropout": dropout_cases,
    }
    for family, cases in families.items():
        made = []
        for one in cases():
            got = isolated(one)
            if got is not None:
                kept = {k: one[k] for k in ("name", "op", "attrs", "inputs")}
                made.append(dict(plain(kept), **got))
        path = os.path.join(HERE, f"vision_{family}.json")
        with open(path, "w") as file:
            file.write("[\n" + ",\n".join(json.dumps(m) for m in made) + "\n]\n")
        print(family, len(made), os.path.getsize(path))


if __name__ == "__main__":
    main()
