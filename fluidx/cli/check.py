"""``fluidx check``: what of a script works here, without running it."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidx.compat.check import Finding, Report

__all__ = ["add_parser"]

_ABOUT = """\
Say, per file and line, which names of paddle.fluid and which op types scripts use, and
which of them work, differ (and how) or are missing. Nothing is run. Names are followed
from imports, second names, and strings given to getattr; what a call passes is compared
with what is taken. What scripts do with the objects that they get is not seen. What
NumPy and Python's library dropped differs if `fluidx run` restores it, and is missing
if not, as is what only Python 2 has.

Exit code: 0 if nothing is missing, 1 if something is, 2 if a file cannot be read."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand; its parser sets ``func``."""
    parser = subparsers.add_parser(
        "check",
        help="say which names of paddle.fluid a script uses, and which work here",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="for other programs")
    parser.add_argument("script", nargs="+", metavar="SCRIPT", help="file or folder")
    parser.set_defaults(func=_check)


def _check(args: argparse.Namespace) -> int:
    from fluidx.compat.check import check, files_of

    reports = [check(path) for path in files_of(args.script)]
    if args.json:
        print(json.dumps({"files": [_plain(r) for r in reports]}, indent=2))
    else:
        for report in reports:
            _show(report)
    if not reports:
        print("fluidx check: no Python files there", file=sys.stderr)
    if not reports or any(r.error for r in reports):
        return 2
    return 1 if any(r.missing for r in reports) else 0


def _plain(report: Report) -> dict[str, Any]:
    plain = asdict(report)
    plain["counts"] = {s: len(report.of(s)) for s in ("works", "differs", "missing")}
    return plain


def _show(report: Report) -> None:
    print(report.file)
    if report.error:
        print(f"  cannot be read: {report.error}")
        return
    for finding in report.of("missing", "differs"):
        what = f"op {finding.name}" if finding.kind == "op" else finding.name
        note = f": {finding.note}" if finding.note else ""
        print(f"  line {finding.line:<4} {finding.status:8} {what}{note}")
    works = report.of("works")
    _show_list("works", [f for f in works if f.kind != "op"])
    _show_list("ops", [f for f in works if f.kind == "op"])
    if not report.findings:
        print("  uses no name of paddle")


def _show_list(title: str, findings: list[Finding]) -> None:
    """Names with their lines, some to a line."""
    lines: dict[str, list[int]] = defaultdict(list)
    for finding in findings:
        lines[finding.name].append(finding.line)
    text = f"  {title}:"
    for name in sorted(lines):
        item = f" {name} ({', '.join(map(str, lines[name]))})"
        if len(text) + len(item) > 88:
            print(text)
            text = "   "
        text += item + ","
    if lines:
        print(text.rstrip(","))
