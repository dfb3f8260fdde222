"""The inference API gives what the reference gave for the same calls."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fluidx as fluid
from fluidx import core

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
RECORDED = json.loads((ORACLE / "inference.json").read_text())


def cases() -> ModuleType:
    path = ORACLE / "inference_cases.py"
    spec = importlib.util.spec_from_file_location("inference_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = str(tmp_path_factory.mktemp("model"))
    return json.loads(json.dumps(cases().all_cases(fluid, core, folder)))


def near(mine: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(
            near(mine[k], theirs[k]) for k in theirs
        )
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(near, mine, theirs))
    if isinstance(theirs, float):
        return mine == pytest.approx(theirs, rel=1e-6, abs=1e-7)
    return type(mine) is type(theirs) and mine == theirs


def test_nothing_is_left_out(found: Any) -> None:
    assert {k: set(v) for k, v in found.items()} == {
        k: set(v) for k, v in RECORDED.items()
    }


@pytest.mark.parametrize(
    ("part", "name"), [(p, n) for p, held in RECORDED.items() for n in held]
)
def test_as_recorded(found: Any, part: str, name: str) -> None:
    mine, theirs = found[part][name], RECORDED[part][name]
    assert near(mine, theirs), f"{mine}\n{theirs}"
