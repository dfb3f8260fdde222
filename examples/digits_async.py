"""Handwritten digits where trainers do not wait for each other: a plain fluid script.

    fluidx launch --workers 2 --servers 2 examples/digits_async.py --mode async
    fluidx launch --workers 2 --servers 2 examples/digits_async.py --mode geo

Modes: async, async-split, half-async, dc-asgd, geo, completely-not-async and sync;
--communicator merges and sends gradients in the background (async-split, half-async).
Every role runs this file; the environment says which one it is (see digits.py).
"""

import argparse
import os

from digits import batches, digits, network

import fluidx as fluid
from fluidx.transpiler import DistributedMode, GeoSgdTranspiler

MODES = {  # options of DistributeTranspilerConfig
    "sync": {},
    "async": {"sync_mode": False},
    "async-split": {"sync_mode": False, "runtime_split_send_recv": True},
    "half-async": {
        "sync_mode": False, "runtime_split_send_recv": True, "half_async": True,
    },
    "completely-not-async": {
        "sync_mode": False, "runtime_split_send_recv": True,
        "completely_not_async": True,
    },
    "dc-asgd": {"sync_mode": False, "enable_dc_asgd": True},
    "geo": {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 5},
}  # fmt: skip


def transpiled(mode, rank, servers, ranks):
    """The transpiler, done with the default programs."""
    config = fluid.DistributeTranspilerConfig()
    for name, value in MODES[mode].items():
        setattr(config, name, value)
    kind = GeoSgdTranspiler if mode == "geo" else fluid.DistributeTranspiler
    transpiler = kind(config)
    transpiler.transpile(
        rank, pservers=servers, trainers=ranks, sync_mode=config.sync_mode
    )
    return transpiler


def train(options, program, loss, accuracy, test_program, rank, ranks):
    communicator = None
    if options.communicator:
        half = options.mode == "half-async"
        mode = DistributedMode.HALF_ASYNC if half else DistributedMode.ASYNC
        envs = {
            "communicator_max_merge_var_num": 2,
            "communicator_send_queue_size": 2,
            "communicator_min_send_grad_num_before_recv": 4,
            "communicator_send_wait_times": 0,
        }
        communicator = fluid.communicator.Communicator(program, mode, None, envs)
        communicator.start()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    data, test_data = digits()
    for step, (epoch, feed) in enumerate(batches(data, options.epochs, rank, ranks)):
        (value,) = exe.run(program, feed=feed, fetch_list=[loss])
        if step % 100 == 0:
            print(f"epoch {epoch + 1} step {step} loss {value[0]:.4f}", flush=True)
    if communicator is not None:
        communicator.stop()  # what waits is sent
    exe.close()  # tells the servers that this trainer is done; geo pushes what is left
    feed = {"image": test_data[0], "label": test_data[1]}
    tester = fluid.Executor(fluid.CPUPlace())
    (right,) = tester.run(test_program, feed=feed, fetch_list=[accuracy])
    print(f"test accuracy {right[0]:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="async")
    parser.add_argument("--communicator", action="store_true")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()

    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    ranks = int(os.environ["PADDLE_TRAINERS_NUM"])
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    for program in (fluid.default_main_program(), fluid.default_startup_program()):
        program.random_seed = 1
    loss, accuracy = network()
    test_program = fluid.default_main_program().clone(for_test=True)
    # two trainers' gradients are applied one after the other, not averaged
    step = 0.3 if options.mode in ("sync", "completely-not-async", "geo") else 0.15
    fluid.optimizer.SGD(step).minimize(loss)

    transpiler = transpiled(options.mode, rank, servers, ranks)
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program, startup = transpiler.get_pserver_programs(here)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        exe.run(program)  # serves until every trainer has closed
    else:
        program = transpiler.get_trainer_program()
        train(options, program, loss, accuracy, test_program, rank, ranks)


if __name__ == "__main__":
    main()
