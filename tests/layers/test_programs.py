"""The programs that layers build are the reference's, names included."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidx

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layers as oracle  # noqa: E402
from compact import compact  # noqa: E402

layer_cases = oracle.layer_cases
sys.path.remove(str(ORACLE))

GOLDEN = json.loads((ORACLE / "layers.json").read_text())
# (case, variable): its dtype there; the values are bool there, too
KNOWN = {
    ("comparisons", "isinf_0.tmp_0"): "FP32",
    ("comparisons", "isnan_0.tmp_0"): "FP32",
}


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(layer_cases.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, layer_cases.cases()[case])
    for role in ("main", "startup"):
        mine = json.loads(json.dumps(compact(made[role])))
        theirs = GOLDEN[case][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            assert block[0] == wanted[0]
            _same_variables(case, block[1], wanted[1])


def _same_variables(case: str, mine: Any, theirs: Any) -> None:
    assert sorted(mine) == sorted(theirs)
    for name, facts in theirs.items():
        known = KNOWN.get((case, name))
        if known:
            assert facts.get("dtype", "FP32") == known
            facts = {**facts, "dtype": mine[name]["dtype"]}
        assert mine[name] == facts, name
