"""Modules that scripts import have the reference's names and signatures."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from fluidx.compat.finder import find_module

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden/compat_api.json").read_text()
)

#: names of the reference that are not there
ABSENT = {
    "paddle.fluid.framework": {"ComplexVariable"},
}
#: where a parameter is fluidx's own
OTHER = {"launch_ps.parse_args"}


def names_of(recorded):
    """The parameters that a recorded signature names."""
    shown = recorded.replace("<object>", "None").replace("VarType.LOD_TENSOR", "None")
    scope = {}
    exec(f"def recorded{shown}: ...", scope)
    return list(inspect.signature(scope["recorded"]).parameters)


def members(module):
    """(name below the module, its recorded signature)."""
    for name, entry in RECORDED[module].items():
        if isinstance(entry, str):
            yield name, entry
            continue
        yield name, None
        yield from ((f"{name}.{m}", s) for m, s in entry.items() if m != "init")


def found(module, name):
    value = find_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("module", sorted(RECORDED))
def test_names_and_signatures(module):
    absent, wrong = set(), []
    for name, signature in members(module):
        try:
            value = found(module, name)
        except AttributeError:
            absent.add(name)
            continue
        if signature is None or f"{module.rpartition('.')[2]}.{name}" in OTHER:
            continue
        mine = list(inspect.signature(value).parameters)
        if mine != names_of(signature):
            wrong.append((name, mine, names_of(signature)))
    alone = {n for n in absent if n.partition(".")[0] not in absent or "." not in n}
    assert alone == ABSENT.get(module, set())
    assert wrong == []
