"""Programs from dumps (what `dump.py` makes of a program), and the goldens' dumps."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fluidx.ir import Block, Operator, Parameter, Program, Variable
from fluidx.kernels import VarType, has

FOLDER = Path(__file__).parent / "transpiler"


@functools.cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(FOLDER / "out.zip")


@functools.cache
def exceptions() -> dict[str, Any]:
    """Pairs where the reference refuses, crashes, or makes what cannot run."""
    return json.loads((FOLDER / "exceptions.json").read_text())  # type: ignore[no-any-return]


@functools.cache
def golden(name: str) -> dict[str, Any]:
    """What the reference made: ``PROGRAM--CONFIG`` or ``local/PROGRAM``."""
    return json.loads(_archive().read(f"{name}.json"))  # type: ignore[no-any-return]


@functools.cache
def names(prefix: str = "") -> list[str]:
    """Goldens by name: those of `prefix` "local/", or all."""
    files = (n.removesuffix(".json") for n in _archive().namelist())
    return sorted(
        n for n in files if n.startswith(prefix) and ("--" in n or "local/" in n)
    )


def dumps(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(role and kind, dump) of every program in a golden."""
    found = golden(name)
    for role, part in found.get("roles", {"": found}).items():
        for kind in ("main", "startup"):
            if kind in part:
                yield f"{role} {kind}".strip(), part[kind]


def load(dumped: dict[str, Any], defaults: bool = True) -> Program:
    """The program of a dump: nothing is checked, nothing inferred.

    defaults: fill in what dumps leave out.
    """
    program = Program()
    program.blocks = [Block(program, b["idx"], b["parent"]) for b in dumped["blocks"]]
    for block, facts in zip(program.blocks, dumped["blocks"]):
        for name, var in facts["vars"].items():
            block.vars[name] = _variable(block, name, dict(var))
        for op in facts["ops"]:
            made = _op(block, op)
            if defaults and has(made.type):
                made.fill_defaults()
            block._adopt(made)
    return program


def _variable(block: Block, name: str, facts: dict[str, Any]) -> Variable:
    kind = VarType[facts.pop("type", "LOD_TENSOR")]
    dtype = VarType[facts.pop("dtype", "FP32")]
    made = Parameter if facts.pop("parameter", False) else Variable
    facts.setdefault("shape", ())
    return made(block, name=name, type=kind, dtype=dtype, **facts)


def _op(block: Block, facts: dict[str, Any]) -> Operator:
    attrs = {k: _value(block.program, v) for k, v in facts["attrs"].items()}
    return Operator(block, facts["type"], facts["in"], facts["out"], attrs)


def _value(program: Program, value: Any) -> Any:
    if isinstance(value, dict):
        return program.blocks[value["block"]]
    if isinstance(value, list):
        return [_value(program, v) for v in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
