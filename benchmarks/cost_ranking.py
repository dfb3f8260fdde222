"""Which number of servers is best: predicted on paper, and measured.

    python -m benchmarks.cost_ranking [mlp|big|ctr ...]

Two trainers on this machine, 1, 2 and 3 servers. What `Network` states is measured
first and apart: a step in one process, what a step of a tiny net costs beyond
computing, copying memory, processors that are free. Then `cost` predicts a step for
each number of servers, and real processes are timed. Numbers of servers whose times are
within 10 % of each other count as equal.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

import fluidx as fluid
from fluidx.transpiler import Network, Workload, cost, distribute

from . import pserver

WORKERS, SERVERS = 2, (1, 2, 3)
CLOSE = 0.10


def _best(act: Any, times: int = 30) -> float:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        act()
        found.append(time.perf_counter() - begin)
    return float(np.median(found))


def _exchange() -> float:
    """Seconds that a step of one trainer and one server costs beyond computing.

    Of a net so small that its bytes do not count: what remains are four times packing
    or unpacking a message, and being woken up.
    """
    main, startup, feed = _programs("tiny")
    step = pserver_cluster("tiny", 1, 1, 200) / 1e3
    return max(1e-5, step - _alone(main, startup, feed))


def pserver_cluster(network: str, workers: int, servers: int, steps: int) -> float:
    """Milliseconds per step in real processes."""
    pserver.WORKERS, pserver.SERVERS = workers, servers
    return pserver.run_cluster(sys.executable, "fluidx", network, steps)


def _cores() -> int:
    """Processors that this machine has left for us, whatever else runs on it."""
    spin = "import time; a = time.perf_counter(); b = time.process_time()\n"
    spin += "while time.perf_counter() - a < 1: pass\nprint(time.process_time() - b)"
    command = [sys.executable, "-c", spin]
    count = os.cpu_count() or 1
    many = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    return max(1, round(sum(float(p.communicate()[0]) for p in many)))


def _copying() -> float:
    """Bytes per second of copying memory."""
    data = np.ones(8 << 20, np.uint8)
    return len(data) / _best(data.copy)


def _programs(network: str) -> tuple[fluid.Program, fluid.Program, dict[str, Any]]:
    sys.path.insert(0, os.path.dirname(__file__))
    from pserver_role import NETWORKS

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, feed = NETWORKS[network](fluid)
        fluid.optimizer.SGD(0.01).minimize(loss)
    return main, startup, feed


def _alone(main: fluid.Program, startup: fluid.Program, feed: dict[str, Any]) -> float:
    """Seconds of a step in one process."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return _best(lambda: exe.run(main, feed=feed, scope=scope))


def predicted(network: str) -> list[float]:
    """Milliseconds per step with each number of servers."""
    main, startup, feed = _programs(network)
    copying = _copying()
    stated = Network(
        bandwidth=1e15,  # loopback: bytes are copied, and no link carries them
        latency=0.0,
        compute=_alone(main, startup, feed),
        update=copying,
        message=_exchange() / 4,
        copy=copying / 2,  # into the kernel, and out of it
        cores=_cores(),
    )
    batch = len(next(iter(feed.values())))
    found = []
    for count in SERVERS:
        made = distribute(main, startup, trainers=WORKERS, pservers=count)
        found.append(cost(made.programs, stated, Workload(batch)).step * 1e3)
    return found


def measured(network: str, steps: int) -> list[float]:
    """The same, in real processes: the better of two runs."""
    found = []
    for count in SERVERS:
        runs = [pserver_cluster(network, WORKERS, count, steps) for _ in range(2)]
        found.append(min(runs))
    return found


def agree(ours: list[float], theirs: list[float]) -> bool:
    """Whether no two numbers of servers are ranked clearly the other way round."""
    for a, b in itertools.combinations(range(len(ours)), 2):
        clear = [x[a] / x[b] - 1 for x in (ours, theirs)]
        if all(abs(c) > CLOSE for c in clear) and clear[0] * clear[1] < 0:
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["mlp", "big"])
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    for network in options.networks:
        steps = options.steps if network != "big" else max(options.steps // 5, 5)
        paper, real = predicted(network), measured(network, steps)
        for count, ours, theirs in zip(SERVERS, paper, real):
            print(f"{network:6} {count} servers  predicted {ours:8.2f} ms", end="")
            print(f"   measured {theirs:8.2f} ms", flush=True)
        print(f"{network:6} ranking {'agrees' if agree(paper, real) else 'DIFFERS'}")


if __name__ == "__main__":
    main()
