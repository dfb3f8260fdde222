"""The `fluidx` command; each subcommand has a module of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fluidx import __version__
from fluidx.ir.errors import EnforceNotMet

from . import check, export, inspect, launch, run, trace, transpile, verify

__all__ = ["main", "parser"]

_COMMANDS = (launch, run, check, inspect, transpile, verify, export, trace)


def parser() -> argparse.ArgumentParser:
    """The parser of the `fluidx` command."""
    made = argparse.ArgumentParser(
        prog="fluidx",
        description="PaddlePaddle Fluid 1.8 programs: run them, and see how they "
        "are distributed.",
    )
    made.add_argument("--version", action="version", version=f"fluidx {__version__}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_parser(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.func(options) or 0)
    except EnforceNotMet as error:
        print(f"fluidx: {error}", file=sys.stderr)
        return 2
