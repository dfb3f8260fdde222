"""``fluidx run``: a 1.x script, unmodified."""

from __future__ import annotations

import argparse
import importlib.util
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

Names that NumPy and Python dropped since (numpy.float, numpy.int, numpy.bool,
numpy.object, ..., collections.Iterable, time.clock, inspect.getargspec, ...) are
restored for the script, silently; nothing that is there is changed.
--no-old-names, or FLUIDX_OLD_NAMES=0 in the environment, leaves them out.

Errors are shown with the script's lines only; FLUIDX_FULL_TRACEBACK=1 in the
environment shows those of fluidx, too. What can be done about errors that old scripts
often meet (distutils is missing, Python 2, ...) is told below them."""


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
    _forget_own_path()
    sys.argv[:] = [args.script, *args.args]
    try:
        if args.module:
            sys.path.insert(0, os.getcwd())
            if not _is_module(args.script):
                said = f"there is no module {args.script!r}"
                print(f"fluidx run: {said}", file=sys.stderr)
                return 2
            runpy.run_module(args.script, None, "__main__", alter_sys=True)
            return 0
        return _run_file(Path(args.script))
    except (Exception, KeyboardInterrupt) as error:
        _show(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return False  # it, or a package around it
        raise


def _forget_own_path() -> None:
    """Take the folder of this command off sys.path, where the script's will stand."""
    own = {"", os.getcwd(), os.path.dirname(os.path.realpath(sys.argv[0]))}
    if sys.path and sys.path[0] in own:
        del sys.path[0]


def _run_file(path: Path) -> int:
    """Run a file as ``__main__``, or what a folder has as ``__main__.py``."""
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            said = f"{str(path)!r} is a folder and has no __main__.py"
            print(f"fluidx run: {said}", file=sys.stderr)
            return 2
        runpy.run_path(str(path), run_name="__main__")
        return 0
    try:
        source = path.read_bytes()
    except OSError as error:
        print(f"fluidx run: {error}", file=sys.stderr)
        return 2
    file = os.path.abspath(path)
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    exec(compile(source, file, "exec"), module.__dict__)
    return 0


# ---------------------------------------------------------------- errors

_HIDDEN = "raised inside fluidx; FLUIDX_FULL_TRACEBACK=1 shows its lines, too"


def _show(error: BaseException) -> None:
    """The error as under ``python``, without lines that are not the script's."""
    from fluidx.compat.hints import hint

    frames, hidden = _frames(error.__traceback__), False
    if os.environ.get("FLUIDX_FULL_TRACEBACK", "0") in ("", "0"):
        frames, hidden = _of_script(error, frames)
    trace = error.__traceback__ = _joined(frames)
    sys.excepthook(type(error), error, trace)
    if hidden:
        print(f"fluidx run: {_HIDDEN}", file=sys.stderr)
    advice = hint(error)
    if advice:
        print(f"fluidx run: hint: {advice}", file=sys.stderr)


def _shorten_cause(error: BaseException) -> None:
    """Leave of the cause what is the script's (a function of its own that an op calls);
    the error itself says the rest."""
    cause = error.__cause__
    own = [p for p in _frames(cause.__traceback__) if _is_script(p)] if cause else []
    if cause is not None and own:
        cause.__traceback__ = _joined(own)
    else:
        error.__cause__, error.__suppress_context__ = None, True


def _joined(frames: list[types.TracebackType]) -> types.TracebackType | None:
    trace: types.TracebackType | None = None
    for part in reversed(frames):
        trace = types.TracebackType(trace, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return trace


def _frames(trace: types.TracebackType | None) -> list[types.TracebackType]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _of_script(
    error: BaseException, frames: list[types.TracebackType]
) -> tuple[list[types.TracebackType], bool]:
    """The script's lines; and whether lines are left out that may be of interest."""
    from fluidx.ir.errors import EnforceNotMet

    while frames and not _is_script(frames[0]):
        frames = frames[1:]
    hidden = False
    while len(frames) > 1 and not _is_script(frames[-1]):
        frames, hidden = frames[:-1], True
    if isinstance(error, EnforceNotMet):
        _shorten_cause(error)
    told = isinstance(error, (EnforceNotMet, ImportError, AttributeError))
    return frames, hidden and not told


def _is_script(part: types.TracebackType) -> bool:
    name = part.tb_frame.f_globals.get("__name__", "")
    file = part.tb_frame.f_code.co_filename
    ours = name in ("fluidx", "runpy", "importlib")
    ours = ours or name.startswith(("fluidx.", "importlib."))
    return not (ours or file.startswith("<"))
