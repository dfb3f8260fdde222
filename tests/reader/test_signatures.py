"""Public names of readers, loaders and datasets have the reference's signatures."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import fluidx as fluid
import fluidx.dataset_factory
from fluidx import data_feeder, executor, reader

API = json.loads((Path(__file__).parents[1] / "golden" / "reader_api.json").read_text())
HOMES = {
    "fluid": fluid,
    "fluid.io": fluid.io,
    "fluid.layers": fluid.layers,
    "fluid.dataset": fluidx.dataset_factory,
    "fluid.executor": executor,
    "paddle.reader": reader,
    "paddle.fluid.data_feeder": data_feeder,
}
CASES = [(home, name) for home in HOMES for name in API[home]]


def parameters(signature):
    """(name, kind, default) of each but self."""
    found = inspect.Signature.from_callable(signature).parameters.values()
    return [(p.name, p.kind, p.default) for p in found if p.name != "self"]


def recorded(text):
    scope = {}
    exec(f"def f{text}: ...", scope)
    return parameters(scope["f"])


@pytest.mark.parametrize(("home", "name"), CASES)
def test_signature(home, name):
    mine, entry = getattr(HOMES[home], name), API[home][name]
    if isinstance(entry, str):
        assert parameters(mine) == recorded(entry)
        return
    assert parameters(mine) == recorded(entry["init"])
    for member, text in entry["members"].items():
        found = inspect.getattr_static(mine, member)
        if text == "property":
            assert isinstance(found, property)
        else:
            assert parameters(getattr(mine, member)) == recorded(text)
