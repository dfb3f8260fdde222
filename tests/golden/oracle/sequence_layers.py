"""Runs under the reference: writes the programs of `sequence_cases` to
sequence_layers.json (see layers.py).

PYTHON sequence_layers.py                write all
PYTHON sequence_layers.py CASE ...       print these as text
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import dump  # noqa: E402
import layers  # noqa: E402
import sequence_cases  # noqa: E402
from compact import compact  # noqa: E402


def main(fluid, names):
    cases = sequence_cases.cases()
    for name in names:
        print("=======", name)
        for role, program in layers.build(fluid, cases[name]).items():
            print("--", role)
            print(dump.text(program))
    if names:
        return
    lines = []
    for name, case in cases.items():
        made = {role: compact(p) for role, p in layers.build(fluid, case).items()}
        text = json.dumps(made, sort_keys=True, separators=(",", ":"))
        lines.append(json.dumps(name) + ":" + text)
    with open(os.path.join(HERE, "sequence_layers.json"), "w") as f:
        f.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    import paddle.fluid as reference

    main(reference, sys.argv[1:])
