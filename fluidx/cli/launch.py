"""``fluidx launch``: a cluster of parameter servers and trainers on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add_parser"]

_ABOUT = """\
Run SCRIPT as several processes: --servers parameter servers and --workers trainers.
Each finds its role in TRAINING_ROLE, PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM,
PADDLE_PSERVERS_IP_PORT_LIST and PADDLE_CURRENT_ENDPOINT.

With --collective there are no servers: the workers are ranks of one mpiexec (extra
mpi), and find PADDLE_TRAINER_ENDPOINTS."""


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return value


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "launch",
        help="run a training script as a cluster on this machine",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=_positive, default=2, metavar="N")
    parser.add_argument("--servers", type=_positive, default=2, metavar="M")
    parser.add_argument(
        "--collective", action="store_true", help="no servers: ranks under mpiexec"
    )
    parser.add_argument(
        "--log-dir", default="log", metavar="DIR", help="one file per role (log)"
    )
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="seconds for the whole run"
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=8.0,
        metavar="S",
        help="after a failure: time for the other roles to end by themselves (8)",
    )
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    parser.set_defaults(func=_launch)


def _launch(args: argparse.Namespace) -> int:
    script = Path(args.script)
    if script.is_dir() and not (script / "__main__.py").is_file():
        said = f"{args.script!r} is a folder and has no __main__.py"
    elif not script.exists():
        said = f"there is no file {args.script!r}"
    else:
        return _launch_roles(args)
    print(f"fluidx launch: {said}", file=sys.stderr)
    return 2


def _launch_roles(args: argparse.Namespace) -> int:
    if args.collective:
        return _launch_collective(args)
    from fluidx.distributed.launch import Launcher, bind_ports, pserver_roles

    # the ports are bound here and handed over: nobody can take them meanwhile
    sockets = bind_ports(args.servers)
    roles = pserver_roles([args.script, *args.args], args.workers, sockets)
    return Launcher(
        roles, log_dir=args.log_dir, timeout=args.timeout, grace=args.grace
    ).run()


def _launch_collective(args: argparse.Namespace) -> int:
    from fluidx.distributed.launch_collective import free_endpoints, launch_mpi

    return launch_mpi(
        [args.script, *args.args],
        free_endpoints(args.workers),
        log_dir=args.log_dir,
        timeout=args.timeout,
        grace=args.grace,
    )
