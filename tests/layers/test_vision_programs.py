"""The programs of vision, ranking and similarity layers are the reference's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import fluidx

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layers as oracle  # noqa: E402
import vision_cases  # noqa: E402
from compact import compact  # noqa: E402

sys.path.remove(str(ORACLE))

GOLDEN = json.loads((ORACLE / "vision_layers.json").read_text())
# the reference calls the positions floats, which they are not when it runs
MASKS = {f"{name}.tmp_1" for name in ("a", "max_pool2d_with_index_0")}
MASKS |= {"max_pool2d_with_index_1.tmp_1", "max_pool3d_with_index_0.tmp_1"}


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(vision_cases.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, vision_cases.cases()[case])
    for role in ("main", "startup"):
        mine = json.loads(json.dumps(compact(made[role])))
        theirs = GOLDEN[case][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            assert block[0] == wanted[0]
            assert sorted(block[1]) == sorted(wanted[1])
            for name, facts in wanted[1].items():
                if case == "pools" and name in MASKS:
                    assert block[1][name].pop("dtype") == "INT32"
                assert block[1][name] == facts, name
