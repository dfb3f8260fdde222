"""The functions for files have the signatures that the reference's have."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import fluidx as fluid
from fluidx import io

GOLDEN = Path(__file__).parents[1] / "golden" / "io_api.json"
RECORDED = json.loads(GOLDEN.read_text())
OWN = {"MissingFileError", "ModelFileError"}


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_signatures(name):
    scope = {}
    exec(f"def recorded{RECORDED[name]}: ...", scope)
    assert parameters(getattr(io, name)) == parameters(scope["recorded"])


def test_names():
    mine = {n for n in io.__all__ if getattr(io, n).__module__.startswith("fluidx.io")}
    assert mine == set(RECORDED) | OWN
    assert fluid.save is io.save
    assert fluid.load is io.load
    assert all(inspect.getdoc(getattr(io, n)) for n in io.__all__)
