"""``fluidx inspect``: what a saved model consists of, and whether it can run here."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidx.io.outline import Outline

__all__ = ["add_parser"]

_ABOUT = """\
Show the ops, inputs, outputs and parameters of a model that fluidx or PaddlePaddle
Fluid saved. MODEL is a model's folder, its program file, or the path that fluid.save
was given. Exit code: 0 if all of it is supported, 1 if an op is not, 2 if the program
or its parameters cannot be read."""

_SUPPORTED, _UNSUPPORTED, _UNREADABLE = 0, 1, 2


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "inspect",
        help="show what a saved model consists of, and what of it is unsupported",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--model-filename", metavar="FILE", help="default: __model__")
    parser.add_argument(
        "--params-filename", metavar="FILE", help="the file with all parameters"
    )
    parser.add_argument("--json", action="store_true", help="for other programs")
    parser.set_defaults(func=_inspect)


def _inspect(args: argparse.Namespace) -> int:
    from fluidx.io import ModelFileError
    from fluidx.io.outline import outline

    try:
        found = outline(args.model, args.model_filename, args.params_filename)
    except ModelFileError as error:
        if args.json:
            print(json.dumps({"supported": False, "problems": [str(error)]}, indent=2))
        print(f"fluidx inspect: {error}", file=sys.stderr)
        return _UNREADABLE
    if args.json:
        print(json.dumps(_plain(found), indent=2))
    else:
        _show(found)
    if found.problems:
        return _UNREADABLE
    return _UNSUPPORTED if found.unsupported else _SUPPORTED


def _plain(found: Outline) -> dict[str, Any]:
    supported = not found.unsupported and not found.problems
    return {
        "supported": supported,
        **asdict(found),
        "parameter_bytes": found.parameter_bytes,
    }


# ---------------------------------------------------------------- for people


def _show(found: Outline) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    version = "unknown version" if found.version is None else f"version {found.version}"
    ops = sum(found.ops.values())
    blocks = f"{found.blocks} block{'s' * (found.blocks != 1)}"
    console.print(
        f"[bold]{escape(found.model)}[/]  {version}, {blocks}, {ops} ops\n",
        soft_wrap=True,
    )
    for title, entries in (("inputs", found.feeds), ("outputs", found.fetches)):
        console.print(_signature(title, entries))
    console.print(_ops(found))
    console.print(_parameters(found))
    for problem in found.problems:
        console.print(
            f"[bold red]problem[/]  {escape(_printable(problem))}", soft_wrap=True
        )
    if found.unsupported:
        names = ", ".join(found.unsupported)
        console.print(
            f"[bold red]unsupported ops[/]  {escape(_printable(names))}", soft_wrap=True
        )
    elif not found.problems:
        console.print("[bold green]every op is supported[/]")


def _table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(
        title=_text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    for name in columns:
        justify: Any = "right" if name in right else "left"
        made.add_column(name, justify=justify, overflow="fold")
    return made


def _signature(title: str, entries: list[dict[str, Any]]) -> Any:
    made = _table(title, "name", "dtype", "shape", "LoD levels", right=("LoD levels",))
    for entry in entries:
        made.add_row(
            _text(entry["name"]),
            entry["dtype"],
            _text(_shape(entry["shape"])),
            str(entry["lod_level"] or ""),
        )
    return made


def _ops(found: Outline) -> Any:
    made = _table("ops", "type", "count", "", right=("count",))
    for type, count in found.ops.items():
        missing = type in found.unsupported
        made.add_row(_text(type), str(count), "[red]unsupported[/]" if missing else "")
    return made


def _parameters(found: Outline) -> Any:
    where = f" in {found.parameters_in}" if found.parameters_in else ", no files"
    if not found.parameters:
        where = ""
    total = f"{len(found.parameters)}, {_size(found.parameter_bytes)}"
    made = _table(
        f"parameters: {total}{where}",
        *("name", "dtype", "shape", "size"),
        right=("size",),
    )
    for entry in found.parameters:
        made.add_row(
            _text(entry["name"]),
            entry["dtype"],
            _text(_shape(entry["shape"])),
            _size(entry["bytes"]),
        )
    return made


def _text(text: str) -> Any:
    from rich.text import Text

    return Text(_printable(text))


def _printable(text: str) -> str:
    """Without what could command a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _shape(shape: list[int]) -> str:
    return "[" + ", ".join("any" if d < 0 else str(d) for d in shape) + "]"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
