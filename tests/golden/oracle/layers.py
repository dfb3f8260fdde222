"""Runs under the reference: the programs of `layer_cases`, as layers.json.

    PYTHON layers.py [CASE ...]     with names: prints those as text
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "transpiler")]

import dump  # noqa: E402
import layer_cases  # noqa: E402
import paddle.fluid as fluid  # noqa: E402


def build(case):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        case(fluid)
    return {"main": dump.dump(main), "startup": dump.dump(startup)}


def spec():
    with open(os.path.join(HERE, os.pardir, "ops_spec.json")) as f:
        return json.load(f)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print("=======", name)
        try:
            made = build(layer_cases.cases()[name])
        except Exception as error:
            print("ERR", type(error).__name__, str(error)[-700:])
            continue
        print(dump.text(made["main"]))
        print("-- startup")
        print(dump.text(made["startup"]))
