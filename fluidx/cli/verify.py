"""``fluidx verify``: does a distributed script do what it does in one process?"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from . import scripts

__all__ = ["add_parser"]

_ABOUT = """\
Check SCRIPT's program distributed, before anything is started. Two checks:

proof   nothing is run: the programs of all roles are held against each other. Every
        gradient is sent once and taken by its owner, every parameter comes back whole,
        barriers and collectives pair, nobody waits in vain.
run     all roles run a few steps in this process, beside the program as it stands on
        the batches of all trainers together. Where roles go in step the result must be
        the same; where they do not (async, geo, local-sgd), it is told how far several
        orders of events end apart.

The script runs as trainer 0 until its program is complete: until transpile(), until the
first Executor.run of a program that updates parameters, or to its end. Data for the
run: fluidx_feed(step, trainer, trainers), if the script has such a function; else rows
drawn from the batch that it was about to feed; else random data for its fluid.data."""

_CODES = """\
Options may stand behind SCRIPT, too; what is none of them goes to the script, and so
does everything behind --.
Exit code: 0 nothing is wrong, 1 refuted or different, 2 it could not be checked.

modes:
"""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "verify",
        help="check that a script, distributed, does what it does in one process",
        description=_ABOUT,
        epilog=_CODES + scripts.mode_list(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own = scripts.options()
    own.add_argument("--steps", type=int, default=3, metavar="N", help="(3)")
    own.add_argument(
        "--batch",
        type=int,
        default=8,
        metavar="N",
        help="rows per trainer and step (8)",
    )
    own.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        metavar="X",
        help="relative to a variable's largest value, if above 1 (1e-5)",
    )
    own.add_argument(
        "--runs",
        type=int,
        default=16,
        metavar="N",
        help="orders of events to try where roles do not go in step (16)",
    )
    own.add_argument("--seed", type=int, default=0, metavar="N", help="(0)")
    own.add_argument("--proof-only", action="store_true", help="run nothing")
    scripts.finish(parser, own)
    parser.set_defaults(func=_verify)


def _verify(args: argparse.Namespace) -> int:
    from fluidx.transpiler import TranspileError, VerificationError, verify

    args = scripts.read(args)
    try:
        captured = scripts.capture(args.script, args.args, args.workers)
        made = scripts.spread(args, captured)
    except (scripts.ScriptError, TranspileError) as error:
        print(f"fluidx verify: {error}", file=sys.stderr)
        return 2
    print(f"{args.script}: {captured.stopped}; mode {args.mode}")
    code = 0
    try:
        print(f"proof  holds: {verify(made.programs)}")
    except VerificationError as error:
        print(f"proof  refuted: {len(error.problems)} problems")
        print("\n".join(_indented(str(p)) for p in error.problems))
        code = 1
    if args.proof_only:
        return code
    return max(code, _run(args, captured))


def _indented(text: str) -> str:
    return "\n".join(f"       {line}" for line in text.splitlines())


def _run(args: argparse.Namespace, captured: scripts.Captured) -> int:
    from fluidx.distributed.equivalent import equivalent
    from fluidx.ir.errors import EnforceNotMet

    from .feeds import feed_function

    feed_fn, told = feed_function(captured, args.batch, args.seed)
    try:
        report = equivalent(
            captured.main,
            scripts.config_of(args),
            feed_fn,
            args.steps,
            startup_program=captured.startup,
            trainers=args.workers,
            pservers=args.servers,
            seed=args.seed,
            tolerance=args.tolerance,
            runs=args.runs,
        )
    except (EnforceNotMet, ValueError, KeyError, TypeError) as error:
        print(f"run    failed: {type(error).__name__}: {error}")
        print(f"data   {told}")
        return 2
    word = {True: "the same", False: "different", None: "told apart"}[report.same]
    lines = str(report).splitlines()
    print(f"run    {word}: {lines[0]}")
    if lines[1:]:
        print(_indented("\n".join(lines[1:])))
    print(f"data   {told}")
    return 1 if report.same is False else 0
