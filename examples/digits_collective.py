"""Handwritten digits without servers, a plain fluid script.

    fluidx launch --collective --workers 2 examples/digits_collective.py
    fluidx launch --collective examples/digits_collective.py --mode local_sgd
    mpiexec -n 2 python examples/digits_collective.py --mode nccl2
    python examples/digits_collective.py            # the same in one process

Every rank holds all parameters. grad_allreduce averages the gradients in each step;
local_sgd lets each rank step by itself and averages the steps; nccl2 leaves the
program alone, and `CompiledProgram` averages the gradients.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from digits import batches, digits, network, parameters, save

import fluidx as fluid

MODES = ("grad_allreduce", "local_sgd", "nccl2")


def transpile(mode, rank, endpoints, here):
    """Rewrite the default programs for one rank of several."""
    config = fluid.DistributeTranspilerConfig()
    if mode == "nccl2":
        config.mode = "nccl2"
    else:
        config.mode, config.collective_mode = "collective", mode
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(rank, trainers=endpoints, current_endpoint=here)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="grad_allreduce")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("digits-collective-out"))
    options = parser.parse_args()

    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    ranks = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    endpoints = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "")
    here = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    main_program = fluid.default_main_program()
    startup_program = fluid.default_startup_program()
    loss, accuracy = network()
    test_program = main_program.clone(for_test=True)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    program = main_program
    if ranks > 1:
        transpile(options.mode, rank, endpoints, here)
        if options.mode == "nccl2":
            program = fluid.CompiledProgram(main_program)
            program = program.with_data_parallel(loss_name=loss.name)
    save(options.out, f"trainer-{rank}-main", main_program)
    save(options.out, f"trainer-{rank}-startup", startup_program)

    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup_program)  # rank 0's parameters go to all
    data, test_data = digits()
    steps, begin, last = 0, time.perf_counter(), -1
    for epoch, feed in batches(data, options.epochs, rank, ranks):
        (value,) = exe.run(program, feed=feed, fetch_list=[loss])
        steps += 1
        if epoch != last:
            last = epoch
            print(f"epoch {epoch + 1}/{options.epochs} loss {value[0]:.4f}", flush=True)
    seconds = time.perf_counter() - begin
    feed = {"image": test_data[0], "label": test_data[1]}
    (right,) = exe.run(test_program, feed=feed, fetch_list=[accuracy])
    np.savez(options.out / f"trainer-{rank}-end.npz", **parameters())
    facts = {"accuracy": float(right[0]), "steps_per_second": steps / seconds}
    (options.out / f"trainer-{rank}.json").write_text(json.dumps(facts))
    print(f"test accuracy {right[0]:.4f}", flush=True)


if __name__ == "__main__":
    main()
