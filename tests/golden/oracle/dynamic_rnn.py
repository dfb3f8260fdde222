"""Runs under the reference: writes the programs of `dynamic_rnn_cases` and what they
compute to dynamic_rnn.json.

PYTHON dynamic_rnn.py                write all
PYTHON dynamic_rnn.py CASE ...       print the answers to these
"""

import json
import lzma
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import dump  # noqa: E402
from compact import compact  # noqa: E402
from dynamic_rnn_cases import CASES  # noqa: E402


def build(fluid, name, cases=CASES):
    """The main and startup programs of a case, its feed, and what to fetch."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        feed, fetch = cases[name](fluid)
    return main, startup, feed, fetch


def run(fluid, main, startup, feed, fetch):
    """[values, LoD] of each fetched variable."""
    place = fluid.CPUPlace()
    exe, scope = fluid.Executor(place), fluid.Scope()
    made = {
        k: fluid.create_lod_tensor(v[0], v[1], place) if isinstance(v, tuple) else v
        for k, v in feed.items()
    }
    with fluid.scope_guard(scope):
        exe.run(startup)
        found = exe.run(main, feed=made, fetch_list=fetch, return_numpy=False)
    return [[np.array(v), v.lod()] for v in found]


def _short(value):
    return [float("%.7g" % x) if isinstance(x, float) else x for x in value]


def answer(fluid, name, cases=CASES):
    main, startup, feed, fetch = build(fluid, name, cases)
    values = run(fluid, main, startup, feed, fetch) if fetch else []
    plain = [
        {
            "dtype": str(v.dtype),
            "shape": v.shape,
            "data": _short(v.ravel().tolist()),
            "lod": lod,
        }
        for v, lod in values
    ]
    names = [v.name for v in fetch]
    programs = {
        role: compact(dump.dump(p))
        for role, p in (("main", main), ("startup", startup))
    }
    return {"programs": programs, "fetch": names, "values": plain}


def record(cases, path, names):
    """Write the answers to all cases, or print those to some."""
    import paddle.fluid as fluid

    if names:
        for name in names:
            print(json.dumps(answer(fluid, name, cases), sort_keys=True))
        return
    lines = []
    for name in cases:
        found = answer(fluid, name, cases)
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        lines.append(json.dumps(name) + ":" + text)
    packed = path.endswith(".xz")
    with lzma.open(path, "wt") if packed else open(path, "w") as f:
        f.write("{" + ",\n".join(lines) + "}\n")
    print(len(lines), "cases,", os.path.getsize(path), "bytes")


if __name__ == "__main__":
    record(CASES, os.path.join(HERE, "dynamic_rnn.json"), sys.argv[1:])
