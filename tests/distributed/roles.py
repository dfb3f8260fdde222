"""One role of a toy cluster as a process: ``python roles.py STEPS [MODE] [FAULT]``.

The role comes from the reference's environment variables. FAULT is "kill", "raise",
"exit", "freeze" or "none", and befalls the role named in FAULTY at its step 3 (a
server: at its block number 8). A trainer prints ``result NAME SUM`` at its end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from distributed import toy

NAMES = ["w", "b", "v"]


def strike(fault):
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "raise":
        raise ValueError("bad batch")
    elif fault == "exit":
        sys.exit(5)
    elif fault == "freeze":
        os.kill(os.getpid(), signal.SIGSTOP)


def main():
    steps = [int(n) for n in sys.argv[1].split(",")]
    mode = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    fault = sys.argv[3] if len(sys.argv) > 3 else "none"
    endpoints = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    trainers = int(os.environ["PADDLE_TRAINERS_NUM"])
    server = os.environ["TRAINING_ROLE"] == "PSERVER"
    if server:
        own = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
        name = f"pserver-{endpoints.index(own)}"
    else:
        number = int(os.environ["PADDLE_TRAINER_ID"])
        name = f"trainer-{number}"
    if os.environ.get("LATE") == name:
        time.sleep(0.7)
    mine = fault if os.environ.get("FAULTY") == name else "none"
    count = [0]

    def before_block():
        count[0] += 1
        if count[0] == 8:
            strike(mine)

    if server:
        toy.run_server(own, NAMES, endpoints, trainers, mode, before_block)
        print("served", flush=True)
        return
    params = toy.run_trainer(
        number,
        NAMES,
        endpoints,
        steps[number],
        mode,
        before_step=lambda step: strike(mine) if step == 3 else None,
    )
    for key, value in params.items():
        print("result", key, repr(float(value.astype("f8").sum())), flush=True)


main()
