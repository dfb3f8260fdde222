"""Two ranks on this machine: milliseconds per step, beside PyTorch's DDP.

    python -m benchmarks.collective [--rounds N] [--steps N] [mlp] [big] [...]

Ours runs as `GradAllReduce` under mpiexec, PyTorch's DistributedDataParallel over gloo;
both with one thread per rank, the same networks, SGD, and the loss fetched each step.
A figure is the best round's median: other work on the machine only ever adds time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RANKS = 2
LIMIT = 300
#: widths of the layers before the last (10 classes), and the batch of each rank
NETWORKS = {"mlp": ([784, 200, 200], 64), "big": ([1024, 2048, 2048], 8)}


def median_ms(step: Callable[[], Any], steps: int) -> float:
    """The median time of a step, after ten that do not count."""
    times = []
    for _ in range(steps + 10):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return sorted(times[10:])[steps // 2] * 1e3


def fluidx_rank(network: str, steps: int) -> None:
    """One rank; its number comes from mpiexec."""
    import numpy as np

    import fluidx as fluid

    rank = int(os.environ["PADDLE_TRAINER_ID"])
    endpoints = os.environ["PADDLE_TRAINER_ENDPOINTS"]
    widths, batch = NETWORKS[network]
    x = h = fluid.data("x", [None, widths[0]])
    y = fluid.data("y", [None, 1], "int64")
    for width in widths[1:]:
        h = fluid.layers.fc(h, width, act="relu")
    p = fluid.layers.fc(h, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(p, y))
    fluid.optimizer.SGD(0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.mode, config.collective_mode = "collective", "grad_allreduce"
    fluid.DistributeTranspiler(config).transpile(
        rank, trainers=endpoints, current_endpoint=endpoints.split(",")[rank]
    )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random = np.random.RandomState(rank)
    feed = {
        x.name: random.rand(batch, widths[0]).astype("float32"),
        y.name: random.randint(0, 10, (batch, 1)).astype("int64"),
    }
    main = fluid.default_main_program()
    ms = median_ms(lambda: exe.run(main, feed=feed, fetch_list=[loss]), steps)
    if rank == 0:
        print("RESULT " + json.dumps(ms), flush=True)


def torch_rank(network: str, steps: int, rank: int, port: int) -> None:
    """One rank of the peer."""
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group(
        "gloo", init_method=address, rank=rank, world_size=RANKS
    )
    widths, batch = NETWORKS[network]
    layers: list[Any] = []
    for low, high in zip(widths, widths[1:]):
        layers += [nn.Linear(low, high), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(widths[-1], 10))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.rand(batch, widths[0]), torch.randint(0, 10, (batch,))

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    ms = median_ms(step, steps)
    if rank == 0:
        print("RESULT " + json.dumps(ms), flush=True)
    distributed.destroy_process_group()


def _run(commands: list[list[str]]) -> float:
    """Start these together; the result that one of them prints."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    children = [
        subprocess.Popen(
            command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    try:
        outputs = [child.communicate(timeout=LIMIT)[0] for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    for line in "\n".join(outputs).splitlines():
        if line.startswith("RESULT "):
            return float(json.loads(line[len("RESULT ") :]))
    raise SystemExit(f"{commands[0]} gave no result")


def fluidx_ms(network: str, steps: int) -> float:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    role = [
        sys.executable,
        __file__,
        network,
        "--steps",
        str(steps),
        "--role",
        "fluidx",
    ]
    return _run([[str(mpiexec), "-n", str(RANKS), *role]])


def torch_ms(network: str, steps: int) -> float:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    role = [sys.executable, __file__, network, "--steps", str(steps), "--role", "torch"]
    ranks = range(RANKS)
    return _run([[*role, "--rank", str(r), "--port", str(port)] for r in ranks])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--role", choices=("fluidx", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "fluidx":
        return fluidx_rank(options.networks[0], options.steps)
    if options.role == "torch":
        network, steps = options.networks[0], options.steps
        return torch_rank(network, steps, options.rank, options.port)
    peers = {"fluidx, MPI": fluidx_ms}
    if importlib.util.find_spec("torch"):
        peers["PyTorch DDP, gloo"] = torch_ms
    for network in options.networks:
        best = dict.fromkeys(peers, float("inf"))
        for _ in range(options.rounds):
            for peer, measure in peers.items():
                best[peer] = min(best[peer], measure(network, options.steps))
        shown = "; ".join(f"{peer} {ms:.2f} ms" for peer, ms in best.items())
        values = list(best.values())
        ratio = f"; ratio {values[0] / values[1]:.2f}" if len(values) > 1 else ""
        print(f"{network}, {RANKS} ranks: {shown}{ratio}", flush=True)


if __name__ == "__main__":
    main()
