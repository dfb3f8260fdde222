"""``fluidx trace merge``: the traces of all roles of a cluster as one."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_parser"]

_ABOUT = """\
Merge traces that fluid.profiler wrote, one per role, into one for chrome://tracing or
https://ui.perfetto.dev. All times are put on the clock of the first trace: how far
the others are off is estimated from the messages between the roles."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser("trace", help="work on traces of fluid.profiler")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    merge = actions.add_parser(
        "merge", help="put the traces of all roles together", description=_ABOUT
    )
    merge.add_argument("traces", metavar="TRACE", nargs="+")
    merge.add_argument("-o", "--output", metavar="OUT", required=True)
    merge.set_defaults(func=_merge)


def _merge(args: argparse.Namespace) -> int:
    from fluidx.executor.trace_file import merge, read_trace, write_trace

    traces = [read_trace(path) for path in args.traces]
    merged, clocks = merge(traces)
    write_trace(args.output, merged)
    roles = merged["otherData"]["roles"]
    for path, name, clock in zip(args.traces, roles, clocks):
        shift = "no messages connect it: its times stay as they are"
        if clock is not None:
            shift = (
                f"clock ahead by {clock.ahead:.1f} us, give or take {clock.error:.1f}"
            )
        print(f"{path}: {name}: {shift}")
    return 0
