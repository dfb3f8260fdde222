"""Runs under the reference: writes the programs of `amp_cases` to amp.json.xz.

PYTHON amp.py                write all
PYTHON amp.py CASE ...       print these as text
"""

import json
import lzma
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import amp_cases  # noqa: E402
import dump  # noqa: E402

FILE = os.path.join(HERE, "amp.json.xz")


def build(fluid, case):
    """The main and startup programs of one case, dumped."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        case(fluid)
    return {"main": dump.dump(main), "startup": dump.dump(startup)}


def main(fluid, names):
    made = {}
    for name in names or amp_cases.CASES:
        try:
            made[name] = build(fluid, amp_cases.CASES[name])
        except Exception as error:
            print("ERR", name, type(error).__name__, str(error)[-300:])
            continue
        if names:
            print("=======", name)
            print(dump.text(made[name]["main"]))
    if not names:
        with lzma.open(FILE, "wt") as f:
            json.dump(made, f, sort_keys=True)


if __name__ == "__main__":
    import paddle.fluid as reference

    main(reference, sys.argv[1:])
