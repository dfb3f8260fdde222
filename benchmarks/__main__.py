"""All benchmarks, ours beside the peers, as ratios.

    python -m benchmarks [--oracle PYTHON_WITH_PADDLE] [--rounds N] [--threads N]

PyTorch is measured where it is installed; the reference where a Python that has it is
given (or named by ORACLE). Ours and theirs alternate; a figure is the best round's
median, since other work on the machine only ever adds time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
NAMES = ("tiny", "mlp", "lenet", "ctr", "resnet", "transformer")


def _timed(command: list[str], threads: int) -> dict[str, float]:
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    done = subprocess.run(
        command,
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(
    names: list[str], oracle: str | None, rounds: int, threads: int
) -> dict[str, dict[str, float]]:
    """peer -> model -> best median milliseconds."""
    commands = {"fluidx": [sys.executable, str(HERE / "models.py"), *names]}
    if importlib.util.find_spec("torch"):
        torch = [sys.executable, str(HERE / "torch_models.py"), *names]
        commands["PyTorch"] = [*torch, "--threads", str(threads)]
    if oracle:
        script = [oracle, str(HERE / "models.py"), *names]
        commands["reference"] = [*script, "--module", "paddle.fluid"]
    best: dict[str, dict[str, float]] = {peer: {} for peer in commands}
    for _ in range(rounds):
        for peer, command in commands.items():
            for name, value in _timed(command, threads).items():
                best[peer][name] = min(value, best[peer].get(name, value))
    return best


def show(best: dict[str, dict[str, float]], threads: int, console: Console) -> None:
    """Milliseconds, and ours as a ratio of each peer's (below 1: we are faster)."""
    peers = list(best)
    table = Table("model", title=f"training step, ms, {threads} thread(s)")
    for peer in peers:
        table.add_column(peer, justify="right")
    for peer in peers[1:]:
        table.add_column(f"ratio to {peer}", justify="right")
    for name, ours in best["fluidx"].items():
        cells = [f"{best[p][name]:.3f}" for p in peers]
        cells += [f"{ours / best[p][name]:.2f}" for p in peers[1:]]
        table.add_row(name, *cells)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--oracle", default=os.environ.get("ORACLE"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models-only", action="store_true")
    options = parser.parse_args()
    names = options.names or list(NAMES)
    best = compare(names, options.oracle, options.rounds, options.threads)
    show(best, options.threads, Console())
    if options.models_only:
        return
    oracle = ["--oracle", options.oracle] if options.oracle else []
    for module in ("benchmarks.transpile_time", "benchmarks.pserver"):
        extra = oracle if module.endswith("pserver") else []
        subprocess.run([sys.executable, "-m", module, *extra], check=True)


if __name__ == "__main__":
    main()
