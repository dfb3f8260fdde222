"""``fluidx transpile``: what a script becomes when it is distributed, to read."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from . import scripts

__all__ = ["add_parser"]

_ABOUT = """\
Write what SCRIPT becomes for every role of a cluster, without training it.

The script runs as trainer 0 until its program is complete: until transpile(), until the
first Executor.run of a program that updates parameters, or to its end. Startup programs
and others that train nothing are run as the script asks.

Into the folder --out go, for every role and for the script's own programs, ROLE-main
and ROLE-startup as text (.txt) and as a drawing for Graphviz (.dot); cluster.txt, the
messages and the bytes of a step; cluster.dot, all roles joined by their messages; and
cluster.html, a page that shows all of it and needs nothing else."""

_MODES = """\
Options may stand behind SCRIPT, too; what is none of them goes to the script, and so
does everything behind --. Exit code: 0, or 2 if the script cannot be run or its program
not be distributed.

modes:
"""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "transpile",
        help="show what a script becomes for every role of a cluster",
        description=_ABOUT,
        epilog=_MODES + scripts.mode_list(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own = scripts.options()
    own.add_argument(
        "--out", default="transpiled", metavar="DIR", help="folder (transpiled)"
    )
    own.add_argument(
        "--batch", type=int, default=1, metavar="N", help="what -1 stands for (1)"
    )
    own.add_argument(
        "--bandwidth",
        type=float,
        default=10.0,
        metavar="GBIT",
        help="of every role, each way, for the predicted times (10)",
    )
    own.add_argument(
        "--latency", type=float, default=50.0, metavar="US", help="microseconds (50)"
    )
    own.add_argument(
        "--compute",
        type=float,
        default=10.0,
        metavar="MS",
        help="milliseconds that a trainer computes per step (10)",
    )
    scripts.finish(parser, own)
    parser.set_defaults(func=_transpile)


def _transpile(args: argparse.Namespace) -> int:
    from fluidx.transpiler import TranspileError

    args = scripts.read(args)
    try:
        captured = scripts.capture(args.script, args.args, args.workers)
        made = scripts.spread(args, captured)
    except (scripts.ScriptError, TranspileError) as error:
        print(f"fluidx transpile: {error}", file=sys.stderr)
        return 2
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    names = _write(out, made, args)
    print(f"{args.script}: {captured.stopped}; mode {args.mode}")
    print(_predicted(made, args))
    print(f"{len(names)} files in {out}; look at {out / 'cluster.html'}")
    return 0


def _predicted(made: Any, args: argparse.Namespace) -> str:
    from fluidx.transpiler import Network, Workload, cost

    network = Network(
        bandwidth=args.bandwidth * 1e9 / 8,
        latency=args.latency * 1e-6,
        compute=args.compute * 1e-3,
    )
    every = args.push_nums
    return str(cost(made.programs, network, Workload(args.batch), push_every=every))


def _write(out: Path, made: Any, args: argparse.Namespace) -> list[str]:
    """All files; returns their names."""
    from fluidx.transpiler import Network, Workload, scaling
    from fluidx.transpiler.show import dot, program_dot, summary
    from fluidx.transpiler.show_html import page

    work = Workload(args.batch)
    files = {}
    local = {"local": {"main": made.main, "startup": made.startup}}
    for role, both in {**local, **made.programs}.items():
        for which, program in both.items():
            name = f"{role}-{which}"
            files[f"{name}.txt"] = program.to_text()
            files[f"{name}.dot"] = program_dot(program, name)
    network = Network(
        args.bandwidth * 1e9 / 8, args.latency * 1e-6, args.compute * 1e-3
    )
    told = scaling(made.programs, network, work, push_every=args.push_nums)
    files["cluster.txt"] = (
        f"{summary(made, work)}\n{_predicted(made, args)}\n\n{told}\n"
    )
    files["cluster.dot"] = dot(made)
    title = f"{Path(args.script).name} · {args.mode}"
    files["cluster.html"] = page(made, title, work)
    for name, text in files.items():
        (out / name).write_text(text, "utf-8")
    return list(files)
