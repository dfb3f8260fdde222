"""Loops, branches, sampled costs: programs and numbers are the reference's."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.oracle.control_flow import CASES, build, run

import fluidx as fluid

HERE = Path(__file__).parents[1] / "golden"
DATA = json.loads(gzip.decompress((HERE / "oracle/control_flow.json.gz").read_bytes()))

#: what the reference computes wrongly; test_control_flow_gradients.py has the truth
WRONG = {
    "branches_in_loop": (1, 0, -1),
    "cond_overwrites": (1, 0),
    "loop_in_branch": (-1,),
    "while_loop": (1, 0, -1),
    "while_overwrites": (1, 0, -1),
}


def _load(name: str) -> Any:
    path = HERE / "transpiler" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"golden_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dump, compare = _load("dump"), _load("compare")


@pytest.mark.parametrize("name", CASES)
def test_program_is_the_references(name: str) -> None:
    main, _, _ = build(fluid, name)
    mine = json.loads(json.dumps(dump.dump(main)))
    assert compare.compare(DATA[name]["main"], mine) == []


def _differences(name: str, sign: int) -> list[str]:
    wanted = DATA[name]["runs"][str(sign)]
    got = run(fluid, *build(fluid, name), sign)
    assert got.keys() == wanted.keys()
    return [
        key
        for key, (shape, numbers) in wanted.items()
        if got[key][0] != shape
        or not np.allclose(got[key][1], numbers, rtol=2e-5, atol=2e-6)
    ]


@pytest.mark.parametrize("sign", [1, 0, -1])
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_the_references(name: str, sign: int) -> None:
    found = _differences(name, sign)
    if sign in WRONG.get(name, ()):
        assert any(key.endswith("@GRAD") for key in found), "no longer an exception"
        assert not any(key.startswith("mean") for key in found), "forward values"
    else:
        assert found == []
