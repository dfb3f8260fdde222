"""The programs of more layers are the reference's (cases of layer_cases_dense)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import fluidx

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
sys.path.insert(0, str(ORACLE))
import layer_cases_dense  # noqa: E402
import layers as oracle  # noqa: E402

sys.path.remove(str(ORACLE))

GOLDEN = json.loads((ORACLE / "layers_dense.json").read_text())

# (case, variable) -> what is known of it here and not there: shapes that follow from
# other inputs, and the dtype of ids
KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("choices", "sampling_id_0.tmp_0"): {"dtype": "INT64"},
    ("moves", "expand_as_0.tmp_0"): {"shape": [4, 4]},
    ("paddings", "q.tmp_0"): {"shape": [-1, 3, -1, -1]},
}


def test_all_cases_are_recorded() -> None:
    assert sorted(GOLDEN) == sorted(layer_cases_dense.cases())


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_programs_equal_the_reference(case: str) -> None:
    made = oracle.build(fluidx, layer_cases_dense.cases()[case])
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
