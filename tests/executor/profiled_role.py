"""One role of a cluster that profiles itself: ``python profiled_role.py FOLDER``."""

from __future__ import annotations

import os
import sys

import numpy as np

import fluidx as fluid


def main() -> None:
    trainer = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    x = fluid.data("x", [None, 8])
    hidden = fluid.layers.fc(x, 4, act="relu", param_attr="w", bias_attr="b")
    loss = fluid.layers.mean(hidden)
    fluid.optimizer.SGD(0.1).minimize(loss)
    made = fluid.DistributeTranspiler()
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    made.transpile(trainer, pservers=servers, trainers=2)
    exe = fluid.Executor(fluid.CPUPlace())
    profile = fluid.profiler.profiler("CPU", "total", f"{sys.argv[1]}/trace")
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        own = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
        main, startup = made.get_pserver_programs(own)
        exe.run(startup)
        with profile:
            exe.run(main)
        return
    exe.run(fluid.default_startup_program())
    program = made.get_trainer_program()
    with profile:
        for _ in range(3):
            exe.run(program, feed={"x": np.ones((2, 8), "float32")}, fetch_list=[loss])
    exe.close()


if __name__ == "__main__":
    main()
