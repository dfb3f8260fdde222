"""Every public name of the reference is here, or stands in a list that only shrinks.

The names are recorded (tests/golden/oracle/public_names.py). What is not there stands
in tests/golden/public_absent.txt, and what takes other parameters in
tests/golden/public_signatures.txt. After adding names, run this file as a script: it
takes them off the lists (and refuses to put anything on them).
"""

from __future__ import annotations

import inspect
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluidx import compat
from fluidx.compat import names
from fluidx.compat.finder import find_module

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED: dict[str, dict[str, Any]] = json.loads(
    lzma.decompress((GOLDEN / "oracle" / "public_names.json.xz").read_bytes())
)
ABSENT = GOLDEN / "public_absent.txt"
OTHER = GOLDEN / "public_signatures.txt"

#: attributes of objects, which classes do not show
ON_OBJECTS = {
    *("Variable.name", "Variable.type", "Parameter.name", "Parameter.type"),
    *("Block.idx", "Block.parent_idx", "Block.forward_block_idx"),
    *("LayerHelper.name", "LayerHelper.layer_type"),
    *("LayerHelperBase.name", "LayerHelperBase.layer_type"),
}


def parameters(signature: str) -> list[str]:
    """The parameters that a recorded signature names."""
    text = signature
    for odd in ("<object>", "<type>", "VarType.LOD_TENSOR"):
        text = text.replace(odd, "None")
    scope: dict[str, Any] = {}
    exec(f"def recorded{text}: ...", scope)
    return list(inspect.signature(scope["recorded"]).parameters)


def differs(value: Any, signature: str) -> bool:
    """Whether a function takes parameters of other names."""
    if not signature.startswith("("):
        return False
    try:
        wanted, mine = parameters(signature), inspect.signature(value)
    except (SyntaxError, TypeError, ValueError):
        return False
    general = {"args", "kwargs"} | {"arg", "_ignored"}
    return [n for n in mine.parameters if n not in general] != [
        n for n in wanted if n not in general
    ]


def look(module: str) -> Iterator[tuple[str, str]]:
    """("absent" or "other", full name) for all of a module that is not as recorded."""
    try:
        found = find_module(module)
    except ImportError:
        yield "absent", module
        return
    for name, what in RECORDED[module].items():
        full = f"{module}.{name}"
        try:
            value = getattr(found, name)
        except (AttributeError, ImportError):
            yield "absent", full
            continue
        if isinstance(what, str):
            if differs(value, what):
                yield "other", full
            continue
        for member, signature in what.items():
            if member == "init" or f"{name}.{member}" in ON_OBJECTS:
                continue
            if not hasattr(value, member):
                yield "absent", f"{full}.{member}"
            elif differs(getattr(value, member), signature):
                yield "other", f"{full}.{member}"


def all_of() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"absent": set(), "other": set()}
    compat.install_as_paddle(old_names=False)
    try:
        for module in RECORDED:
            for kind, name in look(module):
                found[kind].add(name)
    finally:
        compat.uninstall()
    return found


def listed(path: Path) -> set[str]:
    return set(path.read_text().split())


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    return all_of()


@pytest.mark.parametrize(("kind", "path"), [("absent", ABSENT), ("other", OTHER)])
def test_the_lists_only_shrink(found, kind, path):
    assert found[kind] - listed(path) == set()  # new gaps
    assert listed(path) - found[kind] == set()  # filled: run this file as a script


def test_what_is_absent_says_so(paddle):
    with pytest.raises(ModuleNotFoundError, match="slim"):
        find_module("paddle.fluid.contrib.slim.core")
    with pytest.raises(ModuleNotFoundError, match=r"'paddle.sysconfig': fluidx has no"):
        find_module("paddle.sysconfig")
    for name in sorted(listed(ABSENT)):
        module, _, last = name.rpartition(".")
        if name in RECORDED or module not in RECORDED or module in listed(ABSENT):
            continue
        owner = find_module(module)
        with pytest.raises((AttributeError, ImportError), match=last):
            getattr(owner, last)


def test_reasons_are_for_what_is_absent():
    there = []
    for name in names.ABSENT:
        try:
            find_module(f"paddle.fluid.{name}")
        except ImportError:
            continue
        there.append(name)
    assert there == []


def main() -> None:
    for path, now in zip((ABSENT, OTHER), all_of().values()):
        new = now - listed(path) if path.exists() else set()
        if new:
            raise SystemExit(f"{path.name} would grow: {sorted(new)}")
        path.write_text("\n".join(sorted(now)) + "\n")


if __name__ == "__main__":
    main()
