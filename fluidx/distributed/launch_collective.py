"""Starts the ranks of a collective job, for ``fluidx launch --collective``.

On CPUs the ranks are processes of one ``mpiexec`` (extra ``mpi``); on GPUs, one
process per device, which find each other through NCCL. Also the reference's launcher
with its flags, ``python -m fluidx.distributed.launch`` (mirrors
``paddle.distributed.launch``); there each entry of ``--selected_gpus`` is one rank.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fluidx.executor.cuda import device_count

from .collective.environment import FIRST_PORT, trainer_variables
from .errors import ClusterError
from .launch import Launcher, Role, bind_ports, thread_limits

__all__ = [
    "free_endpoints",
    "get_cluster_from_args",
    "get_gpus",
    "launch",
    "launch_mpi",
    "main",
    "mpi_roles",
    "parse_args",
    "rank_roles",
]

_RANK = "fluidx.distributed.collective.rank"


def mpiexec() -> str:
    """The path of ``mpiexec``; the one beside this Python comes first."""
    beside = str(Path(sys.executable).parent)
    paths = [beside, os.environ.get("PATH", os.defpath)]
    found = shutil.which("mpiexec", path=os.pathsep.join(paths))
    if found is None:
        raise ClusterError(
            "mpiexec was not found: install the extra mpi (pip install 'fluidx[mpi]')"
        )
    return found


def free_endpoints(count: int) -> list[str]:
    """Names for the ranks; on CPUs nobody listens there."""
    sockets = bind_ports(count)
    names = ["{}:{}".format(*s.getsockname()[:2]) for s in sockets]
    for one in sockets:
        one.close()
    return names


def mpi_roles(
    script: Sequence[str], endpoints: Sequence[str], folder: str, log: str
) -> list[Role]:
    """All ranks, as one ``mpiexec``, and for each a helper that hands on its output.

    folder: for the pipes between them. log: name of a rank's log, with {} for the
    rank. ``mpiexec`` itself could mark lines, but mixes those of several ranks.
    """
    ranks: list[str] = []
    readers = []
    for rank in range(len(endpoints)):
        pipe = os.path.join(folder, f"rank-{rank}")
        os.mkfifo(pipe)
        readers.append(
            Role(f"trainer-{rank}", ["cat", pipe], {}, (), log.format(rank), True)
        )
        ranks += [":"] * (rank > 0) + ["-n", "1"]
        for name, value in trainer_variables(rank, list(endpoints)).items():
            ranks += ["-env", name, value]
        ranks += [sys.executable, "-m", _RANK, pipe, *script]
    env = {"PYTHONUNBUFFERED": "1", **thread_limits(len(endpoints), os.environ)}
    return [Role("mpiexec", [mpiexec(), *ranks], env), *readers]


def rank_roles(
    script: Sequence[str],
    endpoints: Sequence[str],
    first: int,
    devices: Sequence[str],
) -> list[Role]:
    """Ranks `first` on, one process per device of this machine (no MPI)."""
    roles = []
    for at, device in enumerate(devices):
        env = trainer_variables(first + at, list(endpoints))
        env["FLAGS_selected_gpus"] = device
        env["PYTHONUNBUFFERED"] = "1"
        env.update(thread_limits(len(devices), os.environ))
        command = [sys.executable, *script]
        name = f"trainer-{first + at}"
        roles.append(Role(name, command, env, log=f"workerlog.{at}"))
    return roles


def launch_mpi(
    script: Sequence[str],
    endpoints: Sequence[str],
    log: str = "trainer-{}.log",
    **options: Any,
) -> int:
    """Run a script as one rank per endpoint; options as for `Launcher`."""
    with tempfile.TemporaryDirectory(prefix="fluidx-") as folder:
        roles = mpi_roles(script, endpoints, folder, log)
        return Launcher(roles, **options).run()


# ------------------------------------------------------------------ the reference's


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("0", "false", "no", "")


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The reference's flags."""
    parser = argparse.ArgumentParser(
        prog="python -m fluidx.distributed.launch",
        description="Distributed training without parameter servers",
    )
    add = parser.add_argument
    add("--cluster_node_ips", default="127.0.0.1", help="IPs of the nodes, by commas")
    add("--node_ip", default="127.0.0.1", help="this node's IP")
    add("--use_paddlecloud", action="store_true", help="read PADDLE_TRAINERS and so on")
    add("--started_port", type=int, default=FIRST_PORT, help="port of the first rank")
    add("--print_config", type=_flag, default=True, help="print the configuration")
    add("--selected_gpus", default=None, help="devices, by commas: one rank each")
    add("--log_level", type=int, default=logging.INFO, help="as in Python's logging")
    add("--log_dir", default=None, help="folder for the log of each rank")
    add("training_script", help="the script that every rank runs")
    add("training_script_args", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def get_gpus(selected_gpus: str | None) -> list[str]:
    """The devices of this node's ranks; without a choice, all that are there."""
    if selected_gpus is not None:
        found = [d.strip() for d in selected_gpus.split(",") if d.strip()]
    else:
        found = [str(i) for i in range(device_count())]
    if not found:
        raise ClusterError(
            "no GPU was found: say --selected_gpus 0,1 for two ranks (on CPUs without "
            "GPUs), or use fluidx launch --collective --workers 2"
        )
    return found


def get_cluster_from_args(
    args: argparse.Namespace, selected_gpus: Sequence[str]
) -> tuple[list[str], int]:
    """(endpoints of all ranks of all nodes, number of this node's first rank)."""
    given = args.cluster_node_ips, args.node_ip
    if args.use_paddlecloud:
        given = (
            os.environ.get("PADDLE_TRAINERS", given[0]),
            os.environ.get("POD_IP", given[1]),
        )
    ips = [ip.strip() for ip in given[0].split(",") if ip.strip()]
    if given[1] not in ips:
        raise ClusterError(f"node_ip {given[1]} is not in cluster_node_ips {ips}")
    ports = range(args.started_port, args.started_port + len(selected_gpus))
    endpoints = [f"{ip}:{port}" for ip in ips for port in ports]
    return endpoints, ips.index(given[1]) * len(selected_gpus)


def launch(args: argparse.Namespace) -> int:
    """Run this node's ranks to their end; the exit code of the first that failed."""
    logging.getLogger("fluidx").setLevel(args.log_level)
    devices = get_gpus(args.selected_gpus)
    endpoints, first = get_cluster_from_args(args, devices)
    script = [args.training_script, *args.training_script_args]
    if args.print_config:
        print(f"ranks {first} to {first + len(devices) - 1} of {endpoints}", flush=True)
    if device_count() or len(endpoints) == 1:
        roles = rank_roles(script, endpoints, first, devices)
        return Launcher(roles, log_dir=args.log_dir).run()
    if len(endpoints) > len(devices):
        raise ClusterError(
            "several nodes without GPUs: start all ranks with mpiexec -hosts "
            f"{args.cluster_node_ips} -n {len(endpoints)} python {script[0]}"
        )
    return launch_mpi(script, endpoints, "workerlog.{}", log_dir=args.log_dir)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    with contextlib.suppress(KeyboardInterrupt):
        try:
            return launch(parse_args(arguments))
        except ClusterError as error:
            print(f"launch: {error}", file=sys.stderr)
            return 2
    return 130
