"""``fluidx run``: a 1.x script, unmodified."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

__all__ = ["add_parser"]

_ABOUT = """\
Run a script that says `import paddle.fluid as fluid` on fluidx, as
`python SCRIPT ...` would. Processes that it starts find `paddle` too: PYTHONPATH is
set for them. If a real PaddlePaddle is installed, fluidx takes its place, with a
warning.

Names that NumPy 2 and Python 3.10 dropped (numpy.float, collections.Iterable,
time.clock, ...) are restored for the script; --no-old-names, or FLUIDX_OLD_NAMES=0 in
the environment, leaves them out."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "run",
        help="run a script of PaddlePaddle Fluid 1.x, unmodified",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--no-old-names", action="store_true", help="see above")
    parser.add_argument(
        "-m",
        action="store_true",
        dest="module",
        help="SCRIPT is a module's name, such as paddle.distributed.launch",
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="...")
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    from fluidx import compat

    if args.no_old_names:
        os.environ["FLUIDX_OLD_NAMES"] = "0"
    compat.install()
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if compat.PATH not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([compat.PATH, *paths])
    sys.argv[:] = [args.script, *args.args]
    if args.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args.script, None, "__main__", alter_sys=True)
        return 0
    return _run_file(Path(args.script))


def _run_file(path: Path) -> int:
    """Run a file as ``__main__``; its errors look as under ``python``."""
    try:
        source = path.read_bytes()
    except OSError as error:
        print(f"fluidx run: {error}", file=sys.stderr)
        return 2
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        trace = error.__traceback__
        error.__traceback__ = trace and trace.tb_next  # without our own line
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0
