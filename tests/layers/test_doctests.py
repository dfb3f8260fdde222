"""The examples in the docstrings of layers and their helpers run as written."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import fluidx.layers

MODULES = [
    "fluidx.average",
    "fluidx.initializer",
    "fluidx.input",
    "fluidx.layer_helper",
    "fluidx.metrics",
    "fluidx.nets",
    "fluidx.param_attr",
    *(f"fluidx.layers.{m.name}" for m in pkgutil.iter_modules(fluidx.layers.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [t for n in MODULES for t in finder.find(importlib.import_module(n))]
    assert sum(len(t.examples) > 0 for t in tests) > 30
