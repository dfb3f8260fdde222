"""Two servers and two trainers on this machine: milliseconds per sync step.

python -m benchmarks.pserver [--oracle PATH_TO_PYTHON_WITH_PADDLE]
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

ROLE = Path(__file__).with_name("pserver_role.py")
WORKERS = SERVERS = 2
LIMIT = 300


def _free_endpoints(count: int) -> list[str]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return [f"127.0.0.1:{port}" for port in ports]


def run_cluster(python: str, module: str, network: str, steps: int) -> float:
    """Mean over the trainers of the milliseconds that a step takes."""
    endpoints = _free_endpoints(SERVERS)
    shared = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(endpoints),
        "PADDLE_TRAINERS_NUM": str(WORKERS),
    }
    command = [python, str(ROLE), network, "--module", module, "--steps", str(steps)]
    children = []
    try:
        for endpoint in endpoints:
            role = {"TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_ENDPOINT": endpoint}
            children.append(_start(command, {**shared, **role}))
        trainers = []
        for rank in range(WORKERS):
            role = {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(rank)}
            trainers.append(_start(command, {**shared, **role}))
        children += trainers
        outputs = [child.communicate(timeout=LIMIT)[0] for child in trainers]
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()
    return sum(_result(text) for text in outputs) / WORKERS


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _result(output: str) -> float:
    for line in output.splitlines():
        if line.startswith("RESULT "):
            return float(json.loads(line[len("RESULT ") :])["ms"])
    raise SystemExit(f"a trainer gave no result:\n{output[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["mlp", "ctr", "big"])
    parser.add_argument("--oracle", default=os.environ.get("ORACLE"))
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    for network in options.networks:
        steps = options.steps if network != "big" else max(options.steps // 3, 5)
        ours = run_cluster(sys.executable, "fluidx", network, steps)
        line = f"{network:6} fluidx {ours:8.2f} ms/step"
        if options.oracle:
            peer = run_cluster(options.oracle, "paddle.fluid", network, steps)
            line += f"   reference {peer:8.2f}   ratio {ours / peer:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
