"""Runs under the reference: writes what `double_grad_cases` builds and gives.

PYTHON double_grad.py           write double_grad.json.xz: programs and values
PYTHON double_grad.py CASE      print the values of this one
"""

import json
import lzma
import os
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import double_grad_cases as cases  # noqa: E402
import dump  # noqa: E402

FILE = os.path.join(HERE, "double_grad.json.xz")


def feed_of(program, dtype):
    """Normal numbers for all data of a program."""
    block, rng = program.global_block(), np.random.RandomState(5)
    data = sorted(v.name for v in block.vars.values() if getattr(v, "is_data", False))
    return {n: rng.normal(size=block.var(n).shape).astype(dtype) for n in data}


def build(fluid, name, dtype="float32"):
    """(program, inputs, squares of first gradients, second gradients) of a case."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        return (main, *cases.second(fluid, name, dtype))


def record(fluid, name):
    main, inputs, _, grads = build(fluid, name)
    made = {v.name: g.name for v, g in zip(inputs, grads) if g is not None}
    return {"program": dump.dump(main), "gradients": made}


def values(fluid, name):
    """The second gradients by input; some of the reference's kernels crash."""
    main, inputs, _, grads = build(fluid, name)
    made = {v.name: g.name for v, g in zip(inputs, grads) if g is not None}
    exe = fluid.Executor(fluid.CPUPlace())
    feed = feed_of(main, "float32")
    got = exe.run(main, feed=feed, fetch_list=list(made.values()))
    return {n: np.asarray(v).reshape(-1).tolist() for n, v in zip(made, got)}


def write(fluid):
    found = {}
    for name in cases.CASES:
        try:
            found[name] = record(fluid, name)
        except fluid.core.EnforceNotMet:
            print("the reference refuses:", name)
            found[name] = {"program": None, "gradients": None, "values": None}
            continue
        command = [sys.executable, os.path.abspath(__file__), name]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = run.stdout.decode().splitlines()
        crashed = run.returncode or not lines
        found[name]["values"] = None if crashed else json.loads(lines[-1])
        if crashed:
            print("the reference crashes:", name)
    with lzma.open(FILE, "wt") as f:
        json.dump(found, f, sort_keys=True)


if __name__ == "__main__":
    import paddle.fluid as reference

    if sys.argv[1:]:
        print(json.dumps(values(reference, sys.argv[1])))
    else:
        write(reference)
