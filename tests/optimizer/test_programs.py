"""What `minimize` appends, against the reference's programs in odd settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden.oracle import optimizers

import fluidx as fluid

DATA = json.loads(
    (Path(__file__).parents[1] / "golden/oracle/optimizers.json").read_text()
)


@pytest.mark.parametrize("name", sorted(optimizers.PROGRAMS))
def test_same_ops_as_the_reference(name: str) -> None:
    got = json.loads(json.dumps(optimizers.ops_of(fluid, name)))
    want = DATA[name]
    for part in ("main", "startup"):
        assert [o[0] for o in got[part]] == [o[0] for o in want[part]]
        for ours, theirs in zip(got[part], want[part]):
            kept = {k: v for k, v in ours[5].items() if k in theirs[5]}
            assert [*ours[:5], kept] == theirs
    assert got["pairs"] == want["pairs"]
