"""Runs single ops under the reference and records what comes out, as JSON.

Used by the scripts beside it; runs under the reference's interpreter only. Each
case runs in a process of its own: a crash is recorded as an error, not suffered.
"""

import json
import os
import pickle
import signal
import sys

import numpy as np
import paddle.fluid as fluid


def case(name, op, inputs, attrs=None, outs=("Out",), grad=(), declared=None):
    """One op call. inputs: slot -> array or list of arrays; grad: slots wanted.

    declared: slot -> compile-time shape, where it is not the array's own.
    """
    return {
        "name": name,
        "op": op,
        "inputs": inputs,
        "attrs": attrs or {},
        "outs": list(outs),
        "grad": list(grad),
        "declared": declared or {},
    }


def _run(c):
    main, startup = fluid.Program(), fluid.Program()
    feed, slots = {}, {}
    with fluid.program_guard(main, startup):
        block = main.global_block()
        for slot, value in c["inputs"].items():
            many = value if isinstance(value, list) else [value]
            slots[slot] = []
            for i, array in enumerate(many):
                name = f"{slot}{i:d}"
                var = block.create_var(
                    name=name,
                    shape=c["declared"].get(slot, array.shape),
                    dtype=str(array.dtype),
                    stop_gradient=False,
                )
                var.desc.set_need_check_feed(False)
                feed[name] = array
                slots[slot].append(var)
        outs = {s: [block.create_var(name=s + "_out")] for s in c["outs"]}
        block.append_op(type=c["op"], inputs=slots, outputs=outs, attrs=c["attrs"])
        shapes = {s: list(v[0].shape) for s, v in outs.items()}
        fetch = [v[0] for v in outs.values()]
        grads = []
        if c["grad"]:
            out = outs[c["outs"][0]][0]
            out.stop_gradient = False
            seed = block.create_var(
                name="seed", shape=c.get("seed_shape", out.shape), dtype=out.dtype
            )
            feed["seed"] = None
            targets = [slots[s][0] for s in c["grad"]]
            probe = fluid.Executor(fluid.CPUPlace())
            only = main.clone(for_test=True)
            kept = {k: v for k, v in feed.items() if k != "seed"}
            (value,) = probe.run(only, feed=kept, fetch_list=[out.name])
            rng = np.random.RandomState(5)
            feed["seed"] = np.round(rng.randn(*value.shape), 2).astype(value.dtype)
            grads = fluid.gradients([out], targets, target_gradients=[seed])
            fetch += [g for g in grads if g is not None]
    exe = fluid.Executor(fluid.CPUPlace())
    got = exe.run(main, feed=feed, fetch_list=fetch)
    result = {"outputs": dict(zip(c["outs"], got)), "shapes": shapes}
    if c["grad"]:
        result["d_out"] = feed["seed"]
        rest = iter(got[len(c["outs"]) :])
        result["grads"] = {
            s: (None if g is None else next(rest)) for s, g in zip(c["grad"], grads)
        }
    return result


def _in_child(c):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(60)
        null = os.open(os.devnull, os.O_WRONLY)
        if not os.environ.get("SHOW"):
            os.dup2(null, 1)
            os.dup2(null, 2)
        try:
            result = _run(c)
        except Exception as error:  # what the reference refuses is an answer too
            result = {"error": type(error).__name__}
            if os.environ.get("SHOW"):
                print(c["name"], str(error)[-600:], file=sys.stderr)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else {"error": "crash"}


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1).tolist()
        if value.dtype == np.float32:
            flat = [float(f"{v:.9g}") for v in flat]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "data": flat}
    return value


def record(path, cases):
    """Run the cases and write them with their results."""
    names = [c["name"] for c in cases]
    assert len(set(names)) == len(names), "names must differ"
    lines = []
    for c in cases:
        result = _in_child(c)
        if "error" in result:
            print("refused:", c["name"], result["error"])
        lines.append(json.dumps(_plain(dict(c, **result))))
    with open(path, "w") as out:
        out.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "cases,", os.path.getsize(path), "bytes")
