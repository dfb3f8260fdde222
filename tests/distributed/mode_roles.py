"""One role that trains the linear net in one mode after the other: processes.

``python mode_roles.py FOLDER MODE[+] ...``; +: with a Communicator. All roles meet
in FOLDER between modes. A trainer prints ``loss MODE FIRST LAST`` and, at its end,
``w MODE SUM``. Trainer 1 kills itself at the step KILL_AT.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from distributed.linear import batch, initial, network

import fluidx as fluid
from fluidx.communicator import Communicator
from fluidx.transpiler import DistributedMode, distribute
from fluidx.transpiler.roles import config_for

STEPS = int(os.environ.get("STEPS", "100"))
ENVS = {
    "communicator_max_merge_var_num": 2,
    "communicator_send_queue_size": 2,
    "communicator_min_send_grad_num_before_recv": 2,
    "communicator_send_wait_times": 0,
}


def meet(folder, name, roles):
    """Wait until every role has come here."""
    (folder / name).touch()
    stem = name.partition("@")[0]
    deadline = time.monotonic() + 60
    while len(list(folder.glob(f"{stem}@*"))) < roles:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name}: not all roles came")
        time.sleep(0.005)


def serve(made, index, endpoint):
    programs, scope = made.programs[f"pserver-{index}"], fluid.Scope()
    exe = fluid.Executor()
    exe.run(programs["startup"], scope=scope)
    for param in made.plan.parameters:
        for piece in param.slices:
            if piece.endpoint == endpoint:
                value = initial()[param.name][piece.row : piece.row + piece.rows]
                scope.find_var(piece.name).value = value.copy()
    exe.run(programs["main"], scope=scope)


def train(made, number, mode, beside, loss):
    programs, scope = made.programs[f"trainer-{number}"], fluid.Scope()
    exe, stand = fluid.Executor(), None
    if beside:
        half = mode == "half-async"
        kind = DistributedMode.HALF_ASYNC if half else DistributedMode.ASYNC
        stand = Communicator(programs["main"], kind, None, ENVS)
        stand.start()
    exe.run(programs["startup"], scope=scope)
    losses = []
    # a geo trainer that runs ahead of the other learns half as much in a step
    for step in range(STEPS * 2 if mode == "geo" else STEPS):
        if number == 1 and str(step) == os.environ.get("KILL_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        feed = batch(number, step)
        (value,) = exe.run(programs["main"], feed, [loss.name], scope=scope)
        losses.append(float(value[0]))
    if stand is not None:
        stand.stop()
    exe.close()
    name = mode + "+" * beside
    first, last = np.mean(losses[:3]), np.mean(losses[-10:])
    print("loss", name, first, last, flush=True)
    total = float(scope.find_var("w").value.astype("f8").sum())
    print("w", name, total, flush=True)


def main():
    folder, modes = Path(sys.argv[1]), sys.argv[2:]
    endpoints = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    trainers = int(os.environ["PADDLE_TRAINERS_NUM"])
    here = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")
    number = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    servers = endpoints.split(",")
    role = f"server-{here}" if here else f"trainer-{number}"
    for count, name in enumerate(modes):
        mode = name.rstrip("+")
        options = {"min_block_size": 2}
        if mode == "geo":
            options["geo_sgd_need_push_nums"] = 5
        config = config_for(mode, **options)
        program, startup, loss = network()
        made = distribute(
            program, startup, config, trainers=trainers, pservers=endpoints
        )
        meet(folder, f"{count}@{role}", trainers + len(servers))
        if here:
            serve(made, servers.index(here), here)
            # the launcher's socket was closed with the first server
            os.environ.pop("FLUIDX_LISTEN_FDS", None)
        else:
            train(made, number, mode, name != mode, loss)


main()
