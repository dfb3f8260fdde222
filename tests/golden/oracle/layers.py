"""Runs under the reference: writes the programs of `layer_cases` to layers.json.

PYTHON layers.py                write all
PYTHON layers.py CASE ...       print these as text
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import dump  # noqa: E402
import layer_cases  # noqa: E402
from compact import compact  # noqa: E402


def build(fluid, case):
    """The main and startup programs of one case, dumped."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        case(fluid)
    return {"main": dump.dump(main), "startup": dump.dump(startup)}


def show(fluid, names):
    for name in names:
        print("=======", name)
        try:
            made = build(fluid, layer_cases.cases()[name])
        except Exception as error:
            print("ERR", type(error).__name__, str(error)[-700:])
            continue
        for role in ("main", "startup"):
            print("--", role)
            print(dump.text(made[role]))


def write(fluid):
    lines = []
    for name, case in layer_cases.cases().items():
        made = {role: compact(p) for role, p in build(fluid, case).items()}
        text = json.dumps(made, sort_keys=True, separators=(",", ":"))
        lines.append(json.dumps(name) + ":" + text)
    with open(os.path.join(HERE, "layers.json"), "w") as f:
        f.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    import paddle.fluid as reference

    if sys.argv[1:]:
        show(reference, sys.argv[1:])
    else:
        write(reference)
