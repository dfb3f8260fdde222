"""Runs under the reference: writes the programs of `lod_rest_cases` and what they
compute to lod_rest.json.

PYTHON lod_rest.py                write all
PYTHON lod_rest.py CASE ...       print the answers to these
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import dump  # noqa: E402
from compact import compact  # noqa: E402
from lod_rest_cases import CASES  # noqa: E402


def build(fluid, name):
    """The main and startup programs of a case, its feed, and what to fetch."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        feed, fetch = CASES[name](fluid)
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


def answer(fluid, name):
    main, startup, feed, fetch = build(fluid, name)
    values = run(fluid, main, startup, feed, fetch) if fetch else []
    plain = [
        {
            "dtype": str(v.dtype),
            "shape": v.shape,
            "data": v.ravel().tolist(),
            "lod": lod,
        }
        for v, lod in values
    ]
    names = [v.name for v in fetch]
    return {"program": compact(dump.dump(main)), "fetch": names, "values": plain}


def main(names):
    import paddle.fluid as fluid

    if names:
        for name in names:
            print(json.dumps(answer(fluid, name), sort_keys=True))
        return
    lines = []
    for name in CASES:
        text = json.dumps(answer(fluid, name), sort_keys=True, separators=(",", ":"))
        lines.append(json.dumps(name) + ":" + text)
    with open(os.path.join(HERE, "lod_rest.json"), "w") as f:
        f.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
