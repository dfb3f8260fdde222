"""``python -m fluidx.distributed.launch_ps``: the reference's launcher and its flags.

Mirrors ``paddle.distributed.launch_ps``: servers on consecutive ports (or on
``--endpoints``), logs ``serverlog.N`` and ``workerlog.N``; servers may end when all
workers have, and are stopped if they do not. Unlike there, a role that fails stops
the others and gives the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from .errors import ClusterError
from .launch import Launcher, Role, roles_on

__all__ = ["launch", "parse_args", "start_procs"]


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("0", "false", "no", "")


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The reference's flags."""
    parser = argparse.ArgumentParser(
        prog="python -m fluidx.distributed.launch_ps",
        description="Distributed training with parameter servers",
    )
    add = parser.add_argument
    add("--cluster_node_ips", default="127.0.0.1", help="IPs of the nodes, by commas")
    add("--node_ip", default="127.0.0.1", help="this node's IP")
    add("--start_port", type=int, default=6170, help="port of the first server")
    add("--print_config", type=_flag, default=True, help="print the configuration")
    add("--endpoints", default="", help="servers as IP:port, separated by commas")
    add("--worker_num", type=int, default=2, help="number of workers")
    add("--server_num", type=int, default=2, help="number of servers")
    add("--log_dir", default="logs", help="folder for the log of each process")
    add("training_script", help="the script that every role runs")
    add("training_script_args", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def _roles(args: argparse.Namespace) -> list[Role]:
    endpoints = [e.strip() for e in args.endpoints.split(",") if e.strip()]
    if not endpoints:
        ports = range(args.start_port, args.start_port + args.server_num)
        endpoints = [f"127.0.0.1:{port}" for port in ports]
    if len(endpoints) != args.server_num:
        raise ClusterError(
            f"--endpoints names {len(endpoints)} servers, --server_num says "
            f"{args.server_num}"
        )
    script = [args.training_script, *args.training_script_args]
    roles = []
    for role in roles_on(script, args.worker_num, endpoints):
        server = role.env["TRAINING_ROLE"] == "PSERVER"
        number = role.name.rpartition("-")[2]
        log = f"{'serverlog' if server else 'workerlog'}.{number}"
        roles.append(replace(role, log=log, helper=server))
    return roles


def start_procs(args: argparse.Namespace) -> int:
    """Run all roles to their end; the exit code of the first that failed, or 0."""
    roles = _roles(args)
    if args.print_config:
        for role in roles:
            print(f"{role.name}: {' '.join(role.command)}", flush=True)
    return Launcher(roles, log_dir=args.log_dir).run()


def launch() -> int:
    """The command."""
    try:
        return start_procs(parse_args())
    except ClusterError as error:
        print(f"launch_ps: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(launch())
