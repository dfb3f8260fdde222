"""Small training programs, a family each, are the reference's op by op."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidx

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layer_cases_small  # noqa: E402
import layers as oracle  # noqa: E402

sys.path.remove(str(ORACLE))

with lzma.open(ORACLE / "layers_small.json.xz", "rt") as _file:
    GOLDEN = json.load(_file)

KNOWN: dict[tuple[str, str], dict[str, Any]] = {}


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(layer_cases_small.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, layer_cases_small.cases()[case])
    for role in ("main", "startup"):
        mine = json.loads(json.dumps(oracle.compact(made[role])))
        theirs = GOLDEN[case][role]
        assert len(mine) == len(theirs)
        for block, wanted in zip(mine, theirs):
            assert block[0] == wanted[0]
            for name, facts in wanted[1].items():
                facts = {**facts, **KNOWN.get((case, name), {})}
                assert block[1][name] == facts, name
            assert sorted(block[1]) == sorted(wanted[1])


def test_the_recorded_programs_are_well_over_sixty() -> None:
    count = len(GOLDEN)
    for name in ("layers", "layers_dense", "vision_layers", "sequence_layers"):
        count += len(json.loads((ORACLE / f"{name}.json").read_text()))
    assert count >= 110
    families = {name.partition("_")[0] for name in GOLDEN}
    assert {"loss", "metric", "schedule", "norm", "clip", "resize"} <= families
