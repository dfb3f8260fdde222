"""One role of a parameter-server cluster, timed; runs on fluidx and on the reference.

Started by `benchmarks.pserver`. (Python 3.7 syntax: the reference needs it.)
"""

import argparse
import importlib
import json
import os
import time

from models import classified, ctr_feed, ctr_network, floats, ids


def dense(fluid, sizes, batch):
    """A multi-layer perceptron of these widths on one batch."""
    h = fluid.data("x", [None, sizes[0]])
    for width in sizes[1:]:
        h = fluid.layers.fc(h, width, act="relu")
    return classified(fluid, h, 10), {
        "x": floats(batch, sizes[0]),
        "y": ids(10, batch, 1),
    }


NETWORKS = {
    "tiny": lambda fluid: dense(fluid, [2, 2], 2),
    "mlp": lambda fluid: dense(fluid, [784, 200, 200], 64),
    "big": lambda fluid: dense(fluid, [1024, 2048, 2048], 8),
    "ctr": lambda fluid: (ctr_network(fluid), ctr_feed(100)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--module", default="fluidx")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    fluid = importlib.import_module(options.module)
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    trainers = int(os.environ["PADDLE_TRAINERS_NUM"])
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))

    loss, feed = NETWORKS[options.network](fluid)
    fluid.optimizer.SGD(0.01).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(rank, pservers=servers, trainers=trainers)
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        endpoint = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, startup = transpiler.get_pserver_programs(endpoint)
        exe.run(startup)
        exe.run(program)
        return
    program = transpiler.get_trainer_program()
    exe.run(fluid.default_startup_program())
    for _ in range(10):
        exe.run(program, feed=feed, fetch_list=[loss])
    begin = time.perf_counter()
    for _ in range(options.steps):
        exe.run(program, feed=feed, fetch_list=[loss])
    seconds = time.perf_counter() - begin
    exe.close()
    print("RESULT " + json.dumps({"ms": seconds / options.steps * 1e3}), flush=True)


if __name__ == "__main__":
    main()
