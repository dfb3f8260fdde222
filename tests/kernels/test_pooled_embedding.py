"""fused_embedding_seq_pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite
from replay_oracle import oracle_suite

IDS = np.array([[1], [4], [4], [0], [2]])


def _sums(x: Any, a: dict[str, Any]) -> Any:
    rows = x["W"][x["Ids"][:, 0]]
    rows[x["Ids"][:, 0] == a.get("padding_idx", -1)] = 0
    return {"Out": np.stack([part.sum(0) for part in np.split(rows, [2, 2])])}


CASES = [
    OpCase(
        "fused_embedding_seq_pool",
        {"W": normal(6, 3), "Ids": IDS},
        attrs,
        _sums,
        name,
        grad=("W",),
        lod={"Ids": [[0, 2, 2, 5]]},
    )
    for name, attrs in (("plain", {}), ("padding", {"padding_idx": 4}))
]
CASES.append(
    OpCase(
        "fused_embedding_seq_pool",
        {"W": np.arange(18).reshape(6, 3), "Ids": IDS},
        {},
        _sums,
        "integers",
        grad=(),
        lod={"Ids": [[0, 2, 2, 5]]},
    )
)
CASES.append(
    OpCase(
        "fused_embedding_seq_pool",
        {"W": normal(6, 3), "Ids": IDS[:0]},
        {},
        {"Out": np.zeros((2, 3))},
        "no_row",
        grad=(),
        lod={"Ids": [[0, 0, 0]]},
    )
)
test_pooled_embedding = suite(CASES)
test_against_reference = oracle_suite("partial_ops", "fused_embedding_seq_pool")


def test_ids_must_be_rows_of_the_table() -> None:
    given = {"W": normal(4, 3), "Ids": IDS}
    with pytest.raises(IndexError, match="4"):
        run_op("fused_embedding_seq_pool", given, {}, lod={"Ids": [[0, 5]]})
    with pytest.raises(ValueError, match="Ids has no LoD"):
        run_op("fused_embedding_seq_pool", {"W": normal(6, 3), "Ids": IDS}, {})
