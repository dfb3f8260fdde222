"""chunk_eval: the reference's counts, and one case by hand for each scheme."""

from __future__ import annotations

import numpy as np
import pytest
from opcase import OpCase, run_op, suite
from replay_oracle import oracle_suite

test_against_reference = oracle_suite("chunk")


def _column(labels: list[int]) -> np.ndarray:
    return np.array(labels, "i8").reshape(-1, 1)


def _case(scheme: str, found: list[int], true: list[int], counts: list[int]) -> OpCase:
    many, wanted, right = counts
    return OpCase(
        "chunk_eval",
        {"Inference": _column(found), "Label": _column(true)},
        {"num_chunk_types": 2, "chunk_scheme": scheme},
        {
            "Precision": np.array([right / many if many else 0]),
            "Recall": np.array([right / wanted if wanted else 0]),
            "NumInferChunks": np.array([many]),
            "NumLabelChunks": np.array([wanted]),
            "NumCorrectChunks": np.array([right]),
        },
        scheme,
        lod={"Inference": [[0, len(true)]], "Label": [[0, len(true)]]},
        dtypes=["float32"],
    )


CASES = [
    # B0 I0 O B1 B1 I1 against B0 I0 O B1 I1 I1: the second ones differ in extent
    _case("IOB", [0, 1, 4, 2, 2, 3], [0, 1, 4, 2, 3, 3], [3, 2, 1]),
    # I0 E0 E0 O E1 against I0 E0 I0 O E1: a chunk may end without its E
    _case("IOE", [0, 1, 1, 4, 3], [0, 1, 0, 4, 3], [3, 3, 3]),
    # B0 E0 S0 O S1 against B0 I0 E0 O S1
    _case("IOBES", [0, 2, 3, 8, 7], [0, 1, 2, 8, 7], [3, 2, 1]),
    _case("plain", [0, 0, 1, 2, 1], [0, 0, 1, 1, 2], [3, 2, 1]),
    _case("IOB", [], [], [0, 0, 0]),
]
test_chunk = suite(CASES)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_labels_out_of_range_are_refused(wrong: int) -> None:
    x = {"Inference": np.array([[wrong]]), "Label": np.array([[0]])}
    with pytest.raises(ValueError, match="chunk_eval: Inference must hold labels"):
        run_op("chunk_eval", x, {"num_chunk_types": 2}, lod={"Label": [[0, 1]]})


def test_more_steps_than_the_batch_has_are_refused() -> None:
    x = {k: np.zeros((1, 2), "i8") for k in ("Inference", "Label")}
    x["SeqLength"] = np.array([3])
    with pytest.raises(ValueError, match="SeqLength 3 is more than the 2 steps"):
        run_op("chunk_eval", x, {"num_chunk_types": 2})


def test_a_batch_without_sequences_is_refused() -> None:
    x = {k: np.zeros((2, 1), "i8") for k in ("Inference", "Label")}
    with pytest.raises(ValueError, match="chunk_eval: Label has no LoD"):
        run_op("chunk_eval", x, {"num_chunk_types": 2})
