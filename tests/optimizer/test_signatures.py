"""Optimizers, clips, regularizers and backward have the recorded signatures."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import fluidx.backward
import fluidx.clip
import fluidx.optimizer
import fluidx.regularizer

API = json.loads((Path(__file__).parents[1] / "golden/optimizer_api.json").read_text())
HOMES = {
    "fluid.optimizer": fluidx.optimizer,
    "fluid.clip": fluidx.clip,
    "fluid.regularizer": fluidx.regularizer,
    "fluid.backward": fluidx.backward,
}
#: names that fluidx does not have
MISSING: set[str] = set()
NAMES = [(h, n) for h, names in API.items() for n in names if n not in MISSING]


def _recorded(text: str) -> list[tuple[str, Any]]:
    scope: dict[str, Any] = {}
    exec(f"def recorded{text}: ...", scope)
    return _parameters(scope["recorded"])


def _parameters(function: Any) -> list[tuple[str, Any]]:
    found = inspect.signature(function).parameters.values()
    return [
        (p.name, list(p.default) if isinstance(p.default, tuple) else p.default)
        for p in found
    ]


@pytest.mark.parametrize(("home", "name"), NAMES, ids=[n for _, n in NAMES])
def test_signature(home: str, name: str) -> None:
    mine, recorded = getattr(HOMES[home], name), API[home][name]
    assert name in HOMES[home].__all__
    if isinstance(recorded, str):
        assert _parameters(mine) == _recorded(recorded)
        return
    assert _parameters(mine.__init__) == _recorded(recorded["init"])
    for member, signature in recorded["members"].items():
        assert _parameters(getattr(mine, member)) == _recorded(signature), member


def test_missing_names_are_missing() -> None:
    for name in MISSING:
        assert not hasattr(fluidx.optimizer, name)
