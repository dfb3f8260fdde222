"""The programs of sequence layers are the reference's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import fluidx

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layers as oracle  # noqa: E402
import sequence_cases  # noqa: E402
from compact import compact  # noqa: E402

sys.path.remove(str(ORACLE))

GOLDEN = json.loads((ORACLE / "sequence_layers.json").read_text())


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(sequence_cases.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, sequence_cases.cases()[case])
    for role in ("main", "startup"):
        mine = json.loads(json.dumps(compact(made[role])))
        theirs = GOLDEN[case][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            assert block[0] == wanted[0]
            assert sorted(block[1]) == sorted(wanted[1])
            for name, facts in wanted[1].items():
                assert block[1][name] == facts, name
