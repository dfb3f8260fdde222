"""What of a script works on fluidx, without running it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from fluidx import kernels

from . import old_names
from .differences import difference
from .finder import find_module
from .hints import module_hint
from .submodules import open_layers
from .uses import Use, uses_of

__all__ = ["Finding", "Report", "check", "files_of"]

WORKS, DIFFERS, MISSING = "works", "differs", "missing"


@dataclass(frozen=True)
class Finding:
    """One use: kind "name", "op", "numpy" or "python"; status works, differs or
    missing; note: how it differs, or what there is instead."""

    line: int
    kind: str
    name: str
    status: str
    note: str = ""


@dataclass
class Report:
    """All uses of one file. error: why it could not be read."""

    file: str
    findings: list[Finding] = field(default_factory=list)
    error: str = ""

    def of(self, *statuses: str) -> list[Finding]:
        return [f for f in self.findings if f.status in statuses]

    @property
    def missing(self) -> list[Finding]:
        return self.of(MISSING)


def files_of(paths: Iterable[str]) -> list[Path]:
    """The files, and all ``.py`` files of the folders."""
    found: list[Path] = []
    for path in map(Path, paths):
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def check(path: Path) -> Report:
    """Look up everything that a file uses."""
    open_layers()
    report = Report(str(path))
    try:
        uses = uses_of(path.read_bytes(), str(path))
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        report.error = f"{where}not Python 3: {error.msg}"
        return report
    except (RecursionError, MemoryError):
        report.error = "nested too deeply"
        return report
    except (OSError, ValueError) as error:
        report.error = str(error)
        return report
    old = old_names.gone()
    seen = set()
    for use in uses:
        for finding in _findings(use, old):
            if finding not in seen:
                seen.add(finding)
                report.findings.append(finding)
    return report


def _findings(use: Use, old: set[str]) -> list[Finding]:
    if use.kind == "op":
        return [_op(use)]
    if use.kind == "python":
        return [Finding(use.line, "python", use.name, MISSING, "Python 2 only")]
    if use.kind in ("old", "numpy"):
        return _old(use, old)
    if use.kind == "import":
        why = module_hint(use.name)
        return [Finding(use.line, "python", use.name, MISSING, why)] if why else []
    found = _name(use)
    layer = use.name.removeprefix("paddle.fluid.layers.")
    # the layer fc builds other ops; the op fc is of saved models only
    own = layer != "fc" and kernels.has(layer)
    if found and found[0].status != MISSING and own:
        found.append(Finding(use.line, "op", layer, WORKS))
    return found


def _op(use: Use) -> Finding:
    try:
        kernels.find(use.name)
    except KeyError as error:
        return Finding(use.line, "op", use.name, MISSING, str(error.args[0]))
    return Finding(use.line, "op", use.name, WORKS)


def _old(use: Use, old: set[str]) -> list[Finding]:
    if use.name.startswith("float("):
        note = "an array with dimensions converts to no number; take x.item()"
        return [Finding(use.line, "numpy", use.name, DIFFERS, note)]
    if use.name in old:
        numpy = use.name.startswith("numpy.")
        note = f"gone from {'NumPy' if numpy else 'Python'}; `fluidx run` restores it"
        kind = "numpy" if numpy else "python"
        return [Finding(use.line, kind, use.name, DIFFERS, note)]
    return []


# ---------------------------------------------------------------- names of paddle


def _shown(name: str) -> str:
    return name.removeprefix("paddle.") if name.startswith("paddle.fluid") else name


def _name(use: Use) -> list[Finding]:
    shown = _shown(use.name)
    try:
        value = resolve(use.name)
    except LookupError as error:
        if use.kind in ("star", "maybe"):
            return []
        return [Finding(use.line, "name", shown, MISSING, str(error.args[0]))]
    if use.kind == "star" and isinstance(value, ModuleType):
        return []
    note = difference(use.name.removeprefix("paddle.fluid."))
    status = DIFFERS if note else WORKS
    found = [Finding(use.line, "name", shown, status, note)]
    wrong = _wrong_call(value, use)
    if wrong:
        found.append(Finding(use.line, "name", f"{shown}(...)", MISSING, wrong))
    return found


_known: dict[str, tuple[Any, str | None]] = {}


def resolve(name: str) -> Any:
    """The object of fluidx behind a name of ``paddle``; LookupError says what lacks."""
    if name not in _known:
        try:
            _known[name] = _looked_up(name), None
        except LookupError as error:
            _known[name] = None, str(error.args[0])
    value, why = _known[name]
    if why is not None:
        raise LookupError(why)
    return value


def _looked_up(name: str) -> Any:
    parts = name.split(".")
    value: Any = find_module(parts[0])
    for count, part in enumerate(parts[1:], 2):
        value = _below(value, part, ".".join(parts[:count]))
    return value


def _below(owner: Any, part: str, name: str) -> Any:
    why = ""
    if isinstance(owner, ModuleType):
        try:
            if "." in name.removeprefix("paddle."):
                return getattr(owner, part)
        except AttributeError as error:
            why = str(error).partition(": ")[2]
        try:
            return find_module(name)
        except ModuleNotFoundError as error:
            why = why or str(error).partition(": ")[2]
        except ImportError as error:
            raise LookupError(str(error)) from None
        if part in getattr(owner, "__all__", ()):  # paddle.__version__
            return getattr(owner, part)
    else:
        try:
            return getattr(owner, part)
        except AttributeError:
            pass
    raise LookupError(why or _near(owner, part))


def _near(owner: Any, part: str) -> str:
    names = [n for n in dir(owner) if not n.startswith("_")]
    near = difflib.get_close_matches(part, names, 3)
    return f"did you mean {', '.join(near)}?" if near else "fluidx has no such name"


def _wrong_call(value: Any, use: Use) -> str:
    """What a call passes that is not taken; "" if all is."""
    if use.positional is None or not callable(value):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    kinds = {p.kind for p in parameters}
    taken = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        wrong = [a for a in use.arguments if a not in taken]
        if wrong:
            near = difflib.get_close_matches(wrong[0], taken, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            return f"takes no argument {', '.join(wrong)}{hint}"
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        most = sum(p.kind in (0, 1) for p in parameters)
        if use.positional > most:
            return f"takes {most} positional arguments, given {use.positional}"
    return ""
