"""The main job, shown: digits on 2 servers and 2 trainers, beside one process.

    python examples/demo.py [--out FOLDER]

Starts `fluidx launch` on examples/digits.py, shows its progress, runs the same script
in one process from the same initial parameters, and compares. Exit code 0 only if the
accuracy is above 0.95 and both runs end within 1e-5 of each other.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

SCRIPT = Path(__file__).with_name("digits.py")
WORKERS, SERVERS, EPOCHS = 2, 2, 20
LEAST_ACCURACY, LARGEST_DIFFERENCE = 0.95, 1e-5
LINE = re.compile(r"(trainer\S*\s+\d+|trainer-\d+)?.*epoch (\d+)/\d+ loss ([\d.]+)")


def watch(command, title, console):
    """Run a command; a bar follows its `epoch N/M` lines, other lines are printed."""
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}  {task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    with (
        Progress(*columns, console=console) as progress,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as child,
    ):
        bar = progress.add_task(title, total=EPOCHS, loss="")
        for line in child.stdout:
            found = LINE.search(line)
            if found:
                epoch, loss = int(found[2]), f"loss {found[3]}"
                progress.update(bar, completed=epoch, loss=loss)
            else:
                progress.console.print(line.rstrip(), markup=False, highlight=False)
    if child.returncode:
        raise SystemExit(f"{title} failed with exit code {child.returncode}")


def results(folder, name):
    """What a role wrote when it ended."""
    return json.loads((folder / f"{name}.json").read_text())


def largest_difference(folder, cluster, alone):
    """The largest difference between two sets of final parameters."""
    ours, theirs = (np.load(folder / f"{n}-end.npz") for n in (cluster, alone))
    return max(float(np.abs(ours[n] - theirs[n]).max()) for n in theirs.files)


def traffic_table(out, roles):
    table = Table("role", "sent", "received", title="bytes over the wire")
    for role in roles:
        traffic = results(out, role)["traffic"]
        counts = (traffic["sent_bytes"], traffic["received_bytes"])
        table.add_row(role, *(f"{count:,}" for count in counts))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-out"))
    out = parser.parse_args().out
    alone = out / "one-process"
    alone.mkdir(parents=True, exist_ok=True)
    console = Console()

    launch = [sys.executable, "-m", "fluidx", "launch", "--workers", str(WORKERS)]
    launch += ["--servers", str(SERVERS), "--log-dir", str(out / "logs"), str(SCRIPT)]
    launch += ["--epochs", str(EPOCHS), "--out", str(out)]
    watch(launch, f"{SERVERS} servers, {WORKERS} trainers", console)
    single = [sys.executable, str(SCRIPT), "--epochs", str(EPOCHS)]
    single += ["--out", str(alone), "--start-from", str(out / "trainer-0-start.npz")]
    watch(single, "one process", console)

    cluster, local = results(out, "trainer-0"), results(alone, "local")
    (alone / "trainer-0-end.npz").replace(out / "local-end.npz")
    apart = largest_difference(out, "trainer-0", "local")
    table = Table("", "2 servers, 2 trainers", "one process", title="digits")
    for key, digits in (("accuracy", 4), ("steps_per_second", 0)):
        row = [f"{run[key]:.{digits}f}" for run in (cluster, local)]
        table.add_row(key.replace("_", " "), *row)
    console.print(table)
    servers = [f"pserver-{i}" for i in range(SERVERS)]
    trainers = [f"trainer-{i}" for i in range(WORKERS)]
    console.print(traffic_table(out, servers + trainers))
    console.print(f"largest difference of the final parameters: {apart:.2e}")
    console.print(f"the programs of every role: {out / 'programs'}, one-process in")
    console.print(f"{alone / 'programs'}; the logs: {out / 'logs'}")

    right = min(cluster["accuracy"], local["accuracy"]) > LEAST_ACCURACY
    if not right or apart > LARGEST_DIFFERENCE:
        raise SystemExit("the demo did not reach what it promises")


if __name__ == "__main__":
    main()
