"""Every example in a docstring runs, with fresh programs, and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings
from types import ModuleType

import pytest

import fluidx as fluid
from fluidx.ir import unique_name
from fluidx.tensor import Scope, scope_guard

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# modules that are commands run their job when imported
COMMANDS = ("__main__", "launch_ps", "die_with_parent")


def modules() -> list[str]:
    found = ["fluidx"]
    for module in pkgutil.walk_packages(fluid.__path__, "fluidx."):
        if module.name.rpartition(".")[2] not in COMMANDS:
            found.append(module.name)
    for part in ("kernels", "transpiler"):
        package = importlib.import_module(f"fluidx.{part}")
        inside = pkgutil.iter_modules(package.__path__, f"fluidx.{part}.")
        found += [m.name for m in inside]
    return sorted(set(found))


def examples(module: ModuleType) -> list[doctest.DocTest]:
    return [t for t in doctest.DocTestFinder().find(module) if t.examples]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    for example in examples(module):
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            unique_name.guard(),
            scope_guard(Scope()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            said: list[str] = []
            runner.run(example, out=said.append)
        assert runner.failures == 0, "".join(said)


def test_examples_are_found() -> None:
    counts = [len(examples(importlib.import_module(n))) for n in modules()]
    assert sum(counts) > 80
