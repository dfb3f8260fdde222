"""Runs under the reference: trains `networks` and writes losses.json beside itself.

PYTHON record.py                 write all
PYTHON record.py NETWORK ...     print these
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

import networks  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
import training  # noqa: E402

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(networks.networks())
    losses = {
        name: training.train(fluid, networks.networks()[name], fluid.core.Scope())
        for name in chosen
    }
    if sys.argv[1:]:
        print(json.dumps(losses))
    else:
        lines = [
            json.dumps(n) + ": " + json.dumps(found) for n, found in losses.items()
        ]
        with open(os.path.join(HERE, "losses.json"), "w") as file:
            file.write("{\n" + ",\n".join(lines) + "\n}\n")
