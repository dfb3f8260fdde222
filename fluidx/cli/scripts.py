"""A user's script, run until its training program is there, and no further.

`capture` runs the script as trainer 0 of a cluster would run it (its environment says
so). It stops at ``transpile()``, at the first ``Executor.run`` of a program that
updates parameters (or at ``train_from_dataset``), or at the end of the script. Programs
that train nothing, startup programs above all, are run as the script asks.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from fluidx.ir import OpRole, Program, default_main_program, default_startup_program
from fluidx.transpiler import (
    Distributed,
    DistributeTranspilerConfig,
    collective,
    config_for,
    distribute,
)
from fluidx.transpiler.distribute_transpiler import DistributeTranspiler
from fluidx.transpiler.roles import MODES

__all__ = [
    "Captured",
    "ScriptError",
    "capture",
    "config_of",
    "finish",
    "mode_list",
    "options",
    "read",
    "spread",
]

_ALSO = {
    "sync": "pserver",
    "local_sgd": "local-sgd",
    "grad_allreduce": "grad-allreduce",
}


class ScriptError(Exception):
    """The script could not be run so far that its program is known."""


@dataclass
class Captured:
    """The programs of a script. stopped: where. feed: what it was about to feed.

    names: the script's global names.
    """

    main: Program
    startup: Program
    stopped: str
    feed: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)


class _Stop(BaseException):
    """Ends the script where its program is complete."""

    def __init__(self, main: Program, startup: Program | None, feed: Any) -> None:
        super().__init__("the script has been read")
        self.main, self.startup, self.feed = main, startup, feed


# ------------------------------------------------------------------ options


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return value


def mode_list() -> str:
    """The modes, one a line, for help texts."""
    return "\n".join(f"  {name:28}{about}" for name, (about, _) in MODES.items())


def options() -> argparse.ArgumentParser:
    """The options that say how a script is distributed, in a parser of their own."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--servers", type=_count, default=2, metavar="N", help="(2)")
    own.add_argument("--workers", type=_count, default=2, metavar="N", help="(2)")
    own.add_argument(
        "--mode",
        choices=[*MODES, *_ALSO],
        default="pserver",
        metavar="MODE",
        help="see below (pserver)",
    )
    own.add_argument(
        "--slice",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="cut large parameters into row blocks (yes)",
    )
    own.add_argument(
        "--min-block-size",
        type=_count,
        default=8192,
        metavar="N",
        help="elements that a block has at least (8192)",
    )
    own.add_argument(
        "--split-method",
        choices=["RoundRobin", "HashName"],
        default="RoundRobin",
        help="how blocks are dealt out (RoundRobin)",
    )
    own.add_argument(
        "--rings",
        type=_count,
        default=1,
        metavar="N",
        help="communicators, in modes without servers (1)",
    )
    own.add_argument(
        "--push-nums",
        type=_count,
        default=100,
        metavar="N",
        help="geo: steps between two exchanges (100)",
    )
    return own


def finish(parser: argparse.ArgumentParser, own: argparse.ArgumentParser) -> None:
    """Add the options to a subcommand, before the script or after it."""
    for action in own._actions:
        parser._add_action(action)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="...")
    own.prog = parser.prog  # for what it says of options behind the script
    parser.set_defaults(own=own)


def read(args: argparse.Namespace) -> argparse.Namespace:
    """Options behind the script count, too; the rest of them are the script's.

    What stands behind ``--`` is the script's whatever it looks like.
    """
    rest = list(args.args)
    cut = rest.index("--") if "--" in rest else len(rest)
    _, left = args.own.parse_known_args(rest[:cut], args)
    args.args = left + rest[cut + 1 :]
    args.mode = _ALSO.get(args.mode, args.mode)
    return args


def config_of(args: argparse.Namespace) -> DistributeTranspilerConfig:
    """The transpiler's config that the options ask for."""
    from fluidx.transpiler import ps_dispatcher

    return config_for(
        args.mode,
        slice_var_up=args.slice,
        min_block_size=args.min_block_size,
        split_method=getattr(ps_dispatcher, args.split_method),
        nccl_comm_num=args.rings,
        geo_sgd_need_push_nums=args.push_nums,
    )


def spread(args: argparse.Namespace, captured: Captured) -> Distributed:
    """The programs of all roles."""
    return distribute(
        captured.main,
        captured.startup,
        config_of(args),
        trainers=args.workers,
        pservers=args.servers,
    )


# ------------------------------------------------------------------ running it


def capture(script: str, arguments: Sequence[str] = (), workers: int = 2) -> Captured:
    """Run a script until its training program is there.

    ScriptError: it cannot be read, it fails or ends before, or it trains nothing.
    """
    path = Path(script)
    try:
        source = path.read_bytes()
        code = compile(source, str(path), "exec")
    except (OSError, SyntaxError, ValueError) as error:
        raise ScriptError(f"cannot read {script}: {error}") from None
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    ran: list[Program] = []
    stop, where = None, f"its end, {path.name}"
    with (
        _paddle_names(source),
        _as_main(module, path, arguments, workers),
        _guarded(ran),
    ):
        try:
            exec(code, module.__dict__)
        except _Stop as found:
            stop = found
            where = _line_of(found, path)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise ScriptError(
                    f"{script} ended with exit code {error.code}"
                ) from None
        except Exception as error:
            raise ScriptError(_failure(script, error, path)) from error
        main = stop.main if stop else default_main_program()
        startup = stop.startup if stop and stop.startup else None
        startup = startup or _startup_of(main, [*ran, default_startup_program()])
    if not _trains(main):
        raise ScriptError(
            f"{script} ran to {where}, but its program updates no parameter: "
            "optimizer.minimize(loss) was not called"
        )
    feed = dict(stop.feed) if stop and isinstance(stop.feed, Mapping) else {}
    return Captured(main, startup, where, feed, module.__dict__)


@contextlib.contextmanager
def _main_module(module: types.ModuleType, folder: Path) -> Iterator[None]:
    """``__main__``; modules beside the script are forgotten afterwards.

    Others stay, above all fluidx's own: kernels register once.
    """
    before = dict(sys.modules)
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        for name in sys.modules.keys() - before.keys():
            file = getattr(sys.modules[name], "__file__", None)
            own = file is not None and Path(file).resolve().is_relative_to(folder)
            if own and name.partition(".")[0] != "fluidx":
                del sys.modules[name]
        sys.modules["__main__"] = before["__main__"]


@contextlib.contextmanager
def _as_main(
    module: types.ModuleType, path: Path, arguments: Sequence[str], workers: int
) -> Iterator[None]:
    """sys.argv, sys.path, ``__main__`` and the environment, as trainer 0 has them."""
    endpoints = [f"127.0.0.1:{7164 + i}" for i in range(workers)]
    environment = {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINER_ID": "0",
        "PADDLE_TRAINERS_NUM": str(workers),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[0],
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6174",
    }
    with (
        mock.patch.dict(os.environ, environment),
        _main_module(module, path.parent.resolve()),
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        mock.patch.object(sys, "path", [str(path.parent.resolve()), *sys.path]),
    ):
        yield


@contextlib.contextmanager
def _paddle_names(source: bytes) -> Iterator[None]:
    """``import paddle.fluid`` finds fluidx, for a script that speaks of paddle."""
    compat: Any = importlib.import_module("fluidx.compat")
    if b"paddle" not in source or compat.installed():
        yield
        return
    compat.install()
    try:
        yield
    finally:
        compat.uninstall()


@contextlib.contextmanager
def _guarded(ran: list[Program]) -> Iterator[None]:
    """Training and transpiling raise `_Stop`; other programs run."""
    from fluidx.executor import CompiledProgram, Executor

    run = Executor.run

    def plain(program: Any) -> Program:
        if isinstance(program, CompiledProgram):
            program = program.program
        return program if program is not None else default_main_program()

    def guarded_run(
        self: Any, program: Any = None, feed: Any = None, *rest: Any, **more: Any
    ) -> Any:
        given = plain(program)
        if isinstance(given, Program) and _trains(given):
            raise _Stop(given, None, feed)
        if isinstance(given, Program):
            ran.append(given)
        return run(self, program, feed, *rest, **more)

    def from_dataset(self: Any, program: Any = None, *rest: Any, **more: Any) -> Any:
        raise _Stop(plain(program), None, None)

    def transpile(
        self: Any, trainer_id: Any, program: Any = None, *rest: Any, **more: Any
    ) -> Any:
        raise _Stop(plain(program), more.get("startup_program"), None)

    def ring(
        self: Any, startup_program: Any, main_program: Any, *rest: Any, **more: Any
    ) -> Any:
        raise _Stop(plain(main_program), startup_program, None)

    with contextlib.ExitStack() as stack:
        patches: list[tuple[Any, str, Any]] = [
            (Executor, "run", guarded_run),
            (DistributeTranspiler, "transpile", transpile),
            (collective.Collective, "transpile", ring),
        ]
        from fluidx.transpiler import GeoSgdTranspiler

        patches.append((GeoSgdTranspiler, "transpile", transpile))
        if hasattr(Executor, "train_from_dataset"):
            patches.append((Executor, "train_from_dataset", from_dataset))
        for owner, name, act in patches:
            stack.enter_context(mock.patch.object(owner, name, act))
        yield


def _trains(program: Program) -> bool:
    return any(
        op.role & OpRole.Optimize and op.inputs.get("Param") for op in program.all_ops()
    )


def _startup_of(main: Program, known: Sequence[Program]) -> Program:
    """The program that initialises most of another's parameters."""
    wanted = {p.name for p in main.all_parameters()}

    def covered(program: Program) -> int:
        made = {n for op in program.all_ops() for n in op.output_arg_names}
        return len(wanted & made)

    return max(known, key=covered)


def _line_of(error: BaseException, path: Path) -> str:
    """``transpile(), script.py:12``: the script's line, and what it called."""
    found = path.name
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename) == path:
            found = f"{path.name}:{frame.lineno}"
    called = traceback.extract_tb(error.__traceback__)[-1].name
    names = {"guarded_run": "Executor.run", "from_dataset": "train_from_dataset"}
    return f"{names.get(called, 'transpile')}(), {found}"


def _failure(script: str, error: Exception, path: Path) -> str:
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename) == path:
            line = f" at {path.name}:{frame.lineno}: {frame.line}"
    return f"{script} failed{line}\n  {type(error).__name__}: {error}"
